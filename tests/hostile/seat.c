/* Holds the agent's place: its uid, its walls and descriptor 3, and says nothing by itself. The tests take the descriptor out of
   it (pidfd_getfd) and speak to the launcher in its name, so that whatever a program can send can be sent.
   SIGUSR1: closes its end. SIGUSR2: forks and daemonises, as an agent that was taken over before it loaded its filter.
   SIGWINCH: loads the filter (descriptor 4) as the agent does, tries to fork and exits with the errno. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter filter[65536];

static int seal(void) {
  struct stat st;
  if (fstat(4, &st) != 0 || pread(4, filter, sizeof filter, 0) != st.st_size) return -1;
  struct sock_fprog program = {(unsigned short)(st.st_size / (long)sizeof filter[0]), filter};
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Bounded in number and time, so that a launcher that fails the test does not take the machine with it. */
static void bomb(void) {
  for (int i = 0; i < 200; ++i) {
    const pid_t pid = fork();
    if (pid < 0) _exit(errno);
    if (pid > 0) continue;
    setsid();
    if (fork() != 0) _exit(0);
    signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);
    alarm(30);
    for (;;) pause();
  }
}

int main(void) {
  sigset_t set;
  int which = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  /* nobody's seat outlives its launcher, however that ends */
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGWINCH);
  sigprocmask(SIG_BLOCK, &set, NULL);
  prctl(PR_SET_NAME, "seated");  /* only now: before, SIGWINCH would be lost and SIGUSR2 would kill */
  for (;;) {
    sigwait(&set, &which);
    if (which == SIGUSR1) close(3);
    if (which == SIGUSR2) bomb();
    if (which == SIGWINCH) {
      if (seal() != 0) _exit(200);
      _exit(fork() >= 0 ? 201 : errno);
    }
  }
}
