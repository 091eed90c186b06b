// An action as it is asked for: the members of a head and a text, checked. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/display/x_server.h"
#include "agent/frames/display_protocol.h"

namespace caisson::display {

struct ActionAsked {
  frames::Action action{};
  std::optional<Point> at;  // a place, or an offset
  int button = 1;           // X's number
  int clicks = 1;
  int dx = 0, dy = 0;
  bool use_clipboard = true;
  std::u32string typed;           // of TYPING without the clipboard
  std::string text;               // of TYPING with it
  std::vector<std::string> keys;  // one, or those of a HOTKEY
  std::int64_t wait_us = 0;
};

// invalid_argument, naming the member: unknown, missing, or out of range. The operation's own members are known to be there.
[[nodiscard]] Result<ActionAsked> parse_action(const json::Value& head, std::string body);

// An integer from `least` to `most`; `otherwise` where it is absent or null.
[[nodiscard]] Result<std::int64_t> integer_within(const json::Value& head, std::string_view name, std::int64_t least,
                                                  std::int64_t most, std::int64_t otherwise);

}  // namespace caisson::display
