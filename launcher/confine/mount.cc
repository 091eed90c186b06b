#include "launcher/confine/mount.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cstring>

#include "launcher/confine/raw.h"
#include "launcher/confine/user_ns.h"

namespace caisson::confine {
namespace {

constexpr std::uint64_t kBaseAttr = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

int open_beneath(int dir, const char* path, std::uint64_t flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = resolve;
  return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}

// A new filesystem instance as a detached mount. options: "key=value,flag" (no escapes: ours only).
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
  const int saved = errno;
  ::close(fs);
  errno = saved;
  return mount;
}

// Creates `path` (absolute, below root) and its parents where they are missing: a directory, or an empty file. The
// descriptor that comes back is the mount point itself. Parents inside a read-only grant must exist already.
int make_point(int root, const char* path, bool directory) {
  int at = ::fcntl(root, F_DUPFD_CLOEXEC, 3);
  char name[256];
  const char* p = path + 1;
  while (at >= 0) {
    const char* slash = std::strchr(p, '/');
    const std::size_t length = slash != nullptr ? static_cast<std::size_t>(slash - p) : std::strlen(p);
    if (length >= sizeof name) return ::close(at), errno = ENAMETOOLONG, -1;
    std::memcpy(name, p, length);
    name[length] = '\0';
    const bool as_directory = slash != nullptr || directory;
    // Without O_CREAT first: where a grant lies below, this is what exists there, and no symlink is ever followed.
    int next = open_beneath(at, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (next < 0 && errno == ENOENT) {
      const int made =
          as_directory ? ::mkdirat(at, name, 0755) : ::openat(at, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
      if (made < 0) return ::close(at), -1;
      if (!as_directory) ::close(made);
      next = open_beneath(at, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    }
    const int saved = errno;
    ::close(at);
    errno = saved;
    at = next;
    if (slash == nullptr) break;
    p = slash + 1;
  }
  return at;
}

bool attach(int tree, int root, const char* target, bool directory) {
  const int point = make_point(root, target, directory);
  if (point < 0) return false;
  const bool moved = ::move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  const int saved = errno;
  ::close(point);
  errno = saved;
  return moved;
}

// Opens the source again in this mount namespace (the launcher's descriptor belongs to another) and takes it only when it
// is the same inode that the launcher saw: a path swapped in between fails closed.
int clone_source(const Bind& bind) {
  const std::uint64_t resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const int fd = open_beneath(AT_FDCWD, bind.source.c_str(), O_PATH, resolve);
  if (fd < 0) return -1;
  struct stat st{};
  if (::fstat(fd, &st) != 0) return -1;
  if (bind.device ? !S_ISCHR(st.st_mode) : !bind.staged && (st.st_dev != bind.dev || st.st_ino != bind.ino))
    return errno = ESTALE, -1;
  const int tree = ::open_tree(fd, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  if (tree < 0) return -1;
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_NOSUID | (bind.device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV);
  if (bind.read_only) attr.attr_set |= MOUNT_ATTR_RDONLY;
  if (!bind.execute) attr.attr_set |= MOUNT_ATTR_NOEXEC;
  attr.propagation = MS_PRIVATE;
  if (::mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0) return -1;
  return tree;
}

bool write_text(int root, const std::string& path, const std::string& content) {
  const int point = make_point(root, path.c_str(), false);
  if (point < 0) return false;
  ::close(point);
  const int fd = open_beneath(root, path.c_str() + 1, O_WRONLY | O_TRUNC | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  if (fd < 0) return false;
  const bool ok = ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  ::close(fd);
  return ok;
}

bool make_link(int root, const std::string& path, const std::string& target) {
  char parent[4096];
  const std::size_t slash = path.rfind('/');
  if (slash >= sizeof parent) return errno = ENAMETOOLONG, false;
  int dir = root;
  if (slash > 0) {
    std::memcpy(parent, path.data(), slash);
    parent[slash] = '\0';
    const int point = make_point(root, parent, true);
    if (point < 0) return false;
    ::close(point);
    dir = open_beneath(root, parent + 1, O_PATH | O_DIRECTORY, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (dir < 0) return false;
  }
  const bool ok = ::symlinkat(target.c_str(), dir, path.c_str() + slash + 1) == 0;
  if (dir != root) ::close(dir);
  return ok;
}

// Covers a path with something empty and unreadable. What is not there needs no cover.
bool cover(int root, const char* path) {
  const int point = open_beneath(root, path + 1, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
  if (point < 0) return errno == ENOENT;
  struct stat st{};
  if (::fstat(point, &st) != 0) return false;
  int tree = new_mount("tmpfs", "mode=0000,size=4k,nr_inodes=2", kBaseAttr | MOUNT_ATTR_NOEXEC);
  if (tree < 0) return false;
  if (!S_ISDIR(st.st_mode)) {
    const int file = ::openat(tree, "hidden", O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) return false;
    ::close(file);
    const int single = ::open_tree(tree, "hidden", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    ::close(tree);
    tree = single;
    if (tree < 0) return false;
  }
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY;
  const bool ok = ::mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0 &&
                  ::move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
  ::close(tree);
  ::close(point);
  return ok;
}

// Root's own uid does not exist inside, so it could create nothing in a new tmpfs. The capabilities in our user namespace
// stay, because no inner uid 0 is mapped.
bool become_inner() {
  return ::setresgid(kInnerGid, kInnerGid, kInnerGid) == 0 && ::setresuid(kInnerUid, kInnerUid, kInnerUid) == 0;
}

int mount_proc(const Plan& plan) {
  return new_mount("proc", plan.proc == Proc::subset ? "subset=pid" : "", kBaseAttr | MOUNT_ATTR_NOEXEC);
}

// What a fresh procfs shows of the machine that no session needs and any uid may read.
constexpr const char* kProcMasks[] = {"/proc/acpi",      "/proc/interrupts", "/proc/keys",
                                      "/proc/key-users", "/proc/kallsyms",   "/proc/scsi"};

bool mount_proc_at(const Plan& plan, int root) {
  const int proc = mount_proc(plan);
  if (proc < 0 || !attach(proc, root, "/proc", true)) return false;
  ::close(proc);
  return true;
}

struct PrivatePlace {
  bool wanted;
  const char *path, *mode;
};

// Mounts a tmpfs of the session's own there, once.
void make_private(const Plan& plan, int root, PrivatePlace& place, StepWriter& steps) {
  if (!place.wanted) return;
  place.wanted = false;
  char options[200];
  std::strcpy(options, place.mode);
  std::strncat(options, plan.private_tmp_options.c_str(), sizeof options - std::strlen(options) - 1);
  const int tmp = new_mount("tmpfs", options, kBaseAttr);
  if (tmp < 0 || !attach(tmp, root, place.path, true)) steps.failed(Step::private_mounts, errno);
  ::close(tmp);
}

}  // namespace

void mount_stage(const Plan& plan, const char* stage, StepWriter& steps) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) steps.failed(Step::mount_ns, errno);
  char options[200] = "mode=1777,uid=1000,gid=1000,";
  std::strncat(options, plan.private_tmp_options.c_str(), sizeof options - std::strlen(options) - 1);
  const int tmp = new_mount("tmpfs", options, kBaseAttr);
  if (tmp < 0 || ::move_mount(tmp, "", AT_FDCWD, stage, MOVE_MOUNT_F_EMPTY_PATH) != 0) steps.failed(Step::mount_ns, errno);
  ::close(tmp);
  steps.done(Step::mount_ns);
}

void build_root(const Plan& plan, const char* stage_dir, StepWriter& steps) {
  static int trees[kMaxBinds];
  if (plan.binds.size() > kMaxBinds) steps.failed(Step::sources, E2BIG);
  for (std::size_t i = 0; i < plan.binds.size(); ++i)
    if ((trees[i] = clone_source(plan.binds[i])) < 0) steps.failed(Step::sources, errno, static_cast<std::uint16_t>(i));
  const int shared_proc =
      plan.proc == Proc::shared ? ::open_tree(AT_FDCWD, "/proc", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
  // The launcher's run directory is closed to the uid that we are about to become.
  const int stage = ::open(stage_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (stage < 0 || (plan.proc == Proc::shared && shared_proc < 0)) steps.failed(Step::sources, errno);
  steps.done(Step::sources);

  if (!become_inner()) steps.failed(Step::root, errno);
  ::umask(0);
  const int root = new_mount("tmpfs", "mode=0755,size=4m,nr_inodes=4096", kBaseAttr);
  if (root < 0 || ::move_mount(root, "", stage, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    steps.failed(Step::root, errno);
  ::close(stage);
  for (std::size_t i = 0; i < plan.directories.size(); ++i) {
    const int point = make_point(root, plan.directories[i].c_str(), true);
    if (point < 0) steps.failed(Step::root, errno, static_cast<std::uint16_t>(i));
    ::close(point);
  }
  steps.done(Step::root);

  for (std::size_t i = 0; i < plan.files.size(); ++i)
    if (!write_text(root, plan.files[i].first, plan.files[i].second))
      steps.failed(Step::files, errno, static_cast<std::uint16_t>(i));
  for (std::size_t i = 0; i < plan.links.size(); ++i)
    if (!make_link(root, plan.links[i].first, plan.links[i].second))
      steps.failed(Step::files, errno, static_cast<std::uint16_t>(plan.files.size() + i));
  steps.done(Step::files);

  // A private home or /tmp comes before the first grant below it, which it would cover otherwise.
  PrivatePlace places[] = {
      {plan.policy->home == policy::Scope::private_, plan.policy->home_path.c_str(), "mode=0700,uid=1000,gid=1000,"},
      {plan.policy->tmp == policy::Scope::private_, "/tmp", "mode=1777,uid=1000,gid=1000,"}};
  for (std::size_t i = 0; i < plan.binds.size(); ++i) {
    for (PrivatePlace& place : places)
      if (std::strcmp(place.path, plan.binds[i].target.c_str()) < 0) make_private(plan, root, place, steps);
    if (!attach(trees[i], root, plan.binds[i].target.c_str(), plan.binds[i].directory))
      steps.failed(Step::binds, errno, static_cast<std::uint16_t>(i));
    ::close(trees[i]);
  }
  steps.done(Step::binds);
  for (PrivatePlace& place : places) make_private(plan, root, place, steps);
  if (plan.single_use) steps.done(Step::private_mounts);

  // A procfs must be visible in this namespace, or the kernel refuses a session a new one (mount_too_revealing).
  if (plan.pid_ns) {
    if (!mount_proc_at(plan, root)) steps.failed(Step::proc, errno);
  } else if (shared_proc >= 0 && !attach(shared_proc, root, "/proc", true)) {
    steps.failed(Step::proc, errno);
  }
  steps.done(Step::proc);

  for (std::size_t i = 0; i < plan.hide.size(); ++i)
    if (!cover(root, plan.hide[i].c_str())) steps.failed(Step::hide, errno, static_cast<std::uint16_t>(i));
  steps.done(Step::hide);

  // pivot_root and a lazy umount of the old root, not chroot: afterwards the outside is not merely covered but gone.
  mount_attr read_only{};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (::fchdir(root) != 0 || raw::pivot_root(".", ".") != 0 || ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0 ||
      ::mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof read_only) != 0)
    steps.failed(Step::pivot, errno);
  ::close(root);
  // Post-condition: the root cannot be written, and the parent of the root is the root.
  struct stat top{}, above{};
  if (::stat("/", &top) != 0 || ::stat("/..", &above) != 0 || top.st_ino != above.st_ino || top.st_dev != above.st_dev ||
      ::mkdir("/.writable", 0700) == 0 || errno != EROFS)
    steps.failed(Step::pivot, EXDEV);
  steps.done(Step::pivot);
}

void mount_instance(const Plan& plan, bool proc_is_mounted, StepWriter& steps) {
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || !become_inner()) steps.failed(Step::proc_mount, errno);
  if (plan.pid_ns) {
    if (!proc_is_mounted && !mount_proc_at(plan, root)) steps.failed(Step::proc_mount, errno);
    if (plan.proc == Proc::full)
      for (std::size_t i = 0; i < std::size(kProcMasks); ++i)
        if (!cover(root, kProcMasks[i])) steps.failed(Step::proc_mount, errno, static_cast<std::uint16_t>(i));
    steps.done(Step::proc_mount);
  }
  const int pts = new_mount("devpts", "newinstance,ptmxmode=0666,mode=0620", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (pts < 0 || !attach(pts, root, "/dev/pts", true)) steps.failed(Step::devices, errno);
  ::close(pts);
  char options[200] = "mode=1777,uid=1000,gid=1000,";
  std::strncat(options, plan.private_tmp_options.c_str(), sizeof options - std::strlen(options) - 1);
  const int shm = new_mount("tmpfs", options, kBaseAttr | MOUNT_ATTR_NOEXEC);
  if (shm < 0 || !attach(shm, root, "/dev/shm", true)) steps.failed(Step::devices, errno);
  ::close(shm);
  ::close(root);
  steps.done(Step::devices);
}

}  // namespace caisson::confine
