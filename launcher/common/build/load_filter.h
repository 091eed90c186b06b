// Loading a compiled filter of system calls (seccomp(2)). Needs no_new_privs or CAP_SYS_ADMIN.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace caisson::confine {

// 0, or -1 with errno. listener: receives the descriptor (close-on-exec) that is told of refused calls.
inline int load_seccomp(const sock_filter* program, std::size_t size, int* listener = nullptr) {
  sock_fprog fprog{static_cast<unsigned short>(size), const_cast<sock_filter*>(program)};
  // WAIT_KILLABLE_RECV (Linux 5.19): once a call is in the listener's hands only SIGKILL interrupts it. Other signals would make
  // the kernel start it again, and one call would be on record twice.
  const unsigned long flags =
      listener != nullptr ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV : 0UL;
  const auto result = static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &fprog));
  if (listener == nullptr || result < 0) return result;
  *listener = result;
  return 0;
}

}  // namespace caisson::confine
