// UTF-8 (RFC 3629). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::display {

// nullopt: not UTF-8 (overlong, surrogate, beyond U+10FFFF or cut short).
[[nodiscard]] std::optional<std::u32string> decode_utf8(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);
// ISO 8859-1 and back; a character that it lacks becomes '?'.
[[nodiscard]] std::string to_latin1(std::string_view utf8);
[[nodiscard]] std::string from_latin1(std::string_view latin1);

}  // namespace caisson::display
