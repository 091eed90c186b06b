#include "launcher/compiler/effective.h"

#include <algorithm>

namespace caisson::policy {

std::unordered_set<std::string_view> allowed_names(const std::vector<SyscallSet>& sets) {
  std::unordered_set<std::string_view> out;
  for (const SyscallSet& set : sets)
    for (const SyscallRule& rule : set.allow) out.insert(rule.name);
  return out;
}

std::vector<SyscallSet> effective_sets(std::vector<SyscallSet> sets, const std::function<bool(const SyscallSet&)>& on) {
  std::vector<SyscallSet> in_force;
  std::ranges::copy_if(sets, std::back_inserter(in_force), on);
  const auto allowed = allowed_names(in_force);
  for (SyscallSet& set : sets) {
    if (on(set)) continue;
    for (const SyscallRule& rule : set.allow)
      if (!allowed.contains(rule.name)) {
        set.refuse.push_back(rule.name);
        if (set.needs) set.refuse_why[rule.name] = "needs " + std::string(mechanism_name(*set.needs));
      }
    set.allow.clear();
  }
  return sets;
}

std::vector<SyscallSet> effective_sets(const Policy& policy, const std::set<Mechanism>& enforced) {
  return effective_sets(policy.sets, [&](const SyscallSet& set) { return applies(set, policy.network, enforced); });
}

}  // namespace caisson::policy
