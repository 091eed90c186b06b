#include "launcher/common/confine/helper.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "launcher/common/base/sys.h"
#include "launcher/common/base/word.h"
#include "launcher/common/kernel/caps.h"
#include "launcher/common/kernel/raw.h"

namespace caisson::confine {
namespace {

std::vector<char*> words(std::vector<std::string>& from) {
  std::vector<char*> out;
  for (std::string& word : from) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// The last step of the child.
[[noreturn]] void become(pid_t parent, int program, const int (&fds)[3], char* const argv[], char* const envp[]) {
  constexpr int kLast = 3;
  const int executable = ::fcntl(program, F_DUPFD_CLOEXEC, 16), fd3 = ::fcntl(fds[2], F_DUPFD_CLOEXEC, 16);
  sigset_t none;
  sigemptyset(&none);
  if (executable < 0 || ::dup2(fds[1], 1) != 1 || ::dup2(fds[0], 0) != 0 || ::dup2(fd3, kLast) < 0 ||
      ::close_range(kLast + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0 || ::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 ||
      ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent)  // which may have ended before that call
    ::_exit(120);
  raw::execveat(executable, "", argv, envp, AT_EMPTY_PATH);
  ::_exit(124);
}

}  // namespace

int give_up(uid_t uid, bool change_uid, int landlock) {
  sigset_t none;
  sigemptyset(&none);
  const rlimit no_core{0, 0};
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 || ::setsid() < 0 || ::setrlimit(RLIMIT_CORE, &no_core) != 0) return 121;
  // Without CAP_SETPCAP the container's bounding set stays; no_new_privs below makes it moot.
  (void)caps_drop_bounding();
  if (change_uid && (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0))
    return 122;
  // Root that cannot be anybody else, and never has a capability, is as good as any other user.
  if ((::geteuid() == 0 && uid != 0 && (change_uid || !caps_never())) || !caps_drop_all() ||
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return 122;
  if (landlock >= 0 && raw::landlock_restrict_self(landlock) != 0) return 123;
  // Only now: a change of uid clears it.
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::chdir("/") != 0 ? 121 : 0;
}

std::vector<std::string> passed_on(std::string_view names) {
  std::vector<std::string> env;
  for (std::size_t i = 0; std::cmp_less(i, count_words(names)); ++i)
    if (const std::string name(word(names, i)); const char* value = std::getenv(name.c_str()))
      if (*value != '\0') env.push_back(name + "=" + value);
  return env;
}

Result<Running> start_helper(Helper helper) {
  TRY_ASSIGN(const Fd program, sys::open(sys::program_path(helper.file), O_PATH));
  TRY_ASSIGN(const Fd null, sys::open("/dev/null", O_RDWR));
  const auto or_null = [&null](int fd) { return fd >= 0 ? fd : null.get(); };
  const int fds[] = {or_null(helper.in), or_null(helper.out), or_null(helper.fd3)};
  helper.argv.insert(helper.argv.begin(), helper.file);
  const std::vector<char*> argv = words(helper.argv), envp = words(helper.env);
  int pidfd = -1;
  const pid_t parent = ::getpid(), pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) return sys_error("fork " + helper.file);
  if (pid == 0) {
    if (const int failed = helper.before ? helper.before() : 0; failed != 0) ::_exit(failed);
    become(parent, program.get(), fds, argv.data(), envp.data());
  }
  return Running{pid, Fd(pidfd)};
}

}  // namespace caisson::confine
