// Residual risks of a tier, in words: entries of a plan that follow from the plan alone. Pure; for the planner.
#pragma once

#include <vector>

#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// What Landlock does not govern, and only a tree without the files stops. made: a workspace that somebody asked for.
[[nodiscard]] std::vector<Residual> residual_without_mounts(const policy::Policy& policy, bool made);
// What sessions see of the container by namespaces that they share with it. Needs the states of these mechanisms.
[[nodiscard]] std::vector<Residual> residual_of_shared_namespaces(const Plan& plan);
// Of the set nested-sandbox; nothing without it. Needs proc.
[[nodiscard]] std::vector<Residual> residual_of_nesting(const Plan& plan, const Place& place);

}  // namespace caisson::confine
