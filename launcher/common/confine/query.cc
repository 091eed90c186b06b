#include "launcher/common/confine/query.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/helper.h"

namespace caisson::confine {
namespace {

Result<std::string> taken(const Fd& answer, std::size_t most) {
  // What it wrote ends where it stopped: the position is of both.
  if (::ftruncate(answer.get(), ::lseek(answer.get(), 0, SEEK_CUR)) != 0 || ::lseek(answer.get(), 0, SEEK_SET) != 0)
    return sys_error("memfd");
  return sys::read_fd(answer.get(), most);
}

}  // namespace

Task<Result<std::string>> ask(Loop& loop, Question question) {
  const Fd request(::memfd_create("request", MFD_CLOEXEC));
  if (!request) co_return sys_error("memfd");
  CO_TRY(sys::write_all(request.get(), question.request));
  // It cannot grow: a program that writes without end fills nobody's memory.
  const Fd answer(::memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!answer || ::lseek(request.get(), 0, SEEK_SET) != 0 || ::ftruncate(answer.get(), static_cast<off_t>(question.most)) != 0 ||
      ::fcntl(answer.get(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    co_return sys_error("memfd");
  Helper helper{
      .file = question.program, .argv = question.arguments, .in = request.get(), .out = answer.get(), .fd3 = question.fd3};
  CO_TRY_ASSIGN(const Running running, start_helper(std::move(helper)));
  const auto exit = co_await Exit(loop, running.pid, sys::monotonic_us() + question.deadline_ms * std::int64_t{1000});
  if (!exit) {
    // One that waits for a dead disk does not end at once, and is not waited for.
    (void)sys::pidfd_send_signal(running.pidfd.get(), SIGKILL);
    co_return fail(Code::timeout, "did not answer in time");
  }
  if (exit->signaled) co_return fail(Code::io, "was ended by signal " + std::to_string(exit->status));
  if (exit->status != 0) co_return fail(Code::io, "ended with status " + std::to_string(exit->status));
  co_return taken(answer, question.most);
}

}  // namespace caisson::confine
