#include "launcher/common/build/mount_tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "launcher/common/kernel/faults.h"
#include "launcher/common/kernel/raw.h"

namespace caisson::confine {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;

// close(2) that keeps errno.
void drop(int fd) {
  const int saved = errno;
  if (fd >= 0) ::close(fd);
  errno = saved;
}

// Splits "/a/b/c" into "/a/b", copied to `parent`, and "c". nullptr: too long.
const char* split(const char* path, char (&parent)[4096]) {
  const char* slash = std::strrchr(path, '/');
  const auto length = static_cast<std::size_t>(slash - path);
  if (length >= sizeof parent) return errno = ENAMETOOLONG, nullptr;
  std::memcpy(parent, path, length);
  parent[length] = '\0';
  return slash + 1;
}

int set_attributes(int tree, std::uint64_t set) {
  mount_attr attr{.attr_set = set, .propagation = MS_PRIVATE};
  if (::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) == 0) return tree;
  drop(tree);
  return -1;
}

// Mounts the tree, if there is one, with these attributes over `point`. Closes both.
bool lay(int tree, std::uint64_t attributes, int point) {
  if (tree >= 0) tree = set_attributes(tree, attributes);
  const bool ok = tree >= 0 && ::move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  drop(tree);
  drop(point);
  return ok;
}

}  // namespace

int open_resolved(int dir, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  open_how how{.flags = flags | O_CLOEXEC, .resolve = resolve};
  return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}

int new_mount(const char* type, const char* options, std::uint64_t attr) {
  const int fs = ::fsopen(type, FSOPEN_CLOEXEC);
  if (fs < 0) return -1;
  char buffer[256];
  if (std::strlen(options) >= sizeof buffer) return errno = EINVAL, -1;
  std::strcpy(buffer, options);
  for (char* option = buffer; *option != '\0';) {
    char* end = std::strchr(option, ',');
    if (end != nullptr) *end = '\0';
    char* value = std::strchr(option, '=');
    if (value != nullptr) *value++ = '\0';
    if (::fsconfig(fs, value != nullptr ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option, value, 0) != 0) return -1;
    if (end == nullptr) break;
    option = end + 1;
  }
  if (::fsconfig(fs, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return -1;
  const int mount = ::fsmount(fs, FSMOUNT_CLOEXEC, static_cast<unsigned>(attr));
  drop(fs);
  return mount;
}

int SourceCloner::clone(const builder::Bind& bind) {
  char directory[4096];
  const char* name = split(bind.source, directory);
  if (name == nullptr) return -1;
  if (parent_ < 0 || std::strcmp(directory, path_) != 0) {
    drop(parent_);
    parent_ = open_resolved(AT_FDCWD, directory[0] != '\0' ? directory : "/", O_PATH | O_DIRECTORY,
                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (parent_ < 0) return -1;
    std::strcpy(path_, directory);
  }
  const int tree = ::open_tree(parent_, name, AT_SYMLINK_NOFOLLOW | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (tree < 0) return -1;
  struct stat st{};
  if (::fstat(tree, &st) != 0) return drop(tree), -1;
  if (bind.device ? !S_ISCHR(st.st_mode) : !bind.staged && (st.st_dev != bind.dev || st.st_ino != bind.ino))
    return drop(tree), errno = ESTALE, -1;
  const bool read_only = bind.read_only && !bind.frozen && !faults::skip("open_grants.read_only");
  const bool execute = bind.execute || faults::skip("open_grants.noexec");
  if (faults::skip("open_grants.nosuid")) return set_attributes(tree, read_only ? MOUNT_ATTR_RDONLY : 0U);
  return set_attributes(tree, MOUNT_ATTR_NOSUID | (bind.device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV) |
                                  (read_only ? MOUNT_ATTR_RDONLY : 0U) | (execute ? 0U : MOUNT_ATTR_NOEXEC));
}

// Opens the directory `path`, made with its parents where they are missing.
int Tree::make_parents(char* path) {
  int at = ::fcntl(root_, F_DUPFD_CLOEXEC, 3);
  for (char* name = path + 1; at >= 0 && *name != '\0';) {
    char* slash = std::strchr(name, '/');
    if (slash != nullptr) *slash = '\0';
    int next = -1;
    if (::mkdirat(at, name, 0755) == 0 || errno == EEXIST) next = open_resolved(at, name, O_PATH | O_DIRECTORY, kInside);
    drop(at);
    at = next;
    if (slash == nullptr) break;
    *slash = '/';
    name = slash + 1;
  }
  return at;
}

int Tree::parent(const char* path) {
  char directory[4096];
  name_ = split(path, directory);
  if (name_ == nullptr) return -1;
  if (directory[0] == '\0') {
    drop(parent_);
    parent_ = -1;
    return root_;
  }
  if (parent_ >= 0 && std::strcmp(directory, path_) == 0) return parent_;
  drop(parent_);
  parent_ = open_resolved(root_, directory + 1, O_PATH | O_DIRECTORY, kInside);
  if (parent_ < 0 && errno == ENOENT) parent_ = make_parents(directory);
  if (parent_ >= 0) std::strcpy(path_, directory);
  return parent_;
}

bool Tree::directory(const char* path) {
  const int dir = parent(path);
  return dir >= 0 && (::mkdirat(dir, name_, 0755) == 0 || errno == EEXIST);
}

bool Tree::file(const char* path, const char* content, std::size_t size) {
  const int dir = parent(path);
  if (dir < 0) return false;
  const int fd = ::openat(dir, name_, O_CREAT | O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const bool ok = ::write(fd, content, size) == static_cast<ssize_t>(size);
  drop(fd);
  return ok;
}

bool Tree::link(const char* path, const char* target) {
  const int dir = parent(path);
  return dir >= 0 && ::symlinkat(target, dir, name_) == 0;
}

bool Tree::attach(int mount, const char* path, bool directory) {
  const int dir = parent(path);
  if (dir < 0) return false;
  const int made = directory ? ::mkdirat(dir, name_, 0755) : ::mknodat(dir, name_, S_IFREG | 0644, 0);
  if (made != 0 && errno != EEXIST) return false;
  // Without MOVE_MOUNT_T_SYMLINKS the last name is not followed either.
  return ::move_mount(mount, "", dir, name_, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool Tree::hold(const char* path) {
  const int point = directory(path) ? open_resolved(root_, path + 1, O_PATH | O_DIRECTORY, kInside) : -1;
  return point >= 0 && lay(::open_tree(point, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), 0, point);
}

bool Tree::cover(const char* path, int masks, const char* file, const char* directory) {
  // A symbolic link is covered as it is, and what it leads to is looked at by nobody.
  const int point = open_resolved(root_, path + 1, O_PATH | O_NOFOLLOW, kInside);
  if (point < 0) return errno == ENOENT;
  struct stat st{};
  if (::fstat(point, &st) != 0) return false;
  const char* mask = S_ISDIR(st.st_mode) ? directory : file;
  const int tree = ::open_tree(masks, mask, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  return lay(tree, kNoSuidNoDev | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, point);
}

}  // namespace caisson::confine
