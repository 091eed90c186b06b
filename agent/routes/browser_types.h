// Requests and answers of /v1/browser/screenshot, /actions and /config.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/tagged.h"

namespace caisson::routes {

struct MoveToAction {
  std::string action_type = "MOVE_TO";
  double x = 0;
  double y = 0;
};
struct MoveRelAction {
  std::string action_type = "MOVE_REL";
  double x_offset = 0;
  double y_offset = 0;
};
struct ClickAction {
  std::string action_type = "CLICK";
  std::optional<double> x;
  std::optional<double> y;
  std::string button = "left";
  std::int64_t num_clicks = 1;
};
struct MouseDownAction {
  std::string action_type = "MOUSE_DOWN";
  std::string button = "left";
};
struct MouseUpAction {
  std::string action_type = "MOUSE_UP";
  std::string button = "left";
};
struct RightClickAction {
  std::string action_type = "RIGHT_CLICK";
  std::optional<double> x;
  std::optional<double> y;
};
struct DoubleClickAction {
  std::string action_type = "DOUBLE_CLICK";
  std::optional<double> x;
  std::optional<double> y;
};
struct DragToAction {
  std::string action_type = "DRAG_TO";
  double x = 0;
  double y = 0;
};
struct DragRelAction {
  std::string action_type = "DRAG_REL";
  double x_offset = 0;
  double y_offset = 0;
};
struct ScrollAction {
  std::string action_type = "SCROLL";
  std::int64_t dx = 0;
  std::int64_t dy = 0;
};
struct TypingAction {
  std::string action_type = "TYPING";
  std::string text;
  std::optional<bool> use_clipboard = true;
};
struct PressAction {
  std::string action_type = "PRESS";
  std::string key;
};
struct KeyDownAction {
  std::string action_type = "KEY_DOWN";
  std::string key;
};
struct KeyUpAction {
  std::string action_type = "KEY_UP";
  std::string key;
};
struct HotkeyAction {
  std::string action_type = "HOTKEY";
  std::vector<std::string> keys;
};
struct WaitAction {
  std::string action_type = "WAIT";
  double duration = 0;
};
struct ActionData {
  std::string status = "success", action_performed;
};
struct ActionResponse {
  bool success = true;
  std::optional<std::string> message;
  std::optional<ActionData> data;
  std::optional<std::string> hint;
  std::string status = "success", action_performed;
};
struct Resolution {
  std::int64_t width = 0, height = 0;
};
struct RestartRequest {
  std::string mode = "hard";
  std::optional<std::vector<std::string>> url_blocklist, url_allowlist;
  std::optional<bool> allow_file_selection_dialogs;
  std::optional<std::string> locale;
};
struct BrowserConfig {
  std::optional<Resolution> resolution;
};

inline constexpr std::array<std::string_view, 3> kButtons = {"left", "right", "middle"};
inline constexpr std::array<std::string_view, 3> kFormats = {"png", "jpg", "jpeg"};
inline constexpr std::array<std::string_view, 2> kRestarts = {"soft", "hard"};
inline constexpr std::array<std::string_view, 1> kSuccess = {"success"};

template <>
struct Schema<MoveToAction> {
  static constexpr std::string_view name = "MoveToAction";
  static constexpr std::array<std::string_view, 1> kTag = {"MOVE_TO"};
  static constexpr auto fields =
      std::tuple{field("action_type", &MoveToAction::action_type, "").one_of(kTag).defaulted(),
                 field("x", &MoveToAction::x, "Pixels from the left"), field("y", &MoveToAction::y, "Pixels from the top")};
};
template <>
struct Schema<MoveRelAction> {
  static constexpr std::string_view name = "MoveRelAction";
  static constexpr std::array<std::string_view, 1> kTag = {"MOVE_REL"};
  static constexpr auto fields = std::tuple{field("action_type", &MoveRelAction::action_type, "").one_of(kTag).defaulted(),
                                            field("x_offset", &MoveRelAction::x_offset, "Pixels to the right"),
                                            field("y_offset", &MoveRelAction::y_offset, "Pixels down")};
};
template <>
struct Schema<ClickAction> {
  static constexpr std::string_view name = "ClickAction";
  static constexpr std::array<std::string_view, 1> kTag = {"CLICK"};
  static constexpr auto fields =
      std::tuple{field("action_type", &ClickAction::action_type, "").one_of(kTag).defaulted(),
                 field("x", &ClickAction::x, "Pixels from the left; where the pointer is when both are absent"),
                 field("y", &ClickAction::y, "Pixels from the top"),
                 field("button", &ClickAction::button, "left, right or middle").one_of(kButtons).defaulted(),
                 field("num_clicks", &ClickAction::num_clicks, "1 to 3").min(1).max(3).unlisted().defaulted()};
};
template <>
struct Schema<MouseDownAction> {
  static constexpr std::string_view name = "MouseDownAction";
  static constexpr std::array<std::string_view, 1> kTag = {"MOUSE_DOWN"};
  static constexpr auto fields =
      std::tuple{field("action_type", &MouseDownAction::action_type, "").one_of(kTag).defaulted(),
                 field("button", &MouseDownAction::button, "left, right or middle").one_of(kButtons).defaulted()};
};
template <>
struct Schema<MouseUpAction> {
  static constexpr std::string_view name = "MouseUpAction";
  static constexpr std::array<std::string_view, 1> kTag = {"MOUSE_UP"};
  static constexpr auto fields =
      std::tuple{field("action_type", &MouseUpAction::action_type, "").one_of(kTag).defaulted(),
                 field("button", &MouseUpAction::button, "left, right or middle").one_of(kButtons).defaulted()};
};
template <>
struct Schema<RightClickAction> {
  static constexpr std::string_view name = "RightClickAction";
  static constexpr std::array<std::string_view, 1> kTag = {"RIGHT_CLICK"};
  static constexpr auto fields =
      std::tuple{field("action_type", &RightClickAction::action_type, "").one_of(kTag).defaulted(),
                 field("x", &RightClickAction::x, "Pixels from the left; where the pointer is when both are absent"),
                 field("y", &RightClickAction::y, "Pixels from the top")};
};
template <>
struct Schema<DoubleClickAction> {
  static constexpr std::string_view name = "DoubleClickAction";
  static constexpr std::array<std::string_view, 1> kTag = {"DOUBLE_CLICK"};
  static constexpr auto fields =
      std::tuple{field("action_type", &DoubleClickAction::action_type, "").one_of(kTag).defaulted(),
                 field("x", &DoubleClickAction::x, "Pixels from the left; where the pointer is when both are absent"),
                 field("y", &DoubleClickAction::y, "Pixels from the top")};
};
template <>
struct Schema<DragToAction> {
  static constexpr std::string_view name = "DragToAction";
  static constexpr std::array<std::string_view, 1> kTag = {"DRAG_TO"};
  static constexpr auto fields =
      std::tuple{field("action_type", &DragToAction::action_type, "").one_of(kTag).defaulted(),
                 field("x", &DragToAction::x, "Pixels from the left"), field("y", &DragToAction::y, "Pixels from the top")};
};
template <>
struct Schema<DragRelAction> {
  static constexpr std::string_view name = "DragRelAction";
  static constexpr std::array<std::string_view, 1> kTag = {"DRAG_REL"};
  static constexpr auto fields = std::tuple{field("action_type", &DragRelAction::action_type, "").one_of(kTag).defaulted(),
                                            field("x_offset", &DragRelAction::x_offset, "Pixels to the right"),
                                            field("y_offset", &DragRelAction::y_offset, "Pixels down")};
};
template <>
struct Schema<ScrollAction> {
  static constexpr std::string_view name = "ScrollAction";
  static constexpr std::array<std::string_view, 1> kTag = {"SCROLL"};
  static constexpr auto fields =
      std::tuple{field("action_type", &ScrollAction::action_type, "").one_of(kTag).defaulted(),
                 field("dx", &ScrollAction::dx, "Notches of the wheel; above 0: to the left").defaulted(),
                 field("dy", &ScrollAction::dy, "Notches of the wheel; above 0: up").defaulted()};
};
template <>
struct Schema<TypingAction> {
  static constexpr std::string_view name = "TypingAction";
  static constexpr std::array<std::string_view, 1> kTag = {"TYPING"};
  static constexpr auto fields =
      std::tuple{field("action_type", &TypingAction::action_type, "").one_of(kTag).defaulted(),
                 field("text", &TypingAction::text, "What is typed").min_length(1),
                 field("use_clipboard", &TypingAction::use_clipboard, "Paste it, rather than press key after key").defaulted()};
};
template <>
struct Schema<PressAction> {
  static constexpr std::string_view name = "PressAction";
  static constexpr std::array<std::string_view, 1> kTag = {"PRESS"};
  static constexpr auto fields = std::tuple{field("action_type", &PressAction::action_type, "").one_of(kTag).defaulted(),
                                            field("key", &PressAction::key, "A key, as pyautogui or X call it")};
};
template <>
struct Schema<KeyDownAction> {
  static constexpr std::string_view name = "KeyDownAction";
  static constexpr std::array<std::string_view, 1> kTag = {"KEY_DOWN"};
  static constexpr auto fields = std::tuple{field("action_type", &KeyDownAction::action_type, "").one_of(kTag).defaulted(),
                                            field("key", &KeyDownAction::key, "A key, as pyautogui or X call it")};
};
template <>
struct Schema<KeyUpAction> {
  static constexpr std::string_view name = "KeyUpAction";
  static constexpr std::array<std::string_view, 1> kTag = {"KEY_UP"};
  static constexpr auto fields = std::tuple{field("action_type", &KeyUpAction::action_type, "").one_of(kTag).defaulted(),
                                            field("key", &KeyUpAction::key, "A key, as pyautogui or X call it")};
};
template <>
struct Schema<HotkeyAction> {
  static constexpr std::string_view name = "HotkeyAction";
  static constexpr std::array<std::string_view, 1> kTag = {"HOTKEY"};
  static constexpr auto fields =
      std::tuple{field("action_type", &HotkeyAction::action_type, "").one_of(kTag).defaulted(),
                 field("keys", &HotkeyAction::keys, "Keys that are pressed one after the other and released in reverse")};
};
template <>
struct Schema<WaitAction> {
  static constexpr std::string_view name = "WaitAction";
  static constexpr std::array<std::string_view, 1> kTag = {"WAIT"};
  static constexpr auto fields = std::tuple{field("action_type", &WaitAction::action_type, "").one_of(kTag).defaulted(),
                                            field("duration", &WaitAction::duration, "Seconds, at most 60").above(0)};
};
// The action that a client asks for. Bounds that depend on the screen are caisson-display's to check.
using BrowserAction = Tagged<MoveToAction, MoveRelAction, ClickAction, MouseDownAction, MouseUpAction, RightClickAction,
                             DoubleClickAction, DragToAction, DragRelAction, ScrollAction, TypingAction, PressAction,
                             KeyDownAction, KeyUpAction, HotkeyAction, WaitAction>;

template <>
struct Schema<ActionData> {
  static constexpr std::string_view name = "ActionData";
  static constexpr auto fields = std::tuple{field("status", &ActionData::status, "Always success").one_of(kSuccess),
                                            field("action_performed", &ActionData::action_performed, "The action")};
};
template <>
struct Schema<ActionResponse> {
  static constexpr std::string_view name = "ActionResponse";
  static constexpr auto fields =
      std::tuple{field("success", &ActionResponse::success, "Whether it was carried out").defaulted(),
                 field("message", &ActionResponse::message, "What was done"),
                 field("data", &ActionResponse::data, "The same for older clients"),
                 field("hint", &ActionResponse::hint, "What the caller should know besides"),
                 field("status", &ActionResponse::status, "Always success").one_of(kSuccess).defaulted(),
                 field("action_performed", &ActionResponse::action_performed, "The action").defaulted()};
};
template <>
struct Schema<Resolution> {
  static constexpr std::string_view name = "Resolution";
  static constexpr auto fields =
      std::tuple{field("width", &Resolution::width, "Pixels").above(0), field("height", &Resolution::height, "Pixels").above(0)};
};
template <>
struct Schema<RestartRequest> {
  static constexpr std::string_view name = "RestartRequest";
  static constexpr auto fields = std::tuple{
      field("mode", &RestartRequest::mode, "hard: Chromium ends and starts with the same profile; soft: it stays")
          .one_of(kRestarts)
          .defaulted(),
      field("url_blocklist", &RestartRequest::url_blocklist,
            "Patterns of addresses that are not opened, as Chromium's policy URLBlocklist"),
      field("url_allowlist", &RestartRequest::url_allowlist, "Exceptions from it"),
      field("allow_file_selection_dialogs", &RestartRequest::allow_file_selection_dialogs, "Whether pages may open such dialogs"),
      field("locale", &RestartRequest::locale, "Language that sites are asked for, such as de")};
};
template <>
struct Schema<BrowserConfig> {
  static constexpr std::string_view name = "BrowserConfigRequest";
  static constexpr auto fields = std::tuple{
      field("resolution", &BrowserConfig::resolution, "Size of the screen: one of those that GET /v1/openapi.json names")};
};

}  // namespace caisson::routes
