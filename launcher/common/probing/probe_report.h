// What was found, for people and records; but for the cgroup, of which only the launcher can tell.
#pragma once

#include <string>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/confine/features.h"

namespace caisson::confine {

[[nodiscard]] json::Value report_of(const Features& features);
// For each wall that is missing: its name, the reason, and what raises it (one sentence each).
[[nodiscard]] std::vector<std::string> missing_walls(const Features& features);

}  // namespace caisson::confine
