#include "agent/display/key_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

struct Row {
  std::string_view name;
  Keysym keysym;
  std::uint32_t unicode;
};
constexpr Row kX[] = {
#include <keysym_rows.inc>
};

struct Alias {
  std::string_view name, x;
};
// pyautogui's KEYBOARD_KEYS that X names otherwise, and names that programs send for the same keys.
constexpr Alias kAliases[] = {
    {"add", "KP_Add"},
    {"alt", "Alt_L"},
    {"altleft", "Alt_L"},
    {"altright", "Alt_R"},
    {"altgr", "ISO_Level3_Shift"},
    {"apps", "Menu"},
    {"arrowdown", "Down"},
    {"arrowleft", "Left"},
    {"arrowright", "Right"},
    {"arrowup", "Up"},
    {"backspace", "BackSpace"},
    {"browserback", "XF86Back"},
    {"browserfavorites", "XF86Favorites"},
    {"browserforward", "XF86Forward"},
    {"browserhome", "XF86HomePage"},
    {"browserrefresh", "XF86Refresh"},
    {"browsersearch", "XF86Search"},
    {"browserstop", "XF86Stop"},
    {"capslock", "Caps_Lock"},
    {"cmd", "Super_L"},
    {"command", "Super_L"},
    {"control", "Control_L"},
    {"convert", "Henkan"},
    {"ctrl", "Control_L"},
    {"ctrlleft", "Control_L"},
    {"ctrlright", "Control_R"},
    {"decimal", "KP_Decimal"},
    {"del", "Delete"},
    {"divide", "KP_Divide"},
    {"enter", "Return"},
    {"esc", "Escape"},
    {"fn", "XF86Fn"},
    {"hanguel", "Hangul"},
    {"hanja", "Hangul_Hanja"},
    {"junja", "Hangul_Jeonja"},
    {"kana", "Kana_Lock"},
    {"launchapp1", "XF86Launch1"},
    {"launchapp2", "XF86Launch2"},
    {"launchmail", "XF86Mail"},
    {"launchmediaselect", "XF86AudioMedia"},
    {"meta", "Super_L"},
    {"modechange", "Mode_switch"},
    {"multiply", "KP_Multiply"},
    {"nexttrack", "XF86AudioNext"},
    {"nonconvert", "Muhenkan"},
    {"num0", "KP_0"},
    {"num1", "KP_1"},
    {"num2", "KP_2"},
    {"num3", "KP_3"},
    {"num4", "KP_4"},
    {"num5", "KP_5"},
    {"num6", "KP_6"},
    {"num7", "KP_7"},
    {"num8", "KP_8"},
    {"num9", "KP_9"},
    {"numlock", "Num_Lock"},
    {"option", "Alt_L"},
    {"optionleft", "Alt_L"},
    {"optionright", "Alt_R"},
    {"pagedown", "Next"},
    {"pageup", "Prior"},
    {"pgdn", "Next"},
    {"pgup", "Prior"},
    {"playpause", "XF86AudioPlay"},
    {"prevtrack", "XF86AudioPrev"},
    {"printscreen", "Print"},
    {"prntscrn", "Print"},
    {"prtsc", "Print"},
    {"prtscr", "Print"},
    {"scrolllock", "Scroll_Lock"},
    {"separator", "KP_Separator"},
    {"shift", "Shift_L"},
    {"shiftleft", "Shift_L"},
    {"shiftright", "Shift_R"},
    {"sleep", "XF86Sleep"},
    {"spacebar", "space"},
    {"stop", "XF86Stop"},
    {"subtract", "KP_Subtract"},
    {"super", "Super_L"},
    {"volumedown", "XF86AudioLowerVolume"},
    {"volumemute", "XF86AudioMute"},
    {"volumeup", "XF86AudioRaiseVolume"},
    {"win", "Super_L"},
    {"windows", "Super_L"},
    {"winleft", "Super_L"},
    {"winright", "Super_R"},
    {"accept", "Execute"},
    {"final", "Eisu_toggle"},
};

constexpr std::size_t kMostName = 64;  // longer ones are unknown, without a search for the nearest

std::string lower(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

const Row* exact(std::string_view name) {
  const auto row = std::ranges::find(kX, name, &Row::name);
  return row == std::end(kX) ? nullptr : row;
}

// Of names that differ in case alone, such as Greek_ALPHA and Greek_alpha, the one with the most small letters.
const Row* in_any_case(const std::string& small) {
  const Row* best = nullptr;
  const auto capitals = [](const Row& row) {
    return std::ranges::count_if(row.name, [](char c) { return c >= 'A' && c <= 'Z'; });
  };
  for (const Row& row : kX)
    if (row.name.size() == small.size() && lower(row.name) == small && (best == nullptr || capitals(row) < capitals(*best)))
      best = &row;
  return best;
}

// "u20ac" or "u+20ac".
std::optional<Keysym> by_number(std::string_view small) {
  if (!small.starts_with('u')) return std::nullopt;
  std::string_view digits = small.substr(1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (digits.size() < 4 || digits.size() > 6 || error != std::errc() || end != digits.data() + digits.size() || number > 0x10FFFF)
    return std::nullopt;
  const Keysym keysym = keysym_of(number);
  return keysym == 0 ? std::nullopt : std::optional(keysym);
}

// Letters to be changed, added or left out (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::size_t, kMostName + 1> row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

std::string_view nearest(const std::string& small) {
  std::string_view best;
  std::size_t least = kMostName + 1;
  const auto consider = [&](std::string_view name) {
    if (name.size() > kMostName) return;
    const std::size_t found = distance(small, lower(name));
    if (found < least) {
      least = found;
      best = name;
    }
  };
  for (const Alias& alias : kAliases) consider(alias.name);
  for (const Row& row : kX) consider(row.name);
  return best;
}

}  // namespace

Result<Keysym> key_named(std::string_view name) {
  if (const auto characters = decode_utf8(name); characters && characters->size() == 1) {
    if (const Keysym keysym = keysym_of(characters->front()); keysym != 0) return keysym;
    return fail(Code::invalid_argument, "no key has the control character " + quote(name));
  }
  if (name.empty() || name.size() > kMostName) return fail(Code::invalid_argument, "no key is named " + quote(name));
  if (const Row* row = exact(name)) return canonical(row->keysym);
  const std::string small = lower(name);
  if (const auto alias = std::ranges::find(kAliases, small, &Alias::name); alias != std::end(kAliases))
    if (const Row* row = exact(alias->x)) return canonical(row->keysym);
  if (const Row* row = in_any_case(small)) return canonical(row->keysym);
  if (const auto keysym = by_number(small)) return *keysym;
  return fail(Code::invalid_argument,
              "no key is named " + quote(name) + "; the nearest name is '" + std::string(nearest(small)) + "'");
}

Keysym keysym_of(char32_t character) {
  constexpr Keysym kReturn = 0xFF0D, kTab = 0xFF09, kBackSpace = 0xFF08, kEscape = 0xFF1B, kUnicode = 0x01000000;
  switch (character) {
    case U'\n':
    case U'\r':
      return kReturn;
    case U'\t':
      return kTab;
    case U'\b':
      return kBackSpace;
    case 0x1B:
      return kEscape;
    default:
      break;
  }
  if (character < 0x20 || (character >= 0x7F && character < 0xA0)) return 0;
  return character < 0x100 ? static_cast<Keysym>(character) : kUnicode | static_cast<Keysym>(character);
}

Keysym canonical(Keysym keysym) {
  // ISO 8859-1, Unicode, and the function keys have one number each.
  if (keysym < 0x100 || keysym >= 0xFD00) return keysym;
  for (const Row& row : kX)
    if (row.keysym == keysym && row.unicode != 0) return keysym_of(row.unicode);
  return keysym;
}

}  // namespace caisson::display
