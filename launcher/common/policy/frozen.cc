#include "launcher/common/policy/frozen.h"

namespace caisson::policy {

std::string frozen_mark() { return "caisson frozen 9 " CAISSON_VERSION; }

Result<LoadResult> thaw(std::string_view bytes) {
  if (bytes.size() > kMaxFrozen) return fail(Code::limit, "the policies take more than " + std::to_string(kMaxFrozen) + " bytes");
  Reader reader(bytes);
  std::string mark;
  LoadResult out;
  std::map<std::string, Policy> policies;
  reader(mark);
  if (mark != frozen_mark()) return fail(Code::invalid_argument, "these are not policies of this version");
  reader(out.problems, policies);
  if (!reader.whole() || out.problems.size() > kMaxProblems || out.problems.empty() == policies.empty())
    return fail(Code::invalid_argument, "the policies are incomplete or damaged");
  for (auto& [domain, policy] : policies) {
    if (policy.domain != domain) return fail(Code::invalid_argument, "the policies are incomplete or damaged");
    out.policies[domain] = std::make_shared<const Policy>(std::move(policy));
  }
  return out;
}

}  // namespace caisson::policy
