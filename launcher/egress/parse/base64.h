// Base64 (RFC 4648 4), as Basic has it and as secrets are written by others.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::egress {

[[nodiscard]] std::string base64(std::string_view bytes);
// With its padding, and with no bits that the last digit does not need: each text has one form. nullopt: it is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace caisson::egress
