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

}  // namespace

Result<std::vector<TypingBatch>> plan_typing(const std::u32string& text, const Keymap& keymap, int group, std::uint8_t locked,
                                             const std::vector<std::uint8_t>& spare) {
  const std::size_t most = std::min(spare.size(), kMostSpare);
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
    if (most == 0) return fail(Code::unavailable, "no key is spare to be bound to " + code_point(text[i]));
    auto bound = std::ranges::find(batches.back().bindings, keysym, &Binding::keysym);
    if (bound == batches.back().bindings.end()) {
      if (batches.back().bindings.size() == most) batches.emplace_back();
      std::vector<Binding>& bindings = batches.back().bindings;
      bindings.push_back({.keycode = spare[bindings.size()], .keysym = keysym});
      bound = bindings.end() - 1;
    }
    batches.back().strokes.push_back({.keycode = bound->keycode, .modifiers = 0});
  }
  return batches;
}

}  // namespace caisson::display
