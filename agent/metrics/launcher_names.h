// What the launcher counts, as labels: the steps of a session's confinement, and the kinds of refused calls. Closed lists: a name
// that is not in them is `other`, so no answer of the launcher's makes a series of its own.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace caisson::metrics {

inline constexpr std::string_view kOther = "other";

// In the order in which they are done (launcher/common/wire/steps.h; a test compares the two).
inline constexpr auto kStepNames = std::to_array<std::string_view>({
    "user_ns",       "net_ns",     "mount_ns",   "open_grants",     "root_tmpfs", "make_files", "attach_grants", "private_mounts",
    "template_proc", "hide_paths", "pivot_root", "landlock_rules",  "pid_ns",     "namespaces", "proc",          "devices",
    "protect_names", "hostname",   "close_fds",  "rlimits",         "stdio",      "root_ns",    "uid",           "capabilities",
    "no_new_privs",  "landlock",   "seccomp",    "denial_listener", "exec_init",  "done",
});

[[nodiscard]] constexpr std::string_view step_label(std::string_view name) {
  const auto step = std::ranges::find(kStepNames, name);
  return step == kStepNames.end() ? kOther : *step;
}

struct DenialKind {
  std::string_view kind, calls;  // with spaces between them
};

inline constexpr DenialKind kDenialKinds[] = {
    {"path", "path"},  // a name that the walls refuse, where the policy has paths observed
    {"network",
     "socket socketpair bind connect listen accept accept4 sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg setsockopt "
     "getsockopt getsockname getpeername shutdown"},
    {"namespace", "unshare setns clone clone3"},
    {"mount",
     "mount umount umount2 pivot_root chroot fsopen fsconfig fsmount fspick move_mount open_tree open_tree_attr mount_setattr "
     "statmount listmount open_by_handle_at name_to_handle_at quotactl quotactl_fd swapon swapoff"},
    {"process",
     "ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd pidfd_open perf_event_open"},
    {"privilege", "setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset seccomp prctl"},
    {"keyring", "keyctl add_key request_key"},
    {"kernel",
     "bpf io_uring_setup io_uring_enter io_uring_register userfaultfd init_module finit_module delete_module kexec_load "
     "kexec_file_load reboot iopl ioperm syslog acct sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex "
     "modify_ldt lookup_dcookie fanotify_init fanotify_mark vhangup nfsservctl uselib ustat sysfs _sysctl"},
    {"device", "ioctl"},
    {kOther, ""},  // the rest, and calls that were counted without a name
};

[[nodiscard]] constexpr std::string_view denial_kind(std::string_view call) {
  for (const DenialKind& row : kDenialKinds)
    for (std::string_view rest = row.calls; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == call) return row.kind;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  return kOther;
}

}  // namespace caisson::metrics
