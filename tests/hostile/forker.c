/* forker MARK: chains of processes, each of which forks its successor and ends, so that whoever kills from a list kills the dead:
   100 at most, half of them in POSIX sessions of their own, that ignore what can be ignored. A chain cannot grow, every link dies with
   the program's end of time, and the links of all chains are counted: a launcher that fails the test does not take the machine with it. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { CHAINS = 100, LINKS = 20000, SECONDS = 90 };
static atomic_int* links;
static time_t until;

static time_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec;
}

static void chain(int number) {
  for (;;) {
    if (number % 2 == 0) setsid();
    if (atomic_fetch_add(links, 1) > LINKS) {
      /* Enough turnover: stay, to be killed. */
      while (now() < until) usleep(10000);
      _exit(0);
    }
    usleep(2000);
    pid_t pid = 1;
    /* Refused while the dead have not been reaped: this link waits, and the chain goes on. */
    while (now() < until && (pid = fork()) < 0) usleep(2000);
    if (pid != 0) _exit(0);
  }
}

int main(void) {
  for (int s = 1; s < 32; ++s) signal(s, SIG_IGN);
  links = mmap(NULL, sizeof *links, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  until = now() + SECONDS;
  if (links == MAP_FAILED) return 1;
  for (int i = 0; i < CHAINS; ++i)
    if (fork() == 0) {
      /* A first link dies with us; its successors, whose parents end at once, at the end of time. */
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      chain(i);
    }
  while (now() < until) usleep(100000);
  return 0;
}
