// Whether a narrowed policy or plan allows more than its domain's. Pure. The launcher asks before it uses what another program
// made of a request that comes from the agent. Rules stand in tables with one row for each member: one without a row does not
// compile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// The first field in which `narrowed` allows more. A policy's are JSON pointers: "/limits/processes". What a policy's grants
// leave out of a grant around them is the plan's matter.
[[nodiscard]] std::optional<std::string> wider(const policy::Policy& narrowed, const policy::Policy& domain);
// A plan that states fewer residual risks counts as wider, too. Its policy is compared first: "policy/limits/processes".
[[nodiscard]] std::optional<std::string> wider(const Plan& narrowed, const Plan& domain);
// The names of a plan's rules, in the order of its members, for tests.
[[nodiscard]] std::vector<std::string> plan_rules();

}  // namespace caisson::confine
