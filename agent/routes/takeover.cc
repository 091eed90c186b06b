// /v1/browser/info and /v1/browser/takeover: the addresses by which clients and people reach the browser, and who has it.
#include "agent/bridge/launcher_client.h"
#include "agent/routes/links.h"
#include "agent/routes/table.h"
#include "agent/routes/takeover_types.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

using services::BrowserService;
using services::Takeover;

constexpr std::chrono::milliseconds kPageAnswersWithin{1'000};

std::string moment(std::int64_t seconds) { return sys::rfc3339(seconds * 1'000'000'000); }

std::string with_ticket(std::string address, char mark, const std::string& ticket) {
  if (!ticket.empty()) address.append({mark}).append("ticket=").append(ticket);
  return address;
}

// Of this area alone: whoever gets the address gets no more.
auth::Scopes browser_scopes(bool view_only) {
  const std::string name(scope_name(Scope::browser));
  return auth::Scopes::of_claim(view_only ? name + ":read" : name, std::array{scope_name(Scope::browser)});
}

std::string screen_address(const Call& call, const std::string& ticket, bool view_only) {
  std::string out = with_ticket(origin_of(call.request, false) + "/vnc/index.html?autoconnect=true", '&', ticket);
  if (view_only) out += "&view_only=true";
  return out;
}

// What the page in the first tab says of itself. A page may never answer.
asio::awaitable<std::optional<Viewport>> page_viewport(BrowserService* browser) {
  auto found = co_await browser->ask("Target.getTargets", json::Value::object());
  if (!found || !(*found)["targetInfos"].is_array()) co_return std::nullopt;
  for (const json::Value& target : (*found)["targetInfos"]) {
    if (!target.is_object() || json::text_of(target, "type") != "page") continue;
    json::Value wanted = {{"expression", "[innerWidth, innerHeight]"}, {"returnByValue", true}};
    auto said =
        co_await browser->ask("Runtime.evaluate", std::move(wanted), json::text_of(target, "targetId"), kPageAnswersWithin);
    if (!said || !said->is_object()) co_return std::nullopt;
    const json::Value value = said->value("result", json::Value::object()).value("value", json::Value());
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_integer() || !value[1].is_number_integer())
      co_return std::nullopt;
    co_return Viewport{.width = value[0].get<std::int64_t>(), .height = value[1].get<std::int64_t>()};
  }
  co_return std::nullopt;
}

task<http::Response> browser_info(Call call) {
  services::Workspace& workspace = *call.services.workspace;
  CO_TRY_ASSIGN(const json::Value version, co_await workspace.browser.ask("Browser.getVersion", json::Value::object()));
  CO_TRY_ASSIGN(const frames::Frame screen, co_await workspace.desktop.call(frames::DisplayOp::info, json::Value::object()));
  const auto side = [&screen](std::string_view name) {
    return json::get_int(screen.head, name).value_or(std::nullopt).value_or(0);
  };
  BrowserInfo info{.user_agent = json::text_of(version, "userAgent"),
                   .viewport = {.width = side("width"), .height = side("height")}};
  // A page may do more than read, and its ticket no more than the request's own credential.
  const std::string cdp = ticket_for(call, "/cdp", browser_scopes(false)), vnc = ticket_for(call, "/vnc", browser_scopes(false));
  info.cdp_url = with_ticket(origin_of(call.request, true) + "/cdp", '?', cdp);
  info.vnc_url = screen_address(call, vnc, false);
  info.page_viewport = co_await page_viewport(&workspace.browser);
  co_return http::ok(encode(info));
}

TakeoverStatus status_of(const std::optional<Takeover::State>& state) {
  TakeoverStatus out{.active = state.has_value()};
  if (!state) return out;
  out.mode = state->exclusive ? "exclusive" : "shared";
  out.until = moment(state->until);
  out.view_only = state->view_only;
  return out;
}

// Who gave it and took it back, for the log; keys and pictures are on no record.
void tell(const Call& call, const std::string& what) {
  sys::say("caisson-agent: workspace " + quote(call.services.workspace->name) + ": takeover " + what + " by " +
           quote(call.principal.name));
}

// Films stand still while a person has the browser alone: they would show later what was typed. Workspaces are there as long as
// the agent.
task<void> hold_films(services::Workspace* workspace, bool held) {
  CO_TRY(co_await workspace->recorder.hold(held));
  co_return co_await workspace->pages.hold(held);
}

task<void> release_films(services::Workspace* workspace) {
  co_await workspace->takeover.await_end();
  co_return co_await hold_films(workspace, false);
}

task<http::Response> begin_takeover(Call call, std::optional<TakeoverRequest> given) {
  const TakeoverRequest body = std::move(given).value_or(TakeoverRequest());
  services::Workspace* const workspace = call.services.workspace;
  const bool exclusive = body.mode == "exclusive", already = workspace->takeover.is_exclusive();
  const Takeover::State state = workspace->takeover.begin(exclusive, body.view_only, body.seconds);
  if (exclusive && !already) {
    Status held = co_await hold_films(workspace, true);
    if (!held) workspace->takeover.end();
    CO_TRY(std::move(held));
    spawn(call.services.launcher->executor(), "films after a takeover", release_films(workspace));
  }
  tell(call, body.mode + (body.view_only ? ", view-only" : "") + " until " + moment(state.until) + " given");
  const std::string ticket = ticket_for(call, "/vnc", browser_scopes(body.view_only));
  TakeoverLink link{.url = screen_address(call, ticket, body.view_only),
                    .mode = body.mode,
                    .until = moment(state.until),
                    .view_only = body.view_only};
  if (!ticket.empty()) link.ticket = ticket;
  co_return http::ok(encode(link), "The address is for a person");
}

task<http::Response> takeover_status(Call call) {
  co_return http::ok(encode(status_of(call.services.workspace->takeover.current())));
}

task<http::Response> end_takeover(Call call) {
  Takeover& takeover = call.services.workspace->takeover;
  if (takeover.current()) tell(call, "ended");
  takeover.end();
  co_return http::ok(encode(status_of(std::nullopt)), "The clients of the API have the browser");
}

using http::Method;

constexpr Route kTakeover[] = {
    {Method::get, "/v1/browser/info", "get_browser_info_v1_browser_info_get", Scope::browser, kMakes, Unknown::ignore,
     "The browser's addresses and sizes", bind<browser_info, BrowserInfo>()},
    {Method::post, "/v1/browser/takeover", "begin_takeover_v1_browser_takeover_post", Scope::browser, kNone, Unknown::reject,
     "Give the browser to a person", bind<begin_takeover, TakeoverLink>()},
    {Method::get, "/v1/browser/takeover", "get_takeover_v1_browser_takeover_get", Scope::browser, kNone, Unknown::ignore,
     "Who has the browser", bind<takeover_status, TakeoverStatus>()},
    {Method::del, "/v1/browser/takeover", "end_takeover_v1_browser_takeover_delete", Scope::browser, kNone, Unknown::ignore,
     "Take the browser back", bind<end_takeover, TakeoverStatus>()},
    // For the page, whose login is bound to its own path.
    {Method::get, "/vnc/takeover", "get_takeover_of_the_page", Scope::browser, kHidden, Unknown::ignore, "Who has the browser",
     bind<takeover_status, TakeoverStatus>()},
    {Method::del, "/vnc/takeover", "end_takeover_of_the_page", Scope::browser, kHidden, Unknown::ignore, "Give the browser back",
     bind<end_takeover, TakeoverStatus>()},
};

}  // namespace

Area takeover_routes() { return kTakeover; }

}  // namespace caisson::routes
