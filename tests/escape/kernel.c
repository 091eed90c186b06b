// Kernel surface: calls that no session needs. Each row is made so that, unconfined, the call's own code answers.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

#define HIGH (1L << 32)
#define NO "EPERM"

// What the call does is of no interest, only whether its own code answers (b: with this errno).
static int call(const struct attack* row) {
  static long room[64];
  memset(room, 0, sizeof room);
  return reached(CALL(row->a, row->c, room, room, room, room, room), (int)row->b);
}
static int call_plain(const struct attack* row) { return reached(CALL(row->a, row->c), (int)row->b); }

static int io_uring(const struct attack* row) {
  char parameters[120] = "";
  (void)row;
  return close_effect((int)CALL(425, 4, parameters));
}
static int bpf_map(const struct attack* row) {
  (void)row;
  uint32_t attributes[32] = {BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0};
  return close_effect((int)CALL(SYS_bpf, BPF_MAP_CREATE, attributes, 72));
}
static int bpf_program(const struct attack* row) {
  (void)row;
  static const uint64_t code[] = {0x00000000000000b7ULL, 0x0000000000000095ULL};
  uint64_t attributes[16] = {((uint64_t)2 << 32) | BPF_PROG_TYPE_SOCKET_FILTER, (uint64_t)(uintptr_t)code, (uint64_t)(uintptr_t) "GPL"};
  return close_effect((int)CALL(SYS_bpf, BPF_PROG_LOAD, attributes, 72));
}
static int perf(const struct attack* row) {
  struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_CPU_CLOCK, .exclude_kernel = 1};
  return close_effect((int)CALL(SYS_perf_event_open, &attributes, row->a, row->b, -1, 0));
}
static int fault_fd(const struct attack* row) { return close_effect((int)CALL(SYS_userfaultfd, row->a)); }
static int secret_memory(const struct attack* row) {
  (void)row;
  return close_effect((int)CALL(447, 0));
}
static int splice_pages(const struct attack* row) {
  (void)row;
  int tube[2];
  char byte = 'x';
  const struct iovec from = {&byte, 1};
  return pipe(tube) != 0 ? undecided("no pipe") : outcome(vmsplice(tube[1], &from, 1, 0));
}
static int remap(const struct attack* row) {
  (void)row;
  char* map = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return outcome(CALL(SYS_remap_file_pages, map, 4096, 0, 1, 0));
}
static int old_aio(const struct attack* row) {
  unsigned long context = 0;
  (void)row;
  return outcome(CALL(SYS_io_setup, 1, &context));
}
static int persona(const struct attack* row) { return outcome(CALL(SYS_personality, row->a)); }
static int process_control(const struct attack* row) {
  static char room[4096];
  return row->c != 0 ? reached(CALL(SYS_prctl, row->a, row->b, room, 0, 0), (int)row->c) : outcome(CALL(SYS_prctl, row->a, row->b, 0, 0, 0));
}
static int segments(const struct attack* row) {
  char room[64];
  return outcome(CALL(SYS_modify_ldt, row->a, room, sizeof room));
}
// In a host name space of the attacker's own when it can have one, so that the machine keeps its name.
static int name_machine(const struct attack* row) {
  if (unshare(CLONE_NEWUTS) != 0 && errno != EPERM) return refused();
  return outcome(CALL(row->a, "escape", 6));
}
static int ask_clock(const struct attack* row) {
  struct timex ask = {.modes = 0};
  if (row->a == SYS_adjtimex) {
    // Anybody may ask; only what asks to change is refused by the kernel. The filter refuses the call.
    return outcome(CALL(SYS_adjtimex, &ask));
  }
  return outcome(CALL(row->a, CLOCK_REALTIME, &ask));
}
static int set_clock(const struct attack* row) {
  const struct timespec wrong = {0, 2000000000};
  return row->a == SYS_settimeofday ? reached(CALL(SYS_settimeofday, &wrong, 0), EINVAL) : reached(CALL(SYS_clock_settime, CLOCK_REALTIME, &wrong), EINVAL);
}
static int hang_up(const struct attack* row) {
  (void)row;
  setsid();
  return outcome(vhangup());
}

static int terminal(const struct attack* row) {
  int outer = -1, inner = -1, discipline = 0;
  char typed = 'x';
  if (openpty(&outer, &inner, NULL, NULL, NULL) != 0) return undecided("no terminal could be made");
  setsid();
  ioctl(inner, TIOCSCTTY, 0);
  void* argument = row->c ? (void*)&discipline : (void*)&typed;
  const long result = CALL(SYS_ioctl, inner, row->a, argument);
  return row->b ? reached(result, (int)row->b) : outcome(result);
}
// Numbers that this kernel cannot know. 335 and 336 are left out: they are the kernel's own way back from probes, which since
// Linux 6.14 no filter sees and which answer nobody else. For the rest programs must be told so, or their fallbacks do not work.
static int unknown(const struct attack* row) {
  for (long number = row->a; number < row->b; ++number)
    if (CALL(number) != -1) return note_effect("a number nobody knows was answered");
    else if (errno != ENOSYS) return refused();
  return ENOSYS;
}

#define SURFACE(id, what, fn, ...) {"KS-02." id, what, "/syscalls", "seccomp", NO, fn, __VA_ARGS__}
#define REACH(id, what, number, answer) {"KS-02." id, what, "/syscalls", "seccomp", NO, call, NULL, number, answer}
#define GONE(id, what, number, answer) \
  {"KS-02." id, what, "/syscalls", "seccomp", NO " ENOSYS", call, NULL, number, answer, .control = "not in this kernel"}
#define NEW(id, what, number, answer) {"KS-05." id, what, "/syscalls", "seccomp", "ENOSYS EPERM", call, NULL, number, answer}
#define TTY(id, what, request, answer, pointer) {"KS-07." id, what, "/syscalls", "seccomp", NO, terminal, NULL, request, answer, pointer}

static const struct attack kRows[] = {
    {"KS-01.io_uring_setup", "make an io_uring", "/syscalls", "seccomp", NO, io_uring},
    {"KS-01.io_uring_enter", "reach io_uring_enter", "/syscalls", "seccomp", NO, call, NULL, 426, EINVAL, -1},
    {"KS-01.io_uring_register", "reach io_uring_register", "/syscalls", "seccomp", NO, call, NULL, 427, EINVAL, -2},
    SURFACE("bpf-map", "make a BPF map", bpf_map),
    SURFACE("bpf-program", "load a BPF program", bpf_program),
    SURFACE("perf-self", "count own events", perf, NULL, 0, -1),
    SURFACE("perf-cpu", "count everybody's events", perf, NULL, -1, 0),
    SURFACE("userfaultfd", "stop the kernel in page faults", fault_fd, NULL, 0),
    SURFACE("userfaultfd-user", "handle own page faults", fault_fd, NULL, 1),
    SURFACE("memfd_secret", "make memory that nobody can read", secret_memory, .control = NULL),
    SURFACE("vmsplice", "splice own pages", splice_pages),
    SURFACE("remap_file_pages", "remap pages the old way", remap),
    SURFACE("io_setup", "use the old asynchronous I/O", old_aio),
    {"KS-02.io_submit", "reach io_submit", "/syscalls", "seccomp", NO, call, NULL, SYS_io_submit, EINVAL},
    REACH("kcmp", "reach kcmp", SYS_kcmp, ESRCH),
    REACH("move_pages", "reach move_pages", SYS_move_pages, EINVAL),
    SURFACE("mbind", "set a memory policy", call_plain, NULL, SYS_mbind, EINVAL),
    SURFACE("set_mempolicy", "set the process's memory policy", call_plain, NULL, SYS_set_mempolicy, EINVAL),
    SURFACE("get_mempolicy", "ask for the memory policy", call_plain, NULL, SYS_get_mempolicy, EINVAL),
    REACH("set_mempolicy_home_node", "choose a memory node", 450, EINVAL),
    REACH("process_madvise", "advise another's memory", 440, EINVAL),
    {"KS-19.process_mrelease", "reap another's memory", "/syscalls", "seccomp", NO, call, NULL, 448, EINVAL, -1},
    SURFACE("syslog", "size the kernel's log", call_plain, NULL, SYS_syslog, 0, 10),
    REACH("swapon", "reach swapon", SYS_swapon, EINVAL),
    REACH("swapoff", "reach swapoff", SYS_swapoff, EFAULT),
    {"KS-02.acct", "reach process accounting", "/syscalls", "seccomp", NO, call, NULL, SYS_acct, EFAULT, 1},
    SURFACE("reboot", "reach reboot with a wrong magic", call_plain, NULL, SYS_reboot, EINVAL),
    GONE("kexec_load", "reach kexec", SYS_kexec_load, EINVAL),
    GONE("kexec_file_load", "reach kexec with files", SYS_kexec_file_load, EBADF),
    GONE("init_module", "load a kernel module", SYS_init_module, ENOEXEC),
    GONE("finit_module", "load a kernel module from a file", SYS_finit_module, EBADF),
    GONE("delete_module", "remove a kernel module", SYS_delete_module, EFAULT),
    REACH("quotactl_fd", "reach quotas by descriptor", 443, EINVAL),
    SURFACE("modify_ldt-read", "read segments", segments, NULL, 0),
    SURFACE("modify_ldt-default", "read default segments", segments, NULL, 2),
    {"KS-02.iopl", "raise the I/O privilege", "/syscalls", "seccomp", NO, call_plain, NULL, 172, 0, 3, .control = "not in this kernel"},
    {"KS-02.ioperm", "open I/O ports", "/syscalls", "seccomp", NO, call_plain, NULL, 173, EINVAL, 0, .control = "not in this kernel"},
    GONE("lookup_dcookie", "look up a cookie", 212, EINVAL),
    GONE("nfsservctl", "reach the old NFS server", 180, EINVAL),
    GONE("uselib", "load a library the old way", 134, EFAULT),
    GONE("_sysctl", "reach the old sysctl", 156, EFAULT),
    GONE("create_module", "reach the old modules", 174, EFAULT),
    REACH("sysfs", "list filesystems the old way", 139, EINVAL),
    REACH("ustat", "ask for a disk's room by number", 136, EINVAL),
    {"KS-02.sethostname", "name the machine", "/syscalls", "seccomp", NO, name_machine, NULL, SYS_sethostname},
    {"KS-02.setdomainname", "name the machine's domain", "/syscalls", "seccomp", NO, name_machine, NULL, SYS_setdomainname},
    SURFACE("settimeofday", "reach the machine's time", set_clock, NULL, SYS_settimeofday),
    SURFACE("clock_settime", "reach the machine's clock", set_clock, NULL, SYS_clock_settime),
    SURFACE("adjtimex", "reach the clock's discipline", ask_clock, NULL, SYS_adjtimex),
    SURFACE("clock_adjtime", "reach a clock's discipline", ask_clock, NULL, SYS_clock_adjtime),
    SURFACE("vhangup", "hang up a terminal", hang_up),
    {"PR-23.read-implies-exec", "make all memory executable", "/syscalls", "seccomp", NO, persona, NULL, 0x0400000},
    {"PR-23.no-random", "fix the address layout", "/syscalls", "seccomp", NO, persona, NULL, 0x0040000},
    {"PR-23.no-random-high", "fix the address layout, garbage above", "/syscalls", "seccomp", NO, persona, NULL, 0x0040000 | HIGH},
    {"PR-23.page-zero", "map page zero", "/syscalls", "seccomp", NO, persona, NULL, 0x0100000},
    {"PR-23.old-layout", "use the old address layout", "/syscalls", "seccomp", NO, persona, NULL, 0x0200000},
    SURFACE("dispatch", "dispatch system calls to itself", process_control, NULL, 59, 0),
    SURFACE("dispatch-high", "dispatch, garbage above the option", process_control, NULL, 59 | HIGH, 0),
    SURFACE("mm-map", "rewrite its own memory map", process_control, NULL, PR_SET_MM, 15, EINVAL),
    SURFACE("core-sched", "take a processor core", process_control, NULL, 62, 0, EINVAL),
    SURFACE("tsc", "switch the time counter off", process_control, NULL, PR_SET_TSC, PR_TSC_ENABLE),
    SURFACE("merge", "merge its memory with others'", process_control, NULL, 67, 0, .control = "Linux 6.4 has this option"),
    SURFACE("machine-check", "choose how memory faults kill", process_control, NULL, PR_MCE_KILL, PR_MCE_KILL_CLEAR),
    NEW("statmount", "reach statmount", 457, EINVAL),
    NEW("lsm_list", "list security modules", 461, EINVAL),
    NEW("lsm_self", "read the own security label", 459, EINVAL),
    NEW("setxattrat", "reach setxattrat", 463, E2BIG),
    NEW("file_getattr", "reach file_getattr", 468, EINVAL),
    {"KS-05.unknown", "call numbers that nobody knows", "/syscalls", "seccomp", "ENOSYS", unknown, NULL, 480, 700,
     .control = "unknown numbers are refused to everybody; only a wrong EPERM could be caught"},
    {"KS-05.old-holes", "call numbers between the old and the new", "/syscalls", "seccomp", "ENOSYS", unknown, NULL, 337, 423,
     .control = "unknown numbers are refused to everybody; only a wrong EPERM could be caught"},
    TTY("tiocsti", "type into a terminal", TIOCSTI, 0, 0),
    TTY("tiocsti-high", "type into a terminal, garbage above the request", TIOCSTI | HIGH, 0, 0),
    TTY("tiocsti-all-high", "type into a terminal, all upper bits set", TIOCSTI | (long)0xffffffff00000000UL, 0, 0),
    TTY("tioclinux", "reach the console's own request", TIOCLINUX, ENOTTY, 0),
    TTY("tioclinux-high", "reach the console's own request, garbage above", TIOCLINUX | HIGH, ENOTTY, 0),
    {"KS-07.tioccons", "take the console's output", "/syscalls", "seccomp", NO, terminal, NULL, TIOCCONS, EBUSY, 0, .flags = SPARE, .control = "would take the machine's console output"},
    TTY("tiocsetd", "load a line discipline", TIOCSETD, 0, 1),
    TTY("tiocsetd-high", "load a line discipline, garbage above", TIOCSETD | HIGH, 0, 1),
};
AREA(kernel_area, "kernel surface", kRows);
