// /v1/browser: what a client sees and does at the screen of the workspace, as a person at it would. What cannot be done there (a
// place beside the screen, a key that no one knows) is 422: the request is wrong whatever the page shows.
#include <charconv>

#include "agent/routes/browser_types.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using frames::DisplayOp;

http::Response wrong(json::Value loc, std::string_view what) {
  Issues issues;
  issues.add(loc, "value_error", what);
  return validation_response(issues);
}

// "jpg" is the contract's other name for jpeg.
task<http::Response> take_screenshot(Call call) {
  const std::string format(call.request.query_value("format").value_or("png"));
  if (std::ranges::find(kFormats, format) == kFormats.end())
    co_return wrong(json::Value::array({"query", "format"}), "Input should be 'png', 'jpg' or 'jpeg'");
  json::Value head = {{"format", format == "png" ? "png" : "jpeg"}, {"cursor", true}};
  if (const auto text = call.request.query_value("quality")) {
    int quality = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), quality);
    if (error != std::errc() || end != text->data() + text->size() || quality < 0 || quality > 100)
      co_return wrong(json::Value::array({"query", "quality"}), "Input should be an integer from 0 to 100");
    head["quality"] = quality;
  }
  CO_TRY_ASSIGN(frames::Frame shot, co_await call.services.workspace->desktop.call(DisplayOp::screenshot, std::move(head)));
  http::Response response{.content_type = format == "png" ? "image/png" : "image/jpeg", .body = std::move(shot.body)};
  const auto text_of = [&shot](std::string_view name) {
    return std::to_string(json::get_int(shot.head, name).value_or(std::nullopt).value_or(0));
  };
  for (const std::string_view of : {"screen", "image"})
    for (const std::string_view side : {"width", "height"})
      response.headers.emplace_back("x-" + std::string(of) + "-" + std::string(side), text_of(side));
  co_return response;
}

task<http::Response> execute_action(Call call, BrowserAction body) {
  json::Value head = encode(body);
  const std::string name = head["action_type"].get<std::string>();
  head.erase("action_type");
  for (auto it = head.begin(); it != head.end();) it = it->is_null() ? head.erase(it) : std::next(it);
  std::string text;
  if (const auto typed = head.find("text"); typed != head.end()) {
    text = std::move(typed->get_ref<std::string&>());
    head.erase("text");
  }
  const double seconds = head.contains("duration") ? head["duration"].get<double>() : 0;
  head["action"] = name;
  auto done = co_await call.services.workspace->desktop.call(DisplayOp::action, std::move(head), std::move(text), seconds);
  if (!done && done.error().code == Code::invalid_argument)
    co_return wrong(json::Value::array({"body", name}), done.error().what);
  if (!done) co_return std::unexpected(std::move(done).error());
  ActionResponse answer{.message = name + " performed", .data = ActionData{.action_performed = name}, .action_performed = name};
  if (name == "TYPING" && json::get_bool(done->head, "taken").value_or(std::nullopt) == false)
    answer.hint = "No program has taken the text from the clipboard: has a field the focus?";
  co_return http::json_response(200, encode(answer));
}

std::string sizes_text() {
  std::string out;
  for (const frames::Resolution& one : frames::kResolutions)
    out += (out.empty() ? "" : ", ") + std::to_string(one.width) + "x" + std::to_string(one.height);
  return out;
}

task<http::Response> set_config(Call call, BrowserConfig body) {
  if (!body.resolution) co_return http::ok(nullptr, "Nothing to change");
  const auto& [width, height] = *body.resolution;
  if (!frames::is_resolution(width, height))
    co_return wrong(json::Value::array({"body", "resolution"}), "Resolution should be one of " + sizes_text());
  json::Value head = {{"width", width}, {"height", height}};
  CO_TRY(co_await call.services.workspace->desktop.call(DisplayOp::resize, std::move(head)));
  co_return http::ok(nullptr, "The screen has " + std::to_string(width) + "x" + std::to_string(height) + " pixels");
}

task<http::Response> restart_browser(Call call, std::optional<RestartRequest> given) {
  RestartRequest body = std::move(given).value_or(RestartRequest());
  // Nothing of ours holds a connection that could be made anew.
  if (body.mode == "soft") co_return http::ok(nullptr, "The browser goes on");
  services::BrowserWishes wishes{.url_blocklist = std::move(body.url_blocklist),
                                 .url_allowlist = std::move(body.url_allowlist),
                                 .allow_file_selection_dialogs = body.allow_file_selection_dialogs,
                                 .locale = std::move(body.locale)};
  call.services.workspace->pages.try_again();
  auto done = co_await call.services.workspace->browser.restart(std::move(wishes));
  if (!done && done.error().code == Code::invalid_argument) co_return wrong(json::Value::array({"body"}), done.error().what);
  if (!done) co_return std::unexpected(std::move(done).error());
  co_return http::ok(nullptr, "The browser was restarted");
}

using http::Method;

constexpr Parameter kScreenshotQuery[] = {
    {"format", "string", "png, or jpeg by either name", false, {.one_of = kFormats}, R"("png")"},
    {"quality", "integer", "Of a JPEG, 0 to 100", false, {.min = 0, .max = 100}, "null"},
};

constexpr Route kBrowser[] = {
    {Method::get, "/v1/browser/screenshot", "take_screenshot_v1_browser_screenshot_get", Scope::browser, kHands, Unknown::ignore,
     "A picture of the screen", bind<take_screenshot>(), kDefaultBodyLimit, kScreenshotQuery, "image/png image/jpeg"},
    {Method::post, "/v1/browser/actions", "execute_action_v1_browser_actions_post", Scope::browser, kFlat | kHands,
     Unknown::ignore, "Move the mouse, press its buttons, turn its wheel, type, or wait", bind<execute_action, ActionResponse>()},
    {Method::post, "/v1/browser/config", "set_config_v1_browser_config_post", Scope::browser, kNone, Unknown::ignore,
     "Give the screen another size", bind<set_config>()},
    {Method::post, "/v1/browser/restart", "restart_v1_browser_restart_post", Scope::browser, kNone, Unknown::ignore,
     "Restart the browser, with lists of addresses and another language if they are given", bind<restart_browser>()},
};

}  // namespace

Area browser_routes() { return kBrowser; }

}  // namespace caisson::routes
