// System calls for caisson-init, which is linked without a C library: glibc's static start-up costs 0.3 ms of every session
// (dozens of CPUID instructions, each an exit to the hypervisor), and its tunables, locales and environment have no business
// in a session's first process. Every function returns the result or -errno; names and arguments are the kernel's
// (man 2; arch/*/entry/syscalls).
#pragma once

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace caisson::init::kernel {

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
#error "port caisson-init: system calls"
#endif
}
template <class T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

[[noreturn]] inline void exit(int status) {
  for (;;) call(SYS_exit_group, status);
}
inline long open(const char* path, int flags) { return call(SYS_openat, -100 /* AT_FDCWD */, word(path), flags); }
inline long openat(int at, const char* path, int flags, unsigned mode) {
  return call(SYS_openat, at, word(path), flags, static_cast<long>(mode));
}
inline long unlinkat(int at, const char* path) { return call(SYS_unlinkat, at, word(path), 0); }
inline long fchmod(int fd, unsigned mode) { return call(SYS_fchmod, fd, static_cast<long>(mode)); }
inline long fstat(int fd, struct stat* to) { return call(SYS_fstat, fd, word(to)); }
inline long write(int fd, const void* from, std::size_t size) { return call(SYS_write, fd, word(from), static_cast<long>(size)); }
inline long close(int fd) { return call(SYS_close, fd); }
inline long read(int fd, void* to, std::size_t size) { return call(SYS_read, fd, word(to), static_cast<long>(size)); }
inline long dup(int from, int to) { return call(SYS_dup3, from, to, 0); }  // from == to: EINVAL
inline long fcntl(int fd, int command, long argument) { return call(SYS_fcntl, fd, command, argument); }
inline long ioctl(int fd, unsigned long request, long argument) {
  return call(SYS_ioctl, fd, static_cast<long>(request), argument);
}
inline long getdents(int fd, void* to, std::size_t size) { return call(SYS_getdents64, fd, word(to), static_cast<long>(size)); }
inline long poll(pollfd* fds, std::size_t count) { return call(SYS_ppoll, word(fds), static_cast<long>(count), 0, 0, 8); }
inline long sendmsg(int fd, const msghdr* message, int flags) { return call(SYS_sendmsg, fd, word(message), flags); }
inline long recvmsg(int fd, msghdr* message, int flags) { return call(SYS_recvmsg, fd, word(message), flags); }
inline long kill(pid_t pid, int signal) { return call(SYS_kill, pid, signal); }
inline long getpid() { return call(SYS_getpid); }
inline long getsid(pid_t pid) { return call(SYS_getsid, pid); }
inline long setsid() { return call(SYS_setsid); }
inline long umask(unsigned mask) { return call(SYS_umask, static_cast<long>(mask)); }
inline long chdir(const char* path) { return call(SYS_chdir, word(path)); }
inline long prctl(int option, long argument) { return call(SYS_prctl, option, argument, 0, 0, 0); }
inline long execve(const char* path, char** argv, char** envp) { return call(SYS_execve, word(path), word(argv), word(envp)); }
inline long wait(pid_t pid, int* status, int options, rusage* usage) {
  return call(SYS_wait4, pid, word(status), options, word(usage));
}

// Signal sets are the kernel's 64 bits here, not glibc's 1024.
inline long sigprocmask(int how, std::uint64_t set) { return call(SYS_rt_sigprocmask, how, word(&set), 0, sizeof set); }
inline long signalfd(std::uint64_t set, int flags) { return call(SYS_signalfd4, -1, word(&set), sizeof set, flags); }

// clone(2) with CLONE_VM | CLONE_VFORK: `body(argument)` runs in this memory, on a stack of its own, while the caller waits
// until it has executed a program or exited. On a stack of its own, because a vfork that returns twice from one frame is
// nothing that a compiler may be told about an inline system call. `top`: 16-byte aligned.
extern "C" long caisson_spawn(unsigned long flags, char* top, void (*body)(void*), void* argument);
inline long spawn(char* top, void (*body)(void*), void* argument) {
  return caisson_spawn(CLONE_VM | CLONE_VFORK | SIGCHLD, top, body, argument);
}

}  // namespace caisson::init::kernel
