#include "launcher/common/confine/canary.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "launcher/common/base/result.h"
#include "launcher/common/base/word.h"
#include "launcher/common/confine/fork_refusal.h"

namespace caisson::confine {
namespace {

static_assert(count_words(init::kProbeNames) == init::kProbeCount);

// nullptr: this plan claims nothing that the probe could show.
const Claim* claim(const Plan& plan, std::size_t probe) {
  return probe < plan.claims.size() && plan.claims[probe] ? &*plan.claims[probe] : nullptr;
}

bool holds(const Claim& claim, const ProbeResult& result) {
  if (claim.value) return result.error == 0 && result.signal == 0 && result.value == *claim.value;
  const int answer = result.signal != 0 ? -result.signal : result.error;
  return answer != 0 && std::ranges::find(claim.accepted, answer) != claim.accepted.end();
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace

std::string probe_answer(const ProbeResult& result) {
  if (result.signal != 0) return signal_text(result.signal);
  return result.error != 0 ? std::string(errno_name(result.error)) : std::to_string(result.value);
}

std::optional<std::string> canary_fault(const Plan& plan, const ProbeResults& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto* c = claim(plan, i);
    if (c == nullptr || results[i].error == kNotAsked || holds(*c, results[i])) continue;
    std::string wanted;
    if (c->value) wanted = std::to_string(*c->value);
    for (const int answer : c->accepted)
      wanted += (wanted.empty() ? "" : " or ") + (answer < 0 ? signal_text(-answer) : std::string(errno_name(answer)));
    return std::string("canary ").append(word(init::kProbeNames, i)) + ": " + probe_answer(results[i]) + ", where " +
           std::string(mechanism_name(c->mechanism)) + " is to give " + wanted + fork_refusal(results[i].error);
  }
  return std::nullopt;
}

nlohmann::json canary_json(const Plan& plan, const ProbeResults& results) {
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const auto* c = claim(plan, i); c != nullptr && results[i].error != kNotAsked)
      out.push_back({{"probe", word(init::kProbeNames, i)},
                     {"mechanism", mechanism_name(c->mechanism)},
                     {"answer", probe_answer(results[i])}});
  return out;
}

}  // namespace caisson::confine
