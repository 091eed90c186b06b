// The launcher's side of building: what is prepared once (Workspace, Template) and the start of a session's child. Prepared
// things are plain descriptors: they live as long as their owner and need no process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "launcher/base/fd.h"
#include "launcher/base/task.h"
#include "launcher/confine/child.h"
#include "launcher/confine/plan.h"
#include "launcher/confine/protect.h"
#include "launcher/confine/seccomp.h"

namespace caisson::confine {

// A tenant's namespaces: one user namespace (inner 1000 = outer_uid), one network namespace, one mount namespace in which
// the shared /tmp is mounted at `stage`. Without namespaces (T0, T1): only the ids.
struct Workspace {
  uid_t outer_uid = 0;
  gid_t outer_gid = 0;
  std::string stage;
  Fd user_ns, net_ns, mount_ns;
  Fd home;                                // its own home's tmpfs, where the plan had one
  mutable std::set<std::string> systems;  // its copies of the system, made by the first template that needs each
  // A session's uid where it has one of its own (T0), by which all of it can be killed; 0: others have it, too.
  [[nodiscard]] uid_t sole(uid_t uid) const { return uid != outer_uid ? uid : 0; }
};

// A policy made ready in one workspace: mount tree, Landlock ruleset, seccomp program.
struct Template {
  std::shared_ptr<const Plan> plan;
  Filter filter;
  Fd mount_ns, landlock;
  std::vector<StepRecord> steps;  // how it was built
};

// A session's child that has been started. Its status pipe tells the rest.
struct Started {
  Fd status;  // read end, non-blocking; StepRecords, then EOF
  Fd child;   // pidfd of the first child: the session's first process itself, or the one that forks it and ends
  pid_t child_pid = 0;
  Fd socket;  // to caisson-init
};

// What builders share.
struct Builder {
  Fd init_exe;             // O_PATH descriptor of caisson-init
  Fd null;                 // /dev/null
  std::string stage_dir;   // empty directory: where a workspace's shared /tmp is mounted in its own namespace
  std::string system_dir;  // directory: its copies of the system are mounted below it, there as well
  std::string home_dir;    // empty directory: where a workspace's own home is mounted, there as well
  std::string root_dir;    // empty directory: where a session's root is built before it becomes the root

  [[nodiscard]] static Result<Builder> open(const std::string& init_path, const std::string& run_dir);
  // Some milliseconds; a child that does not answer within ten seconds is killed.
  [[nodiscard]] Task<Result<Workspace>> make_workspace(Loop& loop, const Plan& plan, uid_t outer_uid, gid_t outer_gid) const;
  // culprit: the path that failed where a session can have made it fail, or "".
  [[nodiscard]] Task<Result<Template>> make_template(Loop& loop, std::shared_ptr<const Plan> plan, const Workspace& workspace,
                                                     std::string* culprit = nullptr) const;
  // The workspace's copy of the system, for plans with system_packages. Some hundred milliseconds, once a workspace.
  [[nodiscard]] Task<Status> make_system(Loop& loop, const Plan& plan, const Workspace& workspace) const;
  // uid: the session's own uid in T0 (ignored with a user namespace). protection: none for a canary, which writes nothing.
  [[nodiscard]] Result<Started> start(const Template& prepared, const Workspace& workspace, uid_t uid, int cgroup_fd,
                                      const Protection* protection = nullptr) const;
  // Everything in one child, nothing shared: child_pid is the session's first process.
  [[nodiscard]] Result<Started> start_single(const Plan& plan, const Program& seccomp, uid_t outer_uid, gid_t outer_gid,
                                             const Protection& protection) const;
};

// "mount: attach_grants '/srv/data': EACCES (Permission denied)".
[[nodiscard]] Error step_error(const Plan& plan, const StepRecord& record);
[[nodiscard]] std::set<Mechanism> enforced_mechanisms(const Plan& plan);
// The sets that apply in this plan, compiled by caisson-policies: some milliseconds, where such a one was not asked for before.
// A policy of thaw() alone has what it takes.
[[nodiscard]] Task<Result<Filter>> ask_filter(Loop& loop, const Plan& plan);
// Its two halves: what it sends, and what the answer says (answer_filter in filter.h).
[[nodiscard]] std::string filter_request(const Plan& plan);
[[nodiscard]] Result<Filter> read_filter(std::string_view answer);

}  // namespace caisson::confine
