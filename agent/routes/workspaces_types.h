// Requests and answers of /v1/workspaces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

struct WorkspaceCreate {
  std::string name;
  std::optional<std::int64_t> disk_bytes, idle_seconds;
};
struct WorkspaceInfo {
  std::string name, state, created_at;
  std::int64_t sessions = 0;
  std::optional<std::int64_t> idle_seconds, disk_bytes, used_bytes, used_inodes;
  json::Value limits;
};
struct WorkspaceList {
  std::vector<WorkspaceInfo> workspaces;
};

template <>
struct Schema<WorkspaceCreate> {
  static constexpr std::string_view name = "WorkspaceCreateRequest";
  static constexpr auto fields = std::tuple{
      field("name", &WorkspaceCreate::name, "1 to 63 of a-z, 0-9, '.', '_' and '-'; begins with a letter or digit")
          .min_length(1)
          .max_length(63),
      field("disk_bytes", &WorkspaceCreate::disk_bytes, "Size of the home, in memory; default and most: the server's limit")
          .min(1),
      field("idle_seconds", &WorkspaceCreate::idle_seconds, "Ends after that long without a session").min(1)};
};
template <>
struct Schema<WorkspaceInfo> {
  static constexpr std::string_view name = "WorkspaceInfo";
  static constexpr auto fields = std::tuple{
      field("name", &WorkspaceInfo::name, "What X-Caisson-Workspace says"),
      field("state", &WorkspaceInfo::state, "ready, or ending"),
      field("created_at", &WorkspaceInfo::created_at, "When it was made").format("date-time"),
      field("sessions", &WorkspaceInfo::sessions, "Sessions that live in it"),
      field("idle_seconds", &WorkspaceInfo::idle_seconds, "Ends after that long without a session; absent: never"),
      field("disk_bytes", &WorkspaceInfo::disk_bytes, "Size of the home; absent: the home is a directory of the container"),
      field("used_bytes", &WorkspaceInfo::used_bytes, "Used of it"),
      field("used_inodes", &WorkspaceInfo::used_inodes, "Files and directories in it"),
      field("limits", &WorkspaceInfo::limits, "Of all its sessions together: memory_bytes, processes, cpu_percent; and by what")
          .defaulted()};
};
template <>
struct Schema<WorkspaceList> {
  static constexpr std::string_view name = "WorkspaceList";
  static constexpr auto fields = std::tuple{field("workspaces", &WorkspaceList::workspaces, "The default one is among them")};
};

}  // namespace caisson::routes
