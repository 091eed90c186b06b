#include "launcher/protect/walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"

namespace caisson::protect {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
// One name, of a directory that may be moved at that moment, which `beneath` takes for a way out.
constexpr std::uint64_t kOneName = RESOLVE_NO_SYMLINKS;
constexpr unsigned kFacts = STATX_TYPE | STATX_INO | STATX_NLINK;
constexpr int kMaxLinks = 40;

bool ends(const std::string& path, std::string_view name) {
  return path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '/';
}

bool gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

std::unexpected<Error> too_much(const std::string& what) {
  return fail(Code::limit, "policy field 'protect': " + what + ", so that not all of it can be looked through");
}

}  // namespace

bool writable_mount(int fd) {
  struct statvfs mount{};
  return ::fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY) == 0;
}

bool Walk::matches(const std::string& path) const {
  return std::ranges::any_of(names_, [&path](const std::string& name) { return ends(path, name); });
}

// A place inside something with a protected name is protected as a whole: who narrows a policy to it gains nothing.
bool Walk::within(std::string path) const {
  for (; !path.empty(); path.erase(path.rfind('/')))
    if (matches(path)) return true;
  return false;
}

// A link at the beginning of a name (.git, of .git/hooks): what the whole name leads to.
Status Walk::follow_on(const At& link) {
  for (const std::string& name : names_)
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string_view beginning = std::string_view(name).substr(0, slash);
      if (!ends(link.path, beginning) && !ends(link.source, beginning)) continue;
      const std::string whole = link.path + name.substr(slash);
      TRY_ASSIGN(const bool there, follow(whole));
      if (there) TRY(this->name(whole));
    }
  return bounded();
}

Status Walk::bounded() const {
  if (open_.size() > kMaxFound) return too_much("it names more than " + std::to_string(kMaxFound) + " files and directories");
  return {};
}

Status Walk::name(const std::string& path) {
  if (named_.insert(path).second && (named_bytes_ += path.size()) > kMaxNamed)
    return too_much("what it names has more than " + std::to_string(kMaxNamed) + " bytes of paths");
  return {};
}

// Each other name of a file is one for what is in it.
void Walk::learn(std::uint64_t device, std::uint64_t inode, std::uint64_t links) {
  if (links > 1 && linked_.insert({device, inode}).second) learnt_ = true;
}

// A path with a protected name, which may be a link; what it leads to counts as much.
Status Walk::protect(int directory, const char* name, const std::string& path) {
  auto fd = sys::openat2(directory, name, O_PATH | O_NOFOLLOW, kOneName);
  if (!fd && gone(fd.error().sys)) return {};
  if (!fd) return std::unexpected(std::move(fd).error());
  if (writable_mount(fd->get())) open_.insert(path);
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return sys_error("stat " + quote(path));
  if (S_ISLNK(st.st_mode)) TRY(follow(path));
  else if (!S_ISDIR(st.st_mode)) learn(st.st_dev, st.st_ino, st.st_nlink);
  return bounded();
}

// Each link on the way, and what is at its end: whoever could replace one of them would decide what the protected name shows.
// Whether there is something at its end.
Result<bool> Walk::follow(const std::string& link) {
  std::string at, path = link;  // resolved, without a link in it; what is left
  Fd fd;
  struct stat st{};
  for (int links = 0; !path.empty();) {
    path.erase(0, std::min(path.find_first_not_of('/'), path.size()));
    const std::string part = path.substr(0, path.find('/'));
    path.erase(0, part.size());
    if (part.empty() || part == ".") continue;
    const std::string next = part == ".." ? at.substr(0, std::min(at.rfind('/'), at.size())) : at + "/" + part;
    auto opened = sys::openat2(root_, "." + next, O_PATH | O_NOFOLLOW, kInside);
    if (!opened && (gone(opened.error().sys) || opened.error().sys == EACCES)) return false;  // a name to come
    if (!opened) return std::unexpected(std::move(opened).error());
    fd = std::move(*opened);
    if (::fstat(fd.get(), &st) != 0) return sys_error("stat " + quote(next));
    if (!S_ISLNK(st.st_mode)) {
      at = next;
      continue;
    }
    if (writable_mount(fd.get())) open_.insert(next);
    char target[PATH_MAX];
    const ssize_t size = ::readlinkat(fd.get(), "", target, sizeof target);
    if (size < 0 || size == static_cast<ssize_t>(sizeof target)) return sys_error("read link " + quote(next));
    if (++links > kMaxLinks || path.size() + static_cast<std::size_t>(size) > PATH_MAX)
      return false;  // nor does the kernel follow
    path.insert(0, std::string(target, static_cast<std::size_t>(size)) + "/");
    if (path[0] == '/') at.clear();
  }
  if (at.empty() || (S_ISDIR(st.st_mode) && link.starts_with(at + "/")))
    return fail(Code::permission_denied,
                "policy field 'protect': " + quote(link) +
                    " is a symbolic link to a directory above it, all of which would have to be read-only");
  if (!writable_mount(fd.get())) return true;
  const bool first = open_.insert(at).second;
  if (!S_ISDIR(st.st_mode)) learn(st.st_dev, st.st_ino, st.st_nlink);
  else if (first) targets_.push_back(at);
  return true;
}

Status Walk::entry(int directory, const dirent& dirent, const At& at) {
  const char* name = dirent.d_name;
  if (++entries_ > kMaxEntries)
    return too_much("there are more than " + std::to_string(kMaxEntries) + " files and directories in what is writable");
  if (entries_ % 256 == 0 && sys::monotonic_us() > until_)
    return too_much("to read the directories in what is writable takes more than " + std::to_string(kMaxSeconds) + " seconds");
  const At here{at.path + "/" + name, at.source + "/" + name, at.names, at.below, at.depth + 1};
  const bool named = at.names && !at.below && (matches(here.path) || matches(here.source)), covered = named || at.below;
  if (others_.contains(here.path) && !covered) return {};
  struct statx st{};
  if (::statx(directory, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, kFacts, &st) != 0) {
    // A directory that was moved is met elsewhere by another look, or nowhere.
    if (gone(errno))
      return learnt_ = learnt_ || dirent.d_type == DT_DIR || dirent.d_type == DT_UNKNOWN || matches(here.path), Status();
    // Nobody of the session's gets at it, either: it has no more power here than we have.
    if (errno == EACCES) return {};
    return sys_error("stat " + quote(here.path));
  }
  const std::pair inode{std::uint64_t{::makedev(st.stx_dev_major, st.stx_dev_minor)}, std::uint64_t{st.stx_ino}};
  if (covered && !S_ISDIR(st.stx_mode)) learn(inode.first, inode.second, st.stx_nlink);
  if (named) TRY(this->name(here.path));
  if (named || (!at.below && !S_ISDIR(st.stx_mode) && linked_.contains(inode)) || (at.below && S_ISLNK(st.stx_mode)))
    TRY(protect(directory, name, here.path));
  if (at.names && !covered && S_ISLNK(st.stx_mode)) TRY(follow_on(here));
  if (!S_ISDIR(st.stx_mode)) return {};
  if (here.depth > kMaxDepth)
    return too_much(quote(here.path, 200) + " is more than " + std::to_string(kMaxDepth) + " directories deep");
  auto below = sys::openat2(directory, name, O_RDONLY | O_DIRECTORY, kOneName);
  if (!below && gone(below.error().sys)) return learnt_ = true, Status();
  if (!below && below.error().sys == EACCES) {
    // One that can be passed and not read may hold anything; one that cannot be passed is as good as none.
    const auto passed = sys::openat2(directory, std::string(name) + "/.", O_PATH, kOneName);
    if (!passed) return {};
    return too_much(quote(here.path, 200) + " cannot be read");
  }
  if (!below) return std::unexpected(std::move(below).error());
  if (!covered && !writable_mount(below->get())) return {};  // what else is mounted there
  return this->directory(std::move(*below), {here.path, here.source, here.names, covered, here.depth});
}

Status Walk::directory(Fd fd, const At& at) {
  TRY_ASSIGN(const sys::Directory names, sys::read_directory(std::move(fd)));
  while (const dirent* next = (errno = 0, ::readdir(names.get())))
    if (const std::string_view name = next->d_name; name != "." && name != "..") {
      TRY(entry(::dirfd(names.get()), *next, at));
    }
  return sys::all_read();
}

Status Walk::look() {
  if (until_ == 0) until_ = sys::monotonic_us() + kMaxSeconds * 1'000'000;
  open_.clear();
  targets_.clear();
  learnt_ = false;
  entries_ = 0;
  for (const Place& place : places_) {
    if (!place.names && linked_.empty()) continue;
    auto fd = sys::openat2(root_, place.path.substr(1), O_PATH, kInside);
    if (!fd) return std::unexpected(std::move(fd).error());
    struct stat st{};
    if (::fstat(fd->get(), &st) != 0) return sys_error("stat " + quote(place.path));
    const bool named = place.names && (within(place.path) || within(place.source));
    if (named) {
      named_.insert(place.path);
      TRY(protect(root_, place.path.c_str() + 1, place.path));
    }
    if (!S_ISDIR(st.st_mode)) continue;
    auto top = sys::openat2(fd->get(), ".", O_RDONLY | O_DIRECTORY, kOneName);
    if (!top) return std::unexpected(std::move(top).error().wrap(quote(place.path)));
    TRY(directory(std::move(*top), {place.path, place.source, place.names, named}));
  }
  // What is in these is protected as it is elsewhere, second names of files and links to more included.
  for (; !targets_.empty();) {
    const std::string path = std::move(targets_.back());
    targets_.pop_back();
    auto fd = sys::openat2(root_, "." + path, O_RDONLY | O_DIRECTORY, kInside);
    if (!fd && gone(fd.error().sys)) continue;
    if (!fd) return std::unexpected(std::move(fd).error().wrap(quote(path)));
    TRY(directory(std::move(*fd), {path, path, false, true}));
  }
  return {};
}

}  // namespace caisson::protect
