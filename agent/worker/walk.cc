#include "agent/worker/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <deque>
#include <memory>

namespace caisson::worker {
namespace {

constexpr std::size_t kMostDepth = 256;

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

bool leads_to_directory(int dir, const char* name) {
  struct stat st{};
  return ::fstatat(dir, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

// d_type, where the filesystem gives it.
Entry entry_of(int dir, const dirent& found, const std::string& above, std::size_t depth) {
  Entry entry{above.empty() ? std::string(found.d_name) : above + "/" + found.d_name, found.d_name, depth, false, false};
  unsigned char type = found.d_type;
  if (type == DT_UNKNOWN) {
    struct stat st{};
    if (::fstatat(dir, found.d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) type = static_cast<unsigned char>(IFTODT(st.st_mode));
  }
  entry.link = type == DT_LNK;
  entry.directory = type == DT_DIR || (entry.link && leads_to_directory(dir, found.d_name));
  return entry;
}

}  // namespace

// Without openat2: opens name by name and refuses links. The names come from readdir(3), so none is "..".
static int open_by_steps(const Fd& top, const std::string& relative, int flags) {
  Fd above;
  for (std::size_t begin = 0;;) {
    const std::size_t end = relative.find('/', begin);
    const bool last = end == std::string::npos;
    const std::string name = relative.substr(begin, end - begin);
    const int next = ::openat(above ? above.get() : top.get(), name.empty() ? "." : name.c_str(),
                              last ? flags : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 || last) return next;
    above.reset(next);
    begin = end + 1;
  }
}

static int open_at(const Fd& top, const std::string& relative, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_NOFOLLOW | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int fd = openat2(top.get(), relative.empty() ? "." : relative.c_str(), how);
  return fd < 0 && errno == ENOSYS ? open_by_steps(top, relative, static_cast<int>(how.flags)) : fd;
}

int open_below(const Fd& top, const std::string& relative) { return open_at(top, relative, O_RDONLY | O_DIRECTORY | O_NONBLOCK); }

bool stat_below(const Fd& top, const std::string& relative, struct stat& st) {
  const Fd at(open_at(top, relative, O_PATH));  // a link as the last name: the link itself
  return at && ::fstat(at.get(), &st) == 0;
}

Done<void> walk(const Fd& top, const std::string& path, const Request& request, const Visit& visit, bool& complete) {
  std::deque<std::pair<std::string, std::size_t>> waiting = {{"", 0}};
  std::size_t seen = 0;
  complete = true;
  while (!waiting.empty()) {
    const auto [above, depth] = std::move(waiting.front());
    waiting.pop_front();
    const int fd = open_below(top, above);
    if (fd < 0 && above.empty()) return failed(errno, path);
    if (fd < 0) continue;
    const Dir dir(::fdopendir(fd));
    if (!dir) {
      ::close(fd);
      return failed(errno, path);
    }
    while (const dirent* found = ::readdir(dir.get())) {
      const std::string_view name = found->d_name;
      if (name == "." || name == "..") continue;
      if (request.stopped()) return failed(ECANCELED, path);
      if (++seen > kMostEntries) {
        complete = false;
        return {};
      }
      const Entry entry = entry_of(fd, *found, above, depth + 1);
      const Next next = visit(entry, fd);
      if (next == Next::stop) return {};
      if (next == Next::skip || !entry.directory || entry.link) continue;
      if (entry.depth >= kMostDepth || entry.relative.size() >= PATH_MAX) complete = false;
      else waiting.emplace_back(entry.relative, entry.depth);
    }
  }
  return {};
}

Facts facts_of(int directory, const Entry& entry) {
  struct stat st{};
  if (::fstatat(directory, entry.name.c_str(), &st, 0) != 0 &&
      ::fstatat(directory, entry.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
    return {};
  return {st.st_size, st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_mode & 07777};
}

}  // namespace caisson::worker
