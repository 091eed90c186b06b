// The operations of the page driver (agent/driver) and the members of each, for the agent, which sends nothing else. The driver
// has the same table in protocol.js, and a test compares the two. A request's head also has "id", "op", and may have "timeout_ms"
// (1 to 3,600,000 ms; 30,000 without it) and "bytes". Beside these there are {"id", "op": "ping"} and {"id", "op": "cancel"}; the
// latter has the id of the operation that is to end, and no answer of its own.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "agent/frames/frame.h"

namespace caisson::frames {

// What each end takes from the other.
inline constexpr Limits kPageFrames{.head_bytes = 1024 * 1024, .body_bytes = 64 * 1024 * 1024, .head_values = 64 * 1024};

enum class PageOp {
  info,
  navigate,
  back,
  forward,
  reload,
  click,
  fill,
  type,
  press_key,
  hot_key,
  hover,
  select_option,
  check,
  uncheck,
  upload_file,
  fill_form,
  scroll,
  scroll_to,
  scroll_to_element,
  screenshot,
  record,
  html,
  text,
  markdown,
  elements,
  console,
  console_export,
  evaluate,
  find_text,
  wait,
  tabs,
  tab_create,
  tab_close,
  tab_activate,
  cookies,
  cookies_set,
  cookies_clear,
  state_save,
  state_load,
  headers,
  scoped_headers,
  route_add,
  route_remove,
  requests,
  export_har,
  captcha_detect,
  captcha_wait,
  downloads
};

struct PageOpRow {
  PageOp op;
  std::string_view name;
  std::string_view members;  // of the head; the driver says which of them must be there
};
inline constexpr std::array<PageOpRow, 48> kPageOps = {{
    {PageOp::info, "info", ""},
    {PageOp::navigate, "navigate", "url wait_until"},
    {PageOp::back, "back", ""},
    {PageOp::forward, "forward", ""},
    {PageOp::reload, "reload", ""},
    {PageOp::click, "click", "selector index x y button click_count"},
    {PageOp::fill, "fill", "selector index text"},
    {PageOp::type, "type", "text delay"},
    {PageOp::press_key, "press_key", "key"},
    {PageOp::hot_key, "hot_key", "keys"},
    {PageOp::hover, "hover", "selector index x y"},
    {PageOp::select_option, "select_option", "selector value label index"},
    {PageOp::check, "check", "selector"},
    {PageOp::uncheck, "uncheck", "selector"},
    {PageOp::upload_file, "upload_file", "selector files contents"},
    {PageOp::fill_form, "fill_form", "items"},
    {PageOp::scroll, "scroll", "direction amount"},
    {PageOp::scroll_to, "scroll_to", "x y"},
    {PageOp::scroll_to_element, "scroll_to_element", "selector"},
    {PageOp::screenshot, "screenshot", "full_page format quality selector index"},
    {PageOp::record, "record", "action duration fps quality"},
    {PageOp::html, "html", "outer"},
    {PageOp::text, "text", ""},
    {PageOp::markdown, "markdown", ""},
    {PageOp::elements, "elements", ""},
    {PageOp::console, "console", "clear"},
    {PageOp::console_export, "console_export", "clear"},
    {PageOp::evaluate, "evaluate", "expression"},
    {PageOp::find_text, "find_text", "keyword"},
    {PageOp::wait, "wait", "type selector state url expression polling url_pattern duration_ms"},
    {PageOp::tabs, "tabs", ""},
    {PageOp::tab_create, "tab_create", "url"},
    {PageOp::tab_close, "tab_close", "index"},
    {PageOp::tab_activate, "tab_activate", "index"},
    {PageOp::cookies, "cookies", "urls"},
    {PageOp::cookies_set, "cookies_set", "cookies"},
    {PageOp::cookies_clear, "cookies_clear", ""},
    {PageOp::state_save, "state_save", ""},
    {PageOp::state_load, "state_load", "path"},
    {PageOp::headers, "headers", "headers"},
    {PageOp::scoped_headers, "scoped_headers", "origin headers"},
    {PageOp::route_add, "route_add", "url_pattern response abort"},
    {PageOp::route_remove, "route_remove", "url_pattern"},
    {PageOp::requests, "requests", "filter limit"},
    {PageOp::export_har, "export_har", ""},
    {PageOp::captcha_detect, "captcha_detect", ""},
    {PageOp::captcha_wait, "captcha_wait", "poll_interval"},
    {PageOp::downloads, "downloads", ""},
}};

// Rows of a table that has one for each operation, in the order of the enumeration.
template <class Rows>
[[nodiscard]] constexpr bool covers_page_ops(const Rows& rows) {
  if (std::size(rows) != kPageOps.size()) return false;
  for (std::size_t i = 0; i < kPageOps.size(); ++i)
    if (static_cast<std::size_t>(rows[i].op) != i) return false;
  return true;
}
static_assert(covers_page_ops(kPageOps));

[[nodiscard]] constexpr std::string_view page_op_name(PageOp op) { return kPageOps[static_cast<std::size_t>(op)].name; }
[[nodiscard]] constexpr std::optional<PageOp> page_op(std::string_view name) {
  const auto row = std::ranges::find(kPageOps, name, &PageOpRow::name);
  return row == kPageOps.end() ? std::nullopt : std::optional(row->op);
}

}  // namespace caisson::frames
