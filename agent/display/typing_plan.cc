#include "agent/display/typing_plan.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

namespace caisson::display {
namespace {

std::string code_point(char32_t character) {
  char text[16];
  std::snprintf(text, sizeof text, "U+%04X", static_cast<unsigned>(character));
  return text;
}

// A spare key, as the batches planned so far leave it.
struct Spare {
  std::uint8_t keycode = 0;
  Keysym keysym = 0;
  std::size_t used = 0;   // by this character of the text, counted from one; 0: not yet
  std::size_t batch = 0;  // where that is
};

}  // namespace

Result<std::vector<TypingBatch>> plan_typing(const std::u32string& text, const Keymap& keymap, int group, std::uint8_t locked,
                                             const std::vector<std::uint8_t>& spare) {
  std::vector<Spare> keys;
  for (const std::uint8_t keycode : spare)
    if (keys.size() < kMostSpare) keys.push_back({.keycode = keycode});
  std::vector<TypingBatch> batches(1);
  std::map<Keysym, std::optional<Stroke>> known;  // of the layout
  const auto is_spare = [&](std::uint8_t keycode) { return std::ranges::find(spare, keycode) != spare.end(); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == U'\n' && i > 0 && text[i - 1] == U'\r') continue;
    const Keysym keysym = keysym_of(text[i]);
    if (keysym == 0) return fail(Code::invalid_argument, "the control character " + code_point(text[i]) + " cannot be typed");
    auto [it, is_new] = known.try_emplace(keysym);
    if (is_new) {
      it->second = keymap.find(keysym, group, locked);
      // Bound before, and soon to be bound to something else.
      if (it->second && is_spare(it->second->keycode)) it->second.reset();
    }
    if (it->second) {
      batches.back().strokes.push_back(*it->second);
      continue;
    }
    if (keys.empty()) return fail(Code::unavailable, "no key is spare to be bound to " + code_point(text[i]));
    auto key = std::ranges::find(keys, keysym, &Spare::keysym);
    if (key == keys.end()) {
      key = std::ranges::min_element(keys, {}, &Spare::used);
      if (key->used > 0 && key->batch + 1 == batches.size()) batches.emplace_back();
      batches.back().bindings.push_back({.keycode = key->keycode, .keysym = keysym});
      key->keysym = keysym;
    }
    key->used = i + 1;
    key->batch = batches.size() - 1;
    batches.back().strokes.push_back({.keycode = key->keycode, .modifiers = 0});
  }
  return batches;
}

}  // namespace caisson::display
