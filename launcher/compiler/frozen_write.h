// Whole policies and the rules of system calls as bytes: for caisson-policies and the cache of `caisson run`, no part of the
// launcher.
#pragma once

#include "launcher/common/policy/frozen.h"

namespace caisson::policy {

template <class A>
void members(A& a, ArgRule& r) {
  a(r.index, r.op, r.value, r.mask);
}
template <class A>
void members(A& a, SyscallRule& r) {
  a(r.name, r.any_of, r.refuse_if, r.why);
}
template <class A>
void members(A& a, Pretence& p) {
  a(p.name, p.error, p.when);
}

// What thaw() reads. `base` stays behind: no session runs under it.
[[nodiscard]] inline std::string freeze(const LoadResult& loaded) {
  std::map<std::string, Policy> policies;
  for (const auto& [domain, policy] : loaded.policies)
    for (SyscallSet& set : (policies[domain] = *policy).sets)
      if (set.rules.empty()) {
        Writer rules;
        rules(set.allow, set.refuse, set.refuse_why, set.pretend);
        set.rules = std::move(rules.bytes);
      }
  Writer writer;
  writer(frozen_mark(), loaded.problems, policies);
  return std::move(writer.bytes);
}

// Reads the rules of a frozen set. False: the bytes are malformed.
[[nodiscard]] inline bool thaw_rules(SyscallSet& set) {
  Reader reader(set.rules);
  reader(set.allow, set.refuse, set.refuse_why, set.pretend);
  return reader.whole();
}

}  // namespace caisson::policy
