// Plans made from policies, for caisson-policies and `caisson run`. Pure code, testable without root.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "launcher/common/confine/plan.h"

namespace caisson::confine {

// Errors: unavailable (min_tier or require[] cannot be met, naming what and which flag would help), invalid_argument (a
// nested grant that this tier cannot express). Never plans less than the policy demands.
[[nodiscard]] Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const policy::Policy> policy,
                                                            const Features& features, const Sources& sources, const Place& place);

// The same, for a caller that adds to the plan.
[[nodiscard]] Result<Plan> plan_of(std::shared_ptr<const policy::Policy> policy, const Features& features, const Sources& sources,
                                   const Place& place);

// What ask_plans() and ask_narrowed() (query.h) send, answered: any bytes at all, in bounded time and memory.
[[nodiscard]] std::string answer_plans(std::string_view request);
[[nodiscard]] std::string answer_narrowing(std::string_view request);

}  // namespace caisson::confine
