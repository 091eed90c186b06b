// System calls and constants newer than Debian 12's headers (Linux 6.1), and small wrappers used between clone and exec.
// Everything here is async-signal-safe: no allocation, no locks, errors by errno.
#pragma once

#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL  // Linux 5.7
#endif

namespace caisson::raw {

inline int landlock_restrict_self(int ruleset) { return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset, 0)); }
inline int execveat(int fd, const char* path, char* const argv[], char* const envp[], int flags) {
  return static_cast<int>(::syscall(SYS_execveat, fd, path, argv, envp, flags));
}

struct CloneArgs {  // struct clone_args of clone3(2), 88 bytes since Linux 5.7
  std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};
// clone3(2) like fork. pidfd: receives a descriptor of the child. cgroup_fd >= 0: the child starts in that cgroup, so
// that no instruction of it runs outside its limits. flags: CLONE_NEW* that it starts in; with CLONE_NEWUSER the others
// belong to the new user namespace. CLONE_PARENT: it is our parent's child, and tells it of its end as we would.
inline pid_t fork_into(int* pidfd, int cgroup_fd, unsigned long flags = 0) {
  CloneArgs args{.flags = CLONE_PIDFD | flags,
                 .pidfd = reinterpret_cast<std::uint64_t>(pidfd),
                 .exit_signal = (flags & CLONE_PARENT) != 0 ? 0U : SIGCHLD};
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid >= 0 || errno != ENOSYS || cgroup_fd >= 0) return static_cast<pid_t>(pid);
  // Docker's default profile answers clone3 with ENOSYS, so that callers fall back to what its filter can inspect.
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD | flags, nullptr, pidfd, nullptr, nullptr));
}

}  // namespace caisson::raw
