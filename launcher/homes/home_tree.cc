#include "launcher/homes/home_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"

namespace caisson::homes {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
// One name, of a directory that may be moved at that moment, which `beneath` takes for a way out.
constexpr std::uint64_t kOneName = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
constexpr std::uint64_t kBlock = 512;  // of st_blocks, whatever the filesystem's
constexpr mode_t kToRead = S_IRUSR | S_IXUSR;
constexpr unsigned kFacts = STATX_BASIC_STATS | STATX_BTIME;

using sys::Directory;
using sys::next_name;

// A tenant may close a directory to itself (chmod 000). Where we have no power over its files but its uid's, it is opened again
// to its owner, who could do so at any time. `need`: S_IRWXU or part of it.
Status let_in(int top, const std::string& path, mode_t need) {
  TRY_ASSIGN(const Fd directory, sys::openat2(top, path, O_PATH | O_DIRECTORY, kInside));
  if (::faccessat(directory.get(), "", static_cast<int>(need >> 6), AT_EACCESS | AT_EMPTY_PATH) == 0 || errno != EACCES)
    return {};
  struct stat st{};
  const std::string name = "/proc/self/fd/" + std::to_string(directory.get());
  if (::fstat(directory.get(), &st) != 0 || ::chmod(name.c_str(), (st.st_mode & 07777) | need) != 0)
    return sys_error("open a directory to its owner");
  return {};
}

Result<Directory> open_directory(int top, const std::string& path, mode_t need) {
  TRY(let_in(top, path, need));
  TRY_ASSIGN(Fd fd, sys::openat2(top, path, O_RDONLY | O_DIRECTORY, kInside));
  return sys::read_directory(std::move(fd));
}

bool gone(const Error& error) { return error.sys == ENOENT || error.sys == ENOTDIR || error.sys == ELOOP; }

// Takes everything out of `directory`: files are removed, directories moved to `top` under a new name, to be emptied there. So no
// depth needs more than two descriptors.
Status raise(int top, DIR* directory, std::uint64_t& moved) {
  const int at = ::dirfd(directory);
  while (const char* name = next_name(directory)) {
    if (::unlinkat(at, name, 0) == 0 || errno == ENOENT || ::unlinkat(at, name, AT_REMOVEDIR) == 0) continue;
    if (errno != ENOTEMPTY && errno != EEXIST) return sys_error("remove a directory");
    TRY(let_in(at, name, S_IRWXU));               // who moves a directory writes to it
    for (int error = EEXIST; error == EEXIST;) {  // the tenant may have used the name
      const std::string aside = ".removed-" + std::to_string(moved++);
      error = ::renameat2(at, name, top, aside.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
      if (error != 0 && error != EEXIST) return sys_error("move a directory", error);
    }
  }
  return sys::all_read();
}

// Counts the tree once or twice. What a tenant moves while it is read could be behind us when we come to where it was, so every
// directory is watched from before it is read: what is moved or linked into one is looked at where it is then.
class Count {
 public:
  Count(int home, const Use& most) : home_(home), most_(most), watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

  [[nodiscard]] Status look() {
    visited_.clear();
    names_ = 0;
    lost_ = false;
    if (++looks_ == 1) ::clock_gettime(CLOCK_REALTIME_COARSE, &begin_);  // of which files have their times
    TRY(let_in(home_, ".", kToRead));
    TRY_ASSIGN(Fd top, sys::openat2(home_, ".", O_RDONLY | O_DIRECTORY, kInside));
    TRY(enter(std::move(top), "."));
    for (int rounds = 0; !full();) {
      if (!arrived_.empty() && open_.size() < kMostOpen) {
        TRY(follow());
      } else if (!open_.empty()) {
        TRY(step());
      } else if (take_events(); arrived_.empty()) {
        break;
      } else if (++rounds == kRounds) {
        lost_ = true;
        break;
      }
    }
    open_.clear();
    arrived_.clear();
    struct stat st{};
    if (looks_ == 1 && ::fstat(home_, &st) == 0) use_.bytes += static_cast<std::uint64_t>(st.st_blocks) * kBlock;  // of its names
    return {};
  }

  [[nodiscard]] bool full() const { return use_.bytes > most_.bytes || use_.inodes > most_.inodes; }
  [[nodiscard]] bool sure() const { return watch_ && !lost_; }
  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] const Use& use() const { return use_; }

 private:
  static constexpr int kRounds = 64;
  static constexpr std::size_t kMostOpen = 256;  // before what has come in waits
  static constexpr std::uint64_t kFewNames = 4096;
  static constexpr std::uint32_t kInto = IN_MOVED_TO | IN_CREATE;

  struct Open {
    Directory directory;
    std::string path;
  };
  struct Arrived {
    std::string directory, name;
    bool moved = false;  // a directory, here from elsewhere
  };

  // By the working directory: a descriptor has no other name without /proc.
  [[nodiscard]] Status enter(Fd fd, std::string path) {
    const int number = watch_ && ::fchdir(fd.get()) == 0 ? ::inotify_add_watch(watch_.get(), ".", kInto | IN_ONLYDIR) : -1;
    if (number < 0) watch_.reset();  // others may have used up what the kernel gives: two looks then, and none to blame
    if (number >= 0) paths_[number] = path;
    TRY_ASSIGN(Directory directory, sys::read_directory(std::move(fd)));
    open_.push_back({std::move(directory), std::move(path)});
    return {};
  }

  // The next name of the directory that was opened last. That it is not there is no reason to be unsure: it was removed, or moved
  // to where we have yet to come, or to where we are told of it.
  [[nodiscard]] Status step() {
    DIR* const directory = open_.back().directory.get();
    if (const char* name = next_name(directory)) {
      TRY_ASSIGN([[maybe_unused]] const bool there, count(::dirfd(directory), open_.back().path, name));
      return {};
    }
    TRY(sys::all_read());
    open_.pop_back();
    take_events();  // soon, while what they tell of is there, and before the kernel has too many
    return {};
  }

  // false: no such name any more. A directory is read by the descriptor that it is opened with, wherever it goes meanwhile.
  [[nodiscard]] Result<bool> count(int at, const std::string& path, const std::string& name) {
    if (++names_ > 4 * most_.inodes + kFewNames) return fail(Code::limit, "it changes faster than it can be read");
    struct statx st{};
    if (::statx(at, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kFacts, &st) != 0) {
      if (errno == ENOENT) return false;
      return sys_error("stat a file");
    }
    if (!S_ISDIR(st.stx_mode)) {
      add(st);
      return true;
    }
    if (path.size() + name.size() + 2 > PATH_MAX) return fail(Code::limit, "a path is too long to be followed");
    // One that its owner may list and not search is opened without an error, and then nothing in it can be looked at.
    if ((st.stx_mode & kToRead) != kToRead) (void)let_in(at, name, kToRead);
    auto below = sys::openat2(at, name, O_RDONLY | O_DIRECTORY, kOneName);
    if (!below && below.error().sys == EACCES && let_in(at, name, kToRead))
      below = sys::openat2(at, name, O_RDONLY | O_DIRECTORY, kOneName);
    if (!below && gone(below.error())) return false;
    if (!below) return std::unexpected(std::move(below).error());
    if (::statx(below->get(), "", AT_EMPTY_PATH, kFacts, &st) != 0) return sys_error("stat a directory");
    add(st);
    if (visited_.insert(st.stx_ino).second) TRY(enter(std::move(*below), path + "/" + name));
    return true;
  }

  // At the second look only what was there when the first began: both together, and never more than was there at once.
  void add(const struct statx& st) {
    const bool old = (st.stx_mask & STATX_BTIME) == 0 || std::pair(std::int64_t{st.stx_btime.tv_sec}, st.stx_btime.tv_nsec) <
                                                             std::pair(std::int64_t{begin_.tv_sec}, unsigned(begin_.tv_nsec));
    if ((looks_ > 1 && !old) || !counted_.insert(st.stx_ino).second) return;
    use_.bytes += st.stx_blocks * kBlock;
    ++use_.inodes;
  }

  void take_events() {
    alignas(inotify_event) char buffer[16384];
    const ssize_t got = watch_ ? ::read(watch_.get(), buffer, sizeof buffer) : 0;
    for (ssize_t i = 0; i < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + i);
      i += static_cast<ssize_t>(sizeof *event + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) lost_ = true;
      if (const auto path = paths_.find(event->wd); (event->mask & kInto) != 0 && path != paths_.end())
        arrived_.push_back({path->second, event->name, (event->mask & IN_ISDIR) != 0 && (event->mask & IN_MOVED_TO) != 0});
    }
  }

  // A directory that has gone on is one that may never be seen. A file that has is a temporary one, or met where it goes next.
  [[nodiscard]] Status follow() {
    const Arrived next = std::move(arrived_.back());
    arrived_.pop_back();
    const auto directory = sys::openat2(home_, next.directory, O_PATH | O_DIRECTORY, kInside);
    if (!directory && !gone(directory.error())) return std::unexpected(directory.error());
    bool there = false;
    if (directory) {
      TRY_ASSIGN(there, count(directory->get(), next.directory, next.name));
    }
    if (!there && next.moved) lost_ = true;
    return {};
  }

  int home_;
  Use most_, use_;
  Fd watch_;
  timespec begin_{};
  int looks_ = 0;
  bool lost_ = false;
  std::uint64_t names_ = 0;
  std::unordered_set<std::uint64_t> counted_, visited_;  // inodes
  std::map<int, std::string> paths_;                     // of what is watched, where it was when it was read
  std::vector<Open> open_;
  std::vector<Arrived> arrived_;  // the last first: where it is now
};

}  // namespace

Result<Use> measure(int home, const Use& most) {
  rlimit files{};  // a descriptor for each level
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return sys_error("getrlimit");
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, PATH_MAX);
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return sys_error("setrlimit");
  Count count(home, most);
  TRY(count.look());
  if (count.full() || count.sure()) return count.use();
  TRY(count.look());
  if (!count.full() && count.lost()) return fail(Code::limit, "directories were moved about while it was measured, twice");
  return count.use();
}

Status empty(int home) {
  std::uint64_t moved = 0;
  for (bool any = true; any;) {
    any = false;
    TRY_ASSIGN(const Directory top, open_directory(home, ".", S_IRWXU));
    while (const char* name = next_name(top.get())) {
      any = true;
      if (::unlinkat(home, name, 0) == 0 || errno == ENOENT || ::unlinkat(home, name, AT_REMOVEDIR) == 0) continue;
      TRY_ASSIGN(const Directory below, open_directory(home, name, S_IRWXU));
      TRY(raise(home, below.get(), moved));
      if (::unlinkat(home, name, AT_REMOVEDIR) != 0) return sys_error("remove a directory");
    }
    TRY(sys::all_read());
  }
  return {};
}

}  // namespace caisson::homes
