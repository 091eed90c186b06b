#include "agent/display/action.h"

#include <cmath>

#include "agent/display/mouse.h"
#include "agent/display/utf8.h"

namespace caisson::display {
namespace {

using frames::Action;

std::unexpected<Error> wrong(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

bool has(const json::Value& head, std::string_view name) {
  const auto it = head.find(name);
  return it != head.end() && !it->is_null();
}

Result<double> number(const json::Value& head, std::string_view name) {
  const auto it = head.find(name);
  if (it == head.end() || !it->is_number() || !std::isfinite(it->get<double>()))
    return wrong("'" + std::string(name) + "' must be a number");
  return it->get<double>();
}

// X's coordinates have 16 bits; twice that is every offset between two of them.
Result<int> pixels(const json::Value& head, std::string_view name) {
  constexpr double kMost = 65535;
  TRY_ASSIGN(const double value, number(head, name));
  if (std::abs(value) > kMost) return wrong("'" + std::string(name) + "' must be from -65535 to 65535");
  return static_cast<int>(std::floor(value));
}

Result<Point> point(const json::Value& head, std::string_view x, std::string_view y) {
  Point at;
  TRY_ASSIGN(at.x, pixels(head, x));
  TRY_ASSIGN(at.y, pixels(head, y));
  return at;
}

Result<int> button(const json::Value& head) {
  TRY_ASSIGN(const auto name, json::get_string(head, "button"));
  if (!name || *name == "left") return kLeftButton;
  if (*name == "middle") return kMiddleButton;
  if (*name == "right") return kRightButton;
  return wrong("'button' must be left, right or middle, not " + quote(*name));
}

Status take_text(ActionAsked& asked, const json::Value& head, std::string body) {
  TRY_ASSIGN(const auto use_clipboard, json::get_bool(head, "use_clipboard"));
  asked.use_clipboard = use_clipboard.value_or(true);
  if (body.empty()) return wrong("there is no text to type");
  if (body.size() > frames::kMostText) return wrong("a text has at most " + std::to_string(frames::kMostText) + " bytes");
  auto characters = decode_utf8(body);
  if (!characters) return wrong("the text is not UTF-8");
  if (!asked.use_clipboard && characters->size() > frames::kMostTypedCharacters)
    return wrong("at most " + std::to_string(frames::kMostTypedCharacters) + " characters are typed without the clipboard");
  if (asked.use_clipboard) asked.text = std::move(body);
  else asked.typed = std::move(*characters);
  return {};
}

Status take_keys(ActionAsked& asked, const json::Value& head) {
  if (asked.action != Action::hotkey) {
    TRY_ASSIGN(auto key, json::get_string(head, "key"));
    asked.keys.push_back(std::move(*key));
    return {};
  }
  const json::Value& keys = head["keys"];
  if (!keys.is_array() || keys.empty() || keys.size() > frames::kMostKeys)
    return wrong("'keys' must be a list of 1 to " + std::to_string(frames::kMostKeys) + " names");
  for (const json::Value& key : keys) {
    if (!key.is_string()) return wrong("'keys' must be a list of names");
    asked.keys.push_back(key.get<std::string>());
  }
  return {};
}

}  // namespace

Result<std::int64_t> integer_within(const json::Value& head, std::string_view name, std::int64_t least, std::int64_t most,
                                    std::int64_t otherwise) {
  TRY_ASSIGN(const auto value, json::get_int(head, name));
  if (value && (*value < least || *value > most))
    return wrong("'" + std::string(name) + "' must be from " + std::to_string(least) + " to " + std::to_string(most));
  return value.value_or(otherwise);
}

Result<ActionAsked> parse_action(const json::Value& head, std::string body) {
  TRY_ASSIGN(const auto name, json::get_string(head, "action"));
  const auto action = frames::find_action(name.value_or(""));
  if (!action) return wrong("no action is named " + quote(name.value_or("")));
  if (const auto member = frames::unknown_member(frames::DisplayOp::action, *action, head))
    return wrong(*name + " takes no member " + quote(*member));
  const frames::ActionRow& row = frames::action_row(*action);
  for (std::ptrdiff_t i = 0; !row.required.empty() && i < count_words(row.required); ++i)
    if (const std::string_view member = word(row.required, static_cast<std::size_t>(i)); !has(head, member))
      return wrong(*name + " needs '" + std::string(member) + "'");
  if (!row.body && !body.empty()) return wrong(*name + " takes no text");

  ActionAsked asked{.action = *action};
  if (frames::has_word(row.required, "x_offset")) {
    TRY_ASSIGN(asked.at, point(head, "x_offset", "y_offset"));
  } else if (has(head, "x") || has(head, "y")) {
    if (!has(head, "x") || !has(head, "y")) return wrong(*name + " needs both of 'x' and 'y', or neither");
    TRY_ASSIGN(asked.at, point(head, "x", "y"));
  }
  TRY_ASSIGN(asked.button, button(head));
  if (*action == Action::right_click) asked.button = kRightButton;
  TRY_ASSIGN(const auto clicks, integer_within(head, "num_clicks", 1, 3, *action == Action::double_click ? 2 : 1));
  TRY_ASSIGN(const auto dx, integer_within(head, "dx", -frames::kMostNotches, frames::kMostNotches, 0));
  TRY_ASSIGN(const auto dy, integer_within(head, "dy", -frames::kMostNotches, frames::kMostNotches, 0));
  asked.clicks = static_cast<int>(clicks);
  asked.dx = static_cast<int>(dx);
  asked.dy = static_cast<int>(dy);
  if (row.body) TRY(take_text(asked, head, std::move(body)));
  if (frames::has_word(row.required, "key") || frames::has_word(row.required, "keys")) TRY(take_keys(asked, head));
  if (*action == Action::wait) {
    TRY_ASSIGN(const double seconds, number(head, "duration"));
    if (seconds <= 0 || seconds > frames::kMostWaitSeconds) return wrong("'duration' must be above 0 and at most 60");
    asked.wait_us = static_cast<std::int64_t>(seconds * 1e6);
  }
  return asked;
}

}  // namespace caisson::display
