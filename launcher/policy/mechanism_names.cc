// Names as tiers and mechanisms: only what reads policies needs that (mechanisms.h).
#include "launcher/policy/mechanisms.h"

namespace caisson {

std::optional<Tier> tier_from(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(Tier::t3); ++i)
    if (tier_name(static_cast<Tier>(i)) == text) return static_cast<Tier>(i);
  return std::nullopt;
}

std::optional<Mechanism> mechanism_from(std::string_view text) {
  for (int i = 0; i < kMechanismCount; ++i)
    if (mechanism_name(static_cast<Mechanism>(i)) == text) return static_cast<Mechanism>(i);
  return std::nullopt;
}

}  // namespace caisson
