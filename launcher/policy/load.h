// Reads a policy directory (base.json, <domain>.json, seccomp/<set>.json, presets/<preset>.json) into frozen Policies. All
// problems of all files are collected, so that one run shows everything that is wrong.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
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

struct Choice {
  std::string only;    // no other domain is read: what one command needs, faster
  std::string preset;  // laid over every domain; empty: none
};

// Every *.json of `directory` but base.json, which the domains extend, and schema.json is a domain.
[[nodiscard]] LoadResult load_directory(const std::string& directory, const Choice& choice = {});

// Applies a request to a policy. Errors: permission_denied when it would widen, naming what and where.
[[nodiscard]] Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by);

// A Narrowing from an IPC request's or CLI's JSON: {"grants":[...],"limits":{...},"home":"private",...}.
[[nodiscard]] Result<Narrowing> parse_narrowing(const nlohmann::json& object);

// A canonical JSON of everything in force, in the shape of a policy file plus the digests of its "sets".
[[nodiscard]] nlohmann::json to_json(const Policy& policy);

// Without a mount namespace (T0, T1) only Landlock enforces grants, and it cannot take away below a directory what it gave
// on it. These are the grants that such a tier cannot express: a session must not start there with any of them.
[[nodiscard]] std::vector<Problem> landlock_conflicts(const Policy& policy);

// policy.sets for a session in which `enforced` holds: a set whose `needs` is missing there (or is net_ns while the policy says
// network none) allows nothing, and what it alone would have allowed is refused with EPERM.
[[nodiscard]] std::vector<SyscallSet> effective_sets(const Policy& policy, const std::set<Mechanism>& enforced);

}  // namespace caisson::policy
