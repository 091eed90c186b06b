// The launcher's side of building: what is prepared once (Workspace, Template) and the start of a session. Prepared things are
// plain descriptors and live as long as their owner; caisson-builder makes them and the sessions.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/task.h"
#include "launcher/common/confine/cgroup.h"
#include "launcher/common/confine/mount_facts.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/protect.h"
#include "launcher/common/confine/seccomp.h"
#include "launcher/common/wire/builder_protocol.h"
#include "launcher/common/wire/steps.h"

namespace caisson::confine {

// A workspace's namespaces: one user namespace (inner 1000 = outer_uid), one network namespace, one mount namespace in which
// the shared /tmp is mounted at `stage`. Without namespaces (T0, T1): only the ids.
struct Workspace {
  uid_t outer_uid = 0;
  gid_t outer_gid = 0;
  std::string stage;
  Fd user_ns, net_ns, mount_ns;
  // A second network namespace, with a way out, for policies that have one (session/egress.h). Without namespaces: the gate's end
  // of a socket, for one that is started again, and our end, for the builder.
  mutable Fd out_ns, out_line;
  Fd home;                                // its own home's tmpfs, where the plan had one
  mutable Fd control;                     // to its builder, which is started when it is asked for something
  pid_t builder = 0;                      // with a user namespace, its builder's first number; else that of the root's
  mutable std::set<std::string> systems;  // its copies of the system, made by the first template that needs each
  // A session's uid where it has one of its own (T0), by which all of it can be killed; 0: others have it, too.
  [[nodiscard]] uid_t sole(uid_t uid) const { return uid != outer_uid ? uid : 0; }
};

// A policy made ready in one workspace: mount tree, Landlock ruleset, seccomp program.
struct Template {
  std::shared_ptr<const Plan> plan;
  std::string refusals;      // what its filter can refuse (seccomp.h)
  Fd bytes;                  // the plan for the builder
  std::uint64_t number = 0;  // of these bytes
  Fd mount_ns, landlock;
  std::vector<StepRecord> steps;            // how it was built
  mutable KnownMounts known_mounts;         // of its first session
  mutable std::vector<std::string> report;  // a session's report as text, cut where sessions differ (Session::start_record)
};

// Descriptors that come with an order.
using Carried = std::vector<std::pair<builder::Carried, int>>;

// Starts what becomes workspaces, templates and sessions.
class Builder {
 public:
  std::string stage_dir;   // empty directory: where a workspace's shared /tmp is mounted in its own namespace
  std::string system_dir;  // directory: its copies of the system are mounted below it, there as well
  std::string home_dir;    // empty directory: where a workspace's own home is mounted, there as well

  // loop: reaps what is made.
  [[nodiscard]] static Result<Builder> open(Loop& loop, const std::string& init_path, const std::string& run_dir);
  // Some milliseconds; a child that does not answer within ten seconds is killed.
  [[nodiscard]] Task<Result<Workspace>> make_workspace(Loop& loop, const Plan& plan, uid_t outer_uid, gid_t outer_gid) const;
  // culprit: the path that failed where a session can have made it fail, or "".
  [[nodiscard]] Task<Result<Template>> make_template(Loop& loop, std::shared_ptr<const Plan> plan, const Workspace& workspace,
                                                     std::string* culprit = nullptr) const;
  // The workspace's copy of the system, for plans with system_packages. Some hundred milliseconds, once a workspace.
  [[nodiscard]] Task<Status> make_system(Loop& loop, const Plan& plan, const Workspace& workspace) const;
  // The socket to what becomes caisson-init. The builder tells there of its process (init::Type::child), or a step that failed.
  // uid: the session's own uid in T0 (ignored with a user namespace). protection: none for a canary, which writes nothing.
  // session: its name in records of the way out.
  [[nodiscard]] Result<Fd> start(const Template& prepared, const Workspace& workspace, uid_t uid,
                                 const std::optional<Cgroup>& cgroup, const Protection* protection = nullptr,
                                 const std::string& session = "canary") const;
  // A connection to that port of the workspace's loopback (builder/connect.h). With builder::kListens: a listening socket in each
  // of its network namespaces, that of the way out last. Errors: unavailable, where it has no network of its own, or with the
  // errno of the attempt.
  [[nodiscard]] Task<Result<std::vector<Fd>>> connect(Loop& loop, const Workspace& workspace, std::uint32_t port) const;

 private:
  [[nodiscard]] Status start_root() const;
  [[nodiscard]] Status start_builder(const Workspace& workspace) const;
  [[nodiscard]] Status order(const Workspace& workspace, builder::Request request, const Carried& carried) const;

  Loop* loop_ = nullptr;
  std::string init_path_, root_dir_;  // root_dir: empty directory, where a session's root is built before it becomes the root
  mutable pid_t root_pid_ = 0;
  mutable Fd root_;  // to the builder outside all namespaces, which makes the workspaces'
};

}  // namespace caisson::confine
