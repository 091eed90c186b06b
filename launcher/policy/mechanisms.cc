#include "launcher/policy/mechanisms.h"

#include "launcher/base/word.h"

namespace caisson {

static_assert(count_words(kTierNames) == static_cast<int>(Tier::t3) + 1);
static_assert(count_words(kMechanismNames) == kMechanismCount);

std::string_view tier_name(Tier tier) { return word(kTierNames, static_cast<std::size_t>(tier)); }
std::string_view mechanism_name(Mechanism m) { return word(kMechanismNames, static_cast<std::size_t>(m)); }

}  // namespace caisson
