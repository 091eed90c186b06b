// The Landlock ruleset of a plan. Which rights a rule has is decided in compiler/landlock.h.
#pragma once

#include "launcher/common/build/child.h"

namespace caisson::confine {

// Makes the ruleset of args.plan, with paths opened in the calling process's view, and adds what every session may execute
// (args.init_exe). Returns its descriptor. A failure, of the step landlock_rules, names the rule and ends the caller.
[[nodiscard]] int make_ruleset(const ChildArgs& args, StepWriter& steps);

}  // namespace caisson::confine
