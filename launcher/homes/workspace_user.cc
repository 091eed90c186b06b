#include "launcher/homes/workspace_user.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/user_ns.h"

namespace caisson::homes {
namespace {

constexpr std::size_t kMaxAnswer = 4096;
constexpr int kLookMs = 200;

// As effective uid only, so that nobody who has it can stop us.
bool become(uid_t uid) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(uid, uid, uid) == 0 &&
         ::setresuid(sys::kNobodysUid, uid, sys::kNobodysUid) == 0 && ::geteuid() == uid;
}

// Waits until the child has written something or has ended. Where the child has a user namespace, any process of the tenant's uid
// can stop it, and a stopped child is ended instead of waited for. WNOWAIT: a second call sees the same stop.
Status await(pid_t child, int fd) {
  pollfd one{fd, POLLIN, 0};
  for (int found = 0; (found = ::poll(&one, 1, kLookMs)) <= 0;) {
    if (found < 0 && errno != EINTR) return sys_error("poll");
    siginfo_t state{};
    if (::waitid(P_PID, static_cast<id_t>(child), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0 && state.si_pid == child)
      return fail(Code::unavailable, "the tenant's child was stopped");
  }
  return {};
}

Result<std::string> answer_of(pid_t child, int fd) {
  std::string text;
  for (char part[4096];;) {
    TRY(await(child, fd));
    const ssize_t n = ::read(fd, part, sizeof part);
    if (n < 0) return sys_error("read from the tenant's child");
    if (n == 0) return text;
    if (text.append(part, static_cast<std::size_t>(n)).size() > kMaxAnswer)
      return fail(Code::limit, "the tenant's child says too much");
  }
}

}  // namespace

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
    // Where there are no namespaces, we have what that uid has.
    const bool own = ::unshare(CLONE_NEWUSER) == 0;
    if (::write(ready.second.get(), own ? "r" : "u", 1) != 1 || ::read(go.first.get(), &byte, 1) != 1 ||
        !(own ? confine::become_inner() : become(uid)) || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
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
  Status mapped = await(pid, ready.first.get());
  if (mapped && ::read(ready.first.get(), &byte, 1) != 1) mapped = fail(Code::unavailable, "the tenant's child ended");
  if (mapped && byte == 'r') mapped = confine::write_id_maps(pid, uid, uid);
  if (mapped && ::write(go.second.get(), "g", 1) != 1) mapped = sys_error("write to the child");
  go.second.reset();  // else it would wait for ever
  Result<std::string> text = mapped ? answer_of(pid, said.first.get()) : std::unexpected(std::move(mapped).error());
  if (!text) (void)::kill(pid, SIGKILL);
  const int status = sys::reap(pid);
  if (!text) return text;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(Code::io, text->empty() ? "the tenant's child ended without a word, status " + std::to_string(status) : *text);
  return text;
}

}  // namespace caisson::homes
