// The claims of a verified token (RFC 7519): when it is good, for whom, and what it permits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/auth/principal.h"

namespace caisson::auth {

struct ClaimRules {
  std::string issuer;    // CAISSON_JWT_ISSUER; empty: any
  std::string audience;  // CAISSON_JWT_AUDIENCE; empty: only a token that names none
};

inline constexpr std::int64_t kLeeway = 60;  // seconds by which two clocks may differ

// Permissions: `scope` (without one, everything) and `caisson_workspace`. A token without `exp` is refused. The principal's end
// is that of the token, with the leeway.
[[nodiscard]] Result<Principal> principal_of_claims(std::string_view payload, const ClaimRules& rules,
                                                    std::span<const std::string_view> areas, std::int64_t now);

}  // namespace caisson::auth
