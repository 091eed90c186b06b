// Whether the canary probes (common/wire/probes.h) gave in a session what its plan claims (claims.h). A claim of the report that
// a probe contradicts is not reported: the policy is refused. "Accepted" answers are those of the mechanism that is claimed; an
// answer that an unconfined process would get as well proves nothing and is marked so.
#pragma once

#include <array>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "launcher/common/confine/plan.h"
#include "launcher/common/wire/probes.h"

namespace caisson::confine {

struct ProbeResult {
  int error = 0;   // errno; 0: it succeeded; kNotAsked
  int value = 0;   // what it returned then
  int signal = 0;  // which ended it
};
// The answer would say nothing, so nothing is claimed by it.
inline constexpr int kNotAsked = -1;
using ProbeResults = std::array<ProbeResult, init::kProbeCount>;

// "EPERM", "SIGSYS", "0".
[[nodiscard]] std::string probe_answer(const ProbeResult& result);
// The first probe whose result is not what the plan claims: "canary unshare_user: 0, where seccomp is to answer EPERM".
[[nodiscard]] std::optional<std::string> canary_fault(const Plan& plan, const ProbeResults& results);
// [{"probe", "mechanism", "answer"}], the probes that this plan claims something of.
[[nodiscard]] nlohmann::json canary_json(const Plan& plan, const ProbeResults& results);

}  // namespace caisson::confine
