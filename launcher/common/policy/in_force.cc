#include "launcher/common/policy/in_force.h"

#include "launcher/common/policy/text_checks.h"

namespace caisson::policy {
std::string Problem::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line);
  if (!pointer.empty()) out += (out.empty() ? "" : " ") + pointer;
  if (!out.empty()) out += ": ";
  out += what;
  if (!meant.empty()) out += "; meant " + quote(meant) + "?";
  return out;
}

const Grant* ruling_grant(const std::vector<Grant>& grants, std::string_view path) {
  const Grant* best = nullptr;
  for (const Grant& grant : grants)
    if (inside(path, grant.path) && (best == nullptr || grant.path.size() > best->path.size())) best = &grant;
  return best;
}

bool no_more_than(const Grant& inner, const Grant& outer) {
  return (inner.access == Access::read || outer.access == Access::read_write) && (!inner.execute || outer.execute) &&
         inner.source == outer.source + inner.path.substr(outer.path.size());
}

bool applies(const SyscallSet& set, Network network, const std::set<Mechanism>& enforced) {
  return !set.needs || (enforced.contains(*set.needs) && (*set.needs != Mechanism::net_ns || network != Network::none));
}

}  // namespace caisson::policy
