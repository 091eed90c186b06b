// The two encodings in which JSON carries bytes. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::frames {

// RFC 4648, with or without padding; white space between characters is skipped. nullopt: the text is not base64.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);
// One byte for each character of UTF-8 text. nullopt: a character is beyond U+00FF.
[[nodiscard]] std::optional<std::string> latin1_encode(std::string_view utf8);

}  // namespace caisson::frames
