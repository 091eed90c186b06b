// What a plan claims of each canary probe, for caisson-policies. canary.h compares the answers.
#pragma once

#include <optional>
#include <vector>

#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// By probe (common/wire/probes.h). nullopt: the plan claims nothing that the probe could show.
[[nodiscard]] std::vector<std::optional<Claim>> claims_of(const Plan& plan);

}  // namespace caisson::confine
