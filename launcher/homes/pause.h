// A cgroup's freezer and what stands in for it: stops every process of some sessions, what they fork meanwhile too, and lets
// them go on.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/common/base/json.h"

namespace caisson::homes {

// roots: the sessions' first processes. {"stopped", "left"}: how many; what continue_all() needs, of whom their own users had
// stopped. When it answers, none of them runs or can fork. Error: timeout, and then all go on as before.
[[nodiscard]] Result<json::Value> stop_all(const std::vector<pid_t>& roots);
// Whom stop_all() has left alone stays as it is.
[[nodiscard]] Result<json::Value> continue_all(const std::vector<pid_t>& roots, const std::string& left);
// The freezer itself. When it answers, the kernel has said that it is done. Error: timeout, and then it goes on as before.
[[nodiscard]] Result<json::Value> freeze_all(int cgroup, bool freeze);

}  // namespace caisson::homes
