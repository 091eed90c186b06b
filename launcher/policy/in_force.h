// What the launcher does with frozen policies: what a request may take away, what holds in a tier, what the log and the digest
// say. Reading policy files is load.h, and no part of the launcher.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launcher/base/result.h"
#include "launcher/policy/policy.h"

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

// Applies a request to a policy. Errors: permission_denied when it would widen, naming what and where.
[[nodiscard]] Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by);

// A Narrowing from an IPC request's or CLI's JSON: {"grants":[...],"limits":{...},"home":"private",...}.
[[nodiscard]] Result<Narrowing> parse_narrowing(const nlohmann::json& object);

// A canonical JSON of everything in force, in the shape of a policy file plus the digests of its "sets".
[[nodiscard]] nlohmann::json to_json(const Policy& policy);

// Without a mount namespace (T0, T1) only Landlock enforces grants, and it cannot take away below a directory what it gave
// on it. These are the grants that such a tier cannot express: a session must not start there with any of them.
[[nodiscard]] std::vector<Problem> landlock_conflicts(const Policy& policy);

// Whether a set allows anything in a session in which `enforced` holds: not where its `needs` is missing, or is net_ns while the
// policy says network none.
[[nodiscard]] bool applies(const SyscallSet& set, Network network, const std::set<Mechanism>& enforced);

// Of a grant's JSON that was validated.
[[nodiscard]] Grant build_grant(const nlohmann::json& object);
// The grant that rules `path`: the longest at or above it; nullptr: none.
[[nodiscard]] const Grant* ruling_grant(const std::vector<Grant>& grants, std::string_view path);
// Whether `inner`, at or below `outer`, gives no more than `outer` does: access, execution and the same source.
[[nodiscard]] bool no_more_than(const Grant& inner, const Grant& outer);
// The home and /tmp, as if they were granted from themselves.
[[nodiscard]] std::vector<Grant> own_places(const Policy& policy);
[[nodiscard]] std::string octal_text(unsigned value);

}  // namespace caisson::policy
