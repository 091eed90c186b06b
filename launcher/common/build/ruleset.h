// The Landlock ruleset of a plan. Which rights a rule has is decided in compiler/landlock.h.
#pragma once

#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

// Makes the plan's ruleset with paths opened in the calling process's view. Returns its descriptor, or -1 with errno, *entry
// naming the rule that failed. init_fd: what every session may execute; -1: none.
[[nodiscard]] int make_ruleset(const builder::BuildPlan& plan, int init_fd, unsigned* entry);

}  // namespace caisson::confine
