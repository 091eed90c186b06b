// /v1/browser/page, tabs, cookies, state, network and captcha: what playwright does in the visible tab, by one driver of the
// workspace (services/browser/page_service.h). What a page does not permit is success false with playwright's own words; a
// request that no page could carry out is 422. Files are written by the rules of the `file` session, and read by the browser's.
#include <charconv>

#include "agent/routes/file_calls.h"
#include "agent/routes/page_types.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

using frames::PageOp;
using services::PageAnswer;

constexpr double kMostPageSeconds = 3600;

struct Asked {
  json::Value head = json::Value::object();
  std::chrono::milliseconds within = services::PageService::kUsual;
  std::string save_path;  // where the answer's file goes
};

// Members that are null are not sent; `timeout` and the path are the agent's.
Asked asked_of(json::Value body) {
  Asked out;
  for (auto& [name, value] : body.items()) {
    if (value.is_null()) continue;
    if (name == "save_path") out.save_path = value.get<std::string>();
    else if (name == "timeout")
      out.within =
          std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(value.get<double>(), 0.001, kMostPageSeconds) * 1000));
    else out.head[name] = std::move(value);
  }
  return out;
}

http::Response page_invalid(std::string_view why) {
  Issues issues;
  issues.add(json::Value::array({"body"}), "value_error", why);
  return validation_response(issues);
}

http::Response page_response(PageAnswer answer) {
  if (answer.invalid) return page_invalid(answer.message);
  if (!answer.ok) return http::fail(answer.message, nullptr, std::move(answer.hint));
  return http::ok(std::move(answer.data), "Operation successful", std::move(answer.hint));
}

constexpr FileOperation kSavePage{"write", "Failed to write file"};

// The file of an answer is written before it is told of.
task<http::Response> saved(Call call, PageAnswer answer, std::string path) {
  const std::size_t size = answer.file.size();
  auto written = co_await call.services.workspace->pages.save(path, std::move(answer.file));
  if (!written) co_return answer_failure(written.error(), kSavePage, path);
  if (!answer.data.is_object()) answer.data = json::Value::object();
  answer.data["save_path"] = text_in(written->head, "path").empty() ? path : text_in(written->head, "path");
  answer.data["file_size_bytes"] = size;
  co_return page_response(std::move(answer));
}

task<http::Response> page_call(Call call, PageOp op, Asked asked) {
  CO_TRY_ASSIGN(PageAnswer answer, co_await call.services.workspace->pages.call(op, std::move(asked.head), asked.within));
  if (!answer.ok || !answer.has_file) co_return page_response(std::move(answer));
  co_return co_await saved(std::move(call), std::move(answer), std::move(asked.save_path));
}

template <PageOp op>
task<http::Response> without_body(Call call) {
  return page_call(std::move(call), op, {});
}

template <PageOp op, class Body>
task<http::Response> with_its_body(Call call, Body body) {
  Asked asked = asked_of(encode(body));
  return page_call(std::move(call), op, std::move(asked));
}

// --- those whose request or answer has another form ---

http::Response page_query_wrong(std::string_view name, std::string_view what) {
  Issues issues;
  issues.add(json::Value::array({"query", name}), "value_error", what);
  return validation_response(issues);
}

// The texts that Pydantic takes for a boolean. nullopt: any other text.
std::optional<bool> flag_of(std::string_view text) {
  for (const std::string_view yes : {"true", "1", "yes", "on"})
    if (text == yes) return true;
  for (const std::string_view no : {"false", "0", "no", "off"})
    if (text == no) return false;
  return std::nullopt;
}

struct QueryMember {
  std::string_view name;
  enum class Kind { text, flag, number, list } kind;
};

// Puts the members of the query into the head. The answer is the refusal.
std::optional<http::Response> take_query(const http::Request& request, std::span<const QueryMember> members, json::Value& head) {
  for (const QueryMember& member : members) {
    const auto text = request.query_value(member.name);
    if (!text) continue;
    json::Value& out = head[std::string(member.name)];
    if (member.kind == QueryMember::Kind::text) {
      out = *text;
    } else if (member.kind == QueryMember::Kind::flag) {
      const auto flag = flag_of(*text);
      if (!flag) return page_query_wrong(member.name, "Input should be a valid boolean");
      out = *flag;
    } else if (member.kind == QueryMember::Kind::number) {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
      if (error != std::errc() || end != text->data() + text->size())
        return page_query_wrong(member.name, "Input should be a valid integer");
      out = number;
    } else {
      out = json::Value::array();
      for (std::string_view left = *text; !left.empty();) {
        const std::size_t comma = std::min(left.find(','), left.size());
        if (comma > 0) out.push_back(left.substr(0, comma));
        left.remove_prefix(std::min(comma + 1, left.size()));
      }
    }
  }
  return std::nullopt;
}

template <PageOp op, const auto& members>
task<http::Response> with_query(Call call) {
  Asked asked;
  if (auto refused = take_query(call.request, members, asked.head)) co_return std::move(*refused);
  co_return co_await page_call(std::move(call), op, std::move(asked));
}

constexpr QueryMember kOfHtml[] = {{"outer", QueryMember::Kind::flag}};
constexpr QueryMember kOfConsole[] = {{"clear", QueryMember::Kind::flag}};
constexpr QueryMember kOfRequests[] = {{"filter", QueryMember::Kind::text}, {"limit", QueryMember::Kind::number}};
constexpr QueryMember kOfCookies[] = {{"urls", QueryMember::Kind::list}};
constexpr QueryMember kOfPicture[] = {
    {"full_page", QueryMember::Kind::flag}, {"format", QueryMember::Kind::text}, {"quality", QueryMember::Kind::number}};

task<http::Response> page_screenshot(Call call) {
  json::Value head = json::Value::object();
  if (auto refused = take_query(call.request, kOfPicture, head)) co_return std::move(*refused);
  CO_TRY_ASSIGN(PageAnswer answer, co_await call.services.workspace->pages.call(PageOp::screenshot, std::move(head)));
  if (!answer.ok || !answer.has_file) co_return page_response(std::move(answer));
  const bool jpeg = json::text_of(answer.data, "content_type") == "image/jpeg";
  http::Response response{.content_type = jpeg ? "image/jpeg" : "image/png", .body = std::move(answer.file)};
  const auto add = [&](std::string_view header, std::string_view member) {
    response.headers.emplace_back(header, std::to_string(number_in(answer.data, member)));
  };
  add("x-viewport-width", "viewport_width");
  add("x-viewport-height", "viewport_height");
  add("x-screenshot-width", "screenshot_width");
  add("x-screenshot-height", "screenshot_height");
  co_return response;
}

task<http::Response> page_record(Call call, RecordRequest body) {
  Asked asked = asked_of(encode(body));
  if (asked.save_path.empty()) asked.save_path = "recording_" + std::to_string(sys::realtime_ns() / 1'000'000) + ".mp4";
  if (body.action == "once")
    asked.within += std::chrono::milliseconds(static_cast<std::int64_t>(std::min(body.duration, kMostPageSeconds) * 1000));
  return page_call(std::move(call), PageOp::record, std::move(asked));
}

task<http::Response> page_wait(Call call, PageWaitRequest body) {
  Asked asked = asked_of(encode(body));
  if (body.type == "timeout") {  // its time is what is asked for
    asked.head["duration_ms"] = static_cast<double>(asked.within.count());
    asked.within += std::chrono::seconds(1);
  }
  const std::string path = std::exchange(asked.save_path, {});
  CO_TRY_ASSIGN(PageAnswer answer,
                co_await call.services.workspace->pages.call(PageOp::wait, std::move(asked.head), asked.within));
  if (!answer.ok || body.type != "download" || path.empty()) co_return page_response(std::move(answer));
  auto moved = co_await call.services.workspace->pages.copy(json::text_of(answer.data, "path"), path);
  if (!moved) co_return answer_failure(moved.error(), kSavePage, path);
  answer.data["path"] = path;
  co_return page_response(std::move(answer));
}

task<http::Response> state_save(Call call, StateSaveRequest body) {
  Asked asked{.save_path = std::move(body.path)};
  return page_call(std::move(call), PageOp::state_save, std::move(asked));
}

template <PageOp op>
task<http::Response> on_tab(Call call) {
  const std::string_view text = call.request.param("index");
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) {
    Issues issues;
    issues.add(json::Value::array({"path", "index"}), "int_parsing", "Input should be a valid integer");
    co_return validation_response(issues);
  }
  Asked asked;
  asked.head["index"] = index;
  co_return co_await page_call(std::move(call), op, std::move(asked));
}

using http::Method;
using Dict = std::map<std::string, json::Value>;
using List = std::vector<json::Value>;

constexpr Parameter kHtmlQuery[] = {
    {"outer", "boolean", "The whole document, rather than what is in its body", false, {}, "false"}};
constexpr Parameter kConsoleQuery[] = {{"clear", "boolean", "Forget them afterwards", false, {}, "false"}};
constexpr Parameter kRequestsQuery[] = {{"filter", "string", "Part of the address", false, {}, "null"},
                                        {"limit", "integer", "The last so many", false, {}, "100"}};
constexpr Parameter kCookiesQuery[] = {
    {"urls", "string", "Addresses whose cookies are wanted, comma-separated", false, {}, "null"}};
constexpr Parameter kPictureQuery[] = {{"full_page", "boolean", "What is below the window, too", false, {}, "false"},
                                       {"format", "string", "png or jpeg", false, {}, R"("png")"},
                                       {"quality", "integer", "Of a JPEG", false, {}, "null"}};

constexpr Route kPages[] = {
    {Method::post, "/v1/browser/page/navigate", "navigate_v1_browser_page_navigate_post", Scope::browser, kHands, Unknown::ignore,
     "Go to an address", bind<with_its_body<PageOp::navigate, NavigateRequest>, Dict>()},
    {Method::post, "/v1/browser/page/back", "go_back_v1_browser_page_back_post", Scope::browser, kHands, Unknown::ignore,
     "Go back", bind<without_body<PageOp::back>>()},
    {Method::post, "/v1/browser/page/forward", "go_forward_v1_browser_page_forward_post", Scope::browser, kHands, Unknown::ignore,
     "Go forward", bind<without_body<PageOp::forward>>()},
    {Method::post, "/v1/browser/page/reload", "reload_v1_browser_page_reload_post", Scope::browser, kHands, Unknown::ignore,
     "Load the page again", bind<without_body<PageOp::reload>>()},
    {Method::post, "/v1/browser/page/click", "click_v1_browser_page_click_post", Scope::browser, kHands, Unknown::ignore,
     "Click an element, by selector or index, or a place", bind<with_its_body<PageOp::click, ClickRequest>>()},
    {Method::post, "/v1/browser/page/fill", "fill_v1_browser_page_fill_post", Scope::browser, kHands, Unknown::ignore,
     "Fill a field", bind<with_its_body<PageOp::fill, FillRequest>>()},
    {Method::post, "/v1/browser/page/type", "type_text_v1_browser_page_type_post", Scope::browser, kHands, Unknown::ignore,
     "Type key by key", bind<with_its_body<PageOp::type, TypeTextRequest>>()},
    {Method::post, "/v1/browser/page/press_key", "press_key_v1_browser_page_press_key_post", Scope::browser, kHands,
     Unknown::ignore, "Press a key", bind<with_its_body<PageOp::press_key, KeyRequest>>()},
    {Method::post, "/v1/browser/page/hot_key", "hot_key_v1_browser_page_hot_key_post", Scope::browser, kHands, Unknown::ignore,
     "Press keys together", bind<with_its_body<PageOp::hot_key, HotKeyRequest>>()},
    {Method::post, "/v1/browser/page/hover", "hover_v1_browser_page_hover_post", Scope::browser, kHands, Unknown::ignore,
     "Move the mouse over an element or to a place", bind<with_its_body<PageOp::hover, HoverRequest>>()},
    {Method::post, "/v1/browser/page/select_option", "select_option_v1_browser_page_select_option_post", Scope::browser, kHands,
     Unknown::ignore, "Choose from a list", bind<with_its_body<PageOp::select_option, SelectOptionRequest>>()},
    {Method::post, "/v1/browser/page/check", "check_v1_browser_page_check_post", Scope::browser, kHands, Unknown::ignore,
     "Check a box", bind<with_its_body<PageOp::check, CheckRequest>>()},
    {Method::post, "/v1/browser/page/uncheck", "uncheck_v1_browser_page_uncheck_post", Scope::browser, kHands, Unknown::ignore,
     "Uncheck a box", bind<with_its_body<PageOp::uncheck, CheckRequest>>()},
    {Method::post, "/v1/browser/page/upload_file", "upload_file_v1_browser_page_upload_file_post", Scope::browser, kHands,
     Unknown::ignore, "Give files to a file field", bind<with_its_body<PageOp::upload_file, UploadFileRequest>>()},
    {Method::post, "/v1/browser/page/fill_form", "fill_form_v1_browser_page_fill_form_post", Scope::browser, kHands,
     Unknown::ignore, "Fill several fields, each by its kind", bind<with_its_body<PageOp::fill_form, FormFillRequest>>()},
    {Method::post, "/v1/browser/page/scroll", "scroll_v1_browser_page_scroll_post", Scope::browser, kHands, Unknown::ignore,
     "Turn the wheel", bind<with_its_body<PageOp::scroll, ScrollRequest>>()},
    {Method::post, "/v1/browser/page/scroll_to", "scroll_to_v1_browser_page_scroll_to_post", Scope::browser, kHands,
     Unknown::ignore, "Scroll to a place", bind<with_its_body<PageOp::scroll_to, ScrollToRequest>>()},
    {Method::post, "/v1/browser/page/scroll_to_element", "scroll_to_element_v1_browser_page_scroll_to_element_post",
     Scope::browser, kHands, Unknown::ignore, "Scroll until an element is seen",
     bind<with_its_body<PageOp::scroll_to_element, ScrollToElementRequest>>()},
    {Method::get, "/v1/browser/page/screenshot", "page_screenshot_v1_browser_page_screenshot_get", Scope::browser, kHands,
     Unknown::ignore, "A picture of the page alone", bind<page_screenshot>(), kDefaultBodyLimit, kPictureQuery, "image/png"},
    {Method::post, "/v1/browser/page/record", "page_record_v1_browser_page_record_post", Scope::browser, kHands, Unknown::ignore,
     "Record the page as a film", bind<page_record, Dict>()},
    {Method::get, "/v1/browser/page/html", "get_html_v1_browser_page_html_get", Scope::browser, kHands, Unknown::ignore,
     "The page's HTML", bind<with_query<PageOp::html, kOfHtml>, std::string>(), kDefaultBodyLimit, kHtmlQuery},
    {Method::get, "/v1/browser/page/text", "get_text_v1_browser_page_text_get", Scope::browser, kHands, Unknown::ignore,
     "The text that is seen", bind<without_body<PageOp::text>, std::string>()},
    {Method::get, "/v1/browser/page/markdown", "get_markdown_v1_browser_page_markdown_get", Scope::browser, kHands,
     Unknown::ignore, "What is to be read in the page, as Markdown", bind<without_body<PageOp::markdown>, Dict>()},
    {Method::get, "/v1/browser/page/elements", "get_interactive_elements_v1_browser_page_elements_get", Scope::browser, kHands,
     Unknown::ignore, "Elements that can be used, with indexes for click and fill", bind<without_body<PageOp::elements>, List>()},
    {Method::get, "/v1/browser/page/console", "get_console_logs_v1_browser_page_console_get", Scope::browser, kHands,
     Unknown::ignore, "The last messages of the console", bind<with_query<PageOp::console, kOfConsole>, List>(),
     kDefaultBodyLimit, kConsoleQuery},
    {Method::post, "/v1/browser/page/console/export", "export_console_logs_v1_browser_page_console_export_post", Scope::browser,
     kNone, Unknown::ignore, "Write them to a file", bind<with_its_body<PageOp::console_export, ExportConsoleLogsRequest>>()},
    {Method::post, "/v1/browser/page/evaluate", "evaluate_v1_browser_page_evaluate_post", Scope::browser, kHands, Unknown::ignore,
     "Run JavaScript in the page", bind<with_its_body<PageOp::evaluate, EvaluateRequest>>()},
    {Method::post, "/v1/browser/page/find_text", "find_text_v1_browser_page_find_text_post", Scope::browser, kHands,
     Unknown::ignore, "Find text in the page", bind<with_its_body<PageOp::find_text, FindTextRequest>, List>()},
    {Method::post, "/v1/browser/page/wait", "wait_v1_browser_page_wait_post", Scope::browser, kHands, Unknown::ignore,
     "Wait for an element, a state, a request, a download", bind<page_wait>()},
    {Method::get, "/v1/browser/tabs", "list_tabs_v1_browser_tabs_get", Scope::browser, kHands, Unknown::ignore, "The tabs",
     bind<without_body<PageOp::tabs>, List>()},
    {Method::post, "/v1/browser/tabs", "create_tab_v1_browser_tabs_post", Scope::browser, kHands, Unknown::ignore, "Open a tab",
     bind<with_its_body<PageOp::tab_create, CreatePageRequest>>()},
    {Method::del, "/v1/browser/tabs/{index}", "close_tab_v1_browser_tabs__index__delete", Scope::browser, kHands, Unknown::ignore,
     "Close a tab; the last one is emptied", bind<on_tab<PageOp::tab_close>>()},
    {Method::put, "/v1/browser/tabs/{index}/activate", "activate_tab_v1_browser_tabs__index__activate_put", Scope::browser,
     kHands, Unknown::ignore, "Bring a tab to the front", bind<on_tab<PageOp::tab_activate>>()},
    {Method::get, "/v1/browser/cookies", "get_cookies_v1_browser_cookies_get", Scope::browser, kHands, Unknown::ignore, "Cookies",
     bind<with_query<PageOp::cookies, kOfCookies>, List>(), kDefaultBodyLimit, kCookiesQuery},
    {Method::post, "/v1/browser/cookies", "set_cookies_v1_browser_cookies_post", Scope::browser, kHands, Unknown::ignore,
     "Set cookies", bind<with_its_body<PageOp::cookies_set, CookieSetRequest>>()},
    {Method::del, "/v1/browser/cookies", "clear_cookies_v1_browser_cookies_delete", Scope::browser, kHands, Unknown::ignore,
     "Delete all cookies", bind<without_body<PageOp::cookies_clear>>()},
    {Method::post, "/v1/browser/state/save", "save_state_v1_browser_state_save_post", Scope::browser, kHands, Unknown::ignore,
     "Write cookies and local storage to a file", bind<state_save>()},
    {Method::post, "/v1/browser/state/load", "load_state_v1_browser_state_load_post", Scope::browser, kHands, Unknown::ignore,
     "Restore them", bind<with_its_body<PageOp::state_load, StateLoadRequest>>()},
    {Method::post, "/v1/browser/network/headers", "set_extra_headers_v1_browser_network_headers_post", Scope::browser, kHands,
     Unknown::ignore, "Headers of every request", bind<with_its_body<PageOp::headers, HeadersRequest>>()},
    {Method::post, "/v1/browser/network/scoped_headers", "set_scoped_headers_v1_browser_network_scoped_headers_post",
     Scope::browser, kHands, Unknown::ignore, "Headers of requests to one origin",
     bind<with_its_body<PageOp::scoped_headers, ScopedHeadersRequest>>()},
    {Method::post, "/v1/browser/network/route", "add_route_v1_browser_network_route_post", Scope::browser, kHands,
     Unknown::ignore, "Answer requests in place of their server", bind<with_its_body<PageOp::route_add, NetworkRouteRequest>>()},
    {Method::del, "/v1/browser/network/route", "remove_route_v1_browser_network_route_delete", Scope::browser, kHands,
     Unknown::ignore, "Take that back", bind<with_its_body<PageOp::route_remove, NetworkRouteRemoveRequest>>()},
    {Method::get, "/v1/browser/network/requests", "get_requests_v1_browser_network_requests_get", Scope::browser, kHands,
     Unknown::ignore, "The last requests of pages", bind<with_query<PageOp::requests, kOfRequests>, List>(), kDefaultBodyLimit,
     kRequestsQuery},
    {Method::post, "/v1/browser/network/export_har", "export_har_v1_browser_network_export_har_post", Scope::browser, kHands,
     Unknown::ignore, "Write them to a file", bind<with_its_body<PageOp::export_har, ExportHarRequest>>()},
    {Method::get, "/v1/browser/captcha/detect", "detect_captcha_v1_browser_captcha_detect_get", Scope::browser, kHands,
     Unknown::ignore, "Whether the page shows a captcha", bind<without_body<PageOp::captcha_detect>>()},
    {Method::post, "/v1/browser/captcha/wait", "wait_for_captcha_v1_browser_captcha_wait_post", Scope::browser, kHands,
     Unknown::ignore, "Wait until a person has solved it",
     bind<with_its_body<PageOp::captcha_wait, CaptchaWaitRequest>, CaptchaWaitResult>()},
};

}  // namespace

Area page_operation_routes() { return kPages; }

}  // namespace caisson::routes
