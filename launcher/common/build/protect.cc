#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/prctl.h>

#include "launcher/common/build/child.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"

namespace caisson::confine {
namespace {

// Not root, it has after an exec what is ambient and no more: to mount, and to read what the session's user may open to itself.
[[noreturn]] void become_protector(const ChildArgs& args) {
  constexpr std::uint32_t kCaps = 1U << CAP_SYS_ADMIN | 1U << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct caps[2] = {{kCaps, kCaps, kCaps}, {}};
  char name[] = "caisson-protect", what[] = "session";
  char *argv[] = {name, what, nullptr}, *envp[] = {nullptr};
  if (::syscall(SYS_capset, &header, caps) == 0 && ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) == 0 &&
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0 && ::dup2(args.notes, 0) == 0 &&
      ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    raw::execveat(args.protect, "", argv, envp, AT_EMPTY_PATH);
  ::_exit(1);
}

}  // namespace

// When all other mounts are made: runs caisson-protect, and waits.
void protect_names(const ChildArgs& args, StepWriter& steps) {
  if (args.notes < 0) return;
  const pid_t pid = faults::skip("protect_names") ? -1 : raw::fork_with(0);
  if (pid == 0) become_protector(args);
  if (!faults::skip("protect_names") && (pid < 0 || wait_for(pid) != 0)) steps.failed(Step::protect, EIO);
  steps.done(Step::protect);
}

}  // namespace caisson::confine
