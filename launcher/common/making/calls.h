// System calls of the programs that make sessions and Landlock rulesets, and constants newer than Debian 12's headers
// (Linux 6.1). PID 1 makes neither. Async-signal-safe, errors by errno.
#pragma once

#include <linux/landlock.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)  // ABI 3, Linux 6.2
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)  // ABI 5, Linux 6.10
#endif
#ifndef LANDLOCK_ACCESS_NET_CONNECT_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)  // ABI 4, Linux 6.7
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
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
inline int landlock_add_port(int ruleset, std::uint64_t access, std::uint64_t port) {
  constexpr int kNetPort = 2;                   // LANDLOCK_RULE_NET_PORT
  const std::uint64_t rule[] = {access, port};  // struct landlock_net_port_attr
  return static_cast<int>(::syscall(SYS_landlock_add_rule, ruleset, kNetPort, &rule, 0));
}

inline int pivot_root(const char* new_root, const char* put_old) {
  return static_cast<int>(::syscall(SYS_pivot_root, new_root, put_old));
}

// clone(2) like fork, with `flags` (CLONE_PARENT, CLONE_NEW*). The stack is the caller's, copied.
inline pid_t fork_with(unsigned long flags) {
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

}  // namespace caisson::raw
