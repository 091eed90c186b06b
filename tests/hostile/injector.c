/* injector PID CALL...: makes the process PID, which waits in a system call, do others: as if its code had been taken over. Says
   the result of each, a number or -errno, a line each. x86-64. CALL: open:PATH, create:PATH, list:PATH, remove:PATH, exec:PATH,
   socket, fork, setuid, or call:NUMBER,A,B,C,D,E,F with numbers of its own. exec comes last: where it succeeds there is another program. The process then goes on. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

static pid_t pid;

static void check(long result, const char* what) {
  if (result < 0) perror(what), exit(1);
}

static void wait_stop(void) {
  int status;
  check(waitpid(pid, &status, __WALL), "waitpid");
  if (!WIFSTOPPED(status)) fputs("it ended\n", stderr), exit(1);
}

/* The two bytes before the instruction pointer are the syscall instruction that it waits in. */
static long long call_six(struct user_regs_struct regs, long number, const unsigned long* with) {
  regs.rip -= 2;
  regs.orig_rax = -1;
  regs.rax = number, regs.rdi = with[0], regs.rsi = with[1], regs.rdx = with[2], regs.r10 = with[3], regs.r8 = with[4], regs.r9 = with[5];
  check(ptrace(PTRACE_SETREGS, pid, 0, &regs), "set");
  check(ptrace(PTRACE_SINGLESTEP, pid, 0, 0), "step");
  wait_stop();
  check(ptrace(PTRACE_GETREGS, pid, 0, &regs), "get");
  return (long long)regs.rax;
}

static long long call(struct user_regs_struct regs, long number, unsigned long a, unsigned long b, unsigned long c) {
  const unsigned long with[6] = {a, b, c, 0, 0, 0};
  return call_six(regs, number, with);
}

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  pid = atoi(argv[1]);
  check(ptrace(PTRACE_SEIZE, pid, 0, 0), "seize");
  check(ptrace(PTRACE_INTERRUPT, pid, 0, 0), "interrupt");
  wait_stop();
  struct user_regs_struct regs;
  check(ptrace(PTRACE_GETREGS, pid, 0, &regs), "get");
  const unsigned long text = regs.rsp - 4096; /* below what its own code uses */
  for (int i = 2; i < argc; ++i) {
    char* path = strchr(argv[i], ':');
    if (path != NULL) *path++ = '\0';
    else path = "";
    const struct iovec from = {path, strlen(path) + 1}, to = {(void*)text, strlen(path) + 1};
    check(process_vm_writev(pid, &from, 1, &to, 1, 0), "write");
    const char* what = argv[i];
    long long result = -4096;
    if (strcmp(what, "open") == 0) result = call(regs, SYS_openat, AT_FDCWD, text, O_RDONLY);
    if (strcmp(what, "list") == 0) result = call(regs, SYS_openat, AT_FDCWD, text, O_RDONLY | O_DIRECTORY);
    if (strcmp(what, "create") == 0) result = call(regs, SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT);
    if (strcmp(what, "remove") == 0) result = call(regs, SYS_unlink, text, 0, 0);
    if (strcmp(what, "socket") == 0) result = call(regs, SYS_socket, AF_UNIX, SOCK_STREAM, 0);
    if (strcmp(what, "fork") == 0) result = call(regs, SYS_clone, SIGCHLD, 0, 0);
    if (strcmp(what, "setuid") == 0) result = call(regs, SYS_setuid, 12345, 0, 0);
    if (strcmp(what, "call") == 0) {
      unsigned long of[7] = {0};
      for (int at = 0; at < 7 && *path != '\0'; ++at) {
        of[at] = strtoul(path, &path, 10);
        if (*path == ',') ++path;
      }
      result = call_six(regs, (long)of[0], of + 1);
    }
    if (strcmp(what, "exec") == 0) result = call(regs, SYS_execve, text, 0, 0);
    printf("%lld\n", result);
  }
  check(ptrace(PTRACE_SETREGS, pid, 0, &regs), "restore");
  check(ptrace(PTRACE_DETACH, pid, 0, 0), "detach");
  return 0;
}
