// Where the values of a document stand in its text, for messages about policy files. Not for PID 1, which reads none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/json.h"

namespace caisson::json {

// Line numbers (from 1) of each value, by JSON pointer ("" is the document).
using Lines = std::map<std::string, int, std::less<>>;

// One reference token of a JSON pointer (RFC 6901): "~" and "/" escaped.
[[nodiscard]] inline std::string pointer_token(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') out += "~0";
    else if (c == '/') out += "~1";
    else out += c;
  }
  return out;
}

// As parse(). The lines are those of what was read, also where an error stops it.
[[nodiscard]] inline Result<Value> parse_with_lines(std::string_view text, const Bounds& bounds, Lines& lines) {
  std::vector<std::string> above;  // the pointers of what the value is in
  return parse(text, bounds, [&](std::size_t depth, std::string_view token, int line) {
    above.resize(depth);
    above.push_back(depth == 0 ? "" : above.back() + "/" + pointer_token(token));
    lines[above.back()] = line;
  });
}

}  // namespace caisson::json
