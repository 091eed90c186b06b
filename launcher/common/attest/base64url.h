// Base64url without padding (RFC 4648 §5), as JWS uses it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::attest {

inline constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

[[nodiscard]] std::string base64url(std::string_view bytes);
// nullopt: a character that does not belong, an impossible length, or left-over bits that are not zero, so that no two
// texts mean the same bytes.
[[nodiscard]] std::optional<std::string> from_base64url(std::string_view text);

}  // namespace caisson::attest
