// The posture score of a policy, every point of it accounted for, from the policy's canonical JSON (policy/in_force.h): so the
// caisson command has it from files and the agent from the launcher's answer, by the same rules. Pure; no part of the launcher.
#pragma once

#include <string>
#include <vector>

#include "launcher/base/json.h"

namespace caisson {

// Taken from 100. The points weigh what an intruder in the session gains; they compare policies, and are no probability.
struct Deduction {
  int points;
  std::string field;
  std::string reason;
};
[[nodiscard]] std::vector<Deduction> deductions(const json::Value& policy);
[[nodiscard]] int score(const std::vector<Deduction>& deductions);

// {"value", "of", "deductions": [{"points", "field", "reason"}]}
[[nodiscard]] json::Value score_json(const json::Value& policy);

}  // namespace caisson
