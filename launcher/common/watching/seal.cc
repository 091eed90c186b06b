#include "launcher/common/watching/seal.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "launcher/common/watching/arch.h"
#include "launcher/common/watching/notify.h"

namespace caisson::auditor {
namespace {

constexpr std::uint32_t kPlain[] = {
    SYS_close,      SYS_recvmsg, SYS_sendmsg, SYS_epoll_ctl,  SYS_epoll_pwait,  SYS_clock_gettime,   SYS_brk,
    SYS_munmap,     SYS_mremap,  SYS_madvise, SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
};
constexpr std::uint32_t kObserverCalls[] = {SYS_process_vm_readv, SYS_readlinkat};

void load(std::vector<sock_filter>& code, std::size_t offset) {
  code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
}
void ret(std::vector<sock_filter>& code, std::uint32_t action) { code.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
std::size_t low_word(unsigned argument) { return offsetof(seccomp_data, args) + 8 * argument; }
void allow(std::vector<sock_filter>& code, std::span<const std::uint32_t> numbers) {
  for (const std::uint32_t nr : numbers) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1));
    ret(code, SECCOMP_RET_ALLOW);
  }
}
void allow_reading_files(std::vector<sock_filter>& code) {
  allow(code, std::array<std::uint32_t, 1>{SYS_read});
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4));
  load(code, low_word(2));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_RDONLY | O_CLOEXEC, 0, 1));
  ret(code, SECCOMP_RET_ALLOW);
  ret(code, SECCOMP_RET_KILL_PROCESS);
}

}  // namespace

bool seal(Role role) {
  std::vector<sock_filter> code;
  load(code, offsetof(seccomp_data, arch));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 1, 0));
  ret(code, SECCOMP_RET_KILL_PROCESS);
  load(code, offsetof(seccomp_data, nr));
  allow(code, kPlain);
  if (role == Role::observer) allow(code, kObserverCalls);
  else allow_reading_files(code);
  // ioctl: of a listener, and not to give a session descriptors.
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2 + 2 * std::size(kRequests)));
  load(code, low_word(1));
  for (const unsigned long request : kRequests) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(request), 0, 1));
    ret(code, SECCOMP_RET_ALLOW);
  }
  ret(code, SECCOMP_RET_KILL_PROCESS);
  // mmap: memory, never code.
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4));
  load(code, low_word(2));
  code.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
  ret(code, SECCOMP_RET_ALLOW);
  ret(code, SECCOMP_RET_KILL_PROCESS);
  ret(code, SECCOMP_RET_KILL_PROCESS);
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
#ifdef CAISSON_SANITIZED  // sanitizers call what they like; such a build is for tests alone
  (void)program;
  return true;
#else
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
#endif
}

}  // namespace caisson::auditor
