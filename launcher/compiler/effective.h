// The sets of system calls that are in force in one session, for the programs that compile filters. Not part of the launcher,
// which has the rules only as bytes.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "launcher/common/policy/in_force.h"

namespace caisson::policy {

// The set with which programs make user namespaces to sandbox themselves in. Another set that allows it ends at the canary.
inline constexpr const char* kNestedSet = "nested-sandbox";
[[nodiscard]] inline bool nests(const Policy& policy) {
  return std::ranges::find(policy.syscalls.allow, kNestedSet) != policy.syscalls.allow.end();
}

// `sets` with only those that are `on` in force. The others allow nothing: calls that only they allow are refused with EPERM.
[[nodiscard]] std::vector<SyscallSet> effective_sets(std::vector<SyscallSet> sets,
                                                     const std::function<bool(const SyscallSet&)>& on);
// policy.sets for a session in which `enforced` holds.
[[nodiscard]] std::vector<SyscallSet> effective_sets(const Policy& policy, const std::set<Mechanism>& enforced);

// Names that some set of `sets` allows. Views into `sets`.
[[nodiscard]] std::unordered_set<std::string_view> allowed_names(const std::vector<SyscallSet>& sets);

}  // namespace caisson::policy
