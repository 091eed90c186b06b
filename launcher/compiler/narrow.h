// Policies narrowed by requests, and the grants that a tier cannot narrow. Not part of the launcher.
#pragma once

#include <memory>
#include <vector>

#include "launcher/common/base/json.h"
#include "launcher/common/policy/in_force.h"

namespace caisson::policy {

// Applies a request to a policy. Errors: permission_denied when it would widen, naming what and where.
[[nodiscard]] Result<std::shared_ptr<const Policy>> narrow(const std::shared_ptr<const Policy>& policy, const Narrowing& by);

// A Narrowing from an IPC request's or CLI's JSON: {"grants":[...],"limits":{...},"home":"private",...}.
[[nodiscard]] Result<Narrowing> parse_narrowing(const json::Value& object);

// Without a mount namespace (T0, T1) only Landlock enforces grants, and it cannot take away, below a directory, a right that it
// gave on the directory. These grants need that: with any of them no session starts in such a tier.
[[nodiscard]] std::vector<Problem> landlock_conflicts(const Policy& policy);

// The home and /tmp, as if they were granted from themselves.
[[nodiscard]] std::vector<Grant> own_places(const Policy& policy);

}  // namespace caisson::policy
