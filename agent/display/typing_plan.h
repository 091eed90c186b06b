// How a text is typed key by key: the strokes, and which spare keys are bound to what the layout lacks. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/display/keymap.h"

namespace caisson::display {

// A program learns of a new binding late: it reads the map when the notice comes to it. Rebound sooner than this after its last
// stroke, a key gives the new character for the old stroke. Microseconds: Chromium and xterm take 60 ms, on a busy host more.
inline constexpr std::int64_t kRebindAfterUs = 200'000;
// Of the keys without a keysym; others are left to the X server, which binds some for viewers.
inline constexpr std::size_t kMostSpare = 96;

struct Binding {
  std::uint8_t keycode = 0;
  Keysym keysym = 0;
};
// The bindings are made, then the strokes follow. Between two batches that bind kRebindAfterUs pass: no key is bound anew in the
// batch that has used it, and the one that has not been used for longest is taken first.
struct TypingBatch {
  std::vector<Binding> bindings;
  std::vector<Stroke> strokes;
};

// "\r\n" is one newline. invalid_argument: a control character. unavailable: a character needs a spare key, and none is left.
[[nodiscard]] Result<std::vector<TypingBatch>> plan_typing(const std::u32string& text, const Keymap& keymap, int group,
                                                           std::uint8_t locked, const std::vector<std::uint8_t>& spare);

}  // namespace caisson::display
