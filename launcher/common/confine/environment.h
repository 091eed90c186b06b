// The environment of a command: the policy's variables, then the request's, minus the names that the policy denies.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/policy/policy.h"

namespace caisson::session {

// asked: name -> value, or nullopt to unset a variable of the policy's. Errors: permission_denied naming a denied variable;
// invalid_argument for a name that is empty or has '=' or NUL.
[[nodiscard]] Result<std::vector<std::string>> make_environment(const policy::Environment& rules,
                                                                const std::map<std::string, std::optional<std::string>>& asked);

}  // namespace caisson::session
