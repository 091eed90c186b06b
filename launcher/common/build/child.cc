#include "launcher/common/build/child.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "launcher/common/base/scm.h"
#include "launcher/common/build/load_filter.h"
#include "launcher/common/build/mount.h"
#include "launcher/common/build/net.h"
#include "launcher/common/build/ruleset.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/kernel/inner_user.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/common/wire/init_protocol.h"

namespace caisson::confine {
namespace {

bool write_text(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool ok = fd >= 0 && ::write(fd, text, std::strlen(text)) == static_cast<ssize_t>(std::strlen(text));
  if (fd >= 0) ::close(fd);
  return ok;
}

// A child's last act where it makes something for others.
[[noreturn]] void hand_over(const int* fds, std::size_t count, StepWriter& steps) {
  steps.done(Step::done);
  steps.flush(fds, count);
  ::_exit(0);
}

}  // namespace

// The launcher writes the maps: only it may map an outer uid that is not ours.
void await_maps(const ChildArgs& args) {
  char go = 0;
  if (::recv(args.answer, &go, 1, 0) != 1 || go != 'y') ::_exit(1);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void enter_user_ns(const ChildArgs& args, StepWriter& steps) {
  const int before = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  // Else /proc/<pid>/uid_map would belong to root, and a launcher that is not root could not write it.
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || (!faults::skip("user_ns") && ::unshare(CLONE_NEWUSER) != 0))
    steps.failed(Step::user_ns, errno);
  steps.done(Step::user_ns, -1);  // value -1: waiting for the maps
  steps.flush();
  await_maps(args);
  if (::prctl(PR_SET_DUMPABLE, before == 1 ? 1 : 0, 0, 0, 0) != 0) steps.failed(Step::user_ns, errno);
}

namespace {

// Without limits of its own a user namespace takes from the counters of its maker, root, and so from all workspaces and the host.
// They can be set only where /proc is writable, as it is in T3.
void bound_counters(const BuildPlan& plan, StepWriter& steps) {
  constexpr struct {
    const char *path, *most;
  } kCounters[] = {{"/proc/sys/user/max_inotify_instances", "32"},       {"/proc/sys/user/max_inotify_watches", "32768"},
                   {"/proc/sys/user/max_user_namespaces", "2048"},       {"/proc/sys/user/max_pid_namespaces", "2048"},
                   {"/proc/sys/user/max_net_namespaces", "256"},         {"/proc/sys/net/ipv4/tcp_rmem", "4096 131072 1048576"},
                   {"/proc/sys/net/ipv4/tcp_wmem", "4096 16384 1048576"}};
  for (const auto& [path, most] : kCounters)
    if (!write_text(path, most) && plan.proc == Proc::full) steps.failed(Step::net_ns, errno);
}

int open_ns(const char* name, StepWriter& steps, Step step) {
  char path[64] = "/proc/self/ns/";
  std::strncat(path, name, sizeof path - std::strlen(path) - 1);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) steps.failed(step, errno);
  return fd;
}

void enter(int fd, int type, StepWriter& steps, Step step) {
  if (fd >= 0 && ::setns(fd, type) != 0) steps.failed(step, errno);
}

// How many tasks this uid has on the whole host, rounded up to a power of two: RLIMIT_NPROC counts those of other containers,
// and our /proc does not show them, so this asks the kernel by forking. 0: our tasks alone; RLIM_INFINITY: fork fails, and
// errno says why. Call it without capabilities: the limit does not hold whoever has some.
rlim_t tasks_of_uid(rlimit outer) {
  constexpr rlim_t kMost = 1U << 22;  // tasks that a kernel can have
  for (rlim_t room = 2;; room *= 2) {
    const rlimit tried{std::min(room, outer.rlim_max), outer.rlim_max};
    if (::setrlimit(RLIMIT_NPROC, &tried) != 0) return RLIM_INFINITY;
    const pid_t pid = raw::fork_with(0);
    if (pid == 0) ::_exit(0);
    if (pid < 0 && (errno != EAGAIN || room >= std::min(outer.rlim_max, kMost))) return RLIM_INFINITY;
    if (pid < 0) continue;
    (void)wait_for(pid);
    return room > 2 ? room : 0;
  }
}

void set_limits(const BuildPlan& plan, StepWriter& steps) {
  std::uint16_t entry = 0;
  rlim_t others = 0;
  for (const builder::Limit& limit : plan.limits) {
    if (faults::skip("rlimits")) break;
    rlimit now{};
    const auto resource = static_cast<__rlimit_resource>(limit.resource);
    if (::getrlimit(resource, &now) != 0) steps.failed(Step::limits, errno, entry);
    const bool shared = resource == RLIMIT_NPROC && !plan.user_ns;  // with whoever else on this host has our uid
    if (shared && (others = tasks_of_uid(now)) == RLIM_INFINITY) steps.failed(Step::limits, errno, entry);
    const rlim_t more = shared ? others : 0;
    const rlim_t value = std::min(limit.hard + more, now.rlim_max);  // an outer limit may be lower already
    const rlimit set{std::min(limit.soft + more, value), value};
    if (::setrlimit(resource, &set) != 0 || ::getrlimit(resource, &now) != 0) steps.failed(Step::limits, errno, entry);
    if (now.rlim_cur != set.rlim_cur || now.rlim_max != value) steps.failed(Step::limits, EINVAL, entry);
    ++entry;
  }
  steps.done(Step::limits, static_cast<std::int32_t>(others));  // which verify_session() takes into account
}

// Leaves exactly: 0-2 /dev/null, 3 the socket to the launcher, and (close-on-exec) what the last steps need.
void arrange_fds(const ChildArgs& args, int* status, int* init_exe, int* landlock, int* connector, StepWriter& steps) {
  int* keep[] = {status, init_exe, landlock, connector};
  for (int* fd : keep)
    if (*fd >= 0 && (*fd = ::fcntl(*fd, F_DUPFD_CLOEXEC, 16)) < 0) steps.failed(Step::fds, errno);
  if (*status >= 0) steps.move_to(*status);
  if (!faults::skip("stdio") && (::dup2(args.null, 0) != 0 || ::dup2(args.null, 1) != 1 || ::dup2(args.null, 2) != 2))
    steps.failed(Step::stdio, errno);
  // dup2 of a descriptor to itself would leave it close-on-exec.
  const bool there = args.answer == init::kSocketFd && ::fcntl(args.answer, F_SETFD, 0) == 0;
  if (!there && ::dup2(args.answer, init::kSocketFd) != init::kSocketFd) steps.failed(Step::fds, errno);
  if (*status < 0) steps.move_to(init::kSocketFd);
  // All that a builder has is close-on-exec: what is left out is seen by one that is not.
  if (faults::skip("close_fds")) return (void)::fcntl(args.null, F_DUPFD, 64);
  int kept[] = {*status, *init_exe, *landlock, *connector};
  std::sort(kept, std::end(kept));
  unsigned from = init::kSocketFd + 1;
  for (const int fd : kept) {
    if (fd < 0) continue;
    if (static_cast<unsigned>(fd) > from && ::close_range(from, static_cast<unsigned>(fd) - 1, 0) != 0) ::_exit(1);
    from = static_cast<unsigned>(fd) + 1;
  }
  if (::close_range(from, ~0U, 0) != 0) ::_exit(1);
}

// A user namespace inside the workspace's, in which the inner user is root and nobody else exists: for programs that want to be
// root. It owns no other namespace, so that its capabilities, dropped next, would reach nothing.
void become_root_of_own(StepWriter& steps) {
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0 || ::unshare(CLONE_NEWUSER) != 0 || !write_text("/proc/self/setgroups", "deny") ||
      !write_text("/proc/self/uid_map", "0 1000 1") || !write_text("/proc/self/gid_map", "0 1000 1") || ::getuid() != 0)
    steps.failed(Step::root_ns, errno);
  steps.done(Step::root_ns);
}

// Engines may list `gid` as a supplementary group, too. Only root can remove it, and it adds no right to those of `gid`.
bool in_no_group_but(gid_t gid) {
  gid_t group = gid;
  return ::getgroups(1, &group) >= 0 && group == gid;
}

void change_ids(const ChildArgs& args, StepWriter& steps) {
  if (faults::skip("uid")) return steps.done(Step::credentials);
  const BuildPlan& plan = *args.plan;
  const bool root = plan.root_ns;  // of a namespace where that is nobody: the outer id is the workspace's
  const uid_t uid = root ? 0 : plan.user_ns ? kInnerUid : args.uid;
  const gid_t gid = root ? 0 : plan.user_ns ? kInnerGid : args.gid;
  // Inside a user namespace setgroups is denied for good; the list was emptied by the launcher at its start.
  if (!plan.user_ns && plan.change_uid && ::setgroups(0, nullptr) != 0) steps.failed(Step::credentials, errno);
  if (plan.change_uid && (::setresgid(gid, gid, gid) != 0 || ::setresuid(uid, uid, uid) != 0))
    steps.failed(Step::credentials, errno);
  uid_t r = 0, e = 0, s = 0;
  gid_t rg = 0, eg = 0, sg = 0;
  if (::getresuid(&r, &e, &s) != 0 || ::getresgid(&rg, &eg, &sg) != 0 || e != r || s != r || eg != rg || sg != rg)
    steps.failed(Step::credentials, EPERM);
  // Where ids cannot be changed they are the container's, root's too, of a root that never has a capability.
  if (plan.change_uid ? r != uid || rg != gid || (r == 0) != root || (rg == 0) != root || !in_no_group_but(gid)
                      : r == 0 && !caps_never())
    steps.failed(Step::credentials, EPERM);
  steps.done(Step::credentials);
}

// The connector gets the listener, and what the auditor gets comes back once it serves: where it is told of refused calls.
int exchange(int connector, int listener) {
  const char word = 0;
  if (scm::send(connector, &word, 1, &listener, 1) != 1) return -1;
  ::close(listener);
  char answer = 0;
  const scm::Received came = scm::receive(connector, &answer, 1);
  if (came.size == 1 && came.count == 1) return came.fds[0];
  return errno = EPIPE, -1;
}

}  // namespace

// The last steps, the same in every tier.
void confine_and_exec(const ChildArgs& args, StepWriter& steps) {
  const BuildPlan& plan = *args.plan;
  if (plan.uts_ns && !faults::skip("hostname") && ::sethostname(plan.hostname, std::strlen(plan.hostname)) != 0)
    steps.failed(Step::hostname, errno);
  steps.done(Step::hostname);
  int status = args.status, init_exe = args.init_exe, landlock = args.landlock, connector = args.connector;
  arrange_fds(args, &status, &init_exe, &landlock, &connector, steps);
  steps.done(Step::fds);
  if (plan.user_ns) set_limits(plan, steps);  // before root_ns, whose namespace takes over the bound of what is outside it
  // A new POSIX session: no controlling terminal of the launcher's is left (TIOCSTI, job control). EPERM: leads one already.
  if (!faults::skip("stdio") && ::setsid() < 0 && errno != EPERM) steps.failed(Step::stdio, errno);
  ::umask(plan.umask);
  // A launcher started under setarch -R or gdb would hand down a fixed address layout, and worse (READ_IMPLIES_EXEC).
  if (::personality(PER_LINUX) < 0) steps.failed(Step::stdio, errno);
  steps.done(Step::stdio);

  if (plan.root_ns) become_root_of_own(steps);
  const bool keep = faults::skip("capabilities"), bounded = keep || caps_drop_bounding();
  change_ids(args, steps);
  // Without a user namespace of ours and without CAP_SETPCAP (T1, a T0 with few capabilities) the bounding set stays;
  // no_new_privs makes it moot, and the report says so.
  if (!bounded && plan.user_ns) steps.failed(Step::capabilities, EPERM);
  if (!keep && !caps_drop_all()) steps.failed(Step::capabilities, errno);
  steps.done(Step::capabilities, bounded ? 1 : 0);
  if (!plan.user_ns) set_limits(plan, steps);
  // Only now: a change of uid clears it.
  if (connector >= 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) steps.failed(Step::net_ns, errno);
  if (!faults::skip("no_new_privs") &&
      (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1))
    steps.failed(Step::no_new_privs, errno);
  steps.done(Step::no_new_privs);
  if (landlock >= 0) {
    if (!faults::skip("landlock") && raw::landlock_restrict_self(landlock) != 0) steps.failed(Step::landlock, errno);
    ::close(landlock);
    steps.done(Step::landlock);
  }
  if (::chdir("/") != 0) steps.failed(Step::exec, errno);
  const bool filter = !faults::skip("seccomp");
  int listener = -1;
  if (filter && load_seccomp(plan.filter.first, plan.filter.size, plan.audited || plan.connected ? &listener : nullptr) != 0)
    steps.failed(Step::seccomp, errno);
  if (filter && ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER) steps.failed(Step::seccomp, EINVAL);
  steps.done(Step::seccomp);
  // Over init's own socket, which every filter must let through. Our copy is close-on-exec: no program of the session has it.
  if (listener >= 0 && plan.connected && (listener = exchange(connector, listener)) < 0) steps.failed(Step::net_ns, errno);
  if (listener >= 0 && plan.audited) {
    const init::Reply reply{.type = init::Type::listener};
    if (!faults::skip("denial_listener") &&
        scm::send(init::kSocketFd, &reply, sizeof reply, &listener, 1) != static_cast<ssize_t>(sizeof reply))
      steps.failed(Step::listener, errno);
    steps.done(Step::listener);
  }
  steps.flush();  // the launcher reads the facts while we execute

  char name[] = "caisson-init";
  char* argv[] = {name, const_cast<char*>(plan.home), nullptr};  // where it is empty: common/freestanding/skel.h
  char* envp[] = {nullptr};
  if (faults::fail("exec_init")) steps.failed(Step::exec, ENOSPC);
  raw::execveat(init_exe, "", argv, envp, AT_EMPTY_PATH);
  steps.failed(Step::exec, errno);
}

void prepare_for_children() {
  // When memory runs out the kernel shall take a session before the launcher or the agent. Best effort: it is a preference,
  // not a wall.
  (void)write_text("/proc/self/oom_score_adj", "500");
  // What is ignored (SIGPIPE by the launcher) would stay ignored in every command. Not by sigaction(3), which refuses two.
  constexpr struct {
    unsigned long handler, flags, restorer, mask;
  } kDefault{};  // struct sigaction of rt_sigaction(2); SIG_DFL is 0
  for (int signal = 1; signal <= 64; ++signal)
    (void)::syscall(SYS_rt_sigaction, signal, &kDefault, nullptr, sizeof kDefault.mask);
}

unsigned long session_namespaces(const BuildPlan& plan) {
  if (faults::skip("namespaces")) return 0;
  return (plan.mount_ns && !faults::skip("namespaces.mnt") ? CLONE_NEWNS : 0UL) |
         (plan.ipc_ns && !faults::skip("namespaces.ipc") ? CLONE_NEWIPC : 0UL) |
         (plan.uts_ns && !faults::skip("namespaces.uts") ? CLONE_NEWUTS : 0UL) |
         (plan.cgroup_ns && !faults::skip("namespaces.cgroup") ? CLONE_NEWCGROUP : 0UL);
}

void workspace_child(const ChildArgs& args, StepWriter& steps) {
  if (::unshare(CLONE_NEWNS | (args.plan->net_ns ? CLONE_NEWNET : 0)) != 0) steps.failed(Step::mount_ns, errno);
  if (args.plan->net_ns) {
    if (const int error = loopback_up(); error != 0) steps.failed(Step::net_ns, error);
    bound_counters(*args.plan, steps);
    steps.done(Step::net_ns);
  }
  const int fds[4] = {open_ns("user", steps, Step::user_ns), open_ns("net", steps, Step::net_ns),
                      open_ns("mnt", steps, Step::mount_ns), mount_stage(*args.plan, args.stage_dir, args.home_dir, steps)};
  hand_over(fds, fds[3] < 0 ? 3 : 4, steps);
}

void tree_child(const ChildArgs& args) {
  StepWriter steps(args.answer);
  int fds[2] = {-1, -1};
  std::size_t count = 0;
  if (args.plan->mount_ns) {
    enter(args.mount_ns, CLONE_NEWNS, steps, Step::mount_ns);
    if (::unshare(CLONE_NEWNS) != 0) steps.failed(Step::mount_ns, errno);
    fds[count++] = open_ns("mnt", steps, Step::mount_ns);
    build_root(*args.plan, args.stage_dir, steps);
  }
  if (args.plan->landlock_fs != 0) fds[count++] = make_ruleset(args, steps);
  hand_over(fds, count, steps);
}

void session_child(ChildArgs args) {
  StepWriter steps(args.answer);
  if (args.plan->pid_ns && !faults::skip("pid_ns") && ::getpid() != 1) steps.failed(Step::pid, ESRCH);
  steps.done(Step::pid);
  if (!faults::skip("net_ns")) enter(args.net_ns, CLONE_NEWNET, steps, Step::net_ns);
  if (!faults::skip("mount_ns")) enter(args.mount_ns, CLONE_NEWNS, steps, Step::mount_ns);
  // None in T0 and T1, where the container's seccomp profile refuses the call itself.
  const unsigned long flags = session_namespaces(*args.plan);
  if (flags != 0 && ::unshare(static_cast<int>(flags)) != 0) steps.failed(Step::namespaces, errno);
  steps.done(Step::namespaces);
  if (args.plan->mount_ns) mount_instance(*args.plan, false, steps);
  protect_names(args, steps);
  // A rule binds to a directory of one filesystem, and this session's /proc is one that no other has; or to one made just now.
  bool own = args.plan->nested;
  for (const builder::Bind& bind : args.plan->binds) own = own || bind.frozen;
  if (own && args.landlock >= 0) args.landlock = make_ruleset(args, steps);
  confine_and_exec(args, steps);
}

}  // namespace caisson::confine
