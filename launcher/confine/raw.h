// System calls and constants newer than Debian 12's headers (Linux 6.1), and small wrappers used between clone and exec.
// Everything here is async-signal-safe: no allocation, no locks, errors by errno.
#pragma once

#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)  // ABI 3, Linux 6.2
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)  // ABI 5, Linux 6.10
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL  // Linux 5.7
#endif

namespace caisson::raw {

// struct landlock_ruleset_attr as of ABI 6 (Linux 6.12). The kernel takes a longer structure than it knows as long as
// the unknown tail is zero.
struct LandlockRulesetAttr {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;  // ABI 4
  std::uint64_t scoped;              // ABI 6
};
inline constexpr std::uint64_t kLandlockScopeAbstractUnixSocket = 1;
inline constexpr std::uint64_t kLandlockScopeSignal = 2;

inline int landlock_create_ruleset(const LandlockRulesetAttr* attr, std::size_t size, std::uint32_t flags) {
  return static_cast<int>(::syscall(SYS_landlock_create_ruleset, attr, size, flags));
}
inline int landlock_add_path(int ruleset, std::uint64_t access, int parent_fd) {
  landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = parent_fd};
  return static_cast<int>(::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
}
inline int landlock_restrict_self(int ruleset) { return static_cast<int>(::syscall(SYS_landlock_restrict_self, ruleset, 0)); }
inline int pivot_root(const char* new_root, const char* put_old) {
  return static_cast<int>(::syscall(SYS_pivot_root, new_root, put_old));
}
inline int execveat(int fd, const char* path, char* const argv[], char* const envp[], int flags) {
  return static_cast<int>(::syscall(SYS_execveat, fd, path, argv, envp, flags));
}

// clone(2) like fork, with `flags` (CLONE_PARENT, CLONE_NEW*). The stack is the caller's, copied.
inline pid_t fork_with(unsigned long flags) {
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

struct CloneArgs {  // struct clone_args of clone3(2), 88 bytes since Linux 5.7
  std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};
// clone3(2) like fork. pidfd: receives a descriptor of the child. cgroup_fd >= 0: the child starts in that cgroup, so
// that no instruction of it runs outside its limits. namespaces: CLONE_NEW* that it starts in; with CLONE_NEWUSER the others
// belong to the new user namespace.
inline pid_t fork_into(int* pidfd, int cgroup_fd, unsigned long namespaces = 0) {
  CloneArgs args{.flags = CLONE_PIDFD | namespaces, .pidfd = reinterpret_cast<std::uint64_t>(pidfd), .exit_signal = SIGCHLD};
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid >= 0 || errno != ENOSYS || cgroup_fd >= 0) return static_cast<pid_t>(pid);
  // Docker's default profile answers clone3 with ENOSYS, so that callers fall back to what its filter can inspect.
  return static_cast<pid_t>(::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD | namespaces, nullptr, pidfd, nullptr, nullptr));
}

}  // namespace caisson::raw
