// Arguments of the tools browser_*, by the names of @agent-infra/mcp-server-browser 1.2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::mcp {

struct UrlArguments {
  std::string url;
};
struct NewTabArguments {
  std::optional<std::string> url;
};
struct ElementArguments {
  std::optional<std::int64_t> index;
  std::optional<std::string> selector;
};
struct ValueArguments {
  std::optional<std::int64_t> index;
  std::optional<std::string> selector;
  std::string value;
  bool clear = false;
};
struct SelectArguments {
  std::optional<std::int64_t> index;
  std::optional<std::string> selector;
  std::string value;
};
struct PressArguments {
  std::string key;
};
struct AmountArguments {
  std::optional<double> amount;
};
struct ScriptArguments {
  std::string script;
};
struct TabArguments {
  std::int64_t index = 0;
};
struct ScreenshotArguments {
  std::optional<std::string> name, selector;
  std::optional<std::int64_t> index;
  std::optional<double> width, height;
  bool fullPage = false, highlight = false;
};
struct PlaceArguments {
  double x = 0, y = 0;
  std::optional<std::vector<double>> factors;
};
struct Links {
  std::vector<json::Value> links;
};
struct TabList {
  std::vector<json::Value> tabList;
};
struct DownloadList {
  std::vector<json::Value> list;
};

}  // namespace caisson::mcp

namespace caisson::routes {

template <>
struct Schema<mcp::UrlArguments> {
  static constexpr std::string_view name = "NavigateArguments";
  static constexpr auto fields = std::tuple{field("url", &mcp::UrlArguments::url, "Address")};
};
template <>
struct Schema<mcp::NewTabArguments> {
  static constexpr std::string_view name = "NewTabArguments";
  static constexpr auto fields = std::tuple{field("url", &mcp::NewTabArguments::url, "Address to open in the new tab")};
};
template <>
struct Schema<mcp::ElementArguments> {
  static constexpr std::string_view name = "ElementArguments";
  static constexpr auto fields =
      std::tuple{field("index", &mcp::ElementArguments::index, "Index of the element, from browser_get_clickable_elements"),
                 field("selector", &mcp::ElementArguments::selector, "Selector, if no index is given: CSS, text=…, xpath=…")};
};
template <>
struct Schema<mcp::ValueArguments> {
  static constexpr std::string_view name = "FormInputFillArguments";
  static constexpr auto fields = std::tuple{
      field("index", &mcp::ValueArguments::index, "Index of the field, from browser_get_clickable_elements"),
      field("selector", &mcp::ValueArguments::selector, "Selector, if no index is given"),
      field("value", &mcp::ValueArguments::value, "Text to fill in"),
      field("clear", &mcp::ValueArguments::clear, "Remove the text that is there; otherwise it is added to").defaulted()};
};
template <>
struct Schema<mcp::SelectArguments> {
  static constexpr std::string_view name = "SelectArguments";
  static constexpr auto fields =
      std::tuple{field("index", &mcp::SelectArguments::index, "Index of the list, from browser_get_clickable_elements"),
                 field("selector", &mcp::SelectArguments::selector, "Selector, if no index is given"),
                 field("value", &mcp::SelectArguments::value, "Value or text of the option")};
};
template <>
struct Schema<mcp::PressArguments> {
  static constexpr std::string_view name = "PressKeyArguments";
  static constexpr auto fields = std::tuple{
      field("key", &mcp::PressArguments::key, "A key such as Enter, Tab, Escape, ArrowDown, F5 or a, or keys such as ctrl+a")};
};
template <>
struct Schema<mcp::AmountArguments> {
  static constexpr std::string_view name = "ScrollArguments";
  static constexpr auto fields =
      std::tuple{field("amount", &mcp::AmountArguments::amount,
                       "Pixels, down if positive, up if negative; to the bottom of the page when absent")};
};
template <>
struct Schema<mcp::ScriptArguments> {
  static constexpr std::string_view name = "EvaluateArguments";
  static constexpr auto fields =
      std::tuple{field("script", &mcp::ScriptArguments::script, "JavaScript: () => { /* code */ }, or an expression")};
};
template <>
struct Schema<mcp::TabArguments> {
  static constexpr std::string_view name = "SwitchTabArguments";
  static constexpr auto fields = std::tuple{field("index", &mcp::TabArguments::index, "Index of the tab, from browser_tab_list")};
};
template <>
struct Schema<mcp::ScreenshotArguments> {
  static constexpr std::string_view name = "ScreenshotArguments";
  static constexpr auto fields =
      std::tuple{field("name", &mcp::ScreenshotArguments::name, "Name for the picture, repeated in the answer"),
                 field("selector", &mcp::ScreenshotArguments::selector, "Selector of the element to be shown alone"),
                 field("index", &mcp::ScreenshotArguments::index, "Index of the element to be shown alone"),
                 field("width", &mcp::ScreenshotArguments::width, "Not used: a person sees the window, so it keeps its size"),
                 field("height", &mcp::ScreenshotArguments::height, "Not used, like width"),
                 field("fullPage", &mcp::ScreenshotArguments::fullPage, "What is below the window, too").defaulted(),
                 field("highlight", &mcp::ScreenshotArguments::highlight, "Not used: the page is not drawn upon").defaulted()};
};
template <>
struct Schema<mcp::PlaceArguments> {
  static constexpr std::string_view name = "VisionClickArguments";
  static constexpr auto fields =
      std::tuple{field("x", &mcp::PlaceArguments::x, "Pixels from the left of the page's window"),
                 field("y", &mcp::PlaceArguments::y, "Pixels from its top"),
                 field("factors", &mcp::PlaceArguments::factors,
                       "[width, height] of the coordinates that the model works in, such as [1000, 1000]; pixels when absent")};
};
template <>
struct Schema<mcp::Links> {
  static constexpr std::string_view name = "ReadLinksResult";
  static constexpr auto fields = std::tuple{field("links", &mcp::Links::links, "{text, href} of each").object()};
};
template <>
struct Schema<mcp::TabList> {
  static constexpr std::string_view name = "TabListResult";
  static constexpr auto fields =
      std::tuple{field("tabList", &mcp::TabList::tabList, "{index, active, title, url} of each").object()};
};
template <>
struct Schema<mcp::DownloadList> {
  static constexpr std::string_view name = "DownloadListResult";
  static constexpr auto fields =
      std::tuple{field("list", &mcp::DownloadList::list, "{guid, url, suggestedFilename, path, state, bytes} of each").object()};
};

}  // namespace caisson::routes
