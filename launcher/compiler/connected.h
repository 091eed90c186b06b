// The calls of a session for which caisson-connector connects: which of them it is told of, and which are refused because they
// would send something past it.
#pragma once

#include "launcher/common/policy/policy.h"

namespace caisson::confine {

// In place of an errno in `pretend`: the filter answers nothing itself, and notifies the connector.
inline constexpr int kTold = -1;

[[nodiscard]] policy::SyscallSet connected_calls();

}  // namespace caisson::confine
