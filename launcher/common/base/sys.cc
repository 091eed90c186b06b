#include "launcher/common/base/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace caisson::sys {

Result<Fd> open(const std::string& path, int flags, mode_t mode) { return openat(AT_FDCWD, path, flags, mode); }

Result<Fd> openat(int dir, const std::string& path, int flags, mode_t mode) {
  const int fd = ::openat(dir, path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return sys_error("open " + quote(path));
  return Fd(fd);
}

Result<Fd> openat2(int dir, const std::string& path, std::uint64_t flags, std::uint64_t resolve, mode_t mode) {
  open_how how{.flags = flags | O_CLOEXEC, .mode = mode, .resolve = resolve};
  const long fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
  if (fd < 0) return sys_error("openat2 " + quote(path));
  return Fd(static_cast<int>(fd));
}

Result<Fd> pidfd_open(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return sys_error("pidfd_open " + std::to_string(pid));
  return Fd(static_cast<int>(fd));
}

Status pidfd_send_signal(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0)
    return sys_error("pidfd_send_signal " + std::to_string(signal));
  return {};
}

int reap(pid_t child) {
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Result<std::pair<Fd, Fd>> pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe2");
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Result<std::pair<Fd, Fd>> seqpacket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return sys_error("socketpair");
  std::pair pair{Fd(ends[0]), Fd(ends[1])};
  TRY(set_nonblocking(pair.first.get(), true));
  return pair;
}

Status set_nonblocking(int fd, bool on) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) != 0) return sys_error("fcntl O_NONBLOCK");
  return {};
}

Result<std::string> read_fd(int fd, std::size_t max_bytes) {
  std::string out;
  char chunk[8192];
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read");
    if (n == 0) return out;
    if (out.size() + static_cast<std::size_t>(n) > max_bytes)
      return fail(Code::limit, "larger than " + std::to_string(max_bytes) + " bytes");
    out.append(chunk, static_cast<std::size_t>(n));
  }
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  TRY_ASSIGN(Fd fd, open(path, O_RDONLY | O_NOCTTY));
  auto content = read_fd(fd.get(), max_bytes);
  if (!content) return std::unexpected(std::move(content.error()).wrap("read " + quote(path)));
  return content;
}

std::string program_path(const std::string& name) {
  char self[4096];
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
  const std::string own(self, n > 0 ? static_cast<std::size_t>(n) : 0);
  const std::string here = own.substr(0, own.rfind('/') + 1);
  for (const std::string& path : {here + name, here + "../agent/" + name})
    if (::access(path.c_str(), X_OK) == 0) return path;
  return "/usr/lib/caisson/" + name;
}

std::string status_field(const std::string& status, std::string_view name) {
  const auto at = status.find("\n" + std::string(name) + ":\t");
  if (at == std::string::npos) return {};
  const auto from = at + name.size() + 3;
  return status.substr(from, status.find('\n', from) - from);
}

bool writable(int fd, int timeout_ms) {
  pollfd ready{fd, POLLOUT, 0};
  return ::poll(&ready, 1, timeout_ms) == 1 && (ready.revents & POLLOUT) != 0;
}

void say(const std::string& line) {
  const std::string text = line.substr(0, PIPE_BUF - 1) + "\n";
  if (writable(STDERR_FILENO, 0)) (void)!::write(STDERR_FILENO, text.data(), text.size());
}

bool exiting(pid_t pid) {
  constexpr unsigned kPfExiting = 4;
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  if (!stat) return stat.error().sys == ENOENT || stat.error().sys == ESRCH;
  unsigned flags = 0;
  // After the name, which may hold anything: state, five numbers, the flags.
  return std::sscanf(stat->c_str() + std::min(stat->rfind(')'), stat->size()), ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
         (flags & kPfExiting) != 0;
}

Status write_file(const std::string& path, std::string_view content) { return write_file_at(AT_FDCWD, path, content); }

Status write_file_at(int dir, const std::string& path, std::string_view content) {
  TRY_ASSIGN(Fd fd, openat(dir, path, O_WRONLY));
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return sys_error("write " + quote(path));
  return {};
}

Status write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("write");
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::int64_t monotonic_us() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000;
}

std::int64_t realtime_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::string rfc3339(std::int64_t realtime_ns) {
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t n = ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + n, sizeof text - n, ".%06dZ", static_cast<int>(realtime_ns % 1'000'000'000 / 1000));
  return text;
}

std::string random_hex(std::size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char b = 0;
    // An id that could be guessed is worse than no service: there is no fallback.
    if (::getrandom(&b, 1, 0) != 1) std::abort();
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

}  // namespace caisson::sys
