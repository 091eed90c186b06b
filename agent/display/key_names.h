// Names of keys, as pyautogui and X have them, and the keysyms of characters. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::display {

using Keysym = std::uint32_t;

// The keysym of a name: one character; a name of pyautogui or of X in any case (as it is written first, then the one of the small
// letter); "U20AC" or "U+20AC". invalid_argument: unknown, with the nearest name.
[[nodiscard]] Result<Keysym> key_named(std::string_view name);
// One keysym for each character: ISO 8859-1's own number, above it 0x01000000 and the character. Newline and tab are keys. 0: a
// control character, which no key has.
[[nodiscard]] Keysym keysym_of(char32_t character);
// The same keysym in the form of keysym_of, where X has an older number for its character.
[[nodiscard]] Keysym canonical(Keysym keysym);

}  // namespace caisson::display
