// caisson-egress door|dialer|opener: one of the processes between sessions and the outside. The launcher starts them through
// caisson-seal and gives each its line as descriptor 3 (common/egress/protocol.h). Each ends when that line does.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <optional>
#include <string_view>

#include "launcher/common/egress/protocol.h"
#include "launcher/egress/dialer/dialer.h"
#include "launcher/egress/door/door.h"
#include "launcher/egress/loop/poll.h"
#include "launcher/egress/opener/opener.h"
#include "launcher/egress/seal.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kOtherFiles = 256, kFilesPerConnection = 8;  // two ends, two pipes; one to a server that is kept

// As many files as the system gives. Sessions have no part in this limit.
std::size_t raise_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 0;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<std::size_t>(files.rlim_cur) : 0;
}

Status serve(std::string_view role) {
  Fd launcher(kLauncherFd);
  const std::size_t files = raise_files();
  // Not dumpable: who shares our uid cannot open what we hold. SIGPIPE: splice(2) has no flag against it.
  if (::fcntl(launcher.get(), F_SETFD, FD_CLOEXEC) != 0 || ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
      ::signal(SIGPIPE, SIG_IGN) == SIG_ERR || files <= kOtherFiles)
    return sys_error("set up");
  TRY_ASSIGN(const std::unique_ptr<Poll> poll, Poll::create());
  std::optional<Trust> trust;
  if (role == "opener") {
    TRY_ASSIGN(trust, Trust::load());  // of the system, while files can be read
  }
  TRY(seal());
  if (role == "door") {
    const Door door(*poll, std::move(launcher), (files - kOtherFiles) / kFilesPerConnection);
    return poll->run([&door] { return door.done(); });
  }
  if (trust) {
    const Opener opener(*poll, std::move(launcher), std::move(*trust), (files - kOtherFiles) / kFilesPerConnection);
    return poll->run([&opener] { return opener.done(); });
  }
  const Dialer dialer(*poll, std::move(launcher), NameFiles());
  return poll->run([&dialer] { return dialer.done(); });
}

}  // namespace
}  // namespace caisson::egress

int main(int argc, char** argv) {
  const std::string_view role = argc == 2 ? argv[1] : "";
  if (role != "door" && role != "dialer" && role != "opener")
    return std::fputs("usage: caisson-egress door|dialer|opener\n", stderr), 64;
  if (const caisson::Status served = caisson::egress::serve(role); !served)
    return std::fprintf(stderr, "caisson-egress %s: %s\n", argv[1], served.error().text().c_str()), 1;
  return 0;
}
