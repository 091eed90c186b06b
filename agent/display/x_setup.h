// The beginning of an X connection: the display's name, the client's first bytes and the server's answer (X Window System
// Protocol, section 8). Pure functions over hostile bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::display {

struct Setup {
  std::uint32_t id_base = 0, id_mask = 0;  // of the ids that we give
  std::uint32_t root = 0, root_visual = 0;
  std::uint8_t root_depth = 0;
  std::uint8_t min_keycode = 8, max_keycode = 255;
  // Whether a pixel of the root is 32 bits: blue, green, red, unused.
  bool is_bgrx = false;
};

// ":99" or ":99.0" to 99. invalid_argument: another form, or above 65535.
[[nodiscard]] Result<int> display_number(std::string_view name);
// Little-endian, protocol 11.0, without authorization: the session's socket is the permission.
[[nodiscard]] std::string setup_request();
inline constexpr std::size_t kSetupHead = 8;
// Bytes that follow the first kSetupHead of an answer: at most 262,140.
[[nodiscard]] std::size_t setup_rest(std::string_view head);
// permission_denied: the server refuses, in its own words. protocol: a malformed answer.
[[nodiscard]] Result<Setup> parse_setup(std::string_view answer);

}  // namespace caisson::display
