// The operations of caisson-display and the members of each, for both ends. The agent sends nothing else, and the worker accepts
// nothing else (agent/display/worker.cc). A request's head also has "id" (an integer from 0) and "op"; texts are the body, in
// UTF-8. An answer's head has "id" and what the row says, or "error": {"code": a word of Code, "text": a message}.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"
#include "launcher/common/base/word.h"

namespace caisson::frames {

enum class DisplayOp { info, screenshot, action, resize, clipboard_get, clipboard_set };

struct DisplayOpRow {
  DisplayOp op;
  std::string_view name;
  std::string_view members;  // of the head
  bool body;                 // whether a text follows
  std::string_view answer;   // members of the answer's head
};
inline constexpr std::array<DisplayOpRow, 6> kDisplayOps = {{
    {DisplayOp::info, "info", "", false, "width height sizes x y buttons"},                 // sizes: [[width, height]]
    {DisplayOp::screenshot, "screenshot", "format quality cursor", false, "width height"},  // body: the image
    {DisplayOp::action, "action", "action", true, "taken"},  // and those of kActions; taken: of TYPING by the clipboard
    {DisplayOp::resize, "resize", "width height", false, "width height"},  // one of kResolutions
    {DisplayOp::clipboard_get, "clipboard_get", "", false, ""},            // body: the text
    {DisplayOp::clipboard_set, "clipboard_set", "", true, ""},
}};

enum class Action {
  move_to,
  move_rel,
  click,
  mouse_down,
  mouse_up,
  right_click,
  double_click,
  drag_to,
  drag_rel,
  scroll,
  typing,
  press,
  key_down,
  key_up,
  hotkey,
  wait
};

struct ActionRow {
  Action action;
  std::string_view name;      // member "action"
  std::string_view required;  // further members, separated by a space
  std::string_view optional;
  bool body = false;
};
// x, y, x_offset, y_offset: pixels, fractions are cut. button: left, right, middle. num_clicks: 1 to 3. dx, dy: wheel notches, up
// and left are positive. duration: seconds.
inline constexpr std::array<ActionRow, 16> kActions = {{
    {Action::move_to, "MOVE_TO", "x y", ""},
    {Action::move_rel, "MOVE_REL", "x_offset y_offset", ""},
    {Action::click, "CLICK", "", "x y button num_clicks"},
    {Action::mouse_down, "MOUSE_DOWN", "", "button"},
    {Action::mouse_up, "MOUSE_UP", "", "button"},
    {Action::right_click, "RIGHT_CLICK", "", "x y"},
    {Action::double_click, "DOUBLE_CLICK", "", "x y"},
    {Action::drag_to, "DRAG_TO", "x y", ""},
    {Action::drag_rel, "DRAG_REL", "x_offset y_offset", ""},
    {Action::scroll, "SCROLL", "", "dx dy"},
    {Action::typing, "TYPING", "", "use_clipboard", true},
    {Action::press, "PRESS", "key", ""},
    {Action::key_down, "KEY_DOWN", "key", ""},
    {Action::key_up, "KEY_UP", "key", ""},
    {Action::hotkey, "HOTKEY", "keys", ""},
    {Action::wait, "WAIT", "duration", ""},
}};

struct Resolution {
  int width, height;
  bool operator==(const Resolution&) const = default;
};
// The contract's `resolution` (BrowserConfigRequest), in its order.
inline constexpr std::array<Resolution, 13> kResolutions = {{{1920, 1080},
                                                             {640, 480},
                                                             {1360, 768},
                                                             {1280, 720},
                                                             {800, 600},
                                                             {1024, 768},
                                                             {1280, 800},
                                                             {1920, 1200},
                                                             {1280, 960},
                                                             {1400, 1050},
                                                             {1680, 1050},
                                                             {1280, 1024},
                                                             {1600, 1200}}};

// Bounds of requests, checked by both ends.
inline constexpr std::size_t kMostText = 1024 * 1024;        // bytes of a clipboard's text, and of one that is pasted
inline constexpr std::size_t kMostTypedCharacters = 10'000;  // of a text that is typed key by key
inline constexpr std::size_t kMostKeys = 16;                 // of a HOTKEY
inline constexpr int kMostNotches = 100;                     // of a SCROLL, each way
inline constexpr double kMostWaitSeconds = 60;
inline constexpr std::size_t kMostActions = 64;              // that run or wait; one more is refused with Code::limit
inline constexpr std::size_t kMostImage = 32 * 1024 * 1024;  // bytes of an answer's body

// Rows of a table that has one for each operation, in the order of the enumeration.
template <class Rows>
[[nodiscard]] constexpr bool covers_display_ops(const Rows& rows) {
  if (std::size(rows) != kDisplayOps.size()) return false;
  for (std::size_t i = 0; i < kDisplayOps.size(); ++i)
    if (static_cast<std::size_t>(rows[i].op) != i) return false;
  return true;
}
static_assert(covers_display_ops(kDisplayOps));
template <class Rows>
[[nodiscard]] constexpr bool covers_actions(const Rows& rows) {
  if (std::size(rows) != kActions.size()) return false;
  for (std::size_t i = 0; i < kActions.size(); ++i)
    if (static_cast<std::size_t>(rows[i].action) != i) return false;
  return true;
}
static_assert(covers_actions(kActions));

[[nodiscard]] constexpr const DisplayOpRow& display_op_row(DisplayOp op) { return kDisplayOps[static_cast<std::size_t>(op)]; }
[[nodiscard]] constexpr std::optional<DisplayOp> display_op(std::string_view name) {
  const auto row = std::ranges::find(kDisplayOps, name, &DisplayOpRow::name);
  return row == kDisplayOps.end() ? std::nullopt : std::optional(row->op);
}
[[nodiscard]] constexpr const ActionRow& action_row(Action action) { return kActions[static_cast<std::size_t>(action)]; }
[[nodiscard]] constexpr std::optional<Action> find_action(std::string_view name) {
  const auto row = std::ranges::find(kActions, name, &ActionRow::name);
  return row == kActions.end() ? std::nullopt : std::optional(row->action);
}
[[nodiscard]] constexpr bool is_resolution(std::int64_t width, std::int64_t height) {
  return std::ranges::any_of(kResolutions, [&](const Resolution& r) { return r.width == width && r.height == height; });
}
// Whether `name` is one of the words of `list`, which may be empty.
[[nodiscard]] constexpr bool has_word(std::string_view list, std::string_view name) {
  for (std::ptrdiff_t i = 0; i < count_words(list); ++i)
    if (!name.empty() && word(list, static_cast<std::size_t>(i)) == name) return true;
  return false;
}
// The first member of a head that its operation, or its action, does not know; nullopt: it knows all of them.
[[nodiscard]] inline std::optional<std::string> unknown_member(DisplayOp op, std::optional<Action> action,
                                                               const json::Value& head) {
  for (const auto& [name, value] : head.items()) {
    if (name == "id" || name == "op" || name == "bytes" || has_word(display_op_row(op).members, name)) continue;
    if (action && (has_word(action_row(*action).required, name) || has_word(action_row(*action).optional, name))) continue;
    return name;
  }
  return std::nullopt;
}

}  // namespace caisson::frames
