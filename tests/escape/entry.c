// Other ways into the kernel: i386 and x32 numbers, garbage above the number, and random calls.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

#if defined(__x86_64__)
static long entry32(long number, long a, long b, long c, long d) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(0L) : "memory", "r8", "r9", "r10", "r11");
  if (result < 0 && result > -4096) errno = (int)-result, result = -1;
  return result;
}
static long entry64(unsigned long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) errno = (int)-result, result = -1;
  return result;
}
#else
static long entry32(long n, long a, long b, long c, long d) { return (void)n, (void)a, (void)b, (void)c, (void)d, errno = ENOSYS, -1; }
static long entry64(unsigned long n, long a, long b, long c) { return (void)n, (void)a, (void)b, (void)c, errno = ENOSYS, -1; }
#endif

// 32-bit pointers need memory below 4 GiB.
static uint32_t* low(void) {
  uint32_t* page = mmap((void*)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  return page == MAP_FAILED ? NULL : page;
}

static int i386(const struct attack* row) { return reached(entry32(row->a, row->c, 0, 0, 0), (int)row->b); }
static int i386_socket(const struct attack* row) {
  uint32_t* page = low();
  if (page == NULL) return undecided("no memory below 4 GiB");
  page[0] = (uint32_t)row->a, page[1] = (uint32_t)row->b, page[2] = (uint32_t)row->c;
  return close_effect((int)entry32(102, 1, (long)page, 0, 0));
}
static int i386_open(const struct attack* row) {
  (void)row;
  char* page = (char*)low();
  const char* secret = decoy("secret");
  if (page == NULL || secret == NULL) return undecided("no memory below 4 GiB, or no decoy");
  strcpy(page, secret);
  return holds_canary((int)entry32(5, (long)page, 0, 0, 0));
}
static int x32(const struct attack* row) { return reached(entry64(0x40000000UL | (unsigned long)row->a, row->c, 0, 0), (int)row->b); }
static int high_number(const struct attack* row) { return outcome(entry64((unsigned long)row->a | (1UL << 32), row->c, 0, 0)); }

static bool ends_its_caller(long number) {
  static const long kThose[] = {SYS_exit, SYS_exit_group, SYS_pause, SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_kill, SYS_tkill, SYS_tgkill,
                                SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_execve, SYS_execveat, SYS_rt_sigtimedwait, SYS_close_range,
#ifdef SYS_fork
                                SYS_fork, SYS_vfork,
#endif
                                SYS_clone, 435 /* clone3 */, SYS_wait4, SYS_waitid};
  for (size_t i = 0; i < sizeof kThose / sizeof *kThose; ++i)
    if (number == kThose[i]) return true;
  return false;
}

static uint64_t state_;
static uint64_t next_random(void) {
  state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
  return state_;
}
static long random_argument(void* room) {
  switch (next_random() % 8) {
    case 0: return (long)(next_random() % 64);
    case 1: return (long)room;
    case 2: return (long)next_random();
    case 3: return -100;
    case 4: return (long)(1UL << (next_random() % 64));
    case 5: return (long)(next_random() % 4096) << 32 | (long)(next_random() % 64);
    case 6: return -1;
    default: return 0;
  }
}

// One child's share of the random calls; what it counted lies in shared memory, for a call may end it.
static void random_calls(long* done, long count, uint64_t seed) {
  static char room[65536];
  state_ = seed;
  struct itimerval every = {{0, 2000}, {0, 2000}};
  struct sigaction interrupt = {.sa_handler = (void (*)(int))(void*)getpid};
  sigaction(SIGALRM, &interrupt, NULL);
  for (; *done < count; ++*done) {
    const long number = (long)(next_random() % 520);
    if (ends_its_caller(number)) continue;
    if (*done % 256 == 0) setitimer(ITIMER_REAL, &every, NULL);
    CALL(number, random_argument(room), random_argument(room), random_argument(room), random_argument(room), random_argument(room),
         random_argument(room));
  }
}

static int random_storm(const struct attack* row) {
  // Unconfined it would hit the machine, whoever starts it.
  if (prctl(PR_GET_SECCOMP) != 2) return undecided("not without a filter");
  long* total = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const uint64_t seed = decoy_number("seed") > 0 ? (uint64_t)decoy_number("seed") : 88172645463325252ULL;
  const time_t end = time(NULL) + 120;  // some five, where nothing else has the processors
  // A random call may close the working directory to its own user: not the one that other cases work in.
  // Not named by the process id, which an earlier try may have had in its own session: that one's directory is still there.
  char own[] = "storm-XXXXXX";
  if (mkdtemp(own) == NULL || chdir(own) != 0) return undecided("no directory of its own");
  for (uint64_t round = 1; total[0] < row->a && time(NULL) < end; ++round) {
    total[1] = 0;
    const pid_t child = fork();
    if (child == 0) {
      setpgid(0, 0);
      // What a call leaves is this child's own directory, descriptors and address space.
      random_calls(&total[1], 2000, seed * round | 1);
      _exit(0);
    }
    if (child < 0) return undecided("no process");
    // A call that blocks takes a tenth of a second, not the time of the calls after it.
    long seen = -1;
    for (int still = 0; still < 20 && time(NULL) < end && waitpid(child, NULL, WNOHANG) == 0; ++still) {
      if (seen != total[1]) still = 0;
      seen = total[1];
      usleep(5000);
    }
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    total[0] += total[1] > 0 ? total[1] : 1;
  }
  if (total[0] < row->a) return undecided("not enough calls in the time");
  const char* secret = decoy("secret");
  if (geteuid() == 0 || (secret != NULL && open(secret, O_RDONLY) >= 0)) return note_effect("the walls are gone");
  return ENOSYS;
}

#define I386(id, what, number, answer, first) {"KS-03." id, what " by int 0x80", "/syscalls", "seccomp", "SIGSYS SIGSEGV", i386, NULL, number, answer, first}
#define SOCK32(id, what, family, type, protocol) {"KS-03." id, what " by int 0x80", "/syscalls", "seccomp", "SIGSYS SIGSEGV", i386_socket, NULL, family, type, protocol}
#define X32(id, what, number, answer) {"KS-04." id, what " by an x32 number", "/syscalls", "seccomp", "SIGSYS", x32, NULL, number, answer, .control = "this kernel has no x32"}

static const struct attack kRows[] = {
    I386("getpid", "ask for the process id", 20, 0, 0),
    I386("mount", "reach mount", 21, EFAULT, 1),
    I386("umount", "reach umount", 52, EFAULT, 1),
    I386("unshare", "make a network namespace", 310, 0, CLONE_NEWNET),
    I386("setuid", "become root", 213, 0, 0),
    I386("ptrace", "be traced", 26, 0, 0),
    I386("io_uring", "reach io_uring", 425, EFAULT, 4),
    I386("bpf", "reach bpf", 357, EINVAL, -1),
    I386("keyctl", "find a keyring", 288, EINVAL, 0),
    I386("personality", "make all memory executable", 136, 0, 0x0400000),
    I386("kill", "ask whether a process lives", 37, ESRCH, 0x7ffffff0),
    SOCK32("netlink", "make a netlink socket", 16, 3, 0),
    SOCK32("packet", "make a packet socket", 17, 3, 0),
    SOCK32("raw", "make a raw socket", 2, 3, 1),
    {"KS-03.open", "read the secret by int 0x80", "/syscalls", "seccomp landlock mount_ns", "SIGSYS SIGSEGV", i386_open},
    X32("getpid", "ask for the process id", SYS_getpid, 0),
    X32("unshare", "make a namespace", SYS_unshare, 0),
    X32("mount", "reach mount", SYS_mount, EFAULT),
    X32("ioctl", "reach ioctl", 514, EBADF),
    {"KS-06.number-unshare", "make a namespace, garbage above the number", "/syscalls", "seccomp", "EPERM ENOSYS", high_number, NULL, SYS_unshare, 0, CLONE_NEWNET},
    {"KS-06.number-chroot", "change the root, garbage above the number", "/syscalls", "seccomp", "EPERM ENOSYS", high_number, NULL, SYS_chroot, 0, (long)"/"},
    {"KS-20.random", "make 100000 random system calls", "/syscalls", "seccomp landlock mount_ns", "ENOSYS", random_storm, NULL, 100000,
     .flags = ALONE | SPARE, .control = "as root, random calls would hit the machine", .seconds = 140},
};
AREA(entry_area, "kernel surface", kRows);
