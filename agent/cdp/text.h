// JSON text of single values, for files that need no parser.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cdp {

// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace caisson::cdp
