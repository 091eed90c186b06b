// A policy as canonical JSON, which its digest is made of. Not part of the launcher.
#pragma once

#include <string>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/policy.h"

namespace caisson::policy {

// Everything in force, in the shape of a policy file plus the digests of its "sets".
[[nodiscard]] json::Value to_json(const Policy& policy);
[[nodiscard]] std::string digest_of(const Policy& policy);
// Of a grant's JSON that was validated.
[[nodiscard]] Grant build_grant(const json::Value& object);
[[nodiscard]] std::string octal_text(unsigned value);

}  // namespace caisson::policy
