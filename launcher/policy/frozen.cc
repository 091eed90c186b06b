#include "launcher/policy/frozen.h"

#include "launcher/base/hash.h"
#include "launcher/base/json.h"

namespace caisson::policy {

std::string frozen_mark() { return "caisson frozen 4 " CAISSON_VERSION; }

Result<LoadResult> thaw(std::string_view bytes) {
  if (bytes.size() > kMaxFrozen) return fail(Code::limit, "the policies take more than " + std::to_string(kMaxFrozen) + " bytes");
  Reader reader(bytes);
  std::string mark;
  LoadResult out;
  std::map<std::string, Policy> policies;
  reader(mark);
  if (mark != frozen_mark()) return fail(Code::invalid_argument, "these are no policies of this version");
  reader(out.problems, policies);
  if (!reader.whole() || out.problems.size() > kMaxProblems || out.problems.empty() == policies.empty())
    return fail(Code::invalid_argument, "these are no whole policies");
  for (auto& [domain, policy] : policies) {
    if (policy.domain != domain || policy.digest != sha256_hex(json::dump(to_json(policy))))
      return fail(Code::invalid_argument, "policy " + quote(domain, 64) + " is not what its digest says");
    out.policies[domain] = std::make_shared<const Policy>(std::move(policy));
  }
  return out;
}

}  // namespace caisson::policy
