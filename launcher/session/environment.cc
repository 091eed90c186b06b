#include "launcher/session/environment.h"

#include <algorithm>

namespace caisson::session {
namespace {

// "LD_*" names a prefix, anything else one variable.
bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.ends_with('*')) return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  return name == pattern;
}

}  // namespace

Result<std::vector<std::string>> make_environment(const policy::Environment& rules,
                                                  const std::map<std::string, std::optional<std::string>>& asked) {
  std::vector<std::string> out;
  out.reserve(rules.set.size() + asked.size());
  for (const auto& [name, value] : rules.set)
    if (!asked.contains(name)) out.push_back(name + "=" + value);
  for (const auto& [name, value] : asked) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return fail(Code::invalid_argument, "environment variable " + quote(name) + ": not a name");
    if (std::ranges::any_of(rules.client_deny, [&n = name](const std::string& p) { return matches(p, n); }))
      return fail(Code::permission_denied,
                  "environment variable " + quote(name) + " may not be set by a request (env.client_deny of the policy)");
    if (value) out.push_back(name + "=" + *value);
  }
  return out;
}

}  // namespace caisson::session
