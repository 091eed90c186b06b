// The keyboard as the X server has it: which key, with which modifiers, gives a keysym. Pure functions over hostile replies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/display/key_names.h"
#include "launcher/common/base/result.h"

namespace caisson::display {

// Bits of a set of modifiers, as in events.
inline constexpr std::uint8_t kShift = 1, kLock = 2;

// A key that is struck while these modifiers are pressed beside those that are locked.
struct Stroke {
  std::uint8_t keycode = 0;
  std::uint8_t modifiers = 0;
  bool operator==(const Stroke&) const = default;
};

class Keymap {
 public:
  // `map`: the reply to XkbGetMap for types and keysyms (XKB protocol, 16.7.1). `modifiers`: that to GetModifierMapping.
  // protocol: cut short, or without keys.
  [[nodiscard]] static Result<Keymap> parse(std::string_view map, std::string_view modifiers);

  // The keysym in its canonical form. Of several strokes the one with the fewest modifiers. nullopt: no key has it in this group.
  [[nodiscard]] std::optional<Stroke> find(Keysym keysym, int group, std::uint8_t locked) const;
  // A key that gives it alone or with others, in any group.
  [[nodiscard]] std::optional<std::uint8_t> key_with(Keysym keysym) const;
  // Keys without a keysym, and those that an earlier program of this kind left bound. No key at whose position a program acts,
  // whatever letter is there: Chromium would go back, reload or paste instead of typing.
  [[nodiscard]] std::vector<std::uint8_t> spare() const;
  // Keys for players, power and the like, with the same exception: each keysym is one of XFree86 (X11/XF86keysym.h).
  [[nodiscard]] std::vector<std::uint8_t> multimedia() const;
  // Whether the key has a keysym.
  [[nodiscard]] bool has_keysym(std::uint8_t keycode) const;
  // The key for one bit of Stroke::modifiers.
  [[nodiscard]] std::uint8_t modifier_key(std::uint8_t bit) const;

 private:
  struct Entry {
    std::uint8_t modifiers, level;
  };
  struct Type {
    std::uint8_t mask = 0;
    std::vector<Entry> entries;
    [[nodiscard]] std::uint8_t level(std::uint8_t modifiers) const;
  };
  struct Key {
    std::array<std::uint8_t, 4> types{};
    std::uint8_t group_info = 0, width = 0;
    std::vector<Keysym> keysyms;
    [[nodiscard]] int group(int wanted) const;  // -1: it has none
  };
  [[nodiscard]] static bool is_empty(const Key& key);
  [[nodiscard]] bool gives(const Key& key, int group, std::uint8_t modifiers, Keysym keysym) const;

  std::vector<Type> types_;
  std::vector<Key> keys_;
  std::uint8_t first_ = 0;                       // keycode of keys_[0]
  std::vector<std::uint8_t> reachable_;          // sets of modifiers that can be pressed, those of few first
  std::array<std::uint8_t, 8> modifier_keys_{};  // 0: none
};

}  // namespace caisson::display
