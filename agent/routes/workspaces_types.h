// Requests and answers of /v1/workspaces.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

inline constexpr std::array<std::string_view, 3> kDiskEnforcement = {"tmpfs", "project_quota", "measured"};

struct WorkspaceCreate {
  std::string name;
  std::optional<std::int64_t> disk_bytes, idle_seconds;
  std::optional<bool> persistent;
};
struct WorkspaceDisk {
  std::int64_t bytes = 0, inodes = 0, limit = 0;
  std::string enforced_by;
};
struct WorkspaceInfo {
  std::string name, state, created_at, home;
  std::int64_t sessions = 0;
  std::optional<std::int64_t> idle_seconds;
  std::optional<bool> persistent;
  std::optional<WorkspaceDisk> disk;
  std::optional<std::string> full;
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
      field("disk_bytes", &WorkspaceCreate::disk_bytes, "Size of the home; default and most: the server's limit").min(1),
      field("idle_seconds", &WorkspaceCreate::idle_seconds, "Seconds without a session after which it ends").min(1),
      field("persistent", &WorkspaceCreate::persistent,
            "The home is a directory on the server's disk, found again by the next persistent workspace of this name, after a "
            "restart, too, until one is deleted. Otherwise it is memory, and ends with the workspace")};
};
template <>
struct Schema<WorkspaceDisk> {
  static constexpr std::string_view name = "WorkspaceDisk";
  static constexpr auto fields = std::tuple{field("bytes", &WorkspaceDisk::bytes, "Used of the home"),
                                            field("inodes", &WorkspaceDisk::inodes, "Files and directories in it"),
                                            field("limit", &WorkspaceDisk::limit, "Limit of the home in bytes"),
                                            field("enforced_by", &WorkspaceDisk::enforced_by,
                                                  "tmpfs, project_quota: by the kernel, exactly. measured: looked at every few "
                                                  "seconds; beyond the limit its sessions end")
                                                .one_of(kDiskEnforcement)};
};
template <>
struct Schema<WorkspaceInfo> {
  static constexpr std::string_view name = "WorkspaceInfo";
  static constexpr auto fields = std::tuple{
      field("name", &WorkspaceInfo::name, "Its name, for X-Caisson-Workspace"),
      field("state", &WorkspaceInfo::state, "ready, paused, between these two pausing or resuming; or ending"),
      field("created_at", &WorkspaceInfo::created_at, "When it was made").format("date-time"),
      field("home", &WorkspaceInfo::home, "Where its sessions see their home"),
      field("sessions", &WorkspaceInfo::sessions, "Sessions that live in it"),
      field("idle_seconds", &WorkspaceInfo::idle_seconds, "Seconds without a session after which it ends; absent: never"),
      field("persistent", &WorkspaceInfo::persistent, "Whether its home outlives it"),
      field("disk", &WorkspaceInfo::disk, "The home; absent: it is a directory of the container, without a limit"),
      field("full", &WorkspaceInfo::full, "Why it takes no session now, for example because its home exceeds its limit"),
      field("limits", &WorkspaceInfo::limits,
            "Limits of all its sessions together: memory_bytes, processes, cpu_percent; and their mechanism")
          .defaulted()};
};
template <>
struct Schema<WorkspaceList> {
  static constexpr std::string_view name = "WorkspaceList";
  static constexpr auto fields = std::tuple{field("workspaces", &WorkspaceList::workspaces, "The default one is among them")};
};

}  // namespace caisson::routes
