// A workspace, the unit of tenancy: its sessions share a home, /tmp and a loopback network, have one uid, and stay together
// within its limits. Two workspaces share nothing but what policies grant to both. The manager owns them; the one that is
// called "default" serves clients that name none and lives as long as the launcher.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/json.h"
#include "launcher/base/loop.h"
#include "launcher/confine/build.h"
#include "launcher/confine/canary.h"
#include "launcher/confine/cgroup.h"

namespace caisson::session {

inline constexpr const char* kDefaultWorkspace = "default";
inline constexpr uid_t kFirstUid = 20101, kLastUid = 20999;  // one for each living workspace; none of T0's sessions has one

// A policy made ready in one workspace.
struct Domain {
  std::shared_ptr<const policy::Policy> policy;
  confine::Sources sources;
  std::shared_ptr<const confine::Template> prepared;  // nullptr before the domain's first use
  confine::ProbeResults canary;  // of a session of `prepared`, or of the domain's own where a request narrowed it
  std::int64_t checked_us = 0;
};

struct WorkspaceSettings {
  std::size_t most = 16;                  // the default one counts
  std::uint64_t disk_bytes = 512U << 20;  // the home's tmpfs, unless a smaller one is asked for
  std::int64_t idle_seconds = 3600;       // without a session, unless another time is asked for
  policy::Limits limits;                  // of all sessions of one: memory_bytes, processes, cpu_percent
};

struct WorkspaceRequest {
  std::string name;
  std::uint64_t disk_bytes = 0;
  std::int64_t idle_seconds = 0;
};
// Checks types and bounds. Errors: invalid_argument.
[[nodiscard]] Result<WorkspaceRequest> workspace_request(const json::Value& body, const WorkspaceSettings& settings);

struct Workspace : WorkspaceRequest {  // the default one: no disk_bytes, for its home is a directory, nor idle_seconds
  ~Workspace() {
    if (cgroup) (void)cgroup->remove();
  }
  confine::Workspace place;               // ids and namespaces
  std::string created_at, ending;         // why it ends, or ""
  std::map<std::string, Domain> domains;  // made when first asked for; the manager holds the default one's
  std::optional<confine::Cgroup> cgroup;
  Loop::TimerId idle = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> destroyers;  // connection and request to be answered at the end
};

// The plan's walls that keep workspaces apart: the first that is missing.
[[nodiscard]] std::optional<Mechanism> missing_wall(const confine::Plan& plan);
// {used_bytes, used_inodes, total_bytes, total_inodes, free_bytes} of the home, as its filesystem counts them.
[[nodiscard]] json::Value disk_use(const Workspace& workspace, const std::string& home);

}  // namespace caisson::session
