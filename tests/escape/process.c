// Processes: seeing, signalling, tracing and governing those of others, and what is handed down to the session's own.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

extern char** environ;

#define TARGET(row)                       \
  const long pid = decoy_number(row->path); \
  if (pid <= 0) return undecided("the decoy is missing")

static int trace(const struct attack* row) {
  TARGET(row);
  if (ptrace((enum __ptrace_request)row->a, (pid_t)pid, 0, 0) != 0) return refused();
  waitpid((pid_t)pid, NULL, __WALL | WNOHANG);
  ptrace(PTRACE_DETACH, (pid_t)pid, 0, 0);
  return EFFECT;
}
static int trace_me(const struct attack* row) {
  (void)row;
  return outcome(ptrace(PTRACE_TRACEME, 0, 0, 0));
}
static int trace_child(const struct attack* row) {
  (void)row;
  const pid_t child = fork();
  if (child == 0) for (;;) pause();
  const int result = outcome(ptrace(PTRACE_SEIZE, child, 0, 0));
  kill(child, SIGKILL);
  return result;
}

// An address that every process of this kernel's default layout has is not known: EFAULT means that the memory was within reach.
static int memory(const struct attack* row) {
  const long pid = row->path != NULL ? decoy_number(row->path) : getppid();
  char byte = 0;
  struct iovec own = {&byte, 1}, other = {(void*)0x1000, 1};
  if (pid <= 0) return undecided("the decoy is missing");
  return reached(CALL(row->a, pid, &own, 1, &other, 1, 0), EFAULT);
}

static int signal_it(const struct attack* row) {
  TARGET(row);
  const int number = (int)row->b;
  siginfo_t info = {.si_code = SI_QUEUE, .si_signo = number};
  if (row->a == SYS_kill) return outcome(kill((pid_t)pid, number));
  if (row->a == SYS_tgkill) return outcome(CALL(SYS_tgkill, pid, pid, number));
  if (row->a == SYS_tkill) return outcome(CALL(SYS_tkill, pid, number));
  if (row->a == SYS_rt_sigqueueinfo) return outcome(CALL(SYS_rt_sigqueueinfo, pid, number, &info));
  if (row->a == SYS_rt_tgsigqueueinfo) return outcome(CALL(SYS_rt_tgsigqueueinfo, pid, pid, number, &info));
  const int fd = (int)CALL(SYS_pidfd_open, pid, 0);
  if (fd < 0) return refused();
  return outcome(row->a == SYS_pidfd_send_signal ? CALL(SYS_pidfd_send_signal, fd, number, 0, 0)
                                                 : CALL(SYS_pidfd_getfd, fd, 0, 0));
}
static int signal_group(const struct attack* row) {
  TARGET(row);
  return outcome(kill((pid_t)-pid, SIGTERM));
}
// Whom it reached is seen outside; that it reached oneself is no news.
static int signal_all(const struct attack* row) {
  kill(-1, (int)row->a);
  return refused() > 0 ? ESRCH : UNDECIDED;
}
// The kernel accepts any owner: only whether the signal arrives tells.
static int signal_by_owner(const struct attack* row) {
  TARGET(row);
  int tube[2];
  if (pipe(tube) != 0 || fcntl(tube[0], F_SETSIG, SIGTERM) != 0) return undecided("no pipe");
  if (fcntl(tube[0], F_SETOWN, (int)pid) != 0 || fcntl(tube[0], F_SETFL, O_ASYNC) != 0) return refused();
  if (write(tube[1], "x", 1) != 1) return undecided("nothing was written");
  usleep(200000);
  return EPERM;
}

static int see_pid(const struct attack* row) {
  TARGET(row);
  return outcome(CALL(row->a, pid, row->b));
}
static int set_limit(const struct attack* row) {
  TARGET(row);
  const struct rlimit limit = {64, 64};
  return outcome(prlimit((pid_t)pid, RLIMIT_NOFILE, &limit, NULL));
}
static int set_priority(const struct attack* row) {
  TARGET(row);
  return outcome(setpriority(PRIO_PROCESS, (id_t)pid, 11));
}
static int set_affinity(const struct attack* row) {
  TARGET(row);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return outcome(sched_setaffinity((pid_t)pid, sizeof set, &set));
}
static int set_io_priority(const struct attack* row) {
  TARGET(row);
  return outcome(CALL(SYS_ioprio_set, 1, pid, 3 << 13));
}
static int set_scheduler(const struct attack* row) {
  TARGET(row);
  const struct sched_param param = {0};
  return outcome(sched_setscheduler((pid_t)pid, SCHED_IDLE, &param));
}
static int set_group(const struct attack* row) {
  TARGET(row);
  return reached(CALL(row->a, pid, 0, 0, 0), (int)row->b);
}
static int call_on(const struct attack* row) {
  TARGET(row);
  long room[2] = {0, 0};
  return reached(CALL(row->a, pid, room, room, room, room, room), (int)row->b);
}

static int compare(const struct attack* row) {
  TARGET(row);
  return outcome(CALL(SYS_kcmp, getpid(), pid, 2));
}

static int own_real_time(const struct attack* row) {
  const struct sched_param param = {1};
  return outcome(sched_setscheduler(0, (int)row->a, &param));
}
static int own_nice(const struct attack* row) { return outcome(setpriority((int)row->a, 0, (int)row->b)); }
static int own_io_real_time(const struct attack* row) {
  (void)row;
  return outcome(CALL(SYS_ioprio_set, 1, 0, (1 << 13) | 4));
}
static int own_limit(const struct attack* row) {
  struct rlimit limit;
  if (getrlimit((int)row->a, &limit) != 0) return refused();
  if (limit.rlim_max == RLIM_INFINITY) return note_effect("there is no limit");
  ++limit.rlim_max;
  return outcome(setrlimit((int)row->a, &limit));
}

// What is handed down.
static int variable(const struct attack* row) {
  for (char** e = environ; *e != NULL; ++e)
    if (strncmp(*e, row->path, strlen(row->path)) == 0) return note_effect(*e);
  return ENOENT;
}
static int descriptor(const struct attack* row) {
  (void)row;
  char link[64], to[160];
  for (int fd = 3; fd < 4096; ++fd) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, to, sizeof to - 1);
    if (length <= 0 || fcntl(fd, F_GETFD) < 0) continue;
    to[length] = '\0';
    if (fcntl(fd, F_GETFD) & FD_CLOEXEC) continue;  // the runner's own
    return note_effect(to);
  }
  return EBADF;
}
static int mask(const struct attack* row) {
  (void)row;
  sigset_t set;
  sigprocmask(SIG_SETMASK, NULL, &set);
  return sigismember(&set, SIGUSR2) ? EFFECT : ENOENT;
}
static int ignored(const struct attack* row) {
  (void)row;
  struct sigaction action;
  sigaction(SIGUSR1, NULL, &action);
  return action.sa_handler == SIG_IGN ? EFFECT : ENOENT;
}
static int file_mode(const struct attack* row) {
  (void)row;
  return umask(022) == 0 ? EFFECT : ENOENT;
}
static int layout(const struct attack* row) {
  (void)row;
  const long now = CALL(SYS_personality, 0xffffffff);
  return now > 0 ? note_effect("address layout is not random") : now == 0 ? ENOENT : refused();
}
static int keyring(const struct attack* row) {
  (void)row;
  return outcome(CALL(SYS_keyctl, 0, -3, 0));
}
// Outlives the session unless something ends it; whoever looks from outside finds the name.
static int daemon_survives(const struct attack* row) {
  if (decoy("daemon") == NULL) return undecided("the decoy is missing");
  for (long i = 0; i < row->a; ++i) {
    if (fork() != 0) continue;
    setsid();
    if (fork() != 0) _exit(0);
    prctl(PR_SET_NAME, decoy("daemon"));
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    sleep(20);
    _exit(0);
  }
  usleep(200000);
  return ESRCH;
}

#define WALLS "pid_ns landlock uid"
#define NOBODY "ESRCH EPERM"
#define TRACE(id, what, fn, target, ...) {id, what, "/syscalls", "seccomp " WALLS, NOBODY, fn, target, __VA_ARGS__}
#define SIGNAL(id, what, target, call, number) \
  {id, what, "/require", WALLS, NOBODY, signal_it, target, call, number, .flags = ALONE, .residual = "landlock-no-scopes"}
#define TUNE(id, what, fn, ...) {id, what, "/require", "pid_ns", NOBODY, fn, "victim", __VA_ARGS__ .flags = ALONE, .residual = "one-uid peers-tunable"}
#define DOWN(id, what, by, fn, ...) {id, what, "/env", by, "ENOENT EBADF EPERM", fn, __VA_ARGS__}

static const struct attack kRows[] = {
    TRACE("PR-01.attach-victim", "trace a process of another session", trace, "victim", PTRACE_ATTACH),
    TRACE("PR-01.seize-victim", "seize a process of another session", trace, "victim", PTRACE_SEIZE),
    TRACE("PR-01.seize-launcher", "seize the launcher", trace, "launcher", PTRACE_SEIZE),
    TRACE("PR-01.traceme", "be traced", trace_me, NULL),
    TRACE("PR-01.child", "trace an own child", trace_child, NULL),
    TRACE("PR-02.read-victim", "read memory of another session", memory, "victim", SYS_process_vm_readv),
    TRACE("PR-02.write-victim", "write memory of another session", memory, "victim", SYS_process_vm_writev),
    TRACE("PR-02.read-launcher", "read memory of the launcher", memory, "launcher", SYS_process_vm_readv),
    TRACE("PR-02.read-parent", "read memory of the parent", memory, NULL, SYS_process_vm_readv),
    SIGNAL("PR-05.kill", "end a process of another session", "victim", SYS_kill, SIGTERM),
    SIGNAL("PR-05.kill-9", "kill a process of another session", "victim", SYS_kill, SIGKILL),
    SIGNAL("PR-05.tgkill", "end a thread of another session", "victim", SYS_tgkill, SIGTERM),
    SIGNAL("PR-05.tkill", "end a thread by the old call", "victim", SYS_tkill, SIGTERM),
    SIGNAL("PR-05.queue", "queue a signal", "victim", SYS_rt_sigqueueinfo, SIGTERM),
    SIGNAL("PR-05.queue-thread", "queue a signal to a thread", "victim", SYS_rt_tgsigqueueinfo, SIGTERM),
    SIGNAL("PR-05.pidfd", "end by a process descriptor", "victim", SYS_pidfd_send_signal, SIGTERM),
    {"PR-05.getfd", "take a descriptor of another session", "/syscalls", "seccomp pid_ns", NOBODY, signal_it, "victim", SYS_pidfd_getfd},
    {"PR-05.getfd-launcher", "take a descriptor of the launcher", "/syscalls", "seccomp pid_ns", NOBODY, signal_it, "launcher", SYS_pidfd_getfd},
    {"PR-05.group", "end a process group of another session", "/require", WALLS, NOBODY, signal_group, "victim", .flags = ALONE, .residual = "landlock-no-scopes"},
    {"PR-05.owner", "send a signal as the owner of a pipe", "/require", WALLS, NOBODY, signal_by_owner, "victim", .flags = ALONE, .residual = "landlock-no-scopes"},
    {"PR-05.stop", "stop a process of another session", "/require", WALLS, NOBODY, signal_it, "victim", SYS_kill, SIGSTOP, .flags = ALONE, .residual = "landlock-no-scopes"},
    {"PR-07.stop-launcher", "signal the launcher", "/require", WALLS, NOBODY, signal_it, "launcher", SYS_kill, 0},
    {"PR-06.kill-all", "kill everything", "/require", WALLS, NOBODY " SIGKILL", signal_all, NULL, SIGKILL, .flags = ALONE | BOX},
    {"PR-06.stop-all", "stop everything", "/require", WALLS, NOBODY " SIGSTOP", signal_all, NULL, SIGSTOP, .flags = ALONE | BOX},
    {"PR-04.getpgid", "ask for another session's group", "/require", "pid_ns", "ESRCH", see_pid, "victim", SYS_getpgid, .residual = "proc-shared"},
    {"PR-04.sched", "ask for another session's scheduling", "/require", "pid_ns", "ESRCH", see_pid, "victim", SYS_sched_getscheduler, .residual = "proc-shared"},
    {"PR-04.pidfd", "hold another session's process", "/require", "pid_ns", "ESRCH", see_pid, "victim", SYS_pidfd_open, .residual = "proc-shared"},
    {"PR-13.limit", "lower another session's limits", "/syscalls", "seccomp", NOBODY, set_limit, "victim", .flags = ALONE},
    TUNE("PR-14.nice", "lower another session's priority", set_priority, ),
    TUNE("PR-14.affinity", "bind another session to one processor", set_affinity, ),
    TUNE("PR-14.io", "take another session's disk priority", set_io_priority, ),
    TUNE("PR-14.idle", "let another session run only when idle", set_scheduler, ),
    {"PR-14.migrate", "move another session's memory", "/syscalls", "seccomp", NOBODY, call_on, "victim", SYS_migrate_pages, EINVAL},
    {"PR-14.move-pages", "ask where another session's memory lies", "/syscalls", "seccomp", NOBODY, call_on, "victim", SYS_move_pages, EINVAL},
    {"PR-14.robust-list", "find another session's locks", "/require", WALLS, NOBODY, set_group, "victim", SYS_get_robust_list, EFAULT},
    {"PR-14.kcmp", "compare with another session", "/syscalls", "seccomp", NOBODY, compare, "victim"},
    {"PR-13.nofile", "raise the limit of descriptors", "/limits/open_files", "rlimits capabilities", "EPERM", own_limit, NULL, 7, .control = "here root lacks CAP_SYS_RESOURCE, too"},
    {"PR-13.nproc", "raise the limit of processes", "/limits/processes", "rlimits capabilities", "EPERM", own_limit, NULL, 6, .control = "here root lacks CAP_SYS_RESOURCE, too"},
    {"PR-13.cpu", "raise the limit of processor time", "/limits/cpu_seconds", "rlimits capabilities", "EPERM", own_limit, NULL, 0},
    {"PR-13.file-size", "raise the limit of file sizes", "/limits/file_size_bytes", "rlimits capabilities", "EPERM", own_limit, NULL, 1},
    {"PR-13.core", "raise the limit of core files", "/require", "rlimits capabilities", "EPERM", own_limit, NULL, 4, .control = "here root lacks CAP_SYS_RESOURCE, too"},
    {"PR-14.fifo", "become a real-time process", "/syscalls", "rlimits capabilities", "EPERM", own_real_time, NULL, SCHED_FIFO},
    {"PR-14.round-robin", "become a real-time process in turn", "/syscalls", "rlimits capabilities", "EPERM", own_real_time, NULL, SCHED_RR},
    {"PR-14.nice-own", "raise the own priority", "/syscalls", "rlimits capabilities", "EACCES EPERM", own_nice, NULL, PRIO_PROCESS, -5},
    {"PR-14.nice-user", "raise the priority of the user's processes", "/syscalls", "rlimits capabilities", "EACCES EPERM", own_nice, NULL, PRIO_PGRP, -5},
    {"PR-14.io-own", "become first at the disk", "/syscalls", "capabilities", "EPERM", own_io_real_time},
    DOWN("PR-17.key", "find the API key in the environment", "env", variable, "SANDBOX_API_KEY="),
    DOWN("PR-17.variable", "find a variable of the launcher's", "env", variable, "LEAKED_VARIABLE="),
    DOWN("PR-18.descriptor", "find an inherited descriptor", "fds", descriptor, NULL),
    DOWN("PR-21.mask", "inherit a blocked signal", "env", mask, NULL),
    DOWN("PR-21.ignored", "inherit an ignored signal", "env", ignored, NULL),
    DOWN("PR-22.umask", "inherit the umask", "env", file_mode, NULL),
    DOWN("PR-22.personality", "inherit a fixed address layout", "env", layout, NULL),
    DOWN("PR-22.keyring", "inherit the session keyring", "seccomp", keyring, NULL),
    {"PR-09.daemon", "leave a daemon behind", "/limits/session_seconds", "pid_ns", "ESRCH", daemon_survives, NULL, 1, .flags = ALONE},
    {"PR-10.daemons", "leave ten daemons behind", "/limits/session_seconds", "pid_ns", "ESRCH", daemon_survives, NULL, 10, .flags = ALONE},
};
AREA(process_area, "process", kRows);
