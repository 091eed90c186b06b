// What a statement says of the front door: whom the agent serves without a key. The agent reads the same settings with a parser
// of its own, so nothing is left out here because it looks wrong: what is no address is quoted as it was given.
#pragma once

#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson {

// auth: CAISSON_AUTH, peers: CAISSON_TRUSTED_PEERS. {"key_required", "trusted_peers": {"count", "ranges"}}: each range once, in
// order, in its one spelling; at most 64 of them are named.
[[nodiscard]] json::Value front_door(std::string_view auth, std::string_view peers);

}  // namespace caisson
