// A workspace, the unit of tenancy: its sessions share a home, /tmp and a loopback network, have one uid, and stay together
// within its limits. Two workspaces share nothing but what policies grant to both. The one that is called "default" serves
// clients that name none and lives as long as the launcher.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/base/task.h"
#include "launcher/common/confine/canary.h"
#include "launcher/common/confine/cgroup.h"
#include "launcher/pid1/execute/session_builder.h"
#include "launcher/pid1/session/narrowings.h"
#include "launcher/pid1/session/settings.h"

namespace caisson::session {

inline constexpr const char* kDefaultWorkspace = "default";

// A policy made ready in one workspace.
struct Domain {
  std::shared_ptr<const policy::Policy> policy;  // as it was read; in force is that of the plan
  std::shared_ptr<const confine::Plan> plan;
  std::shared_ptr<Narrowings> narrowings;  // once it is prepared
  confine::Sources sources;
  confine::Closed closed;
  std::shared_ptr<const confine::Template> prepared;  // nullptr before the domain's first use
  confine::ProbeResults canary;  // of a session of `prepared`, or of the domain's own where a request narrowed it
  std::int64_t checked_us = 0;
};

struct WorkspaceRequest {
  std::string name;
  std::uint64_t disk_bytes = 0;
  std::int64_t idle_seconds = 0;
  bool persistent = false;  // its home is a directory that outlives it
};
[[nodiscard]] constexpr std::uint64_t disk_inodes(std::uint64_t disk_bytes) { return 1024 + disk_bytes / 16384; }
// Checks types and bounds. Errors: invalid_argument.
[[nodiscard]] Result<WorkspaceRequest> workspace_request(const json::Value& body, const WorkspaceSettings& settings);

struct Workspace : WorkspaceRequest {  // the default one: no disk_bytes nor idle_seconds
  explicit Workspace(Loop& loop) : turns(loop) {}
  ~Workspace() {
    if (cgroup) (void)cgroup->remove();
  }
  [[nodiscard]] bool is_default() const { return name == kDefaultWorkspace; }
  confine::Workspace place;                       // ids and namespaces
  std::string home_path, home;                    // of a home that is a directory; what caisson-homes calls it
  bool in_place = false;                          // sessions see it there: nothing can be mounted for them (T0)
  std::string enforced_by = "tmpfs";              // the home's limit; also "project_quota", "measured"
  json::Value use = json::Value::object(), full;  // as measured: {bytes, inodes}; why nothing is started, or null
  enum class Files { keep, remove, removing, removed } files = Files::keep;
  std::string created_at, ending;         // why it ends, or ""
  std::string state = "ready";            // "paused"; "pausing", "resuming" while that is being done
  std::string left;                       // what caisson-homes found stopped when it was paused: for it
  std::map<std::string, Domain> domains;  // made when first asked for; Domains holds the default one's
  std::optional<confine::Cgroup> cgroup;
  Turns turns;         // of whoever makes a domain ready in it
  unsigned users = 0;  // tasks in which it must not end
  Loop::TimerId idle = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> destroyers;  // connection and request to be answered at the end
};

// The walls that keep workspaces apart: the first that the policy gives up, or, where nothing stands in for it, that this
// container does not have. alone: those that keep a private session from its own workspace, whose uid it has.
[[nodiscard]] std::optional<Mechanism> missing_wall(const confine::Plan& plan, bool alone);
// Error: unavailable, while it is paused.
[[nodiscard]] Status runs(const Workspace& workspace);
// {bytes, inodes, total_bytes, total_inodes, free_bytes} of the home, as its filesystem counts them, or the first two as they
// were last measured; {limit, enforced_by} where it has a limit.
[[nodiscard]] json::Value disk_json(const Workspace& workspace);
// Takes what caisson-homes measured; what could not be measured counts as full.
void take_use(Workspace& workspace, const Result<json::Value>& use);

}  // namespace caisson::session
