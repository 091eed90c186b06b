// The agent's own seccomp program, compiled by caisson-seal and handed over in a sealed memfd. Loaded after everything is
// set up and before the first request: from then on there is no exec, no fork and no outgoing connection in this process.
#pragma once

#include "launcher/common/base/result.h"

namespace caisson {

// CAISSON_SECCOMP_FD names the descriptor. Without it the agent was not started by the launcher: an error.
[[nodiscard]] Status seal();

}  // namespace caisson
