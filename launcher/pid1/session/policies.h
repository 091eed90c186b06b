// The launcher's side of caisson-policies, which reads policy files for it (compiler/main.cc).
#pragma once

#include "launcher/common/base/task.h"
#include "launcher/common/policy/in_force.h"

namespace caisson::session {

struct Settings;

// The policies, all or none. That the program gave no whole answer is a problem like one of the files'. s: outlives it.
[[nodiscard]] Task<policy::LoadResult> read_policies(Loop& loop, const Settings& s);

}  // namespace caisson::session
