#include "launcher/session/homes.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <memory>

#include "launcher/base/homes_protocol.h"
#include "launcher/base/sys.h"
#include "launcher/confine/helper.h"
#include "launcher/confine/raw.h"

namespace caisson::session {

Result<Homes> Homes::open(const std::string& path) {
  auto dir = sys::openat2(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
  struct stat st{};
  if (!dir) return std::unexpected(std::move(dir).error().wrap("the directory of workspaces"));
  if (::fstat(dir->get(), &st) != 0) return sys_error("stat " + quote(path));
  if (st.st_uid != ::geteuid() || (st.st_mode & 077) != 0 || !path.starts_with('/'))
    return fail(Code::permission_denied, "the directory of workspaces " + quote(path) +
                                             " must be an absolute path, belong to root and be closed to others (chmod 700)");
  if (::flock(dir->get(), LOCK_EX | LOCK_NB) != 0)
    return sys_error("lock the directory of workspaces " + quote(path) + ", which another launcher uses");
  return Homes(path, std::move(*dir));
}

Result<pid_t> Homes::start(std::vector<std::string> arguments, const Fd& out) const {
  TRY_ASSIGN(const Fd executable, sys::open(sys::program_path("caisson-homes"), O_PATH));
  TRY_ASSIGN(const Fd null, sys::open("/dev/null", O_RDWR));
  arguments.insert(arguments.begin(), "caisson-homes");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) return sys_error("fork caisson-homes");
  if (pid == 0) confine::exec_helper({executable.get(), null.get(), out.get(), dir_.get()}, argv.data(), &argv.back());
  ::close(pidfd);
  return pid;
}

void Homes::run(Loop& loop, std::vector<std::string> arguments, Done done) const {
  auto pipe = sys::pipe();
  auto pid = pipe ? start(std::move(arguments), pipe->second) : std::unexpected(std::move(pipe).error());
  if (!pid) return done(std::unexpected(std::move(pid).error()));
  loop.on_exit(*pid, [out = std::make_shared<Fd>(std::move(pipe->first)), done = std::move(done)](const ChildExit&) {
    const auto text = sys::read_fd(out->get(), 4096);  // its end, and that of what it started, is closed
    auto answer = text ? json::parse(*text) : std::unexpected(text.error());
    if (answer && answer->contains("error")) answer = fail(Code::io, answer->value("error", ""));
    done(std::move(answer));
  });
}

}  // namespace caisson::session
