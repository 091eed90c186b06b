// The posture score of a policy, every point of it accounted for, from the policy's canonical JSON (common/policy/in_force.h): so
// the caisson command has it from files and the agent from the launcher's answer, by the same rules. Pure; no part of the
// launcher.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"

namespace caisson {

// Taken from 100. The points weigh what an intruder in the session gains; they compare policies, and are no probability.
struct Deduction {
  int points;
  std::string field;
  std::string reason;
};
// The fields that points are taken for, and those that none are taken for. Every field of a policy is in one of them
// (compiler/summary.cc looks).
inline constexpr std::string_view kScored[] = {"/min_tier",
                                               "/require",
                                               "/disable",
                                               "/syscalls/allow",
                                               "/home",
                                               "/tmp",
                                               "/exec_writable",
                                               "/system_packages",
                                               "/proc_shared_fallback",
                                               "/grants",
                                               "/umask",
                                               "/network",
                                               "/egress",
                                               "/published_ports",
                                               "/api",
                                               "/limits/processes",
                                               "/limits/session_seconds",
                                               "/weaken",
                                               "/env/client_deny",
                                               "/audit/denials",
                                               "/audit/keep_days",
                                               "/audit/on_full"};
inline constexpr std::string_view kNotScored[] = {
    "/description",    "/why",       "/hide",     "/protect", "/protect_home",  "/files",       "/links",
    "/devices",        "/home_path", "/hostname", "/env/set", "/syscalls/deny", "/audit/paths", "/audit/max_bytes",
    "/egress_limits/", "/limits/"};  // the others of it
[[nodiscard]] constexpr bool score_knows(std::string_view field) {
  const auto is = [field](std::string_view one) { return one == field || (one.ends_with('/') && field.starts_with(one)); };
  return std::ranges::any_of(kScored, is) || std::ranges::any_of(kNotScored, is);
}

[[nodiscard]] std::vector<Deduction> deductions(const json::Value& policy);
[[nodiscard]] int score(const std::vector<Deduction>& deductions);

// {"value", "of", "deductions": [{"points", "field", "reason"}]}
[[nodiscard]] json::Value score_json(const json::Value& policy);

}  // namespace caisson
