// caisson-init: the first process inside every session. It runs what the launcher asks for over its socket, opens
// terminals, reaps, reports. Fixed buffers, no library at all: what a session could reach in it is as small as can be.
// It is already confined when it starts; nothing here is trusted by the launcher (common/confine/init_link.cc checks it all).
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>

#include <cerrno>

#include "launcher/common/base/scm.h"
#include "launcher/common/freestanding/kernel.h"
#include "launcher/common/freestanding/skel.h"
#include "launcher/common/wire/init_protocol.h"
#include "launcher/init/probes.h"

namespace {

using namespace caisson::init;
namespace k = caisson::init::kernel;

// The launcher is gone. In a PID namespace our end is the end of all; without one everybody that we may signal goes first:
// the session's own uid (T0), or its own Landlock domain (T1, from Landlock ABI 6: kill(2) reaches no further than its scope).
[[noreturn]] void end_session() {
  if (k::getpid() != 1) k::kill(-1, SIGKILL);
  k::exit(0);
}

constexpr int kMaxExecs = 1024;  // the launcher's own limit (limits.execs) is lower

struct Exec {
  std::uint32_t id = 0;
  pid_t pid = 0;
};

Exec g_execs[kMaxExecs];
alignas(Request) char g_request[kMaxRequest + 1];
char* g_strings[kMaxStrings + 3];
alignas(16) char g_stack[64 * 1024];  // of the child between clone and exec; one at a time, because init waits for it

struct Strings {
  const char* cwd = nullptr;
  char** argv = nullptr;
  char** envp = nullptr;
};

void send_reply(const Reply& reply, int fd = -1) {
  iovec part{const_cast<Reply*>(&reply), sizeof reply};
  msghdr header{.msg_iov = &part, .msg_iovlen = 1};
  caisson::scm::Buffer control;
  caisson::scm::put(header, control, &fd, fd >= 0 ? 1 : 0);
  // A launcher that is gone or does not read ends the session. What is no socket at all is no launcher: then nobody is ours to
  // kill.
  const long sent = k::sendmsg(kSocketFd, &header, MSG_NOSIGNAL);
  if (sent == -EPIPE || sent == -ECONNRESET) end_session();
  if (sent != static_cast<long>(sizeof reply)) k::exit(1);
}

void send_failed(std::uint32_t id, Step step, int error) {
  send_reply({.type = Type::failed, .exec_id = id, .step = step, .error = error});
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

bool starts_with(const char* text, const char* with, size_t length) {
  for (size_t i = 0; i < length; ++i)
    if (text[i] != with[i]) return false;
  return true;
}

const char* env_value(char** envp, const char* name) {
  const size_t length = strlen(name);
  for (; *envp != nullptr; ++envp)
    if (starts_with(*envp, name, length) && (*envp)[length] == '=') return *envp + length + 1;
  return nullptr;
}

// Where `c` is, or the end of the text.
const char* find(const char* text, char c) {
  while (*text != '\0' && *text != c) ++text;
  return text;
}

// execvpe with the PATH of the new environment, not of init's. Returns the errno.
int exec_search(const Strings& s) {
  const char* file = s.argv[0];
  if (*find(file, '/') == '/') return static_cast<int>(-k::execve(file, s.argv, s.envp));
  const char* path = env_value(s.envp, "PATH");
  if (path == nullptr) path = "/usr/local/bin:/usr/bin:/bin";
  const size_t size = strlen(file) + 1;
  int best = ENOENT;
  char full[4096];
  while (true) {
    const char* colon = find(path, ':');
    const auto length = static_cast<size_t>(colon - path);
    if (length > 0 && path[0] == '/' && length + 1 + size <= sizeof full) {
      memcpy(full, path, length);
      full[length] = '/';
      memcpy(full + length + 1, file, size);
      const int error = static_cast<int>(-k::execve(full, s.argv, s.envp));
      if (error != ENOENT && error != ENOTDIR) best = error;
    }
    if (*colon == '\0') return best;
    path = colon + 1;
  }
}

struct Child {
  const Request& request;
  const Strings& strings;
  const int (&stdio)[3];
  Step step = Step::fork;
  int error = 0;

  bool did(Step what, long result) {
    step = what;
    if (result < 0) error = static_cast<int>(-result);
    return result >= 0;
  }
};

// The launcher's word that the command is on record. What else comes, or its end, is no such word: 0 or a negative errno.
long await_go(std::uint32_t exec_id) {
  Request go{};
  long n = 0;
  do n = k::read(kSocketFd, &go, sizeof go);
  while (n == -EINTR);
  if (n < 0) return n;
  return n == static_cast<long>(sizeof go) && go.type == Type::go && go.exec_id == exec_id ? 0 : -EPROTO;
}

// Runs in the child that shares our memory: it only calls the kernel and writes its own Child. It reads from our socket in our
// stead while we wait for it.
void run_child(void* argument) {
  Child& c = *static_cast<Child*>(argument);
  k::sigprocmask(SIG_SETMASK, 0);
  k::umask(c.request.umask);
  const bool pipes = c.request.stdio == Stdio::pipes;
  // Descriptors 0-2 are init's /dev/null and the given ones are above 3: dup can overwrite none of its sources.
  bool ready = c.did(Step::setsid, k::setsid()) && (pipes || c.did(Step::stdio, k::ioctl(c.stdio[0], TIOCSCTTY, 0)));
  for (int i = 0; i < 3 && ready; ++i)
    if (c.stdio[i] == i) ready = c.did(Step::stdio, k::fcntl(i, F_SETFD, 0));
    else ready = c.did(Step::stdio, k::dup(c.stdio[i], i));
  if (ready && c.did(Step::chdir, k::chdir(c.strings.cwd))) {
    c.step = Step::go;  // said before: whoever is killed in it says nothing after
    if (c.did(Step::go, await_go(c.request.exec_id))) {
      c.step = Step::exec;
      (void)c.did(Step::exec, -exec_search(c.strings));
    }
  }
  k::exit(127);
}

Exec* free_slot() {
  for (Exec& e : g_execs)
    if (e.pid == 0) return &e;
  return nullptr;
}

// The master, or -errno.
int open_pty(const Request& request, int* slave) {
  const auto master = static_cast<int>(k::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (master < 0) return master;
  int unlock = 0;
  winsize size{.ws_row = static_cast<unsigned short>(request.rows), .ws_col = static_cast<unsigned short>(request.cols)};
  long result = k::ioctl(master, TIOCSPTLCK, k::word(&unlock));
  if (result >= 0) result = k::ioctl(master, TIOCSWINSZ, k::word(&size));
  // TIOCGPTPEER (Linux 4.13) opens the peer without a path, so that nothing mounted on /dev/pts can be put between.
  if (result >= 0) result = k::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (result < 0) {
    k::close(master);
    return static_cast<int>(result);
  }
  *slave = static_cast<int>(result);
  return master;
}

void start(const Request& request, const Strings& s, int (&stdio)[3]) {
  Exec* slot = free_slot();
  if (slot == nullptr) return send_failed(request.exec_id, Step::fork, EAGAIN);
  int master = -1;
  if (request.stdio == Stdio::pty) {
    master = open_pty(request, &stdio[0]);
    if (master < 0) return send_failed(request.exec_id, Step::pty, -master);
    stdio[1] = stdio[2] = stdio[0];
  }
  Child child{request, s, stdio};
  const long pid = k::spawn(g_stack + sizeof g_stack, run_child, &child);
  __asm__ volatile("" ::: "memory");  // the child has written `child`
  if (pid < 0) {
    send_failed(request.exec_id, Step::fork, static_cast<int>(-pid));
  } else if (child.error != 0 || child.step != Step::exec) {
    // It could not, or others of the session killed it before it was a program.
    while (k::wait(static_cast<pid_t>(pid), nullptr, 0, nullptr) == -EINTR) {
    }
    send_failed(request.exec_id, child.step, child.error != 0 ? child.error : ESRCH);
  } else {
    *slot = {request.exec_id, static_cast<pid_t>(pid)};
    send_reply({.type = Type::started, .exec_id = request.exec_id, .pid = static_cast<pid_t>(pid)}, master);
  }
  if (master >= 0) {
    k::close(master);
    k::close(stdio[0]);
    stdio[0] = stdio[1] = stdio[2] = -1;
  }
}

// A decimal number, or 0.
pid_t pid_of(const char* name) {
  pid_t pid = 0;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9' || pid > 100'000'000) return 0;
    pid = pid * 10 + (*name - '0');
  }
  return pid;
}

// Signals every process whose POSIX session is `sid`. Needs /proc; without one only the group is reached.
void signal_posix_session(pid_t sid, int signal) {
  const auto proc = static_cast<int>(k::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (proc < 0) return;
  const long self = k::getpid();
  alignas(dirent64) static char entries[16 * 1024];
  for (long size; (size = k::getdents(proc, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      const pid_t pid = pid_of(entry->d_name);
      if (pid > 1 && pid != self && k::getsid(pid) == sid) k::kill(pid, signal);
      at += entry->d_reclen;
    }
  }
  k::close(proc);
}

void handle_signal(const Request& request) {
  for (const Exec& e : g_execs) {
    if (e.pid == 0 || e.id != request.exec_id) continue;
    // The leader is not yet reaped (we reap it ourselves), so its pid and group cannot have been reused.
    k::kill(-e.pid, static_cast<int>(request.signal));
    if (request.scope == Scope::posix_session) signal_posix_session(e.pid, static_cast<int>(request.signal));
    return;
  }
}

struct Attempt {
  Probe probe;
  const Targets& targets;
  long result = 0;
};

// One probe at a time, each in a child of its own: some end the process that makes them.
void probe_all(const Targets& targets) {
  for (std::uint32_t i = 0; i < kProbeCount; ++i) {
    Attempt attempt{static_cast<Probe>(i), targets};
    const auto body = [](void* argument) {
      Attempt& a = *static_cast<Attempt*>(argument);
      a.result = run_probe(a.probe, a.targets);
      k::exit(0);
    };
    const long pid = k::spawn(g_stack + sizeof g_stack, body, &attempt);
    __asm__ volatile("" ::: "memory");  // the child has written `attempt`
    int status = 0;
    if (pid < 0) attempt.result = pid;
    else
      while (k::wait(static_cast<pid_t>(pid), &status, 0, nullptr) == -EINTR) {
      }
    Reply reply{.type = Type::probed, .exec_id = i, .signaled = WIFSIGNALED(status) ? 1 : 0};
    if (reply.signaled != 0) reply.status = WTERMSIG(status);
    else if (attempt.result < 0) reply.error = static_cast<int>(-attempt.result);
    else reply.status = static_cast<int>(attempt.result);
    send_reply(reply);
  }
}

void close_all(int (&fds)[caisson::scm::kMaxFds]) {
  for (int& fd : fds)
    if (fd >= 0) k::close(fd), fd = -1;
}

// One message of the launcher. It is well-formed by construction; a broken one means that something is very wrong.
void handle_request() {
  // The address is computed, not a constant to be copied: that would be a relocation, and nobody applies one here.
  char* buffer = g_request;
  __asm__("" : "+r"(buffer));
  iovec part{buffer, kMaxRequest};
  msghdr header{.msg_iov = &part, .msg_iovlen = 1};
  caisson::scm::Buffer control;
  caisson::scm::expect(header, control);
  const long n = k::recvmsg(kSocketFd, &header, MSG_CMSG_CLOEXEC);
  if (n == -EINTR) return;
  if (n < static_cast<long>(sizeof(Request)) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) end_session();

  int fds[caisson::scm::kMaxFds];
  for (int& fd : fds) fd = -1;
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
  } else if (request.type == Type::go) {
    // For a process that failed before it waited for this.
  } else if (request.type == Type::probe && n == static_cast<long>(sizeof request + sizeof(Targets))) {
    Targets targets;
    memcpy(&targets, g_request + sizeof request, sizeof targets);
    targets.outside[sizeof targets.outside - 1] = '\0';
    probe_all(targets);
  } else {
    k::exit(1);
  }
  close_all(fds);
}

void reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const long pid = k::wait(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    for (Exec& e : g_execs) {
      if (e.pid != pid) continue;
      const Reply reply{.type = Type::exited,
                        .exec_id = e.id,
                        .signaled = WIFSIGNALED(status) ? 1 : 0,
                        .status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                        .user_us = usage.ru_utime.tv_sec * 1'000'000L + usage.ru_utime.tv_usec,
                        .system_us = usage.ru_stime.tv_sec * 1'000'000L + usage.ru_stime.tv_usec,
                        .max_rss_bytes = usage.ru_maxrss * 1024L};
      e = {};
      send_reply(reply);
      break;
    }
  }
}

}  // namespace

// start: where the kernel puts the number of arguments, and behind it these: our name and the session's home.
extern "C" [[noreturn]] void caisson_init(const long* start) {
  // Not dumpable: other processes of the session, which have the same uid, can neither trace nor read this one.
  if (k::prctl(PR_SET_DUMPABLE, 0) != 0) k::exit(2);
  // Without a PID namespace orphans would leave the session's process tree: keep them below us.
  const long self = k::getpid();
  if (self != 1 && k::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) k::exit(2);
  if (k::fcntl(kSocketFd, F_SETFD, FD_CLOEXEC) != 0) k::exit(2);

  if (k::sigprocmask(SIG_SETMASK, ~std::uint64_t{0}) != 0) k::exit(2);
  const auto signals = static_cast<int>(k::signalfd(std::uint64_t{1} << (SIGCHLD - 1), O_CLOEXEC | O_NONBLOCK));
  if (signals < 0) k::exit(2);

  if (start[0] > 1) fill_home(reinterpret_cast<const char*>(start[2]));

  send_reply({.type = Type::ready, .pid = static_cast<pid_t>(self)});

  for (;;) {
    pollfd watched[2] = {{kSocketFd, POLLIN, 0}, {signals, POLLIN, 0}};
    if (const long n = k::poll(watched, 2); n < 0 && n != -EINTR) k::exit(1);
    if (watched[1].revents != 0) {
      signalfd_siginfo info;
      (void)k::read(signals, &info, sizeof info);  // one SIGCHLD at most is pending, for any number of children
      reap();
    }
    if ((watched[0].revents & POLLIN) != 0) handle_request();
    else if (watched[0].revents != 0) end_session();
  }
}
