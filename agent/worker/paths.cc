#include "agent/worker/paths.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <utility>

namespace caisson::worker {
namespace {

constexpr std::size_t kReadBytes = 256 * 1024;

// Returns -1 on failure, with errno set.
int open_at(int dir, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOCTTY);
  if ((flags & O_PATH) != 0) how.flags = static_cast<std::uint64_t>((flags & (O_PATH | O_DIRECTORY | O_NOFOLLOW)) | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? mode : 0;  // otherwise the kernel refuses a mode
  how.resolve = RESOLVE_NO_MAGICLINKS;
  int fd = openat2(dir, path, how);
  if (fd >= 0 || errno != ENOSYS) return fd;
  // A magic link then leads only to files that the session may open anyway, and a target that is not a regular file is refused
  // once it is open.
  do fd = ::openat(dir, path, static_cast<int>(how.flags), how.mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

// The directory of a path's last name, created with its parents; `name` points into `path`.
Done<Fd> open_parent(const std::string& path, std::string& name) {
  Fd at(open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0));
  std::size_t begin = 1;
  while (at) {
    while (begin < path.size() && path[begin] == '/') ++begin;
    const std::size_t end = path.find('/', begin);
    if (end == std::string::npos) break;
    const std::string step = path.substr(begin, end - begin);
    int next = open_at(at.get(), step.c_str(), O_PATH | O_DIRECTORY, 0);
    if (next < 0 && errno == ENOENT && (::mkdirat(at.get(), step.c_str(), 0777) == 0 || errno == EEXIST))
      next = open_at(at.get(), step.c_str(), O_PATH | O_DIRECTORY, 0);
    if (next < 0) return failed(errno, path);
    at.reset(next);
    begin = end + 1;
  }
  if (!at) return failed(errno, path);
  name = path.substr(begin);
  if (name.empty()) return failed(EISDIR, path);
  return at;
}

// Without "/./" and "//", which change nothing. ".." stays: only the kernel knows where it leads.
std::string tidy(const std::string& path) {
  std::string out;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at + 1), path.size());
    const std::string step = path.substr(at, end - at);
    if (step != "/." && (step != "/" || end == path.size())) out += step;
    at = end;
  }
  return out.empty() ? "/" : out;
}

}  // namespace

int openat2(int dir, const char* path, const open_how& how) {
  constexpr int kTries = 1000;  // EAGAIN: a rename during the resolution, or a lease on the file
  long fd = -1;
  int tries = 0;
  do fd = ::syscall(SYS_openat2, dir, path, &how, sizeof how);
  while (fd < 0 && (errno == EINTR || (errno == EAGAIN && ++tries < kTries)));
  return static_cast<int>(fd);
}

Done<std::string> absolute(const std::string& path) {
  if (path.empty()) return failed(ENOENT, path);
  if (path.contains('\0')) return refused("invalid_path", path.substr(0, path.find('\0')), "embedded null byte", EINVAL);
  if (path.front() == '/') return tidy(path);
  const char* home = std::getenv("HOME");
  return tidy(std::string(home != nullptr ? home : "") + "/" + path);
}

Done<Fd> open_path(const std::string& path, int flags, mode_t mode) {
  if (path.size() >= PATH_MAX) return failed(ENAMETOOLONG, path);
  const int fd = open_at(AT_FDCWD, path.c_str(), flags | O_NONBLOCK, mode);
  if (fd < 0) return failed(errno, path);
  return Fd(fd);
}

Done<Opened> regular(Fd fd, const std::string& path) {
  Opened out{.fd = std::move(fd)};
  if (::fstat(out.fd.get(), &out.st) != 0) return failed(errno, path);
  if (S_ISDIR(out.st.st_mode)) return failed(EISDIR, path);
  if (!S_ISREG(out.st.st_mode)) return refused("invalid_target", path, "Not a regular file", EINVAL);
  return out;
}

Done<Opened> open_regular(const std::string& path, int flags) {
  auto fd = open_path(path, flags);
  // A FIFO without a reader, and a socket, give no descriptor to examine.
  if (!fd && fd.error().number == ENXIO) return refused("invalid_target", path, "Not a regular file", ENXIO);
  if (!fd) return std::unexpected(std::move(fd).error());
  return regular(std::move(*fd), path);
}

Done<Opened> open_for_writing(const std::string& path, int flags) {
  auto there = open_regular(path, flags);
  if (there || there.error().number != ENOENT) return there;
  std::string name;
  TRY_ASSIGN(Fd dir, open_parent(path, name));
  const int made = open_at(dir.get(), name.c_str(), flags | O_CREAT | O_EXCL | O_NONBLOCK, 0666);
  if (made >= 0) {
    TRY_ASSIGN(Opened out, regular(Fd(made), path));
    out.created = true;
    out.directory = std::move(dir);
    out.name = std::move(name);
    return out;
  }
  if (errno != EEXIST) return failed(errno, path);
  // Another process was faster, or the name is a link to a name that does not exist yet. Both are opened as a shell's redirection
  // would.
  const int fd = open_at(dir.get(), name.c_str(), flags | O_CREAT | O_NONBLOCK, 0666);
  if (fd < 0) return failed(errno, path);
  return regular(Fd(fd), path);
}

Done<Fd> open_directory(const std::string& path) { return open_path(path, O_RDONLY | O_DIRECTORY); }

Done<std::string> read_whole(const Fd& fd, const std::string& path, std::size_t most) {
  std::string out;
  struct stat st{};
  if (::fstat(fd.get(), &st) == 0 && st.st_size > 0) {
    if (static_cast<std::size_t>(st.st_size) > most) return failed(EFBIG, path);
    out.reserve(static_cast<std::size_t>(st.st_size) + 1);
  }
  while (out.size() <= most) {
    const std::size_t have = out.size();
    const std::size_t room = std::max(out.capacity() - have, have == 0 ? std::size_t{4096} : kReadBytes);
    out.resize(have + std::min(room, kReadBytes));
    const ssize_t n = ::pread(fd.get(), out.data() + have, out.size() - have, static_cast<off_t>(have));
    const int error = errno;
    out.resize(have + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && error == EINTR) continue;
    if (n < 0) return failed(error, path);
    if (n == 0) return out;
  }
  return failed(EFBIG, path);
}

Done<void> write_all_at(const Fd& fd, const std::string& path, std::string_view bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = offset < 0 ? ::write(fd.get(), bytes.data(), bytes.size())
                                 : ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed(errno, path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    if (offset >= 0) offset += n;
  }
  return {};
}

Done<void> overwrite(const Fd& fd, const std::string& path, std::string_view bytes) {
  // Writes the new bytes before truncating: if the disk is full, the old tail is still there.
  TRY(write_all_at(fd, path, bytes, 0));
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0) return failed(errno, path);
  return {};
}

}  // namespace caisson::worker
