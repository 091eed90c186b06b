// What nobody can be faster than who starts a program in namespaces of its own and waits for it: one clone into those of
// `bwrap --unshare-all`, execve, waitpid. No mount, no policy, no filter, no check.
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv, char** environ) {
  if (argc < 2) return 2;
  clone_args args{};
  args.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) {
    ::execve(argv[1], argv + 1, environ);
    ::_exit(127);
  }
  int status = 1;
  return pid > 0 && ::waitpid(static_cast<pid_t>(pid), &status, 0) == pid ? WEXITSTATUS(status) : 1;
}
