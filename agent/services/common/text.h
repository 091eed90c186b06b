// Turns program output into text for JSON: valid UTF-8, cut at characters, without terminal control sequences. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "agent/services/common/output_buffer.h"

namespace caisson::services {

// Invalid bytes become U+FFFD, one for each maximal broken sequence, as in browsers and Python.
[[nodiscard]] std::string to_utf8(std::string_view bytes);
// The first error of UTF-8, in the words of Python's codec, which clients know.
struct BrokenText {
  std::size_t at, size;
  std::string_view reason;
};
[[nodiscard]] std::optional<BrokenText> first_broken(std::string_view bytes);
// How many bytes at the end begin a code point whose rest is missing (0 to 3).
[[nodiscard]] std::size_t incomplete_tail(std::string_view bytes);
[[nodiscard]] std::size_t count_characters(std::string_view utf8);
// Keeps head and tail and puts a marker between them, so that the result has at most max_characters (marker included,
// unless the limit is smaller than the marker). 0: no limit.
[[nodiscard]] std::string cut_middle(std::string_view utf8, std::size_t max_characters);
// Removes CSI, OSC, DCS and other escape sequences and BEL, and makes CR LF a LF. NUL stays: `grep -Z` and `find -print0` use it
// as a separator.
[[nodiscard]] std::string strip_terminal(std::string_view bytes);

// A whole stream. If its middle was dropped: its first bytes, a note, and the rest.
[[nodiscard]] std::string whole_bytes(const OutputBuffer& buffer);
// The same as text. `open_ended`: more may come, so an incomplete code point at the end is left out.
[[nodiscard]] std::string whole_text(const OutputBuffer& buffer, std::size_t max_characters, bool open_ended = false);
// The same for a terminal's output: stripped, without newlines at the end.
[[nodiscard]] std::string terminal_text(const OutputBuffer& buffer, std::size_t max_characters);

}  // namespace caisson::services
