#include "launcher/agent_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdlib>

#include "launcher/base/sys.h"
#include "launcher/confine/helper.h"
#include "launcher/confine/landlock.h"
#include "launcher/confine/raw.h"
#include "launcher/confine/seccomp.h"
#include "launcher/policy/words.h"

namespace caisson {
namespace {

constexpr int kIpcFd = 3, kSeccompFd = 4;
// Four times what its own limits add up to (256 MiB of output, bodies of 8 MiB). Beyond it the agent gets no memory and ends
// itself, and neither the launcher nor a session is what the kernel looks for when there is none left.
constexpr rlim_t kMemoryBytes = 1UL << 30;
constexpr std::int64_t kDropDelayUs = 10'000;  // what it said last is read, so that a violation is on record
constexpr std::int64_t kFirstDelayUs = 50'000, kLongestDelayUs = 10'000'000, kSettledUs = 30'000'000;

// All that the agent calls once it serves. No exec, no fork, no ptrace, no mount, no keys, no other sockets than TCP: what
// takes the agent over has these calls, the launcher's protocol, and nothing else. The agent loads the program itself after
// its start, because the dynamic linker and execve need more.
constexpr std::string_view kAgentCalls =
    "read write readv pread64 writev close fstat newfstatat statx lseek fcntl epoll_create1 epoll_ctl epoll_wait epoll_pwait "
    "epoll_pwait2 poll ppoll select pselect6 eventfd2 timerfd_create timerfd_settime timerfd_gettime signalfd4 pipe2 "
    "dup dup3 mmap munmap mremap mprotect madvise brk futex rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack "
    "restart_syscall nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time getpid gettid getppid "
    "getuid geteuid getgid getegid getrandom getrlimit prlimit64 getrusage sysinfo uname sched_yield "
    "sched_getaffinity membarrier rseq set_robust_list exit exit_group accept accept4 bind listen getsockname "
    "getpeername setsockopt getsockopt sendmsg sendto recvmsg recvfrom shutdown openat open access faccessat "
    "faccessat2 readlink readlinkat tgkill";

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
  set.refuse = policy::split("execve execveat fork vfork clone ptrace connect kill socketpair unshare setns mount bpf keyctl");
  return set;
}

struct Prepared {
  Fd executable, null, seccomp, landlock, ipc;
  std::vector<std::string> env;
  std::vector<char*> envp;
  uid_t uid = 0;
  bool change_uid = false;
};

void add_rule(int ruleset, const std::string& path, std::uint64_t access) {
  auto fd = sys::open(path, O_PATH);
  struct stat st{};
  if (!fd || ::fstat(fd->get(), &st) != 0) return;  // absent: nothing to allow
  if (!S_ISDIR(st.st_mode)) access &= LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
  (void)raw::landlock_add_path(ruleset, access, fd->get());
}

// Reads its program, libraries and a few facts; writes nothing anywhere.
Result<Fd> agent_landlock(const confine::Features& features, const std::string& program) {
  const int abi = features.landlock_abi;
  if (abi == 0) return Fd();
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

// From clone to exec of the agent: everything prepared, nothing returns.
[[noreturn]] void agent_child(Prepared& p, const std::string& program) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::dup2(p.null.get(), 0) != 0) ::_exit(120);
  const int executable = ::fcntl(p.executable.get(), F_DUPFD_CLOEXEC, 16),
            landlock = p.landlock ? ::fcntl(p.landlock.get(), F_DUPFD_CLOEXEC, 16) : -1;
  const int ipc = ::fcntl(p.ipc.get(), F_DUPFD_CLOEXEC, 16), seccomp = ::fcntl(p.seccomp.get(), F_DUPFD_CLOEXEC, 16);
  if (executable < 0 || ipc < 0 || seccomp < 0 || ::dup2(ipc, kIpcFd) < 0 || ::dup2(seccomp, kSeccompFd) < 0) ::_exit(120);
  for (int fd = kSeccompFd + 1; fd < 16; ++fd) ::close(fd);
  const rlimit memory{kMemoryBytes, kMemoryBytes};
  if (::setrlimit(RLIMIT_DATA, &memory) != 0) ::_exit(121);
  if (const int failed = confine::give_up(p.uid, p.change_uid, landlock); failed != 0) ::_exit(failed);
  if (!refuse_children()) ::_exit(123);
  // All that is left open above 4 is close-on-exec.
  char* argv[] = {const_cast<char*>(program.c_str()), nullptr};
  raw::execveat(executable, "", argv, p.envp.data(), AT_EMPTY_PATH);
  ::_exit(124);
}

void pass_on(std::vector<std::string>& env, const char* name) {
  if (const char* value = std::getenv(name)) env.push_back(std::string(name) + "=" + value);
}

std::vector<std::string> environment(const Options& o) {
  std::vector<std::string> env{"PATH=/usr/bin:/bin",
                               "LANG=C.UTF-8",
                               "CAISSON_PORT=" + std::to_string(o.port),
                               "CAISSON_BIND=" + o.bind,
                               "WORKSPACE=" + o.workspace,
                               "CAISSON_SECCOMP_FD=" + std::to_string(kSeccompFd),
                               "CAISSON_SHUTDOWN_SECONDS=" + std::to_string(o.shutdown_seconds),
                               o.auth_off ? "CAISSON_AUTH=none" : "CAISSON_AUTH=key"};
  if (!o.auth_off) env.push_back("SANDBOX_API_KEY=" + o.api_key);
  for (const char* name :
       {"TZ", "USER", "MAX_SHELL_SESSIONS", "MAX_BASH_SESSIONS", "MAX_JUPYTER_SESSIONS", "MAX_CODE_SESSIONS", "CAISSON_WARM_SESSIONS",
        "CAISSON_ALLOW_ORIGIN", "PYTHON_VERSION", "CAISSON_SESSION_IDLE_SECONDS", "CAISSON_JUPYTER_IDLE_SECONDS",
        "CAISSON_KERNEL_POOL", "CAISSON_OUTPUT_CAP_BYTES", "CAISSON_OUTPUT_TOTAL_BYTES", "CAISSON_HOOK_SECONDS", "RUN_HOOK_INIT",
        "RUN_HOOK_PRE_SERVICES", "RUN_HOOK_POST_READY"})
    pass_on(env, name);
  return env;
}

}  // namespace

Status AgentProcess::start() {
  Prepared p;
  p.change_uid = manager_.features().change_uid.ok();
  p.uid = options_.agent_uid;
  TRY_ASSIGN(p.executable, sys::open(options_.agent, O_PATH));
  TRY_ASSIGN(p.null, sys::open("/dev/null", O_RDWR));
  TRY_ASSIGN(p.landlock, agent_landlock(manager_.features(), options_.agent));
  TRY_ASSIGN(const confine::Program program, confine::compile_seccomp({agent_set()}));
  TRY_ASSIGN(p.seccomp, sys::sealed_memfd("agent-seccomp",
                                          {reinterpret_cast<const char*>(program.data()), program.size() * sizeof(sock_filter)}));
  TRY_ASSIGN(auto pair, sys::seqpacket_pair());
  TRY(sys::set_nonblocking(pair.second.get(), true));
  p.ipc = std::move(pair.second);
  p.env = environment(options_);
  if (started_us_ != 0) p.env.emplace_back("CAISSON_RESTARTED=1");  // hooks of the start run once
  for (std::string& e : p.env) p.envp.push_back(e.data());
  p.envp.push_back(nullptr);

  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) return sys_error("fork the agent");
  if (pid == 0) agent_child(p, options_.agent);
  pid_ = pid;
  pidfd_ = Fd(pidfd);
  started_us_ = sys::monotonic_us();
  loop_.on_exit(pid, [this](const ChildExit& exit) { exited(exit); });
  manager_.record(audit::Event::agent_start, {{"pid", pid}, {"uid", p.change_uid ? p.uid : ::geteuid()}});
  client_ = manager_.serve(std::move(pair.first), session::Manager::Role::agent, [this, pid](const std::string& violation) {
    if (!violation.empty()) {
      manager_.record(audit::Event::agent_violation, {{"pid", pid}, {"what", violation}});
      std::fprintf(stderr, "caisson-launcher: the agent broke the protocol (%s): killed\n", violation.c_str());
    }
    // Without its connection an agent is of no use, and one that broke the protocol is not to be trusted with a second.
    if (pid_ == pid) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  });
  return {};
}

void AgentProcess::exited(const ChildExit& exit) {
  manager_.record(audit::Event::agent_exit, {{"pid", pid_}, {"signaled", exit.signaled}, {"status", exit.status}});
  pid_ = 0;
  pidfd_.reset();
  // Usually closed by now. Whoever else holds its end must not go on in its name, beside the next agent.
  loop_.after(kDropDelayUs, [this, client = client_] { manager_.drop(client); });
  if (stopped_) return stopped_();
  std::fprintf(stderr, "caisson-launcher: the agent ended (%s %d), it is started again\n", exit.signaled ? "signal" : "status",
               exit.status);
  restart_later();
}

void AgentProcess::restart_later() {
  const bool settled = sys::monotonic_us() - started_us_ > kSettledUs;
  delay_us_ = settled || delay_us_ == 0 ? kFirstDelayUs : std::min(delay_us_ * 2, kLongestDelayUs);
  loop_.after(delay_us_, [this] {
    if (stopped_) return;
    const Status done = start();
    if (done) return;
    std::fprintf(stderr, "caisson-launcher: the agent cannot be started: %s\n", done.error().text().c_str());
    restart_later();
  });
}

void AgentProcess::stop(std::function<void()> done) {
  stopped_ = std::move(done);
  if (pid_ == 0) return stopped_();
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGTERM);
  loop_.after(6'000'000 + options_.shutdown_seconds * std::int64_t{1'000'000}, [this] {
    if (pid_ != 0) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  });
}

}  // namespace caisson
