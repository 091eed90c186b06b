// What the builder's children do: a workspace's namespaces, a policy's mount tree, a session. Each function takes only prepared
// data, reports by step records and never returns. No allocation, no exception: the builder is linked without a C++ library.
#pragma once

#include <sys/types.h>

#include "launcher/common/build/step_writer.h"
#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

using builder::BuildPlan;
using builder::Proc;

// Descriptors and facts of one child. -1: not used.
struct ChildArgs {
  const BuildPlan* plan = nullptr;
  const char* stage_dir = nullptr;
  const char* home_dir = nullptr;  // where a workspace's own home is mounted
  int answer = -1;                 // socket to the launcher: records, made descriptors; a session's becomes descriptor 3
  int peer = -1;                   // the launcher's end of it, where we have that, too
  int status = -1;                 // where it is: a pipe for the records, in place of `answer`
  int net_ns = -1, mount_ns = -1;
  int landlock = -1;             // prepared ruleset
  int init_exe = -1;             // O_PATH descriptor of caisson-init
  int null = -1;                 // /dev/null
  int protect = -1, notes = -1;  // caisson-protect and what it reads and writes; a canary has none
  int connector = -1;            // socket to it, where it is our parent (builder/connector.h)
  uid_t uid = 0;                 // T0: the session's own uid
  gid_t gid = 0;                 // T0: the workspace's gid
};

// CLONE_NEW* of what every session has for itself.
[[nodiscard]] unsigned long session_namespaces(const BuildPlan& plan);

// Enters a user namespace of its own, for good, and waits for the id maps. Of the caller itself: a failure ends it.
void enter_user_ns(const ChildArgs& args, StepWriter& steps);
// In the workspace's user namespace: makes network and mount namespace; hands over user, net, mount, and the home's tmpfs where
// the plan has one.
[[noreturn]] void workspace_child(const ChildArgs& args, StepWriter& steps);
// In the workspace's namespaces: builds the tree; hands over mount namespace and Landlock ruleset. Without a mount namespace: the
// ruleset alone.
[[noreturn]] void tree_child(const ChildArgs& args);
// Enters what is prepared, makes what is the session's own, executes caisson-init.
[[noreturn]] void session_child(ChildArgs args);
// All of it in one child (single.cc): what `caisson run` starts, in the namespaces of single_namespaces().
[[nodiscard]] unsigned long single_namespaces(const BuildPlan& plan);
void start_elsewhere(pid_t pid);  // on another processor than ours, where there is one
[[noreturn]] void single_child(ChildArgs args);

// Parts that single.cc has in common with these.
void await_maps(const ChildArgs& args);
void prepare_for_children();            // what they inherit: a score for the out-of-memory killer, default actions of signals
[[nodiscard]] int wait_for(pid_t pid);  // its exit status, or -1
void protect_names(const ChildArgs& args, StepWriter& steps);
[[noreturn]] void confine_and_exec(const ChildArgs& args, StepWriter& steps);

}  // namespace caisson::confine
