#include "launcher/session/policies.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "launcher/base/sys.h"
#include "launcher/confine/fork.h"
#include "launcher/confine/helper.h"
#include "launcher/confine/raw.h"
#include "launcher/policy/frozen.h"

namespace caisson::session {
namespace {

constexpr int kDeadlineMs = 10'000;  // it takes some 20: the launcher waits for it

// Its answer is taken only when it has ended, and ended well: half of one is none.
Result<policy::LoadResult> run_reader(std::string directory, std::string preset) {
  TRY_ASSIGN(const Fd executable, sys::open(sys::program_path("caisson-policies"), O_PATH));
  TRY_ASSIGN(const Fd null, sys::open("/dev/null", O_RDWR));
  // It cannot grow: a program that writes without end fills nobody's memory.
  const Fd answer(::memfd_create("policies", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!answer || ::ftruncate(answer.get(), policy::kMaxFrozen) != 0 || ::fcntl(answer.get(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    return sys_error("memfd");
  std::string name = "caisson-policies";
  char* argv[] = {name.data(), directory.data(), preset.data(), nullptr};
  int pidfd = -1;
  const pid_t pid = raw::fork_into(&pidfd, -1);
  if (pid < 0) return sys_error("fork");
  if (pid == 0) confine::exec_helper({executable.get(), null.get(), answer.get(), null.get()}, argv, argv + 3);
  confine::Child child(pid, Fd(pidfd));
  pollfd ended{pidfd, POLLIN, 0};
  if (::poll(&ended, 1, kDeadlineMs) != 1) return fail(Code::timeout, "did not answer in time");
  const Fd reaped = child.release();
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return sys_error("wait");
  if (WIFSIGNALED(status)) return fail(Code::io, "was ended by signal " + std::to_string(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fail(Code::io, "ended with status " + std::to_string(WEXITSTATUS(status)));
  // What it wrote ends where it stopped: the position is of both.
  if (::ftruncate(answer.get(), ::lseek(answer.get(), 0, SEEK_CUR)) != 0 || ::lseek(answer.get(), 0, SEEK_SET) != 0)
    return sys_error("memfd");
  TRY_ASSIGN(const std::string bytes, sys::read_fd(answer.get(), policy::kMaxFrozen));
  return policy::thaw(bytes);
}

}  // namespace

policy::LoadResult read_policies(const std::string& directory, const std::string& preset) {
  auto read = run_reader(directory, preset);
  if (read) return std::move(*read);
  policy::LoadResult none;
  none.problems.push_back({directory, 0, "", "cannot be read: caisson-policies: " + read.error().text(), ""});
  return none;
}

}  // namespace caisson::session
