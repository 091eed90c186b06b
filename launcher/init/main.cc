// caisson-init: the first process inside every session. It runs what the launcher asks for over its socket, opens
// terminals, reaps, reports. Static, fixed buffers, no C++ runtime: what a session could reach in it is as small as can be.
// It is already confined when it starts; nothing here is trusted by the launcher (session/init_link.cc checks it all).
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/init_protocol.h"
#include "launcher/base/scm.h"

namespace {

using namespace caisson::init;

constexpr int kMaxExecs = 1024;  // the launcher's own limit (limits.execs) is lower

struct Exec {
  std::uint32_t id = 0;
  pid_t pid = 0;
};

Exec g_execs[kMaxExecs];
alignas(Request) char g_request[kMaxRequest + 1];
char* g_strings[kMaxStrings + 3];

struct Strings {
  const char* cwd = nullptr;
  char** argv = nullptr;
  char** envp = nullptr;
};

[[noreturn]] void die(int status) { _exit(status); }

void send_reply(const Reply& reply, int fd = -1) {
  iovec part{const_cast<Reply*>(&reply), sizeof reply};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  caisson::scm::Buffer control;
  caisson::scm::put(header, control, &fd, fd >= 0 ? 1 : 0);
  // A launcher that is gone or does not read ends the session.
  if (sendmsg(kSocketFd, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof reply)) die(1);
}

void send_failed(std::uint32_t id, Step step, int error) {
  Reply reply{};
  reply.type = Type::failed;
  reply.exec_id = id;
  reply.step = step;
  reply.error = error;
  send_reply(reply);
}

// Splits the message's tail into cwd, argv and envp; false when it is not exactly what the header says.
bool split(const Request& request, char* at, char* end, Strings* out) {
  const std::uint32_t count = 1 + request.argc + request.envc;
  if (request.argc == 0 || request.argc > kMaxStrings || request.envc > kMaxStrings || count > kMaxStrings) return false;
  if (at == end || end[-1] != '\0') return false;
  std::uint32_t slot = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (at >= end) return false;
    if (i == 0) out->cwd = at;
    else g_strings[slot++] = at;
    at += strlen(at) + 1;
    if (i == request.argc) g_strings[slot++] = nullptr;
  }
  g_strings[slot] = nullptr;
  out->argv = g_strings;
  out->envp = g_strings + request.argc + 1;
  return at == end;
}

const char* env_value(char** envp, const char* name) {
  const size_t length = strlen(name);
  for (; *envp != nullptr; ++envp)
    if (strncmp(*envp, name, length) == 0 && (*envp)[length] == '=') return *envp + length + 1;
  return nullptr;
}

// execvpe with the PATH of the new environment, not of init's.
void exec_search(const Strings& s) {
  const char* file = s.argv[0];
  if (strchr(file, '/') != nullptr) {
    execve(file, s.argv, s.envp);
    return;
  }
  const char* path = env_value(s.envp, "PATH");
  if (path == nullptr) path = "/usr/local/bin:/usr/bin:/bin";
  int best = ENOENT;
  char full[4096];
  while (true) {
    const char* colon = strchr(path, ':');
    const size_t length = colon != nullptr ? static_cast<size_t>(colon - path) : strlen(path);
    if (length > 0 && path[0] == '/' && length + strlen(file) + 2 <= sizeof full) {
      memcpy(full, path, length);
      full[length] = '/';
      memcpy(full + length + 1, file, strlen(file) + 1);
      execve(full, s.argv, s.envp);
      if (errno != ENOENT && errno != ENOTDIR) best = errno;
    }
    if (colon == nullptr) break;
    path = colon + 1;
  }
  errno = best;
}

struct Failure {
  volatile Step step = Step::none;
  volatile int error = 0;
};

// Runs in the vfork child: shares memory with init, so it only calls the kernel and writes `failure`.
[[noreturn]] void run_child(const Request& request, const Strings& s, const int (&stdio)[3], Failure* failure) {
  failure->step = Step::setsid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(request.umask);
  if (setsid() >= 0) {
    failure->step = Step::stdio;
    if (request.stdio == Stdio::pipes || ioctl(stdio[0], TIOCSCTTY, 0) == 0) {
      // Descriptors 0-2 are init's /dev/null and the given ones are above 3: dup2 can overwrite none of its sources.
      if (dup2(stdio[0], 0) == 0 && dup2(stdio[1], 1) == 1 && dup2(stdio[2], 2) == 2) {
        failure->step = Step::chdir;
        if (chdir(s.cwd) == 0) {
          failure->step = Step::exec;
          exec_search(s);
        }
      }
    }
  }
  failure->error = errno;
  _exit(127);
}

Exec* free_slot() {
  for (Exec& e : g_execs)
    if (e.pid == 0) return &e;
  return nullptr;
}

int open_pty(const Request& request, int* slave) {
  const int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return -1;
  int unlock = 0;
  winsize size{};
  size.ws_col = static_cast<unsigned short>(request.cols);
  size.ws_row = static_cast<unsigned short>(request.rows);
  *slave = -1;
  // TIOCGPTPEER (Linux 4.13) opens the peer without a path, so that nothing mounted on /dev/pts can be put between.
  if (ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0)
    *slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0) {
    const int error = errno;
    close(master);
    errno = error;
    return -1;
  }
  return master;
}

void start(const Request& request, const Strings& s, int (&stdio)[3]) {
  Exec* slot = free_slot();
  if (slot == nullptr) return send_failed(request.exec_id, Step::fork, EAGAIN);
  int master = -1;
  if (request.stdio == Stdio::pty) {
    master = open_pty(request, &stdio[0]);
    if (master < 0) return send_failed(request.exec_id, Step::pty, errno);
    stdio[1] = stdio[2] = stdio[0];
  }
  Failure failure;
  const pid_t pid = vfork();
  if (pid == 0) run_child(request, s, stdio, &failure);
  if (pid < 0) {
    send_failed(request.exec_id, Step::fork, errno);
  } else if (failure.error != 0) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    send_failed(request.exec_id, failure.step, failure.error);
  } else {
    *slot = {request.exec_id, pid};
    Reply reply{};
    reply.type = Type::started;
    reply.exec_id = request.exec_id;
    reply.pid = pid;
    send_reply(reply, master);
  }
  if (master >= 0) {
    close(master);
    close(stdio[0]);
    stdio[0] = stdio[1] = stdio[2] = -1;
  }
}

// Signals every process whose POSIX session is `sid`. Needs /proc; without one only the group is reached.
void signal_posix_session(pid_t sid, int signal) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(atoi(entry->d_name));
    if (pid > 1 && pid != getpid() && getsid(pid) == sid) kill(pid, signal);
  }
  closedir(proc);
}

void handle_signal(const Request& request) {
  for (const Exec& e : g_execs) {
    if (e.pid == 0 || e.id != request.exec_id) continue;
    // The leader is not yet reaped (we reap it ourselves), so its pid and group cannot have been reused.
    kill(-e.pid, static_cast<int>(request.signal));
    if (request.scope == Scope::posix_session) signal_posix_session(e.pid, static_cast<int>(request.signal));
    return;
  }
}

void close_all(int (&fds)[4]) {
  for (int& fd : fds)
    if (fd >= 0) close(fd), fd = -1;
}

// The launcher is gone. In a PID namespace our end is the end of all; without one everybody that we may signal goes first:
// the session's own uid (T0), or its own Landlock domain (T1: kill(2) reaches no further than the domain's scope).
[[noreturn]] void end_session() {
  if (getpid() != 1) kill(-1, SIGKILL);
  die(0);
}

// One message of the launcher. It is well-formed by construction; a broken one means that something is very wrong.
void handle_request() {
  iovec part{g_request, kMaxRequest};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  caisson::scm::Buffer control;
  caisson::scm::expect(header, control);
  const ssize_t n = recvmsg(kSocketFd, &header, MSG_CMSG_CLOEXEC);
  if (n < 0 && errno == EINTR) return;
  if (n < static_cast<ssize_t>(sizeof(Request)) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) end_session();

  int fds[4] = {-1, -1, -1, -1};
  const size_t count = caisson::scm::take(header, fds);

  Request request;
  memcpy(&request, g_request, sizeof request);
  if (request.type == Type::signal) {
    handle_signal(request);
  } else if (request.type == Type::exec) {
    Strings s;
    const size_t wanted = request.stdio == Stdio::pty ? 0 : request.has_stdin != 0 ? 3 : 2;
    if (!split(request, g_request + sizeof request, g_request + n, &s) || count != wanted) {
      send_failed(request.exec_id, Step::request, EINVAL);
    } else {
      int stdio[3] = {0, -1, -1};  // 0 is /dev/null
      if (wanted > 0) memcpy(&stdio[3 - wanted], fds, wanted * sizeof(int));
      start(request, s, stdio);
    }
  } else {
    die(1);
  }
  close_all(fds);
}

void reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    for (Exec& e : g_execs) {
      if (e.pid != pid) continue;
      Reply reply{};
      reply.type = Type::exited;
      reply.exec_id = e.id;
      reply.signaled = WIFSIGNALED(status) ? 1 : 0;
      reply.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      reply.user_us = usage.ru_utime.tv_sec * 1'000'000L + usage.ru_utime.tv_usec;
      reply.system_us = usage.ru_stime.tv_sec * 1'000'000L + usage.ru_stime.tv_usec;
      reply.max_rss_bytes = usage.ru_maxrss * 1024L;
      e = {};
      send_reply(reply);
      break;
    }
  }
}

}  // namespace

int main() {
  // Not dumpable: other processes of the session, which have the same uid, can neither trace nor read this one.
  if (prctl(PR_SET_DUMPABLE, 0) != 0) die(2);
  // Without a PID namespace orphans would leave the session's process tree: keep them below us.
  if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) die(2);
  if (fcntl(kSocketFd, F_SETFD, FD_CLOEXEC) != 0) die(2);

  // What the launcher ignores (SIGPIPE) would stay ignored in every command.
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
  sigset_t all;
  sigfillset(&all);
  if (sigprocmask(SIG_SETMASK, &all, nullptr) != 0) die(2);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) die(2);

  Reply ready{};
  ready.type = Type::ready;
  ready.pid = getpid();
  send_reply(ready);

  for (;;) {
    pollfd watched[2] = {{kSocketFd, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(watched, 2, -1) < 0 && errno != EINTR) die(1);
    if (watched[1].revents != 0) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      }
      reap();
    }
    if ((watched[0].revents & POLLIN) != 0) handle_request();
    else if (watched[0].revents != 0) end_session();
  }
}
