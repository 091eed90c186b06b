// Requests of /v1/browser/page, tabs, cookies, state, network and captcha.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/routes/schema.h"

namespace caisson::routes {

inline constexpr std::array<std::string_view, 4> kLoadStates = {"load", "domcontentloaded", "networkidle", "commit"};
inline constexpr std::array<std::string_view, 6> kRecordActions = {"once", "start", "pause", "resume", "stop", "status"};
inline constexpr std::array<std::string_view, 9> kWaits = {"selector", "load",     "url",     "network_idle", "download",
                                                           "function", "response", "request", "timeout"};

struct NavigateRequest {
  std::string url;
  std::string wait_until = "load";
  double timeout = 30;
};
struct ClickRequest {
  std::optional<std::string> selector;
  std::optional<std::int64_t> index;
  std::optional<double> x;
  std::optional<double> y;
  std::string button = "left";
  std::int64_t click_count = 1;
};
struct FillRequest {
  std::optional<std::string> selector;
  std::optional<std::int64_t> index;
  std::string text;
};
struct TypeTextRequest {
  std::string text;
  double delay = 0;
};
struct KeyRequest {
  std::string key;
};
struct HotKeyRequest {
  std::vector<std::string> keys;
};
struct HoverRequest {
  std::optional<std::string> selector;
  std::optional<double> x;
  std::optional<double> y;
};
struct SelectOptionRequest {
  std::string selector;
  std::optional<std::string> value;
  std::optional<std::string> label;
  std::optional<std::int64_t> index;
};
struct CheckRequest {
  std::string selector;
};
struct UploadFileRequest {
  std::string selector;
  std::vector<std::string> files;
};
struct FormFillRequest {
  std::vector<json::Value> items;
};
struct ScrollRequest {
  std::string direction = "down";
  std::int64_t amount = 300;
};
struct ScrollToRequest {
  std::int64_t x = 0;
  std::int64_t y = 0;
};
struct ScrollToElementRequest {
  std::string selector;
};
struct RecordRequest {
  std::string action = "once";
  std::optional<std::string> save_path;
  double duration = 10;
  std::int64_t fps = 15;
  std::int64_t quality = 80;
};
struct ExportConsoleLogsRequest {
  std::string save_path;
  bool clear = false;
};
struct EvaluateRequest {
  std::string expression;
};
struct FindTextRequest {
  std::string keyword;
};
struct PageWaitRequest {
  std::string type;
  std::optional<std::string> selector;
  std::optional<std::string> state;
  std::optional<std::string> url;
  std::optional<std::string> save_path;
  double timeout = 30;
  std::optional<std::string> expression;
  std::optional<double> polling;
  std::optional<std::string> url_pattern;
};
struct CreatePageRequest {
  std::optional<std::string> url;
};
struct CookieSetRequest {
  std::vector<json::Value> cookies;
};
struct StateSaveRequest {
  std::string path;
};
struct StateLoadRequest {
  std::string path;
};
struct HeadersRequest {
  std::map<std::string, std::string> headers;
};
struct ScopedHeadersRequest {
  std::string origin;
  std::map<std::string, std::string> headers;
};
struct RouteResponseModel {
  std::int64_t status = 200;
  std::map<std::string, std::string> headers;
  std::string body = "";
  std::string content_type = "text/plain";
};
struct NetworkRouteRequest {
  std::string url_pattern;
  std::optional<RouteResponseModel> response;
  bool abort = false;
};
struct NetworkRouteRemoveRequest {
  std::string url_pattern;
};
struct ExportHarRequest {
  std::string save_path;
};
struct CaptchaWaitRequest {
  double timeout = 60;
  double poll_interval = 2;
};
struct CaptchaWaitResult {
  bool resolved = false;
};

template <>
struct Schema<NavigateRequest> {
  static constexpr std::string_view name = "NavigateRequest";
  static constexpr auto fields =
      std::tuple{field("url", &NavigateRequest::url, "Address"),
                 field("wait_until", &NavigateRequest::wait_until, "load, domcontentloaded, networkidle or commit")
                     .one_of(kLoadStates)
                     .defaulted(),
                 field("timeout", &NavigateRequest::timeout, "Seconds").defaulted()};
};
template <>
struct Schema<ClickRequest> {
  static constexpr std::string_view name = "ClickRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &ClickRequest::selector, "Selector of playwright: CSS, text=…, xpath=…"),
                 field("index", &ClickRequest::index, "Index in the last answer of GET /v1/browser/page/elements"),
                 field("x", &ClickRequest::x, "Pixels from the left of the page's window"),
                 field("y", &ClickRequest::y, "Pixels from its top"),
                 field("button", &ClickRequest::button, "left, right or middle").defaulted(),
                 field("click_count", &ClickRequest::click_count, "1 to 3").defaulted()};
};
template <>
struct Schema<FillRequest> {
  static constexpr std::string_view name = "FillRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &FillRequest::selector, "Selector of playwright: CSS, text=…, xpath=…"),
                 field("index", &FillRequest::index, "Index in the last answer of GET /v1/browser/page/elements"),
                 field("text", &FillRequest::text, "The text that the field then has")};
};
template <>
struct Schema<TypeTextRequest> {
  static constexpr std::string_view name = "TypeTextRequest";
  static constexpr auto fields = std::tuple{field("text", &TypeTextRequest::text, "What is typed where the focus is"),
                                            field("delay", &TypeTextRequest::delay, "Milliseconds between two keys").defaulted()};
};
template <>
struct Schema<KeyRequest> {
  static constexpr std::string_view name = "KeyRequest";
  static constexpr auto fields =
      std::tuple{field("key", &KeyRequest::key, "A key of playwright or pyautogui, such as Enter or ctrl+a")};
};
template <>
struct Schema<HotKeyRequest> {
  static constexpr std::string_view name = "HotKeyRequest";
  static constexpr auto fields = std::tuple{field("keys", &HotKeyRequest::keys, "Keys that are pressed together")};
};
template <>
struct Schema<HoverRequest> {
  static constexpr std::string_view name = "HoverRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &HoverRequest::selector, "Selector of playwright: CSS, text=…, xpath=…"),
                 field("x", &HoverRequest::x, "Pixels from the left of the page's window"),
                 field("y", &HoverRequest::y, "Pixels from its top")};
};
template <>
struct Schema<SelectOptionRequest> {
  static constexpr std::string_view name = "SelectOptionRequest";
  static constexpr auto fields = std::tuple{
      field("selector", &SelectOptionRequest::selector, "Selector of playwright: CSS, text=…, xpath=…"),
      field("value", &SelectOptionRequest::value, "The option's value"), field("label", &SelectOptionRequest::label, "Its text"),
      field("index", &SelectOptionRequest::index, "Its place in the list")};
};
template <>
struct Schema<CheckRequest> {
  static constexpr std::string_view name = "CheckRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &CheckRequest::selector, "Selector of playwright: CSS, text=…, xpath=…")};
};
template <>
struct Schema<UploadFileRequest> {
  static constexpr std::string_view name = "UploadFileRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &UploadFileRequest::selector, "Selector of playwright: CSS, text=…, xpath=…"),
                 field("files", &UploadFileRequest::files, "Paths in the workspace")};
};
template <>
struct Schema<FormFillRequest> {
  static constexpr std::string_view name = "FormFillRequest";
  static constexpr auto fields =
      std::tuple{field("items", &FormFillRequest::items, R"({"selector" or "index", "value"} for each field)").object()};
};
template <>
struct Schema<ScrollRequest> {
  static constexpr std::string_view name = "ScrollRequest";
  static constexpr auto fields = std::tuple{field("direction", &ScrollRequest::direction, "up, down, left or right").defaulted(),
                                            field("amount", &ScrollRequest::amount, "Pixels").defaulted()};
};
template <>
struct Schema<ScrollToRequest> {
  static constexpr std::string_view name = "ScrollToRequest";
  static constexpr auto fields = std::tuple{field("x", &ScrollToRequest::x, "Pixels from the left of the page").defaulted(),
                                            field("y", &ScrollToRequest::y, "Pixels from its top").defaulted()};
};
template <>
struct Schema<ScrollToElementRequest> {
  static constexpr std::string_view name = "ScrollToElementRequest";
  static constexpr auto fields =
      std::tuple{field("selector", &ScrollToElementRequest::selector, "Selector of playwright: CSS, text=…, xpath=…")};
};
template <>
struct Schema<RecordRequest> {
  static constexpr std::string_view name = "RecordRequest";
  static constexpr auto fields = std::tuple{
      field("action", &RecordRequest::action, "once, start, pause, resume, stop or status").one_of(kRecordActions).defaulted(),
      field("save_path", &RecordRequest::save_path, "File (mp4) in the workspace; ~/recording_….mp4 when absent"),
      field("duration", &RecordRequest::duration, "Seconds of `once`").above(0).defaulted(),
      field("fps", &RecordRequest::fps, "Pictures a second").above(0).defaulted(),
      field("quality", &RecordRequest::quality, "Of the pictures, 0 to 100").min(0).max(100).defaulted()};
};
template <>
struct Schema<ExportConsoleLogsRequest> {
  static constexpr std::string_view name = "ExportConsoleLogsRequest";
  static constexpr auto fields =
      std::tuple{field("save_path", &ExportConsoleLogsRequest::save_path, "File (JSON) in the workspace"),
                 field("clear", &ExportConsoleLogsRequest::clear, "Forget them afterwards").defaulted()};
};
template <>
struct Schema<EvaluateRequest> {
  static constexpr std::string_view name = "EvaluateRequest";
  static constexpr auto fields =
      std::tuple{field("expression", &EvaluateRequest::expression, "JavaScript; a function is called, a promise awaited")};
};
template <>
struct Schema<FindTextRequest> {
  static constexpr std::string_view name = "FindTextRequest";
  static constexpr auto fields = std::tuple{field("keyword", &FindTextRequest::keyword, "Text to be found")};
};
template <>
struct Schema<PageWaitRequest> {
  static constexpr std::string_view name = "PageWaitRequest";
  static constexpr auto fields = std::tuple{
      field("type", &PageWaitRequest::type, "What is waited for").one_of(kWaits),
      field("selector", &PageWaitRequest::selector, "Of type selector"),
      field("state", &PageWaitRequest::state, "attached, detached, visible or hidden; of type load: a state of the page"),
      field("url", &PageWaitRequest::url, "Of type url: glob of playwright"),
      field("save_path", &PageWaitRequest::save_path, "Of type download: where the file is put"),
      field("timeout", &PageWaitRequest::timeout, "Seconds; of type timeout the time itself").defaulted(),
      field("expression", &PageWaitRequest::expression, "Of type function"),
      field("polling", &PageWaitRequest::polling, "Milliseconds between two looks"),
      field("url_pattern", &PageWaitRequest::url_pattern, "Of types response and request")};
};
template <>
struct Schema<CreatePageRequest> {
  static constexpr std::string_view name = "CreatePageRequest";
  static constexpr auto fields = std::tuple{field("url", &CreatePageRequest::url, "Address")};
};
template <>
struct Schema<CookieSetRequest> {
  static constexpr std::string_view name = "CookieSetRequest";
  static constexpr auto fields =
      std::tuple{field("cookies", &CookieSetRequest::cookies, "Cookies as playwright has them").object()};
};
template <>
struct Schema<StateSaveRequest> {
  static constexpr std::string_view name = "StateSaveRequest";
  static constexpr auto fields = std::tuple{field("path", &StateSaveRequest::path, "File (JSON) in the workspace")};
};
template <>
struct Schema<StateLoadRequest> {
  static constexpr std::string_view name = "StateLoadRequest";
  static constexpr auto fields = std::tuple{field("path", &StateLoadRequest::path, "File (JSON) in the workspace")};
};
template <>
struct Schema<HeadersRequest> {
  static constexpr std::string_view name = "HeadersRequest";
  static constexpr auto fields = std::tuple{field("headers", &HeadersRequest::headers, "Of every request; {} takes them back")};
};
template <>
struct Schema<ScopedHeadersRequest> {
  static constexpr std::string_view name = "ScopedHeadersRequest";
  static constexpr auto fields =
      std::tuple{field("origin", &ScopedHeadersRequest::origin, "Such as https://example.org"),
                 field("headers", &ScopedHeadersRequest::headers, "Of requests to it; {} takes them back")};
};
template <>
struct Schema<RouteResponseModel> {
  static constexpr std::string_view name = "RouteResponseModel";
  static constexpr auto fields = std::tuple{field("status", &RouteResponseModel::status, "HTTP status").defaulted(),
                                            field("headers", &RouteResponseModel::headers, "Headers").defaulted(),
                                            field("body", &RouteResponseModel::body, "Text").defaulted(),
                                            field("content_type", &RouteResponseModel::content_type, "Media type").defaulted()};
};
template <>
struct Schema<NetworkRouteRequest> {
  static constexpr std::string_view name = "NetworkRouteRequest";
  static constexpr auto fields =
      std::tuple{field("url_pattern", &NetworkRouteRequest::url_pattern, "Glob of playwright"),
                 field("response", &NetworkRouteRequest::response, "What is answered in place of the server"),
                 field("abort", &NetworkRouteRequest::abort, "The request fails").defaulted()};
};
template <>
struct Schema<NetworkRouteRemoveRequest> {
  static constexpr std::string_view name = "NetworkRouteRemoveRequest";
  static constexpr auto fields = std::tuple{field("url_pattern", &NetworkRouteRemoveRequest::url_pattern, "That of a route")};
};
template <>
struct Schema<ExportHarRequest> {
  static constexpr std::string_view name = "ExportHarRequest";
  static constexpr auto fields = std::tuple{field("save_path", &ExportHarRequest::save_path, "File (HAR 1.2) in the workspace")};
};
template <>
struct Schema<CaptchaWaitRequest> {
  static constexpr std::string_view name = "CaptchaWaitRequest";
  static constexpr auto fields =
      std::tuple{field("timeout", &CaptchaWaitRequest::timeout, "Seconds").defaulted(),
                 field("poll_interval", &CaptchaWaitRequest::poll_interval, "Seconds between two looks").defaulted()};
};
template <>
struct Schema<CaptchaWaitResult> {
  static constexpr std::string_view name = "CaptchaWaitResult";
  static constexpr auto fields = std::tuple{field("resolved", &CaptchaWaitResult::resolved, "Whether none is there any more")};
};

}  // namespace caisson::routes
