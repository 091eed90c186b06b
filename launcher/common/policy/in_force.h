// What the launcher knows of frozen policies. load.h reads policy files and narrow.h narrows policies, in another program.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/policy/policy.h"

namespace caisson::policy {

// "policies/bash.json:41 /grants/3/path: path is not canonical: '/srv/../etc'; meant '/etc'?"
struct Problem {
  std::string file;
  int line = 0;         // 1-based; 0: unknown
  std::string pointer;  // RFC 6901
  std::string what;     // what is wrong and why
  std::string meant;    // suggestion, or empty
  [[nodiscard]] std::string text() const;
};

using PolicySet = std::map<std::string, std::shared_ptr<const Policy>>;  // by domain

struct LoadResult {
  PolicySet policies;  // empty when there are problems: a set is taken whole or not at all
  std::shared_ptr<const Policy> base;
  std::vector<Problem> problems;  // at most kMaxProblems; the last one then says how many more
};
inline constexpr std::size_t kMaxProblems = 20;

// Whether a set allows anything in a session in which `enforced` holds: not where its `needs` is missing, or is net_ns while the
// policy says network none.
[[nodiscard]] bool applies(const SyscallSet& set, Network network, const std::set<Mechanism>& enforced);

// The grant that rules `path`: the longest at or above it; nullptr: none.
[[nodiscard]] const Grant* ruling_grant(const std::vector<Grant>& grants, std::string_view path);
// Whether `inner`, at or below `outer`, gives no more than `outer` does: access, execution and the same source.
[[nodiscard]] bool no_more_than(const Grant& inner, const Grant& outer);

// Whether sessions of the domain reach more than each other: what, says `egress`.
[[nodiscard]] inline bool goes_out(const Policy& policy) { return goes_out(policy.network); }

}  // namespace caisson::policy
