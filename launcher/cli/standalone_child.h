// Starting a session that shares nothing with others in one child of our own, without a builder: what `caisson run` does.
#pragma once

#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/confine/plan.h"
#include "launcher/common/confine/protect.h"
#include "launcher/common/confine/seccomp.h"

namespace caisson::confine {

struct Standalone {
  Fd status;  // StepRecords, then, at the exec of the first process, its end
  Fd child;   // pidfd of the session's first process
  pid_t child_pid = 0;
  Fd socket;  // to caisson-init
};

// As if every mechanism worked, but for what costs nothing to ask. For a caller that tries and, when a step fails, plans again
// from the real probe: nothing is ever believed without its post-condition.
[[nodiscard]] Features optimistic_features();

// init: what the first process executes. root_dir: any directory, covered in the child's own mount namespace.
[[nodiscard]] Result<Standalone> start_standalone(const Plan& plan, const Program& filter, const Protection& protection,
                                                  const std::string& init, const std::string& root_dir, uid_t uid, gid_t gid);

}  // namespace caisson::confine
