#include "launcher/confine/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include "launcher/base/sys.h"
#include "launcher/confine/fork.h"
#include "launcher/confine/helper.h"
#include "launcher/confine/raw.h"

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
  TRY_ASSIGN(const Fd executable, sys::open(sys::program_path(question.program), O_PATH));
  TRY_ASSIGN(const Fd null, sys::open("/dev/null", O_RDWR));
  const Fd request(::memfd_create("request", MFD_CLOEXEC));
  if (!request) return sys_error("memfd");
  TRY(sys::write_all(request.get(), question.request));
  // It cannot grow: a program that writes without end fills nobody's memory.
  const Fd answer(::memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!answer || ::lseek(request.get(), 0, SEEK_SET) != 0 || ::ftruncate(answer.get(), static_cast<off_t>(question.most)) != 0 ||
      ::fcntl(answer.get(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    return sys_error("memfd");
  std::vector<std::string> words{question.program};
  words.insert(words.end(), question.arguments.begin(), question.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) return sys_error("fork");
  if (pid == 0)
    exec_helper({executable.get(), request.get(), answer.get(), question.fd3 >= 0 ? question.fd3 : null.get()}, argv.data(),
                argv.data() + words.size());
  Child child(pid, Fd(pidfd));
  pollfd ended{pidfd, POLLIN, 0};
  const bool in_time = ::poll(&ended, 1, question.deadline_ms) == 1;
  const Fd process = child.release();
  if (!in_time) {
    // The loop reaps it: one that waits for a dead disk does not end at once, and is not waited for.
    (void)sys::pidfd_send_signal(process.get(), SIGKILL);
    return fail(Code::timeout, "did not answer in time");
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return sys_error("wait");
  if (WIFSIGNALED(status)) return fail(Code::io, "was ended by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fail(Code::io, "ended with status " + std::to_string(WEXITSTATUS(status)));
  return taken(answer, question.most);
}

}  // namespace caisson::confine
