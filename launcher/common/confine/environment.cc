#include "launcher/common/confine/environment.h"

#include <algorithm>

namespace caisson::session {

Result<std::vector<std::string>> make_environment(const policy::Environment& rules,
                                                  const std::map<std::string, std::optional<std::string>>& asked) {
  std::vector<std::string> out;
  out.reserve(rules.set.size() + asked.size());
  for (const auto& [name, value] : rules.set)
    if (!asked.contains(name)) out.push_back(name + "=" + value);
  for (const auto& [name, value] : asked) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return fail(Code::invalid_argument, "environment variable " + quote(name) + ": not a name");
    // "LD_*" names a prefix, anything else one variable.
    if (std::ranges::any_of(rules.client_deny, [&n = name](std::string_view p) {
          return p.ends_with('*') ? n.starts_with(p.substr(0, p.size() - 1)) : n == p;
        }))
      return fail(Code::permission_denied,
                  "environment variable " + quote(name) + " may not be set by a request (env.client_deny of the policy)");
    if (value) out.push_back(name + "=" + *value);
  }
  return out;
}

}  // namespace caisson::session
