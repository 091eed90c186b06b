// Whether text can be searched for a secret, which is ASCII.
#pragma once

#include <string_view>

namespace caisson::egress {

// type: the value of a Content-Type. True where it names no set of characters, or only such as write ASCII as ASCII: not UTF-16,
// UTF-7, EBCDIC, and whatever else is not known.
[[nodiscard]] bool has_ascii(std::string_view type);

}  // namespace caisson::egress
