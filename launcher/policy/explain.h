// What a policy means, for people and programs: `caisson policy explain DOMAIN [--json]`. Pure; says nothing that the policy
// itself does not hold.
#pragma once

#include <string>

#include "launcher/base/json.h"
#include "launcher/policy/policy.h"

namespace caisson::policy {

// {domain, description, digest, min_tier, require, disable, weaken, see: [{path, access, execute, required, source?, why}], made,
// hidden, home, tmp, devices, network, limits: {name: {value, why?, meaning}}, env, syscalls: {sets, denied}, posture: [...]}.
[[nodiscard]] json::Value explain(const Policy& policy);
[[nodiscard]] std::string explain_text(const Policy& policy);

}  // namespace caisson::policy
