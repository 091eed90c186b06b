// The verifier's half of tokens (common/attest/token.h): only caisson-attest uses it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "launcher/common/base/result.h"

namespace caisson::attest {

// nullopt: a character that does not belong, an impossible length, or left-over bits that are not zero, so that no two
// texts mean the same bytes.
[[nodiscard]] std::optional<std::string> from_base64url(std::string_view text);

struct Expectation {
  std::optional<std::string> nonce;       // must be this one
  std::optional<std::int64_t> max_age_s;  // since "iat"; a token from the future (over a minute) is refused, too
  std::int64_t now_s = 0;
};
// The claims of a token that `jwk` signed and that is as expected. Errors: permission_denied saying what does not hold,
// protocol when the text is not a token.
[[nodiscard]] Result<nlohmann::json> open_token(std::string_view token, const nlohmann::json& jwk, const Expectation& expected);

}  // namespace caisson::attest
