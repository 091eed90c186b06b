// caisson-system: makes the copy of the system in which the sessions of a workspace install packages (`system_packages`).
//
// On fd 0 is {"directory", "tops", "bytes", "without", "copies", "files", "links"} (compiler/system_plan.cc), fd 3 is the
// workspace's mount namespace. It enters that and the user namespace around it, where it is one unprivileged uid of the outside
// whatever it can do inside, and mounts at `directory`, for good, a tmpfs of `bytes`:
//
//   etc, opt, root, run, srv, var   directories, with what of `copies` that uid can read, `files` and `links`
//   usr                             overlayfs: the container's /usr, read-only, below `upper`; `without` does not exist in it
//
// Files of the lower /usr belong to an owner that does not exist in the namespace. So nobody can write to them or copy them up;
// but every directory exists in `upper`, too, as the uid's own, and there a package's files are made, replaced and removed. That
// is all that dpkg does, but for one: it links what it is about to replace to a second name. kAdopt gives it a file of its own.
//
// The answer is one line on fd 1: what went wrong, or nothing.
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <tuple>

#include "launcher/common/base/json.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/build/mount_tree.h"
#include "launcher/common/confine/user_ns.h"
#include "launcher/system/copy.h"

namespace caisson::system {
namespace {

constexpr int kMountNs = 3;
// A name takes some 2 KiB of the kernel, which the size does not count.
constexpr std::uint64_t kInodes = 32768, kBytesPerInode = 16384;
constexpr std::size_t kMaxInput = 4U << 20;

// There is one user in the namespace: apt cannot become another to fetch.
constexpr const char* kAptConf = "APT::Sandbox::User \"root\";\n";
constexpr const char* kDpkgConf = "pre-invoke=sh /etc/dpkg/caisson-adopt\n";
constexpr const char* kAdopt =
    R"sh(# dpkg runs this before it unpacks. A file of the image that a package is about to replace is replaced by a copy first:
# it belongs to nobody here, and dpkg could not keep it aside until the new one is in place.
case $DPKG_HOOK_ACTION in unpack | install) ;; *) exit 0 ;; esac
pid=$PPID
until [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dpkg ]; do
  pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2>/dev/null)
  [ "${pid:-0}" -gt 1 ] || exit 0
done
tr '\0' '\n' <"/proc/$pid/cmdline" | sed 1d | while IFS= read -r argument; do
  [ -e "$argument" ] && find "$argument" -name '*.deb' -print
done | while IFS= read -r package; do
  dpkg-deb --fsys-tarfile "$package" | tar -tf - | sed 's/^\.//' | while IFS= read -r file; do
    [ -f "$file" ] && [ ! -L "$file" ] && [ ! -O "$file" ] && cp -p "$file" "$file.caisson" && mv -f "$file.caisson" "$file"
  done
done
exit 0
)sh";

Status enter() {
  const Fd user(::ioctl(kMountNs, NS_GET_USERNS));
  if (!user) return sys_error("the user namespace around the mount namespace");
  if (::setns(user.get(), CLONE_NEWUSER) != 0 || ::setns(kMountNs, CLONE_NEWNS) != 0) return sys_error("enter the workspace");
  return {};
}

Status overlay(int root) {
  // Relative names, so that no character of the directory's means something to overlayfs.
  if (::fchdir(root) != 0) return sys_error("chdir");
  const Fd fs(::fsopen("overlay", FSOPEN_CLOEXEC));
  if (!fs) return sys_error("overlayfs");
  for (const auto& [key, value] : {std::pair("lowerdir", "/usr"), std::pair("upperdir", "upper"), std::pair("workdir", "work")})
    if (::fsconfig(fs.get(), FSCONFIG_SET_STRING, key, value, 0) != 0) return sys_error(std::string("overlayfs: ") + key);
  if (::fsconfig(fs.get(), FSCONFIG_SET_FLAG, "userxattr", nullptr, 0) != 0 ||
      ::fsconfig(fs.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return sys_error(std::string("overlayfs over /usr") +
                     (errno == EINVAL ? ", over which nothing may be mounted (docker -v ...:/usr/...)" : ""));
  const Fd merged(::fsmount(fs.get(), FSMOUNT_CLOEXEC, confine::kNoSuidNoDev));
  if (!merged || ::move_mount(merged.get(), "", root, "usr", MOVE_MOUNT_F_EMPTY_PATH) != 0) return sys_error("mount overlayfs");
  return {};
}

// The directory of "/a/b/c" below `root`, made, with "c" as `name`.
Result<Fd> parent_of(int root, const std::string& path, std::string& name) {
  confine::Tree tree(root);
  const auto slash = path.rfind('/');
  name = path.substr(slash + 1);
  if (slash == 0) return sys::openat(root, ".", O_RDONLY | O_DIRECTORY);
  if (!tree.directory(path.substr(0, slash).c_str())) return sys_error("mkdir " + quote(path.substr(0, slash)));
  return sys::openat(root, path.substr(1, slash - 1), O_RDONLY | O_DIRECTORY);
}

// Every name of /etc/passwd or /etc/group with `rest`: nobody has a password. Tools that add users make what is missing with mode
// 0, which a root without capabilities could not open again.
Result<std::string> shadow(int root, const char* names, const char* rest) {
  std::string out;
  auto file = sys::openat(root, names, O_RDONLY);
  if (!file && file.error().sys == ENOENT) return out;
  if (!file) return std::unexpected(std::move(file).error());
  TRY_ASSIGN(const std::string text, sys::read_fd(file->get(), 1U << 20));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const auto colon = line.find(':'); colon != std::string::npos) out += line.substr(0, colon) + rest;
  return out;
}

Status fill(int root, const json::Value& what) {
  confine::Tree tree(root);
  for (const json::Value& top : what.at("tops"))
    if (!tree.directory(top.get<std::string>().c_str())) return sys_error("mkdir " + top.get<std::string>());
  for (const char* name : {"upper", "work"})
    if (::mkdirat(root, name, 0755) != 0) return sys_error(std::string("mkdir ") + name);
  const auto make = [&tree](const std::string& path, const std::string& content) {
    return tree.file(path.c_str(), content.data(), content.size()) ? Status() : Status(sys_error("create " + quote(path)));
  };
  for (const auto& [path, content] : what.at("files").items()) TRY(make(path, content.get<std::string>()));
  // Later ones replace: the users and groups that packages name are no stand-ins.
  for (const json::Value& copied : what.at("copies")) {
    const auto path = copied.get<std::string>();
    auto from = sys::open(path.substr(0, path.rfind('/') + 1), O_RDONLY | O_DIRECTORY);
    if (!from) continue;
    std::string name;
    TRY_ASSIGN(const Fd to, parent_of(root, path, name));
    TRY(copy(from->get(), to.get(), name, What::everything));
  }
  for (const auto& [path, target] : what.at("links").items())
    if (!tree.link(path.c_str(), target.get<std::string>().c_str()) && errno != EEXIST) return sys_error("link " + quote(path));
  for (const char* path :
       {"/var/cache/apt/archives/partial", "/var/lib/apt/lists/partial", "/var/log/apt", "/var/lib/dpkg/updates"})
    if (!tree.directory(path)) return sys_error("mkdir " + quote(path));
  for (const auto& [path, names, rest] :
       {std::tuple("/etc/shadow", "etc/passwd", ":*:::::::\n"), std::tuple("/etc/gshadow", "etc/group", ":*::\n")}) {
    TRY_ASSIGN(const std::string content, shadow(root, names, rest));
    TRY(make(path, content));
    if (::fchmodat(root, path + 1, 0640, 0) != 0) return sys_error("chmod " + quote(path));
  }
  TRY(make("/etc/apt/apt.conf.d/90caisson", kAptConf));
  TRY(make("/etc/dpkg/dpkg.cfg.d/90caisson", kDpkgConf));
  return make("/etc/dpkg/caisson-adopt", kAdopt);
}

// What the policy hides goes where no session sees it. Of /usr only directories are there by now; to overlayfs a device 0:0 says
// that a name does not exist (since Linux 5.8 anybody may make one).
Status leave_out(int root, int upper, const json::Value& paths) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto path = paths[i].get<std::string>();
    const bool lower = path.starts_with("/usr/");
    std::string name;
    TRY_ASSIGN(const Fd parent, lower ? parent_of(upper, path.substr(4), name) : parent_of(root, path, name));
    if (::renameat(parent.get(), name.c_str(), root, ("left-out-" + std::to_string(i)).c_str()) != 0 && errno != ENOENT)
      return sys_error("move away " + quote(path));
    if (lower && ::mknodat(parent.get(), name.c_str(), S_IFCHR, 0) != 0) return sys_error("leave out " + quote(path));
  }
  return {};
}

Status make(int root, const json::Value& what) {
  TRY(fill(root, what));
  TRY_ASSIGN(const Fd usr, sys::open("/usr", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const Fd upper, sys::openat(root, "upper", O_RDONLY | O_DIRECTORY));
  TRY(copy_below(usr.get(), upper.get(), What::directories));
  TRY(leave_out(root, upper.get(), what.at("without")));
  return overlay(root);
}

Status run() {
  TRY_ASSIGN(const std::string input, sys::read_fd(STDIN_FILENO, kMaxInput));
  TRY_ASSIGN(const json::Value what, json::parse(input));
  TRY(enter());
  const auto directory = what.at("directory").get<std::string>();
  while (::umount2(directory.c_str(), MNT_DETACH) == 0) {  // of one of us that was killed: no session has seen it
  }
  // Closed to the uid that we are about to become.
  TRY_ASSIGN(const Fd place, sys::open(directory, O_PATH | O_DIRECTORY));
  // A change of uid clears it.
  if (!confine::become_inner() || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return sys_error("become the workspace's user");
  ::umask(0);
  const auto bytes = what.at("bytes").get<std::uint64_t>();
  const std::string options =
      "mode=0755,size=" + std::to_string(bytes) + ",nr_inodes=" + std::to_string(kInodes + bytes / kBytesPerInode);
  const Fd root(confine::new_mount("tmpfs", options.c_str(), confine::kNoSuidNoDev));
  // Attached first: overlayfs takes no directory of a mount that is nowhere.
  if (!root || ::move_mount(root.get(), "", place.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    return sys_error("mount a tmpfs");
  Status made = make(root.get(), what);
  if (!made && (::fchdir(root.get()) != 0 || ::umount2(".", MNT_DETACH) != 0))
    return std::unexpected(std::move(made).error().wrap("and the tmpfs is left"));
  return made;
}

}  // namespace
}  // namespace caisson::system

int main() {
  const auto done = caisson::system::run();
  const std::string text = done ? "" : done.error().text().substr(0, 4000);  // what the launcher takes
  return std::puts(text.c_str()) < 0 || std::fflush(stdout) != 0 ? 1 : 0;    // what went wrong is an answer, too
}
