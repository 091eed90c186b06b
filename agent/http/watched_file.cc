#include "agent/http/watched_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "launcher/common/base/fd.h"

namespace caisson::http {
namespace {

constexpr std::chrono::seconds kEvery{1};
constexpr time_t kSettled = 2;

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

// nullopt: it is the file that was read before. O_NONBLOCK: a FIFO without a writer would hold up the whole server.
Result<std::optional<std::string>> WatchedFile::read() {
  const Fd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat now{};
  if (!fd || ::fstat(fd.get(), &now) != 0) return sys_error(quote(path_));
  if (!S_ISREG(now.st_mode)) return fail(Code::invalid_argument, quote(path_) + " is not a file");
  if (same_file(seen_, now)) return std::optional<std::string>();
  if (now.st_size > static_cast<off_t>(max_bytes_))
    return fail(Code::invalid_argument, quote(path_) + " is larger than " + std::to_string(max_bytes_) + " bytes");
  std::string content(static_cast<std::size_t>(now.st_size), '\0');
  const ssize_t got = ::pread(fd.get(), content.data(), content.size(), 0);
  if (got < 0) return sys_error(quote(path_));
  content.resize(static_cast<std::size_t>(got));
  // A second change within the clock's resolution would look like the first one, so a new file is read once more.
  if (std::time(nullptr) - now.st_mtim.tv_sec > kSettled) seen_ = now;
  return std::optional(std::move(content));
}

std::optional<Result<std::string>> WatchedFile::look(Clock::time_point now) {
  if (path_.empty() || now < next_) return std::nullopt;
  next_ = now + kEvery;
  auto content = read();
  if (!content) {
    seen_ = {};
    if (std::string fault = content.error().text(); std::exchange(fault_, fault) == fault) return std::nullopt;
    return std::unexpected(std::move(content).error());
  }
  if (!*content) return std::nullopt;
  if (fault_.empty() && **content == content_) return std::nullopt;
  fault_.clear();
  content_ = **content;
  return std::move(**content);
}

}  // namespace caisson::http
