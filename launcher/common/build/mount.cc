#include "launcher/common/build/mount.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>

#include "launcher/common/build/mount_tree.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/kernel/inner_user.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"

namespace caisson::confine {
namespace {

int new_tmpfs(const char* owner, const char* size, std::uint64_t attributes = 0) {
  char options[200] = "";
  std::strcat(options, owner);
  std::strncat(options, size, sizeof options - std::strlen(options) - 1);
  return new_mount("tmpfs", options, kNoSuidNoDev | attributes);
}

int mount_proc(const BuildPlan& plan) {
  return new_mount("proc", plan.proc == Proc::subset && !faults::skip("proc") ? "subset=pid" : "",
                   kNoSuidNoDev | MOUNT_ATTR_NOEXEC);
}

bool mount_proc_at(const BuildPlan& plan, Tree& tree) {
  const int proc = mount_proc(plan);
  if (proc < 0 || !tree.attach(proc, "/proc", true)) return false;
  ::close(proc);
  return true;
}

// Of all that is mounted at `path` and below it.
bool set_read_only(int root, const char* path, bool on) {
  mount_attr attr{.attr_set = on ? MOUNT_ATTR_RDONLY : 0UL, .attr_clr = on ? 0UL : MOUNT_ATTR_RDONLY};
  return ::mount_setattr(root, path + 1, AT_SYMLINK_NOFOLLOW | AT_RECURSIVE, &attr, sizeof attr) == 0;
}

void mask_proc(int root, Tree& tree, StepWriter& steps) {
  const int masks = new_mount("tmpfs", "mode=0000,size=4k,nr_inodes=2", kNoSuidNoDev | MOUNT_ATTR_NOEXEC);
  if (masks < 0 || ::mknodat(masks, "file", S_IFREG, 0) != 0 || !tree.attach(masks, kProcMaskRoot, true))
    steps.failed(Step::proc_mount, errno);
  for (std::size_t i = 0; i < std::size(kProcMasks); ++i)
    if (!tree.cover(kProcMasks[i], masks, "file", "")) steps.failed(Step::proc_mount, errno, static_cast<std::uint16_t>(i));
  if (!set_read_only(root, kProcMaskRoot, true)) steps.failed(Step::proc_mount, errno);
  ::close(masks);
}

// The policy's `hide`. The masks are made in the session's root, cloned, and unlinked.
void hide_paths(const BuildPlan& plan, int root, Tree& tree, StepWriter& steps) {
  constexpr const char *kFile = ".mask", *kDirectory = ".masks";
  if (!plan.hide.empty() && (::mknodat(root, kFile, S_IFREG, 0) != 0 || ::mkdirat(root, kDirectory, 0) != 0))
    steps.failed(Step::hide, errno);
  for (std::size_t i = 0; i < plan.hide.size; ++i)
    if (!faults::skip("hide_paths") && !tree.cover(plan.hide[i], root, kFile, kDirectory))
      steps.failed(Step::hide, errno, static_cast<std::uint16_t>(i));
  if (!plan.hide.empty() && (::unlinkat(root, kFile, 0) != 0 || ::unlinkat(root, kDirectory, AT_REMOVEDIR) != 0))
    steps.failed(Step::hide, errno);
  steps.done(Step::hide);
}

struct PrivatePlace {
  bool wanted;
  const char *path, *mode;
};

// Mounts a tmpfs of the session's own there, once.
void make_private(const BuildPlan& plan, Tree& tree, PrivatePlace& place, StepWriter& steps) {
  if (!place.wanted) return;
  place.wanted = false;
  const int tmp = new_tmpfs(place.mode, plan.tmp_options, plan.exec_writable ? 0 : MOUNT_ATTR_NOEXEC);
  if (tmp < 0 || (!faults::skip("private_mounts") && !tree.attach(tmp, place.path, true)))
    steps.failed(Step::private_mounts, errno);
  ::close(tmp);
}

}  // namespace

int mount_stage(const BuildPlan& plan, const char* stage, const char* home_stage, StepWriter& steps) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) steps.failed(Step::mount_ns, errno);
  const auto mount_at = [&steps](const char* path, const char* mode, const char* size) {
    const int made = new_tmpfs(mode, size);
    if (made < 0 || ::move_mount(made, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0) steps.failed(Step::mount_ns, errno);
    return made;
  };
  const int shared = mount_at(stage, "mode=0755,uid=1000,gid=1000,", plan.tmp_options);
  const int home = *plan.home_options == '\0' ? -1 : mount_at(home_stage, "mode=0755,uid=1000,gid=1000,", plan.home_options);
  ::umask(0);
  bool made = become_inner();
  for (const char* name : kOfWorkspace) made = made && ::mkdirat(shared, name, 01777) == 0;
  if (!made) steps.failed(Step::mount_ns, errno);
  steps.done(Step::mount_ns);
  return home;
}

void build_root(const BuildPlan& plan, const char* stage_dir, StepWriter& steps) {
  static int trees[builder::kMaxBinds];
  SourceCloner sources;
  if (plan.binds.size > builder::kMaxBinds) steps.failed(Step::sources, E2BIG);
  for (std::size_t i = 0; i < plan.binds.size; ++i)
    if ((trees[i] = plan.binds[i].held ? -1 : sources.clone(plan.binds[i])) < 0 && !plan.binds[i].held)
      steps.failed(Step::sources, errno, static_cast<std::uint16_t>(i));
  const int shared_proc =
      plan.proc == Proc::shared ? ::open_tree(AT_FDCWD, "/proc", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
  // The launcher's run directory is closed to the uid that we are about to become.
  const int stage = ::open(stage_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (stage < 0 || (plan.proc == Proc::shared && shared_proc < 0)) steps.failed(Step::sources, errno);
  steps.done(Step::sources);

  if (!become_inner()) steps.failed(Step::root, errno);
  ::umask(0);
  const int root = new_mount("tmpfs", "mode=0755,size=4m,nr_inodes=4096", kNoSuidNoDev);
  if (root < 0 || ::move_mount(root, "", stage, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    steps.failed(Step::root, errno);
  ::close(stage);
  Tree tree(root);
  for (std::size_t i = 0; i < plan.directories.size; ++i)
    if (!tree.directory(plan.directories[i])) steps.failed(Step::root, errno, static_cast<std::uint16_t>(i));
  steps.done(Step::root);

  for (std::size_t i = 0; i < plan.files.size && !faults::skip("make_files"); ++i) {
    const auto& [path, content] = plan.files[i];
    if (!tree.file(path, content, std::strlen(content))) steps.failed(Step::files, errno, static_cast<std::uint16_t>(i));
  }
  for (std::size_t i = 0; i < plan.links.size; ++i)
    if (!tree.link(plan.links[i].path, plan.links[i].content))
      steps.failed(Step::files, errno, static_cast<std::uint16_t>(plan.files.size + i));
  steps.done(Step::files);

  // A private home or /tmp comes before the first grant below it, which it would cover otherwise.
  PrivatePlace places[] = {{plan.private_home, plan.home, "mode=0700,uid=1000,gid=1000,"},
                           {plan.private_tmp, "/tmp", "mode=1777,uid=1000,gid=1000,"}};
  for (std::size_t i = 0; i < plan.binds.size; ++i) {
    for (PrivatePlace& place : places)
      if (std::strcmp(place.path, plan.binds[i].target) < 0) make_private(plan, tree, place, steps);
    const builder::Bind& bind = plan.binds[i];
    if (bind.held && bind.frozen) continue;
    const char* target = bind.target;
    if (!faults::skip("attach_grants") && !(bind.held ? tree.hold(target) : tree.attach(trees[i], target, bind.directory)))
      steps.failed(Step::binds, errno, static_cast<std::uint16_t>(i));
    ::close(trees[i]);
  }
  steps.done(Step::binds);
  for (PrivatePlace& place : places) make_private(plan, tree, place, steps);
  if (plan.private_home || plan.private_tmp) steps.done(Step::private_mounts);

  // A procfs must be visible in this namespace, or the kernel refuses a session a new one (mount_too_revealing).
  if (plan.pid_ns) {
    if (!faults::skip("template_proc") && !mount_proc_at(plan, tree)) steps.failed(Step::proc, errno);
  } else if (shared_proc >= 0 && !tree.attach(shared_proc, "/proc", true)) {
    steps.failed(Step::proc, errno);
  }
  steps.done(Step::proc);

  hide_paths(plan, root, tree, steps);

  // pivot_root and a lazy umount of the old root, not chroot: afterwards the outside is not merely covered but gone.
  mount_attr read_only{.attr_set = MOUNT_ATTR_RDONLY};
  if (faults::skip("pivot_root")) return steps.done(Step::pivot);
  if (faults::skip("pivot_root.read_only")) read_only.attr_set = 0;
  if (::fchdir(root) != 0 || raw::pivot_root(".", ".") != 0 || ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0 ||
      ::mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof read_only) != 0)
    steps.failed(Step::pivot, errno);
  ::close(root);
  // Post-condition: the root cannot be written, and the parent of the root is the root.
  struct stat top{}, above{};
  if (::stat("/", &top) != 0 || ::stat("/..", &above) != 0 || top.st_ino != above.st_ino || top.st_dev != above.st_dev ||
      (read_only.attr_set != 0 && (::mkdir("/.writable", 0700) == 0 || errno != EROFS)))
    steps.failed(Step::pivot, EXDEV);
  steps.done(Step::pivot);
}

void mount_instance(const BuildPlan& plan, bool proc_is_mounted, StepWriter& steps) {
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || (!faults::skip("uid") && !become_inner())) steps.failed(Step::proc_mount, errno);
  Tree tree(root);
  if (plan.pid_ns) {
    if (!proc_is_mounted && !mount_proc_at(plan, tree)) steps.failed(Step::proc_mount, errno);
    if (plan.proc == Proc::full && !faults::skip("proc")) mask_proc(root, tree, steps);
    steps.done(Step::proc_mount);
  }
  // Whoever has a user namespace of its own has the capabilities for what /proc/sys says of it and of its network.
  const bool frozen = plan.nested && (plan.proc == Proc::full || plan.proc == Proc::shared) && !faults::skip("proc");
  if (frozen && (!tree.hold("/proc/sys") || !set_read_only(root, "/proc/sys", true))) steps.failed(Step::proc_mount, errno);
  // What stays writable in what is only read is made in each session: others may have removed the directory of an earlier one's.
  for (std::uint16_t i = 0; i < plan.binds.size; ++i)
    if (plan.binds[i].held && plan.binds[i].frozen && !tree.hold(plan.binds[i].target)) steps.failed(Step::binds, errno, i);
  for (const builder::Bind& bind : plan.binds)
    if (bind.frozen && !set_read_only(root, bind.target, bind.read_only)) steps.failed(Step::binds, errno);
  if (faults::skip("devices")) return steps.done(Step::devices);
  const int pts = new_mount("devpts", faults::skip("devices.max") ? "newinstance,ptmxmode=0666,mode=0620" : kPtsOptions,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  if (pts < 0 || !tree.attach(pts, "/dev/pts", true)) steps.failed(Step::devices, errno);
  ::close(pts);
  const int shm = new_tmpfs("mode=1777,uid=1000,gid=1000,", plan.tmp_options, MOUNT_ATTR_NOEXEC);
  if (shm < 0 || !tree.attach(shm, "/dev/shm", true)) steps.failed(Step::devices, errno);
  ::close(shm);
  ::close(root);
  steps.done(Step::devices);
}

}  // namespace caisson::confine
