// Resources. Every attack stops by itself at a bound that a shared machine bears; the test's policy has lower limits. A session
// that its launcher ends for it answers nothing more: whoever runs this sees the reason.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

enum { HOLD = 4 };  // seconds, longer than a watchdog's round

// A control shows that an attack works, and no more: unconfined it stays below what a shared machine notices.
static long count_of(const struct attack* row) { return decoy("small") != NULL && row->a > 100 ? 100 : row->a; }
static long bytes_of(const struct attack* row) { return decoy("small") != NULL && row->a > (64L << 20) ? 64L << 20 : row->a; }
// fork, and a child that does not outlive what started it.
static pid_t fork_bound(void) {
  const pid_t child = fork();
  if (child == 0) CALL(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  return child;
}

static int forks(const struct attack* row) {
  const long count = count_of(row);
  long made = 0;
  for (; made < count; ++made) {
    const pid_t child = fork_bound();
    if (child < 0) break;
    if (child == 0) {
      if (row->b) setsid();
      sleep(HOLD + 2);
      _exit(0);
    }
  }
  const int saved = errno;
  sleep(HOLD);
  return made == count ? EFFECT : saved;
}
// All at once and gone: only what counts as they are made stops it.
static int burst(const struct attack* row) {
  (void)row;
  enum { COUNT = 100 };
  pid_t made[COUNT];
  int count = 0;
  for (; count < COUNT; ++count) {
    made[count] = fork_bound();
    if (made[count] < 0) break;
    if (made[count] == 0) for (;;) pause();
  }
  const int saved = errno;
  for (int i = 0; i < count; ++i) kill(made[i], SIGKILL);
  for (int i = 0; i < count; ++i) waitpid(made[i], NULL, 0);
  return count == COUNT ? EFFECT : saved;
}
static int memory_burst(const struct attack* row) {
  const size_t size = (size_t)row->a;
  char* room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return refused();
  for (size_t at = 0; at < size; at += 4096) room[at] = 1;
  munmap(room, size);
  return EFFECT;
}
static void* sleeper(void* nothing) {
  sleep(HOLD + 2);
  return nothing;
}
static int threads(const struct attack* row) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 32768);
  pthread_t thread;
  for (long made = 0; made < count_of(row); ++made) {
    const int error = pthread_create(&thread, &small, sleeper, NULL);
    if (error != 0) return error;
  }
  sleep(HOLD);
  return EFFECT;
}
static int zombies(const struct attack* row) {
  for (long made = 0; made < count_of(row); ++made) {
    const pid_t child = fork();
    if (child < 0) return refused();
    if (child == 0) _exit(0);
  }
  sleep(HOLD);
  return EFFECT;
}

static int fill(char* room, long size) {
  if (room == MAP_FAILED || room == NULL) return refused();
  for (long at = 0; at < size; at += 4096) room[at] = 1;
  sleep(HOLD);
  return EFFECT;
}
static int memory(const struct attack* row) {
  const long size = bytes_of(row);
  return fill(mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, (int)row->b | MAP_ANONYMOUS, -1, 0), size);
}
static int memory_shared_out(const struct attack* row) {
  const long size = bytes_of(row);
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork_bound();
    if (child == 0) _exit(fill(mmap(NULL, (size_t)size / 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size / 4));
  }
  int status = 0, whole = 0;
  while (wait(&status) > 0) whole += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return whole == 4 ? EFFECT : ENOMEM;
}
static int memory_file(const struct attack* row) {
  const long size = bytes_of(row);
  const int fd = (int)CALL(SYS_memfd_create, "escape", 0);
  if (fd < 0 || ftruncate(fd, size) != 0) return refused();
  return fill(mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), size);
}
static int memory_segment(const struct attack* row) {
  const long size = bytes_of(row);
  const int id = shmget(IPC_PRIVATE, (size_t)size, IPC_CREAT | 0600);
  if (id < 0) return refused();
  char* room = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  return fill(room == (char*)-1 ? NULL : room, size);
}

// Names of one's own in a directory that others use: the process ids of two PID namespaces may be the same.
static long mark(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}
static int write_much(const struct attack* row) {
  static char block[1 << 20];
  char name[256];
  snprintf(name, sizeof name, "%s/fill-%ld", row->path, mark());
  const int fd = open(name, O_CREAT | O_WRONLY, 0600);
  if (fd < 0) return refused();
  int result = EFFECT;
  for (long done = 0; done < row->a && result == EFFECT; done += (long)sizeof block)
    if (write(fd, block, sizeof block) < 0) result = refused();
  close(fd);
  unlink(name);
  return result;
}
static int many_files(const struct attack* row) {
  char name[256];
  int result = EFFECT;
  long made = 0;
  const long own = mark();
  for (; made < row->a && result == EFFECT; ++made) {
    snprintf(name, sizeof name, "%s/many-%ld-%ld", row->path, own, made);
    const int fd = open(name, O_CREAT | O_WRONLY | O_EXCL, 0600);
    if (fd < 0) result = refused();
    else close(fd);
  }
  while (--made >= 0) {
    snprintf(name, sizeof name, "%s/many-%ld-%ld", row->path, own, made);
    unlink(name);
  }
  return result;
}
static int long_file(const struct attack* row) {
  char name[64];
  snprintf(name, sizeof name, "long-%d", (int)getpid());
  const int fd = open(name, O_CREAT | O_WRONLY, 0600);
  if (row->b) signal(SIGXFSZ, SIG_IGN);
  const int result = outcome(ftruncate(fd, row->a));
  close(fd);
  unlink(name);
  return result;
}
static int open_many(const struct attack* row) {
  for (long made = 0; made < row->a; ++made) {
    const int fd = row->b == 0 ? dup(0) : row->b == 1 ? eventfd(0, 0) : epoll_create1(0);
    if (fd < 0) return refused();
  }
  return EFFECT;
}
static int lock_memory(const struct attack* row) {
  char* room = mmap(NULL, (size_t)row->a, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return outcome(mlock(room, (size_t)row->a));
}
static int queue_signals(const struct attack* row) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (long sent = 0; sent < row->a; ++sent)
    if (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) != 0) return refused();
  return EFFECT;
}
static int many_timers(const struct attack* row) {
  for (long made = 0; made < row->a; ++made) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return refused();
  }
  return EFFECT;
}
static int queue_bytes(const struct attack* row) {
  char name[64];
  int result = EFFECT;
  for (long made = 0; made < row->a && result == EFFECT; ++made) {
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
    snprintf(name, sizeof name, "/escape-%d-%ld", (int)getpid(), made);
    const mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    if (queue < 0) result = refused();
    mq_unlink(name);  // its room is taken as long as it is open
  }
  return result;
}
static int core_file(const struct attack* row) {
  struct rlimit limit;
  (void)row;
  getrlimit(RLIMIT_CORE, &limit);
  return limit.rlim_max > 0 ? EFFECT : EPERM;
}

static void ignore(int number) { (void)number; }
// Longer than the limit by far: that is counted in ticks, which a machine under a hypervisor loses, and this in time.
static int spin(const struct attack* row) {
  signal(SIGXCPU, row->b ? ignore : SIG_DFL);
  signal(SIGTERM, SIG_IGN);
  for (struct timespec used = {0, 0}; used.tv_sec < row->a;) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return EFFECT;
}
static int leave_segment(const struct attack* row) {
  const int id = shmget((key_t)decoy_number("leak_key"), 4096, IPC_CREAT | 0666);
  (void)row;
  return id < 0 ? refused() : EFFECT;
}
static int leave_queue(const struct attack* row) {
  const char* name = decoy("leak_queue");
  (void)row;
  if (name == NULL) return undecided("the decoy is missing");
  struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 8};  // the room for queues is the user's, and others take of it
  return outcome(mq_open(name, O_CREAT | O_RDWR, 0666, &small));
}
// New processes as fast as the old ones are ended: only ending all at once ends it. Eight at a time, for at most four seconds.
static int fork_race(const struct attack* row) {
  (void)row;
  if (decoy("daemon") == NULL) return undecided("the decoy is missing");
  const time_t end = time(NULL) + 4;
  for (int i = 0; i < 8; ++i)
    if (fork() == 0) {
      CALL(SYS_prctl, PR_SET_NAME, decoy("daemon"));
      setsid();
      close(STDOUT_FILENO);  // whoever reads our answer must not wait for these
      for (int generation = 0; generation < 3000 && time(NULL) < end; ++generation) {
        if (fork() != 0) _exit(0);
        usleep(1000);
      }
      _exit(0);
    }
  return ESRCH;
}

#define MIB (1L << 20)
#define LIMIT(id, what, field, by, expected, fn, ...) {"RS-" id, what, "/limits/" field, by, expected, fn, __VA_ARGS__}
#define ENDED "SIGKILL limit"

static const struct attack kRows[] = {
    LIMIT("01.forks", "have 300 processes", "processes", "cgroup rlimits", "EAGAIN " ENDED, forks, NULL, 300, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("01.sessions", "have 300 processes in sessions of their own", "processes", "cgroup rlimits", "EAGAIN " ENDED, forks, NULL, 300, 1, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("01.burst", "have 100 processes for a moment", "processes", "cgroup", "EAGAIN " ENDED, burst, NULL, .flags = ALONE | BOX, .residual = "watchdog-limits"),
    LIMIT("02.threads", "have 300 threads", "processes", "cgroup rlimits", "EAGAIN " ENDED, threads, NULL, 300, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("11.zombies", "have 300 dead processes", "processes", "cgroup rlimits", "EAGAIN " ENDED, zombies, NULL, 300, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("03.burst", "use 64 MiB for a moment", "memory_bytes", "cgroup", "ENOMEM " ENDED, memory_burst, NULL, 64 * MIB, .flags = ALONE | BOX, .residual = "watchdog-limits"),
    LIMIT("03.memory", "use 400 MiB", "memory_bytes", "cgroup", "ENOMEM " ENDED, memory, NULL, 400 * MIB, MAP_PRIVATE, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("03.shared", "use 400 MiB of shared memory", "memory_bytes", "cgroup", "ENOMEM " ENDED, memory, NULL, 400 * MIB, MAP_SHARED, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("03.four", "use 400 MiB in four processes", "memory_bytes", "cgroup", "ENOMEM " ENDED, memory_shared_out, NULL, 400 * MIB, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("03.memfd", "use 400 MiB in a file of memory", "memory_bytes", "cgroup", "ENOMEM " ENDED, memory_file, NULL, 400 * MIB, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("03.segment", "use 400 MiB in a System V segment", "memory_bytes", "cgroup seccomp", "ENOMEM EPERM " ENDED, memory_segment, NULL, 400 * MIB, .flags = ALONE | BOX, .seconds = 20),
    LIMIT("22.tmp", "write 48 MiB to /tmp", "tmp_bytes", "mount_ns", "ENOSPC EACCES", write_much, "/tmp", 48 * MIB, .residual = "tmp-shared"),
    LIMIT("22.shm", "write 48 MiB to /dev/shm", "tmp_bytes", "mount_ns landlock", "ENOSPC EACCES", write_much, "/dev/shm", 48 * MIB),
    LIMIT("22.home", "write 48 MiB to the home", "tmp_bytes", "", "ENOSPC EDQUOT", write_much, ".", 48 * MIB, .residual = "home-quota"),
    LIMIT("23.tmp", "make 1600 files in /tmp", "tmp_inodes", "mount_ns", "ENOSPC EACCES", many_files, "/tmp", 1600, .residual = "tmp-shared"),
    LIMIT("23.shm", "make 1600 files in /dev/shm", "tmp_inodes", "mount_ns landlock", "ENOSPC EACCES", many_files, "/dev/shm", 1600),
    LIMIT("26.file-size", "make a file of 5 GiB", "file_size_bytes", "rlimits", "SIGXFSZ EFBIG", long_file, NULL, 5L << 30, .control = NULL),
    LIMIT("26.file-size-ignored", "make a file of 5 GiB, ignoring the signal", "file_size_bytes", "rlimits", "EFBIG", long_file, NULL, 5L << 30, 1),
    LIMIT("07.descriptors", "open 400 descriptors", "open_files", "rlimits", "EMFILE", open_many, NULL, 400),
    LIMIT("07.events", "open 400 event counters", "open_files", "rlimits", "EMFILE", open_many, NULL, 400, 1),
    LIMIT("07.polls", "open 400 poll sets", "open_files", "rlimits", "EMFILE", open_many, NULL, 400, 2),
    LIMIT("13.memlock", "lock 32 MiB of memory", "memory_bytes", "rlimits capabilities", "ENOMEM EPERM EAGAIN", lock_memory, NULL, 32 * MIB),
    LIMIT("13.signals", "have 6000 signals pending", "processes", "rlimits", "EAGAIN", queue_signals, NULL, 6000),
    LIMIT("13.timers", "have 6000 timers", "processes", "rlimits", "EAGAIN", many_timers, NULL, 6000),
    LIMIT("13.queues", "have 20 message queues of 80 KiB", "processes", "rlimits landlock seccomp", "EMFILE EPERM EACCES", queue_bytes, NULL, 20, .control = "here root has the same limit, and lacks CAP_SYS_RESOURCE"),
    LIMIT("06.core", "write a core file", "file_size_bytes", "rlimits", "EPERM", core_file, NULL, .control = "core files are off on this host"),
    LIMIT("05.cpu", "spin for eight seconds", "cpu_seconds", "rlimits", "SIGXCPU SIGKILL", spin, NULL, 8, .seconds = 60),
    LIMIT("06.cpu-ignored", "spin for eight seconds, ignoring the signal", "cpu_seconds", "rlimits", "SIGKILL", spin, NULL, 8, 1, .seconds = 60),
    {"RS-14.segment", "leave a System V segment behind", "/syscalls", "ipc_ns seccomp", "EPERM", leave_segment, .flags = ALONE},
    {"RS-14.queue", "leave a message queue behind", "/syscalls", "landlock ipc_ns seccomp", "EPERM EACCES", leave_queue, .flags = ALONE},
    {"RS-22.fork-race", "fork as fast as the session is ended", "/limits/session_seconds", "pid_ns", "ESRCH", fork_race, .flags = ALONE},
};
AREA(resources_area, "resources", kRows);
