#include "agent/display/keymap.h"

#include <algorithm>
#include <bit>

#include "agent/display/x_wire.h"
#include "agent/display/xkb_wire.h"

namespace caisson::display {
namespace {

constexpr Keysym kShiftL = 0xFFE1, kShiftR = 0xFFE2, kLevel3 = 0xFE03, kLevel5 = 0xFE11, kModeSwitch = 0xFF7E;
constexpr Keysym kFirstOfXFree86 = 0x1008FE00, kLastOfXFree86 = 0x1008FFFF;
// Chromium does by their position what these keys are for, whatever letter they have: copy, paste, cut, favorites, back, forward,
// home page, reload, search (seen with Chromium 156; keycodes are evdev's plus eight).
constexpr std::uint8_t kActByPosition[] = {141, 143, 145, 164, 166, 167, 180, 181, 225};
constexpr Keysym kSelectors[] = {kShiftL, kShiftR, kLevel3, kLevel5, kModeSwitch};

std::unexpected<Error> cut() { return fail(Code::protocol, "the X server's keyboard map is cut short"); }

// Takes the next T from the bytes. nullopt: they are shorter.
template <class T>
std::optional<T> next(std::string_view& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  const T value = read_at<T>(bytes);
  bytes.remove_prefix(sizeof(T));
  return value;
}

bool acts_by_position(std::uint8_t keycode) { return std::ranges::find(kActByPosition, keycode) != std::end(kActByPosition); }

}  // namespace

std::uint8_t Keymap::Type::level(std::uint8_t modifiers) const {
  for (const Entry& entry : entries)
    if (entry.modifiers == (modifiers & mask)) return entry.level;
  return 0;
}

// What happens to a group that the key lacks (XKB protocol, 7.2.2).
int Keymap::Key::group(int wanted) const {
  const int groups = group_info & 0x0F;
  if (groups == 0) return -1;
  if (wanted < groups) return wanted;
  if ((group_info & 0xC0) == 0x40) return groups - 1;
  if ((group_info & 0xC0) == 0x80) {
    const int redirected = group_info >> 4 & 3;
    return redirected < groups ? redirected : 0;
  }
  return wanted % groups;
}

Result<Keymap> Keymap::parse(std::string_view map, std::string_view modifiers) {
  const auto head = read_at<xcb_xkb_get_map_reply_t>(map);
  if (map.size() < sizeof head) return cut();
  map.remove_prefix(sizeof head);
  Keymap made;
  for (int i = 0; i < head.nTypes; ++i) {
    const auto type = next<xcb_xkb_key_type_t>(map);
    if (!type) return cut();
    Type& kept = made.types_.emplace_back();
    kept.mask = type->mods_mask;
    for (int j = 0; j < type->nMapEntries; ++j) {
      const auto entry = next<xcb_xkb_kt_map_entry_t>(map);
      if (!entry) return cut();
      if (entry->active != 0) kept.entries.push_back({.modifiers = entry->mods_mask, .level = entry->level});
    }
    const std::size_t preserved = type->hasPreserve != 0 ? std::size_t{type->nMapEntries} * 4 : 0;
    if (map.size() < preserved) return cut();
    map.remove_prefix(preserved);
  }
  made.first_ = head.firstKeySym;
  if (head.nKeySyms == 0 || head.firstKeySym < 8 || head.firstKeySym + head.nKeySyms > 256) return cut();
  for (int i = 0; i < head.nKeySyms; ++i) {
    const auto key = next<xcb_xkb_key_sym_map_t>(map);
    if (!key || map.size() < std::size_t{key->nSyms} * sizeof(Keysym)) return cut();
    Key& kept = made.keys_.emplace_back();
    std::ranges::copy(key->kt_index, kept.types.begin());
    kept.group_info = key->groupInfo;
    kept.width = key->width;
    for (int j = 0; j < key->nSyms; ++j) kept.keysyms.push_back(canonical(*next<Keysym>(map)));
  }

  const auto modifier_head = read_at<xcb_get_modifier_mapping_reply_t>(modifiers);
  const std::size_t per = modifier_head.keycodes_per_modifier;
  if (modifiers.size() < sizeof modifier_head + 8 * per) return cut();
  for (const Keysym selector : kSelectors)
    for (std::size_t bit = 0; bit < 8; ++bit)
      for (std::size_t i = 0; i < per; ++i) {
        const auto code = read_at<std::uint8_t>(modifiers, sizeof modifier_head + bit * per + i);
        if (made.modifier_keys_[bit] != 0 || code < made.first_ || code >= made.first_ + made.keys_.size()) continue;
        const Key& key = made.keys_[static_cast<std::size_t>(code - made.first_)];
        if (!key.keysyms.empty() && key.keysyms[0] == selector) made.modifier_keys_[bit] = code;
      }
  for (unsigned set = 0; set < 256; ++set) {
    bool all = std::popcount(set) <= 3;
    for (unsigned bit = 0; bit < 8; ++bit) all = all && ((set >> bit & 1) == 0 || made.modifier_keys_[bit] != 0);
    if (all) made.reachable_.push_back(static_cast<std::uint8_t>(set));
  }
  std::ranges::sort(made.reachable_, {}, [](std::uint8_t set) { return std::pair(std::popcount(set), set); });
  return made;
}

bool Keymap::gives(const Key& key, int group, std::uint8_t modifiers, Keysym keysym) const {
  const int own = key.group(group);
  if (own < 0 || own > 3) return false;
  const std::size_t type = key.types[static_cast<std::size_t>(own)];
  const std::size_t level = type < types_.size() ? types_[type].level(modifiers) : 0;
  const std::size_t index = static_cast<std::size_t>(own) * key.width + level;
  return level < key.width && index < key.keysyms.size() && key.keysyms[index] == keysym;
}

std::optional<Stroke> Keymap::find(Keysym keysym, int group, std::uint8_t locked) const {
  for (const std::uint8_t set : reachable_)
    for (std::size_t i = 0; i < keys_.size(); ++i)
      if (std::ranges::find(keys_[i].keysyms, keysym) != keys_[i].keysyms.end() &&
          gives(keys_[i], group, static_cast<std::uint8_t>(set | locked), keysym))
        return Stroke{.keycode = static_cast<std::uint8_t>(first_ + i), .modifiers = set};
  return std::nullopt;
}

std::optional<std::uint8_t> Keymap::key_with(Keysym keysym) const {
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (std::ranges::find(keys_[i].keysyms, keysym) != keys_[i].keysyms.end()) return static_cast<std::uint8_t>(first_ + i);
  return std::nullopt;
}

bool Keymap::is_empty(const Key& key) {
  return std::ranges::all_of(key.keysyms, [](Keysym keysym) { return keysym == 0; });
}

bool Keymap::has_keysym(std::uint8_t keycode) const {
  return keycode >= first_ && keycode < first_ + keys_.size() && !is_empty(keys_[static_cast<std::size_t>(keycode - first_)]);
}

std::vector<std::uint8_t> Keymap::multimedia() const {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (!is_empty(keys_[i]) && std::ranges::all_of(keys_[i].keysyms, [](Keysym keysym) {
          return keysym == 0 || (keysym >= kFirstOfXFree86 && keysym <= kLastOfXFree86);
        }))
      out.push_back(static_cast<std::uint8_t>(first_ + i));
  std::erase_if(out, acts_by_position);
  return out;
}

std::vector<std::uint8_t> Keymap::spare() const {
  std::vector<std::uint8_t> out;
  // From the end: what a keyboard has lies at the beginning.
  for (std::size_t i = keys_.size(); i > 0; --i) {
    const std::vector<Keysym>& keysyms = keys_[i - 1].keysyms;
    const bool empty = is_empty(keys_[i - 1]);
    // A character of Unicode alone, on all levels: no layout has such a key.
    const bool left = !empty && keysyms[0] >= 0x01000100 && keysyms[0] <= 0x0110FFFF &&
                      std::ranges::all_of(keysyms, [&](Keysym keysym) { return keysym == keysyms[0]; });
    if (empty || left) out.push_back(static_cast<std::uint8_t>(first_ + i - 1));
  }
  std::erase_if(out, acts_by_position);
  return out;
}

std::uint8_t Keymap::modifier_key(std::uint8_t bit) const {
  return bit == 0 ? 0 : modifier_keys_[static_cast<std::size_t>(std::countr_zero(bit))];
}

}  // namespace caisson::display
