#include "launcher/confine/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "launcher/base/sys.h"
#include "launcher/confine/helper.h"

namespace caisson::confine {
namespace {

Result<std::string> taken(const Fd& answer, std::size_t most) {
  // What it wrote ends where it stopped: the position is of both.
  if (::ftruncate(answer.get(), ::lseek(answer.get(), 0, SEEK_CUR)) != 0 || ::lseek(answer.get(), 0, SEEK_SET) != 0)
    return sys_error("memfd");
  return sys::read_fd(answer.get(), most);
}

}  // namespace

Result<std::string> ask(const Question& question) {
  const Fd request(::memfd_create("request", MFD_CLOEXEC));
  if (!request) return sys_error("memfd");
  TRY(sys::write_all(request.get(), question.request));
  // It cannot grow: a program that writes without end fills nobody's memory.
  const Fd answer(::memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!answer || ::lseek(request.get(), 0, SEEK_SET) != 0 || ::ftruncate(answer.get(), static_cast<off_t>(question.most)) != 0 ||
      ::fcntl(answer.get(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    return sys_error("memfd");
  std::vector<std::string> argv{question.program};
  argv.insert(argv.end(), question.arguments.begin(), question.arguments.end());
  TRY_ASSIGN(
      const Running running,
      start_helper(
          {.file = question.program, .argv = std::move(argv), .in = request.get(), .out = answer.get(), .fd3 = question.fd3}));
  pollfd ended{running.pidfd.get(), POLLIN, 0};
  if (::poll(&ended, 1, question.deadline_ms) != 1) {
    // The loop reaps it: one that waits for a dead disk does not end at once, and is not waited for.
    (void)sys::pidfd_send_signal(running.pidfd.get(), SIGKILL);
    return fail(Code::timeout, "did not answer in time");
  }
  int status = 0;
  if (::waitpid(running.pid, &status, 0) != running.pid) return sys_error("wait");
  if (WIFSIGNALED(status)) return fail(Code::io, "was ended by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fail(Code::io, "ended with status " + std::to_string(WEXITSTATUS(status)));
  return taken(answer, question.most);
}

}  // namespace caisson::confine
