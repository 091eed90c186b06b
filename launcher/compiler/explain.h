// What a policy means, for people and programs: `caisson policy explain DOMAIN [--json]`. Pure; everything that
// it says follows from the policy.
#pragma once

#include <string>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"

namespace caisson::policy {

// The policy's canonical JSON (in_force.h: to_json), in which a field that can have a reason is {value, meaning, why?}, and
// besides {digest, syscalls: {sets, denied}, posture, made_of, facts: [{topic, name, value, why}], score}.
[[nodiscard]] json::Value explain(const Policy& policy);
[[nodiscard]] std::string explain_text(const Policy& policy);

}  // namespace caisson::policy
