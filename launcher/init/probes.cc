#include "launcher/init/probes.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "launcher/common/freestanding/kernel.h"

namespace caisson::init {
namespace {

namespace k = kernel;

constexpr long kUnknownCall = 0x3fff;
constexpr int kProtocolMptcp = 262;
constexpr int kIptSetReplace = 64;  // IPT_SO_SET_REPLACE of linux/netfilter_ipv4/ip_tables.h, which does not go with netinet/in.h

// Loopback refuses or takes at once; what leads elsewhere may answer never, and is not waited for.
long connect(std::uint32_t address, std::uint32_t port) {
  const int wait = address == INADDR_LOOPBACK ? 0 : SOCK_NONBLOCK;
  const long fd = k::call(SYS_socket, AF_INET, SOCK_STREAM | wait | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  const sockaddr_in to{.sin_family = AF_INET,
                       .sin_port = __builtin_bswap16(static_cast<std::uint16_t>(port)),
                       .sin_addr = {__builtin_bswap32(address)}};
  return k::call(SYS_connect, fd, k::word(&to), sizeof to);
}

long socket_and_close(int family, int type, int protocol) {
  const long fd = k::call(SYS_socket, family, type | SOCK_CLOEXEC, protocol);
  return fd < 0 ? fd : k::close(static_cast<int>(fd));
}

long raise_limit() {
  struct {
    std::uint64_t soft, hard;
  } limit{};
  const long asked = k::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, k::word(&limit));
  if (asked < 0) return asked;
  ++limit.hard;
  return k::call(SYS_prlimit64, 0, RLIMIT_NOFILE, k::word(&limit), 0);
}

// What is open and should not be, and the standard streams that lead anywhere but to /dev/null.
long open_descriptors() {
  constexpr dev_t kNull = 0x103;  // 1:3 on every machine
  long open = 0;
  for (int fd = 0; fd < 3; ++fd) {
    struct stat st{};
    if (k::call(SYS_fstat, fd, k::word(&st)) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != kNull) ++open;
  }
  for (int fd = 5; fd < 256; ++fd)
    if (k::fcntl(fd, F_GETFD, 0) >= 0) ++open;
  return open;
}

long open_memory_of(int pid) {
  char path[32] = "/proc/", digits[12];
  char* to = path + 6;
  int count = 0;
  for (int rest = pid; count == 0 || rest != 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) *to++ = digits[--count];
  memcpy(to, "/mem", 5);
  return k::open(path, O_RDONLY | O_CLOEXEC);
}

#if defined(__x86_64__)
constexpr long kGetpid32 = 20, kX32Bit = 0x40000000;
long i386_call() {
  long result = kGetpid32;
  __asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
  return result;
}
long x32_call() { return k::call(kX32Bit | SYS_getpid); }
#else
long i386_call() { return -ENOEXEC; }  // no such entry on this architecture
long x32_call() { return -ENOEXEC; }
#endif

// What the capabilities of a process in user, PID and network namespaces of its own could reach, one call each.
long nested_call(int number) {
  switch (number) {
    case 1:
      return k::call(SYS_mount, k::word("tmpfs"), k::word("/tmp"), k::word("tmpfs"), 0, 0);
    case 2:
      return k::call(SYS_unshare, CLONE_NEWNS);
    case 3:
      return k::call(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    case 4:
      return k::call(SYS_setsockopt, -1, IPPROTO_IP, kIptSetReplace, 0, 0);
    case 5:
      return k::ioctl(-1, SIOCBRADDBR, 0);
    case 6:
      return k::ioctl(-1, SIOCSIFFLAGS, 0);
    default:
      return k::open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);
  }
}

// -EPERM where all are refused (/proc/sys: or read-only, or not there), else the number of the first that is not.
long nested() {
  constexpr int kCalls = 7;
  alignas(16) char stack[8192];
  long result = -ECHILD;  // as long as nothing was tried
  const auto body = [](void* argument) {
    long& out = *static_cast<long*>(argument);
    out = -EPERM;
    for (int number = 1; number <= kCalls && out == -EPERM; ++number) {
      const long got = nested_call(number);
      if (got != -EPERM && (number != kCalls || (got != -EROFS && got != -ENOENT))) out = number;
    }
    k::exit(0);
  };
  const long pid = k::caisson_spawn(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_VM | CLONE_VFORK | SIGCHLD,
                                    stack + sizeof stack, body, &result);
  __asm__ volatile("" ::: "memory");  // the child has written `result`
  int status = 0;
  if (pid > 0)
    while (k::wait(static_cast<pid_t>(pid), &status, 0, nullptr) == -EINTR) {
    }
  return result;
}

}  // namespace

long run_probe(Probe probe, const Targets& targets) {
  switch (probe) {
    case Probe::read_ungranted:
      return k::open(targets.outside, O_RDONLY | O_CLOEXEC);
    case Probe::write_read_only: {
      const long file = k::word("/usr/.caisson-canary");
      const long made = k::call(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (made >= 0) (void)k::call(SYS_unlinkat, AT_FDCWD, file, 0);
      return made;
    }
    case Probe::write_root:
      return k::call(SYS_mkdirat, AT_FDCWD, k::word("/.caisson-canary"), 0700);
    case Probe::write_proc:
      // Writable for everybody. Most files there belong to root while we are not dumpable: their mode would refuse us first.
      return k::open("/proc/self/timerslack_ns", O_WRONLY | O_CLOEXEC);
    case Probe::proc_sys:
      return k::open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
    case Probe::read_init:
      return k::open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
    case Probe::kill_launcher:
      return k::kill(targets.launcher, 0);
    case Probe::kill_builder:
      return k::kill(targets.builder, 0);
    case Probe::read_builder:
      return open_memory_of(targets.builder);
    case Probe::parent_is_init:
      return k::call(SYS_getppid);
    case Probe::connect_launcher:
      return connect(INADDR_LOOPBACK, targets.port);
    case Probe::connect_metadata:
      return connect(0xa9fea9fe, 80);
    case Probe::socket_vsock:
      return socket_and_close(AF_VSOCK, SOCK_STREAM, 0);
    case Probe::socket_mptcp:
      return socket_and_close(AF_INET, SOCK_STREAM, kProtocolMptcp);
    case Probe::unshare_user:
      return k::call(SYS_unshare, CLONE_NEWUSER);
    case Probe::keyctl:
      return k::call(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
    case Probe::io_uring: {
      alignas(8) char parameters[120] = {};  // struct io_uring_params
      return k::call(SYS_io_uring_setup, 1, k::word(parameters));
    }
    case Probe::personality:
      return k::call(SYS_personality, ADDR_NO_RANDOMIZE);
    case Probe::tiocsti: {
      char byte = 'x';
      return k::ioctl(0, TIOCSTI | 1UL << 32, k::word(&byte));
    }
    case Probe::unknown_call:
      return k::call(kUnknownCall);
    case Probe::i386_call:
      return i386_call();
    case Probe::x32_call:
      return x32_call();
    case Probe::set_uid_0:
      return k::call(SYS_setresuid, 0, 0, 0);
    case Probe::chroot:
      return k::call(SYS_chroot, k::word("/"));
    case Probe::raise_limit:
      return raise_limit();
    case Probe::no_new_privs:
      return k::prctl(PR_GET_NO_NEW_PRIVS, 0);
    case Probe::nested:
      return nested();
    case Probe::descriptors:
      return open_descriptors();
  }
  return -EINVAL;
}

}  // namespace caisson::init
