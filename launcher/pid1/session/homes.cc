#include "launcher/pid1/session/homes.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <memory>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"

namespace caisson::session {

Result<Homes> Homes::open(const std::string& path, const std::string& state) {
  TRY_ASSIGN(Fd own, sys::open(state, O_RDONLY | O_DIRECTORY));
  if (path.empty()) return Homes(path, Fd(), std::move(own));
  auto dir = sys::openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  struct stat st{};
  if (!dir) return std::unexpected(std::move(dir).error().wrap("the directory of workspaces"));
  if (::fstat(dir->get(), &st) != 0) return sys_error("stat " + quote(path));
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0 || !path.starts_with('/'))
    return fail(Code::permission_denied, "the directory of workspaces " + quote(path) +
                                             " must be an absolute path, belong to root and be closed to others (chmod 700)");
  if (::flock(dir->get(), LOCK_EX | LOCK_NB) != 0)
    return sys_error("lock the directory of workspaces " + quote(path) + ", which another launcher uses");
  return Homes(path, std::move(*dir), std::move(own));
}

void Homes::run(Loop& loop, std::vector<std::string> arguments, Done done, int directory) const {
  auto pipe = sys::pipe();
  auto started = pipe ? confine::start_helper({.file = "caisson-homes",
                                               .argv = std::move(arguments),
                                               .in = state_.get(),
                                               .out = pipe->second.get(),
                                               .fd3 = directory >= 0 ? directory : dir_.get()})
                      : std::unexpected(std::move(pipe).error());
  if (!started) return done(std::unexpected(std::move(started).error()));
  loop.on_exit(started->pid, [out = std::make_shared<Fd>(std::move(pipe->first)), done = std::move(done)](const ChildExit&) {
    (void)sys::set_nonblocking(out->get(), true);      // what it started may live on where the disk does not answer
    const auto text = sys::read_fd(out->get(), 4096);  // else its end, and that of what it started, is closed
    auto answer = text ? json::parse(*text) : std::unexpected(text.error());
    if (answer && answer->contains("error")) answer = fail(Code::io, answer->value("error", ""));
    done(std::move(answer));
  });
}

}  // namespace caisson::session
