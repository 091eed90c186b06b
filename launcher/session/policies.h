// The launcher's side of caisson-policies, which reads policy files for it (reader/main.cc).
#pragma once

#include <string>

#include "launcher/base/task.h"
#include "launcher/policy/in_force.h"

namespace caisson::session {

// The policies of a directory, all or none. That the program gave no whole answer is a problem like one of the files'.
[[nodiscard]] Task<policy::LoadResult> read_policies(Loop& loop, std::string directory, std::string preset);

}  // namespace caisson::session
