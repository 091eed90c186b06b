// Base64url without padding (RFC 4648 §5), as JWS uses it.
#pragma once

#include <string>
#include <string_view>

namespace caisson::attest {

inline constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

[[nodiscard]] std::string base64url(std::string_view bytes);

}  // namespace caisson::attest
