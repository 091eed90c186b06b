// caisson-seal UID PROGRAM: makes of itself the API agent, with what it gives up before. Started by the launcher for each start
// of the agent, with the launcher's rights, an environment made for the agent and the socket to the launcher as fd 3; a program
// of its own because the launcher itself has no other use for any of this. UID "-": the launcher cannot change uids.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launcher/base/sys.h"
#include "launcher/confine/caps.h"
#include "launcher/confine/filter.h"
#include "launcher/confine/helper.h"
#include "launcher/confine/landlock.h"
#include "launcher/confine/raw.h"
#include "launcher/policy/text_checks.h"
#include "launcher/seal/sealed_memfd.h"

namespace caisson::seal {
namespace {

constexpr int kSeccompFd = 4;  // CAISSON_SECCOMP_FD
// Four times what its own limits add up to (256 MiB of output, bodies of 8 MiB). Beyond it the agent gets no memory and ends
// itself, and neither the launcher nor a session is what the kernel looks for when there is none left.
constexpr rlim_t kMemoryBytes = 1UL << 30;

// All that the agent calls once it serves. No exec, no fork, no ptrace, no mount, no keys, no other sockets than TCP: what
// takes the agent over has these calls, the launcher's protocol, and nothing else. The agent loads the program itself after
// its start, because the dynamic linker and execve need more.
constexpr std::string_view kAgentCalls =
    "read write readv pread64 writev close fstat newfstatat statx lseek fcntl epoll_create1 epoll_ctl epoll_wait epoll_pwait "
    "epoll_pwait2 poll ppoll select pselect6 eventfd2 timerfd_create timerfd_settime timerfd_gettime signalfd4 pipe2 "
    "dup dup3 mmap munmap mremap mprotect madvise brk futex rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack "
    "restart_syscall nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time getpid gettid getppid "
    "getuid geteuid getgid getegid getrandom getrlimit getrusage sysinfo uname sched_yield "
    "sched_getaffinity membarrier rseq set_robust_list exit exit_group accept accept4 bind listen getsockname "
    "getpeername setsockopt getsockopt sendmsg sendto recvmsg recvfrom shutdown openat open access faccessat "
    "faccessat2 readlink readlinkat";

policy::SyscallSet agent_set() {
  policy::SyscallSet set;
  set.name = "agent";
  for (const std::string& name : policy::split(kAgentCalls)) set.allow.push_back({name, {}, {}, ""});
  const auto low = [](std::uint64_t value, unsigned index) { return policy::ArgRule{index, "masked_eq", value, 0xffffffff}; };
  // Of a terminal whose master it was given: modes (TCGETS, TCSETS*), window size; of any descriptor: FIONBIO, FIONREAD.
  policy::SyscallRule ioctl{"ioctl", {}, {}, ""};
  for (const std::uint64_t command : {0x5401UL, 0x5402UL, 0x5403UL, 0x5404UL, 0x5413UL, 0x5414UL, 0x5421UL, 0x541bUL})
    ioctl.any_of.push_back({low(command, 1)});
  set.allow.push_back(std::move(ioctl));
  set.allow.push_back({"socket", {{low(2, 0)}, {low(10, 0)}}, {}, ""});
  // Its own limits and threads alone: where there is one user id for all (T1), the launcher's could be set and ended as well.
  set.allow.push_back({"prlimit64", {{low(0, 0)}}, {}, ""});
  set.allow.push_back({"tgkill", {{low(static_cast<std::uint64_t>(::getpid()), 0)}}, {}, ""});
  set.refuse = policy::split("execve execveat fork vfork clone ptrace connect kill socketpair unshare setns mount bpf keyctl");
  return set;
}

void add_rule(int ruleset, const std::string& path, std::uint64_t access) {
  auto fd = sys::open(path, O_PATH);
  struct stat st{};
  if (!fd || ::fstat(fd->get(), &st) != 0) return;  // absent: nothing to allow
  if (!S_ISDIR(st.st_mode)) access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
  (void)raw::landlock_add_path(ruleset, access, fd->get());
}

// Reads its program, libraries and a few facts; writes nothing anywhere.
Result<Fd> agent_landlock(const std::string& program) {
  const int abi = raw::landlock_create_ruleset(nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi <= 0) return Fd();
  raw::LandlockRulesetAttr attr{confine::landlock_fs_rights(abi), 0, confine::landlock_scopes(abi)};
  Fd ruleset(raw::landlock_create_ruleset(&attr, attr.scoped != 0 ? sizeof attr : sizeof attr.handled_access_fs, 0));
  if (!ruleset) return sys_error("landlock_create_ruleset for the agent");
  const std::uint64_t read = confine::landlock_read(abi, false), run = confine::landlock_read(abi, true);
  char* linker = ::realpath("/lib64/ld-linux-x86-64.so.2", nullptr);
  add_rule(ruleset.get(), linker != nullptr ? linker : "/lib/ld-linux-aarch64.so.1", run);
  std::free(linker);
  add_rule(ruleset.get(), program, run);
  for (const char* path : {"/usr/lib", "/lib", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime",
                           "/etc/os-release", "/etc/ssl/openssl.cnf", "/dev/urandom"})
    add_rule(ruleset.get(), path, read);
  add_rule(ruleset.get(), "/dev/null", read | LANDLOCK_ACCESS_FS_WRITE_FILE);
  return ruleset;
}

// Its own filter comes late, because the dynamic linker needs more than the agent. Until then one thing is refused already: to
// have a child. A child would outlive the agent, be counted by nobody and hold its end of the socket.
bool refuse_children() {
#if defined(__x86_64__)
  constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64, kForeign = 0x40000000;  // x32 calls
#else
  constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64, kForeign = 0xffffffff;
#endif
  constexpr sock_filter kRefuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kForeign, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      kRefuse,
#if defined(__x86_64__)
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fork, 0, 1),
      kRefuse,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_vfork, 0, 1),
      kRefuse,
#endif
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Everything opened first; then one thing after the other is given up.
Status become_agent(const char* uid_text, char* program) {
  uid_t uid = 0;
  const bool change_uid = std::strcmp(uid_text, "-") != 0;
  const char* end = uid_text + std::strlen(uid_text);
  if (change_uid && (std::from_chars(uid_text, end, uid).ptr != end || uid == 0))
    return fail(Code::invalid_argument, "not a uid above 0: " + quote(uid_text));
  TRY_ASSIGN(const Fd executable, sys::open(program, O_PATH));
  TRY_ASSIGN(const Fd landlock, agent_landlock(program));
  TRY_ASSIGN(const confine::Program calls, confine::compile_seccomp({agent_set()}));
  TRY_ASSIGN(const Fd seccomp,
             sealed_memfd("agent-seccomp", {reinterpret_cast<const char*>(calls.data()), calls.size() * sizeof(sock_filter)}));
  // Fd 4 may be one of these; the copies are out of its way.
  const int program_fd = ::fcntl(executable.get(), F_DUPFD_CLOEXEC, 16), seccomp_fd = ::fcntl(seccomp.get(), F_DUPFD_CLOEXEC, 16),
            landlock_fd = landlock ? ::fcntl(landlock.get(), F_DUPFD_CLOEXEC, 16) : -1;
  const rlimit memory{kMemoryBytes, kMemoryBytes};
  if (program_fd < 0 || (landlock && landlock_fd < 0) || ::dup2(seccomp_fd, kSeccompFd) < 0)
    return sys_error("arrange descriptors");
  if (::setrlimit(RLIMIT_DATA, &memory) != 0) return sys_error("setrlimit RLIMIT_DATA");
  confine::caps_prepare();
  if (const int failed = confine::give_up(uid, change_uid, landlock_fd); failed != 0) ::_exit(failed);
  if (!refuse_children()) return sys_error("seccomp");
  char* argv[] = {program, nullptr};
  raw::execveat(program_fd, "", argv, environ, AT_EMPTY_PATH);
  return sys_error("execute the agent");
}

}  // namespace
}  // namespace caisson::seal

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: caisson-seal UID|- PROGRAM\n", stderr), 64;
  const caisson::Status done = caisson::seal::become_agent(argv[1], argv[2]);
  return std::fprintf(stderr, "caisson-seal: %s\n", done.error().text().c_str()), 120;
}
