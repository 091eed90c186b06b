#include "launcher/homes/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <climits>
#include <memory>
#include <vector>

#include "launcher/base/directory.h"
#include "launcher/base/sys.h"
#include "launcher/confine/user_ns.h"

namespace caisson::homes {
namespace {

constexpr std::uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
constexpr std::uint64_t kBlock = 512;  // of st_blocks, whatever the filesystem's
constexpr std::size_t kMaxAnswer = 4096;

using sys::Directory;
using sys::next_name;

Result<Directory> open_directory(int top, const std::string& path) {
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
    for (int error = EEXIST; error == EEXIST;) {  // the tenant may have used the name
      const std::string aside = ".removed-" + std::to_string(moved++);
      error = ::renameat2(at, name, top, aside.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
      if (error != 0 && error != EEXIST) return sys_error("move a directory", error);
    }
  }
  return {};
}

}  // namespace

Result<Use> measure(int home, const Use& most) {
  Use use;
  std::vector<std::string> todo{"."};
  while (!todo.empty()) {
    const std::string path = std::move(todo.back());
    todo.pop_back();
    auto directory = open_directory(home, path);
    if (!directory && path != "." && gone(directory.error())) continue;  // it has been removed, or replaced
    if (!directory) return std::unexpected(std::move(directory).error());
    while (const char* name = next_name(directory->get())) {
      struct stat st{};
      if (::fstatat(::dirfd(directory->get()), name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) continue;
      const bool is_directory = S_ISDIR(st.st_mode);
      const std::uint64_t names = is_directory || st.st_nlink == 0 ? 1 : st.st_nlink;
      use.bytes += (static_cast<std::uint64_t>(st.st_blocks) * kBlock + names - 1) / names;
      ++use.inodes;
      if (use.bytes > most.bytes || use.inodes > most.inodes) return use;
      if (!is_directory) continue;
      if (path.size() + std::string_view(name).size() + 2 > PATH_MAX)
        return fail(Code::limit, "a path is too long to be followed");
      todo.push_back(path + "/" + name);
    }
  }
  return use;
}

Status empty(int home) {
  std::uint64_t moved = 0;
  for (bool any = true; any;) {
    any = false;
    TRY_ASSIGN(const Directory top, open_directory(home, "."));
    while (const char* name = next_name(top.get())) {
      any = true;
      if (::unlinkat(home, name, 0) == 0 || errno == ENOENT || ::unlinkat(home, name, AT_REMOVEDIR) == 0) continue;
      TRY_ASSIGN(const Directory below, open_directory(home, name));
      TRY(raise(home, below.get(), moved));
      if (::unlinkat(home, name, AT_REMOVEDIR) != 0) return sys_error("remove a directory");
    }
  }
  return {};
}

Result<std::string> as_tenant(uid_t uid, const std::function<Result<std::string>()>& work) {
  TRY_ASSIGN(auto said, sys::pipe());
  TRY_ASSIGN(auto ready, sys::pipe());
  TRY_ASSIGN(auto go, sys::pipe());
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0) return sys_error("fork");
  if (pid == 0) {
    char byte = 0;
    go.second.reset();
    // With the maps of one uid alone, the capabilities that the new namespace gives are over that uid's files and no other's.
    if (::unshare(CLONE_NEWUSER) != 0 || ::write(ready.second.get(), "r", 1) != 1 || ::read(go.first.get(), &byte, 1) != 1 ||
        !confine::become_inner() || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        ::getppid() != parent)  // only now: a change of uid clears it
      ::_exit(2);
    ::umask(077);
    const auto done = work();
    const std::string text = done ? *done : done.error().text();
    (void)!::write(said.second.get(), text.data(), text.size());
    ::_exit(done ? 0 : 1);
  }
  said.second.reset();
  ready.second.reset();
  char byte = 0;
  Status mapped = ::read(ready.first.get(), &byte, 1) == 1 ? confine::write_id_maps(pid, uid, uid)
                                                           : Status(fail(Code::unavailable, "no user namespace for the tenant"));
  if (mapped && ::write(go.second.get(), "g", 1) != 1) mapped = sys_error("write to the child");
  go.second.reset();  // else it would wait for ever
  auto text = sys::read_fd(said.first.get(), kMaxAnswer);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!mapped) return std::unexpected(std::move(mapped).error());
  if (!text) return text;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(Code::io, text->empty() ? "the tenant's child ended without a word" : *text);
  return text;
}

}  // namespace caisson::homes
