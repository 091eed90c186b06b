#include "launcher/auditor/decode.h"

#include <linux/bpf.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstring>
#include <span>

#include "launcher/common/telling/json_text.h"

namespace caisson::auditor {
namespace {

struct Name {
  std::uint64_t value;
  const char* name;
};
#define CAISSON_NAME(n) {static_cast<std::uint64_t>(n), #n}

constexpr Name kFamilies[] = {
    CAISSON_NAME(AF_UNSPEC), CAISSON_NAME(AF_UNIX),      CAISSON_NAME(AF_INET),   CAISSON_NAME(AF_AX25), CAISSON_NAME(AF_INET6),
    CAISSON_NAME(AF_KEY),    CAISSON_NAME(AF_NETLINK),   CAISSON_NAME(AF_PACKET), CAISSON_NAME(AF_RDS),  CAISSON_NAME(AF_CAN),
    CAISSON_NAME(AF_TIPC),   CAISSON_NAME(AF_BLUETOOTH), CAISSON_NAME(AF_ALG),    CAISSON_NAME(AF_NFC),  CAISSON_NAME(AF_VSOCK),
    CAISSON_NAME(AF_KCM),    CAISSON_NAME(AF_SMC),       CAISSON_NAME(AF_XDP)};
constexpr Name kSocketTypes[] = {CAISSON_NAME(SOCK_STREAM), CAISSON_NAME(SOCK_DGRAM),     CAISSON_NAME(SOCK_RAW),
                                 CAISSON_NAME(SOCK_RDM),    CAISSON_NAME(SOCK_SEQPACKET), CAISSON_NAME(SOCK_PACKET)};
constexpr Name kSocketFlags[] = {CAISSON_NAME(SOCK_NONBLOCK), CAISSON_NAME(SOCK_CLOEXEC)};
constexpr Name kCloneFlags[] = {{0x00000080, "CLONE_NEWTIME"},
                                CAISSON_NAME(CLONE_VM),
                                CAISSON_NAME(CLONE_FS),
                                CAISSON_NAME(CLONE_FILES),
                                CAISSON_NAME(CLONE_SIGHAND),
                                CAISSON_NAME(CLONE_PIDFD),
                                CAISSON_NAME(CLONE_PTRACE),
                                CAISSON_NAME(CLONE_VFORK),
                                CAISSON_NAME(CLONE_PARENT),
                                CAISSON_NAME(CLONE_THREAD),
                                CAISSON_NAME(CLONE_NEWNS),
                                CAISSON_NAME(CLONE_SYSVSEM),
                                CAISSON_NAME(CLONE_SETTLS),
                                CAISSON_NAME(CLONE_PARENT_SETTID),
                                CAISSON_NAME(CLONE_CHILD_CLEARTID),
                                CAISSON_NAME(CLONE_UNTRACED),
                                CAISSON_NAME(CLONE_CHILD_SETTID),
                                CAISSON_NAME(CLONE_NEWCGROUP),
                                CAISSON_NAME(CLONE_NEWUTS),
                                CAISSON_NAME(CLONE_NEWIPC),
                                CAISSON_NAME(CLONE_NEWUSER),
                                CAISSON_NAME(CLONE_NEWPID),
                                CAISSON_NAME(CLONE_NEWNET),
                                CAISSON_NAME(CLONE_IO)};
constexpr Name kMountFlags[] = {CAISSON_NAME(MS_RDONLY),  CAISSON_NAME(MS_NOSUID),  CAISSON_NAME(MS_NODEV),
                                CAISSON_NAME(MS_NOEXEC),  CAISSON_NAME(MS_REMOUNT), CAISSON_NAME(MS_BIND),
                                CAISSON_NAME(MS_MOVE),    CAISSON_NAME(MS_REC),     CAISSON_NAME(MS_UNBINDABLE),
                                CAISSON_NAME(MS_PRIVATE), CAISSON_NAME(MS_SLAVE),   CAISSON_NAME(MS_SHARED)};
constexpr Name kUnmountFlags[] = {CAISSON_NAME(MNT_FORCE), CAISSON_NAME(MNT_DETACH), CAISSON_NAME(MNT_EXPIRE),
                                  CAISSON_NAME(UMOUNT_NOFOLLOW)};
constexpr Name kPrctl[] = {CAISSON_NAME(PR_SET_UNALIGN),
                           CAISSON_NAME(PR_SET_FPEMU),
                           CAISSON_NAME(PR_SET_FPEXC),
                           CAISSON_NAME(PR_SET_TIMING),
                           CAISSON_NAME(PR_SET_ENDIAN),
                           CAISSON_NAME(PR_GET_TSC),
                           CAISSON_NAME(PR_SET_TSC),
                           CAISSON_NAME(PR_SET_SECUREBITS),
                           CAISSON_NAME(PR_TASK_PERF_EVENTS_DISABLE),
                           CAISSON_NAME(PR_TASK_PERF_EVENTS_ENABLE),
                           CAISSON_NAME(PR_MCE_KILL),
                           CAISSON_NAME(PR_MCE_KILL_GET),
                           CAISSON_NAME(PR_SET_MM),
                           CAISSON_NAME(PR_SET_PTRACER),
                           CAISSON_NAME(PR_SET_THP_DISABLE),
                           CAISSON_NAME(PR_GET_THP_DISABLE),
                           CAISSON_NAME(PR_MPX_ENABLE_MANAGEMENT),
                           CAISSON_NAME(PR_SET_FP_MODE),
                           CAISSON_NAME(PR_SET_IO_FLUSHER),
                           CAISSON_NAME(PR_SET_SYSCALL_USER_DISPATCH),
                           CAISSON_NAME(PR_SCHED_CORE),
                           CAISSON_NAME(PR_SET_TAGGED_ADDR_CTRL),
                           {67, "PR_SET_MEMORY_MERGE"},
                           {65, "PR_SET_MDWE"}};
// The commands that policies name, and a few more that somebody may try on a terminal.
constexpr Name kIoctl[] = {CAISSON_NAME(TIOCSTI),           CAISSON_NAME(TIOCLINUX),
                           CAISSON_NAME(TIOCCONS),          CAISSON_NAME(TIOCSETD),
                           CAISSON_NAME(FS_IOC_SETFLAGS),   CAISSON_NAME(FS_IOC32_SETFLAGS),
                           CAISSON_NAME(FS_IOC_FSSETXATTR), CAISSON_NAME(FIDEDUPERANGE),
                           CAISSON_NAME(FS_IOC_FIEMAP),     {0x40806685, "FS_IOC_ENABLE_VERITY"}};
constexpr Name kPtrace[] = {CAISSON_NAME(PTRACE_TRACEME),    CAISSON_NAME(PTRACE_PEEKTEXT),  CAISSON_NAME(PTRACE_PEEKDATA),
                            CAISSON_NAME(PTRACE_POKETEXT),   CAISSON_NAME(PTRACE_POKEDATA),  CAISSON_NAME(PTRACE_CONT),
                            CAISSON_NAME(PTRACE_KILL),       CAISSON_NAME(PTRACE_ATTACH),    CAISSON_NAME(PTRACE_SYSCALL),
                            CAISSON_NAME(PTRACE_SETOPTIONS), CAISSON_NAME(PTRACE_GETREGSET), CAISSON_NAME(PTRACE_SETREGSET),
                            CAISSON_NAME(PTRACE_SEIZE)};
constexpr Name kBpf[] = {CAISSON_NAME(BPF_MAP_CREATE),      CAISSON_NAME(BPF_MAP_LOOKUP_ELEM), CAISSON_NAME(BPF_MAP_UPDATE_ELEM),
                         CAISSON_NAME(BPF_MAP_DELETE_ELEM), CAISSON_NAME(BPF_PROG_LOAD),       CAISSON_NAME(BPF_OBJ_PIN),
                         CAISSON_NAME(BPF_OBJ_GET),         CAISSON_NAME(BPF_PROG_ATTACH),     CAISSON_NAME(BPF_LINK_CREATE)};
constexpr Name kKeyctl[] = {CAISSON_NAME(KEYCTL_GET_KEYRING_ID), CAISSON_NAME(KEYCTL_JOIN_SESSION_KEYRING),
                            CAISSON_NAME(KEYCTL_UPDATE),         CAISSON_NAME(KEYCTL_REVOKE),
                            CAISSON_NAME(KEYCTL_CHOWN),          CAISSON_NAME(KEYCTL_SETPERM),
                            CAISSON_NAME(KEYCTL_DESCRIBE),       CAISSON_NAME(KEYCTL_CLEAR),
                            CAISSON_NAME(KEYCTL_LINK),           CAISSON_NAME(KEYCTL_UNLINK),
                            CAISSON_NAME(KEYCTL_SEARCH),         CAISSON_NAME(KEYCTL_READ)};
constexpr Name kSeccomp[] = {CAISSON_NAME(SECCOMP_SET_MODE_STRICT), CAISSON_NAME(SECCOMP_SET_MODE_FILTER),
                             CAISSON_NAME(SECCOMP_GET_ACTION_AVAIL), CAISSON_NAME(SECCOMP_GET_NOTIF_SIZES)};
constexpr Name kSeccompFlags[] = {
    CAISSON_NAME(SECCOMP_FILTER_FLAG_TSYNC),       CAISSON_NAME(SECCOMP_FILTER_FLAG_LOG),
    CAISSON_NAME(SECCOMP_FILTER_FLAG_SPEC_ALLOW),  CAISSON_NAME(SECCOMP_FILTER_FLAG_NEW_LISTENER),
    CAISSON_NAME(SECCOMP_FILTER_FLAG_TSYNC_ESRCH), CAISSON_NAME(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)};
constexpr Name kLevels[] = {{1, "SOL_SOCKET"}, {0, "IPPROTO_IP"}, {6, "IPPROTO_TCP"}, {41, "IPPROTO_IPV6"}};
constexpr Name kPersonality[] = {CAISSON_NAME(ADDR_NO_RANDOMIZE), CAISSON_NAME(MMAP_PAGE_ZERO),
                                 CAISSON_NAME(READ_IMPLIES_EXEC), CAISSON_NAME(ADDR_COMPAT_LAYOUT),
                                 CAISSON_NAME(ADDR_LIMIT_32BIT),  CAISSON_NAME(ADDR_LIMIT_3GB)};
constexpr Name kFileTypes[] = {CAISSON_NAME(S_IFREG), CAISSON_NAME(S_IFCHR),  CAISSON_NAME(S_IFBLK),
                               CAISSON_NAME(S_IFIFO), CAISSON_NAME(S_IFSOCK), CAISSON_NAME(S_IFDIR)};
constexpr Name kMessageFlags[] = {CAISSON_NAME(MSG_DONTWAIT), CAISSON_NAME(MSG_NOSIGNAL), CAISSON_NAME(MSG_FASTOPEN)};
constexpr Name kSignals[] = {CAISSON_NAME(SIGHUP),  CAISSON_NAME(SIGINT),  CAISSON_NAME(SIGQUIT), CAISSON_NAME(SIGKILL),
                             CAISSON_NAME(SIGUSR1), CAISSON_NAME(SIGSEGV), CAISSON_NAME(SIGUSR2), CAISSON_NAME(SIGTERM),
                             CAISSON_NAME(SIGCHLD), CAISSON_NAME(SIGCONT), CAISSON_NAME(SIGSTOP)};
#undef CAISSON_NAME

enum class Kind { number, hex, one_of, flags, socket_type, file_mode };
struct Arg {
  int nr;
  unsigned index;
  const char* name;
  Kind kind = Kind::number;  // number: an int; the kernel reads the lower half of the register
  std::span<const Name> names = {};
};
constexpr Arg kArgs[] = {
    {SYS_socket, 0, "family", Kind::one_of, kFamilies},
    {SYS_socket, 1, "type", Kind::socket_type},
    {SYS_socket, 2, "protocol"},
    {SYS_socketpair, 0, "family", Kind::one_of, kFamilies},
    {SYS_socketpair, 1, "type", Kind::socket_type},
    {SYS_socketpair, 2, "protocol"},
    {SYS_setsockopt, 0, "fd"},
    {SYS_setsockopt, 1, "level", Kind::one_of, kLevels},
    {SYS_setsockopt, 2, "option"},
    {SYS_sendto, 3, "flags", Kind::flags, kMessageFlags},
    {SYS_sendmsg, 2, "flags", Kind::flags, kMessageFlags},
    {SYS_sendmmsg, 3, "flags", Kind::flags, kMessageFlags},
    {SYS_clone, 0, "flags", Kind::flags, std::span(kCloneFlags).subspan(1)},  // its low byte is a signal
    {SYS_unshare, 0, "flags", Kind::flags, kCloneFlags},
    {SYS_setns, 0, "fd"},
    {SYS_setns, 1, "type", Kind::flags, kCloneFlags},
    {SYS_mount, 3, "flags", Kind::flags, kMountFlags},
    {SYS_umount2, 1, "flags", Kind::flags, kUnmountFlags},
    {SYS_open_tree, 0, "fd"},
    {SYS_open_tree, 2, "flags", Kind::hex},
    {SYS_move_mount, 4, "flags", Kind::hex},
    {SYS_fsopen, 1, "flags", Kind::hex},
    {SYS_fsconfig, 1, "command"},
    {SYS_mount_setattr, 2, "flags", Kind::hex},
    {SYS_prctl, 0, "option", Kind::one_of, kPrctl},
    {SYS_prctl, 1, "argument", Kind::hex},
    {SYS_ioctl, 0, "fd"},
    {SYS_ioctl, 1, "request", Kind::one_of, kIoctl},
    {SYS_ptrace, 0, "request", Kind::one_of, kPtrace},
    {SYS_ptrace, 1, "pid"},
    {SYS_process_vm_readv, 0, "pid"},
    {SYS_process_vm_writev, 0, "pid"},
    {SYS_kcmp, 0, "pid"},
    {SYS_kcmp, 1, "other"},
    {SYS_pidfd_getfd, 0, "pidfd"},
    {SYS_pidfd_getfd, 1, "fd"},
    {SYS_kill, 0, "pid"},
    {SYS_kill, 1, "signal", Kind::one_of, kSignals},
    {SYS_tkill, 0, "tid"},
    {SYS_tkill, 1, "signal", Kind::one_of, kSignals},
    {SYS_tgkill, 0, "pid"},
    {SYS_tgkill, 1, "tid"},
    {SYS_tgkill, 2, "signal", Kind::one_of, kSignals},
    {SYS_pidfd_send_signal, 0, "pidfd"},
    {SYS_pidfd_send_signal, 1, "signal", Kind::one_of, kSignals},
    {SYS_bpf, 0, "command", Kind::one_of, kBpf},
    {SYS_keyctl, 0, "operation", Kind::one_of, kKeyctl},
    {SYS_perf_event_open, 1, "pid"},
    {SYS_perf_event_open, 2, "cpu"},
    {SYS_seccomp, 0, "operation", Kind::one_of, kSeccomp},
    {SYS_seccomp, 1, "flags", Kind::flags, kSeccompFlags},
    {SYS_personality, 0, "persona", Kind::flags, kPersonality},
    {SYS_io_uring_setup, 0, "entries"},
    {SYS_userfaultfd, 0, "flags", Kind::hex},
    {SYS_fanotify_init, 0, "flags", Kind::hex},
    {SYS_mknodat, 2, "mode", Kind::file_mode},
    {SYS_mknodat, 3, "device", Kind::hex},
    {SYS_setuid, 0, "uid"},
    {SYS_setgid, 0, "gid"},
    {SYS_setfsuid, 0, "uid"},
    {SYS_setfsgid, 0, "gid"},
    {SYS_setreuid, 0, "real"},
    {SYS_setreuid, 1, "effective"},
    {SYS_setregid, 0, "real"},
    {SYS_setregid, 1, "effective"},
    {SYS_setresuid, 0, "real"},
    {SYS_setresuid, 1, "effective"},
    {SYS_setresuid, 2, "saved"},
    {SYS_setresgid, 0, "real"},
    {SYS_setresgid, 1, "effective"},
    {SYS_setresgid, 2, "saved"},
    {SYS_reboot, 2, "command", Kind::hex},
    {SYS_syslog, 0, "action"},
    {SYS_clock_settime, 0, "clock"},
    {SYS_mbind, 2, "mode"},
    {SYS_vmsplice, 0, "fd"},
#ifdef __x86_64__
    {SYS_mknod, 1, "mode", Kind::file_mode},
    {SYS_mknod, 2, "device", Kind::hex},
    {SYS_modify_ldt, 0, "function"},
    {SYS_iopl, 0, "level"},
    {SYS_ioperm, 0, "from"},
    {SYS_ioperm, 1, "count"},
#endif
};

std::string hex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  do out.insert(out.begin(), kDigits[value & 15]);
  while ((value >>= 4) != 0);
  return "0x" + out;
}

std::string one_of(std::uint64_t value, std::span<const Name> names) {
  for (const Name& n : names)
    if ((n.value & 0xffffffff) == value) return n.name;
  return value < 4096 ? std::to_string(value) : hex(value);
}

// What has a name, then the rest as a number: no bit is left out.
std::string flags(std::uint64_t value, std::span<const Name> names) {
  std::string out;
  for (const Name& n : names) {
    if (n.value == 0 || (value & n.value) != n.value) continue;
    out.append(out.empty() ? "" : "|").append(n.name);
    value &= ~n.value;
  }
  if (value != 0 || out.empty()) out.append(out.empty() ? "" : "|").append(value == 0 ? "0" : hex(value));
  return out;
}

std::string in_words(const Arg& arg, std::uint64_t value) {
  const std::uint64_t low = value & 0xffffffff;
  switch (arg.kind) {
    case Kind::number:
      return std::to_string(static_cast<std::int32_t>(low));
    case Kind::hex:
      return hex(value);
    case Kind::one_of:
      return one_of(low, arg.names);
    case Kind::flags:
      return flags(value, arg.names);
    case Kind::socket_type: {
      const std::string extra = flags(low & ~0xfULL, kSocketFlags);
      return one_of(low & 0xf, kSocketTypes) + (extra == "0" ? "" : "|" + extra);
    }
    case Kind::file_mode:
      return one_of(low & S_IFMT, kFileTypes) + "|" + hex(low & ~std::uint64_t{S_IFMT});
  }
  return "";
}

}  // namespace

std::string decode(int nr, const unsigned long long (&args)[6]) {
  JsonText out;
  for (const Arg& arg : kArgs)
    if (arg.nr == nr) out.string(arg.name, in_words(arg, args[arg.index]));
  return out.text();
}

}  // namespace caisson::auditor
