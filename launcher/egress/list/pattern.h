// Which hosts a setting is about, as operators and clients write it: "example.org"; ".example.org", that one and the names below
// it; "*.example.org", those below it; an address; or a block of addresses, "10.0.0.0/8".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/prefix.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxPatterns = 256;

struct Pattern {
  std::string text;          // in its one form
  std::string name, suffix;  // the name itself; what names end with
  std::optional<Prefix> block;
};
// Errors (invalid_argument) say what is wrong with it.
[[nodiscard]] Result<Pattern> read_pattern(std::string_view text);
[[nodiscard]] bool matches(const Pattern& pattern, const Host& host);
[[nodiscard]] bool matches_any(const std::vector<Pattern>& patterns, const Host& host);

}  // namespace caisson::egress
