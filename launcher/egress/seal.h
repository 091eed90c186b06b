// The process's own seccomp program, which caisson-seal has compiled and handed over in a sealed memory file
// (launcher/seal/services). Loaded after everything is set up and before the first order.
#pragma once

#include "launcher/common/base/result.h"

namespace caisson::egress {

// CAISSON_SECCOMP_FD names the descriptor. Without it this was not started by caisson-seal: an error.
[[nodiscard]] Status seal();

}  // namespace caisson::egress
