// What sets of system calls come to in one session, for whoever compiles a filter of them: no part of the launcher, which has
// their rules in bytes only.
#pragma once

#include <functional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "launcher/policy/in_force.h"

namespace caisson::policy {

// `sets` where only those hold that are `on`: the others allow nothing, and what they alone would have allowed is refused with
// EPERM.
[[nodiscard]] std::vector<SyscallSet> effective_sets(std::vector<SyscallSet> sets,
                                                     const std::function<bool(const SyscallSet&)>& on);
// policy.sets for a session in which `enforced` holds.
[[nodiscard]] std::vector<SyscallSet> effective_sets(const Policy& policy, const std::set<Mechanism>& enforced);

// Names that some set of `sets` allows. Views into `sets`.
[[nodiscard]] std::unordered_set<std::string_view> allowed_names(const std::vector<SyscallSet>& sets);

}  // namespace caisson::policy
