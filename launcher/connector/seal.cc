#include "launcher/connector/seal.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "launcher/common/watching/arch.h"
#include "launcher/common/watching/notify.h"

namespace caisson::connector {
namespace {

constexpr std::uint32_t kPlain[] = {
    SYS_close,         SYS_recvmsg,     SYS_sendmsg,    SYS_epoll_ctl,    SYS_epoll_pwait,
    SYS_clock_gettime, SYS_bind,        SYS_connect,    SYS_fstat,        SYS_process_vm_readv,
    SYS_readlinkat,    SYS_getsockname, SYS_brk,        SYS_munmap,       SYS_mremap,
    SYS_madvise,       SYS_exit_group,  SYS_newfstatat, SYS_rt_sigreturn, SYS_restart_syscall,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
};

class Program {
 public:
  void load(std::size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset))); }
  void ret(std::uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
  void allow(std::uint32_t nr) { of(nr, {}), ret(SECCOMP_RET_ALLOW); }
  // The rest of the call's rule, which ends in ret(), is skipped for any other number.
  void of(std::uint32_t nr, std::initializer_list<sock_filter> rule) {
    const auto size = static_cast<std::uint8_t>(rule.size() + (rule.size() == 0 ? 1 : 0));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, size));
    code_.insert(code_.end(), rule);
  }
  std::vector<sock_filter>& code() { return code_; }

 private:
  std::vector<sock_filter> code_;
};

constexpr sock_filter argument(unsigned index) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index));
}
constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
constexpr sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
constexpr sock_filter is(std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}
constexpr std::uint32_t low(unsigned long request) { return static_cast<std::uint32_t>(request); }

}  // namespace

bool seal() {
  Program program;
  program.load(offsetof(seccomp_data, arch));
  program.code().push_back(is(kAuditArch, 1, 0));
  program.ret(SECCOMP_RET_KILL_PROCESS);
  program.load(offsetof(seccomp_data, nr));
  for (const std::uint32_t nr : kPlain) program.allow(nr);
  // TCP over IPv4 and IPv6.
  program.of(SYS_socket, {argument(0), is(AF_INET, 1, 0), is(AF_INET6, 0, 6), argument(1),
                          BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~static_cast<std::uint32_t>(SOCK_NONBLOCK | SOCK_CLOEXEC)),
                          is(SOCK_STREAM, 0, 3), argument(2), is(0, 2, 0), is(IPPROTO_TCP, 1, 0), kKill, kAllow});
  program.of(SYS_fcntl, {argument(1), is(F_GETFL, 0, 1), kAllow, kKill});
  // Memory, never code.
  program.of(SYS_mmap, {argument(2), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0), kAllow, kKill});
  program.of(SYS_ioctl, {argument(1), is(low(SECCOMP_IOCTL_NOTIF_RECV), 4, 0), is(low(SECCOMP_IOCTL_NOTIF_SEND), 3, 0),
                         is(low(SECCOMP_IOCTL_NOTIF_ID_VALID), 2, 0), is(low(SECCOMP_IOCTL_NOTIF_ADDFD), 1, 0), kKill, kAllow});
  program.ret(SECCOMP_RET_KILL_PROCESS);
  sock_fprog loaded{static_cast<unsigned short>(program.code().size()), program.code().data()};
#ifdef CAISSON_SANITIZED  // sanitizers call what they like; such a build is for tests alone
  (void)loaded;
  return true;
#else
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded) == 0;
#endif
}

}  // namespace caisson::connector
