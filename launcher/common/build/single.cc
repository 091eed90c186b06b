// A session that shares nothing with others, built in one child: what `caisson run` starts.
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include "launcher/common/build/child.h"
#include "launcher/common/build/mount.h"
#include "launcher/common/build/net.h"
#include "launcher/common/build/ruleset.h"
#include "launcher/common/kernel/raw.h"

namespace caisson::confine {

// All that such a session starts in; its network namespace is made beside the rest.
unsigned long single_namespaces(const BuildPlan& plan) {
  return session_namespaces(plan) | (plan.user_ns ? CLONE_NEWUSER : 0UL) | (plan.pid_ns ? CLONE_NEWPID : 0UL);
}

// A new process waits on the processor of its parent when the others looked busy for the moment; it would then only run when its
// parent sleeps, and so not beside it. Where there is one processor nothing is changed. It is moved, not bound: what it starts
// inherits no less than we have.
void start_elsewhere(pid_t pid) {
  cpu_set_t ours, others;
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof ours, &ours) != 0) return;
  others = ours;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (::sched_setaffinity(pid, sizeof others, &others) == 0) (void)::sched_setaffinity(pid, sizeof ours, &ours);
}

namespace {

// Making a network namespace and raising its loopback takes as long as the whole mount tree: a child does it at the same
// time, and we enter what it made.
class NetMaker {
 public:
  bool start() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_) != 0) return false;
    pid_ = raw::fork_into(&pidfd_, -1);
    if (pid_ == 0) make();
    if (pid_ > 0) start_elsewhere(pid_);
    ::close(ends_[1]);
    return pid_ > 0;
  }
  // 0, or the errno. The child is then about to end.
  int enter() {
    int error = EIO;
    if (::read(ends_[0], &error, sizeof error) != static_cast<ssize_t>(sizeof error)) error = EIO;
    if (error == 0 && ::setns(pidfd_, CLONE_NEWNET) != 0) error = errno;
    ::close(ends_[0]);
    ::close(pidfd_);
    return error;
  }
  // No process but ours may be in the session when its first command runs.
  int reap() { return wait_for(pid_) == 0 ? 0 : ECHILD; }

 private:
  [[noreturn]] void make() {
    ::close(ends_[0]);
    const int error = ::unshare(CLONE_NEWNET) != 0 ? errno : loopback_up();
    // Lives until we have entered its namespace, or are gone.
    char end = 0;
    if (::write(ends_[1], &error, sizeof error) == static_cast<ssize_t>(sizeof error)) (void)!::read(ends_[1], &end, 1);
    ::_exit(0);
  }
  int ends_[2] = {-1, -1};
  int pidfd_ = -1;
  pid_t pid_ = 0;
};

}  // namespace

void single_child(ChildArgs args) {
  StepWriter steps(args.status, StepWriter::To::pipe);
  ::close(args.peer);  // else our own copy would keep us waiting when the other end dies
  prepare_for_children();
  // Our capabilities in the new user namespace need no maps: the network is made while the launcher writes them.
  NetMaker net;
  if (args.plan->net_ns && !net.start()) steps.failed(Step::net_ns, errno);
  if (args.plan->user_ns) await_maps(args);
  steps.done(Step::namespaces);
  if (args.plan->pid_ns && ::getpid() != 1) steps.failed(Step::pid, ESRCH);
  if (args.plan->mount_ns) {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) steps.failed(Step::mount_ns, errno);
    build_root(*args.plan, args.stage_dir, steps);
  }
  if (args.plan->net_ns) {
    if (const int error = net.enter(); error != 0) steps.failed(Step::net_ns, error);
    steps.done(Step::net_ns);
  }
  if (args.plan->mount_ns) mount_instance(*args.plan, true, steps);
  protect_names(args, steps);
  steps.flush();  // the mounts are as they stay: they are verified while we go on
  if (args.plan->landlock_fs != 0) args.landlock = make_ruleset(args, steps);
  if (args.plan->net_ns)
    if (const int error = net.reap(); error != 0) steps.failed(Step::net_ns, error);
  confine_and_exec(args, steps);
}

}  // namespace caisson::confine
