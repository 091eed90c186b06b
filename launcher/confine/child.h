// What runs between clone and exec: the children that make a workspace's namespaces, a policy's mount tree and a session.
// Each function takes only prepared data, reports by step records and never returns. The launcher is single-threaded, so
// nothing is held by a thread that the child does not have.
#pragma once

#include "launcher/confine/plan.h"
#include "launcher/confine/seccomp.h"
#include "launcher/confine/steps.h"

namespace caisson::confine {

struct Protection;

// Descriptors and facts of one child. -1: not used.
struct ChildArgs {
  const Plan* plan = nullptr;
  const Program* seccomp = nullptr;
  const char* stage_dir = nullptr;
  const char* home_dir = nullptr;  // where a workspace's own home is mounted
  int status = -1;                 // write end of the status pipe
  int go = -1;                     // read end: the parent has written the id maps; then, that the first process may go on
  int go_write = -1;               // write end, for the child that forks the first process; a reader of `go` closes it first
  int handover = -1;               // socket to which the made descriptors are sent
  int user_ns = -1, net_ns = -1, mount_ns = -1;
  int landlock = -1;                       // prepared ruleset
  int init_exe = -1;                       // O_PATH descriptor of caisson-init
  int init_socket = -1;                    // becomes descriptor 3
  int null = -1;                           // /dev/null
  const Protection* protection = nullptr;  // a canary has none
  uid_t uid = 0;                           // T0: the session's own uid
  gid_t gid = 0;                           // T0: the workspace's gid
};

// CLONE_NEW* of what every session has for itself.
[[nodiscard]] unsigned long session_namespaces(const Plan& plan);

// Makes user, network and mount namespaces; hands over their descriptors in this order: user, net, mount, and
// the home's tmpfs where the plan has one.
[[noreturn]] void workspace_child(const ChildArgs& args);
// In the workspace's namespaces: builds the tree; hands over mount namespace and Landlock ruleset.
[[noreturn]] void template_child(const ChildArgs& args);
// Enters what is prepared, makes what is the session's own, executes caisson-init.
[[noreturn]] void session_child(const ChildArgs& args);

// Parts that standalone.cc has in common with these.
void await_maps(const ChildArgs& args);
void raise_oom_score();
[[noreturn]] void confine_and_exec(const ChildArgs& args, StepWriter& steps);

}  // namespace caisson::confine
