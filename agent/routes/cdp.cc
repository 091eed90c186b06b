// /cdp, /json and /devtools: the DevTools protocol, with the paths and answers of Chromium's own port, at the root and below
// /cdp. Nothing listens in the workspace: each client is a relay in the session `browser` (services/browser). Messages are copied
// in pieces and never held. Addresses in answers name this server as the client does, with the ticket or key of its request.
#include <deque>

#include "agent/http/target.h"
#include "agent/routes/links.h"
#include "agent/routes/relay_socket.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

using services::BrowserService;

constexpr WireLimits kCdpLimits{.most_message = 256ULL * 1024 * 1024,  // as caisson-cdp takes it
                                .last_words = "the browser has let this client go",
                                .protocol = "cdp"};

// --- WebSocket ---

// The browser ends each message with a NUL. Nothing passes while a person has the browser alone: messages wait where they are.
// caisson-cdp disconnects a client when more waits for it than its bound.
class CdpWire final : public Wire {
 public:
  explicit CdpWire(services::Takeover& takeover) : takeover_(takeover) {}
  [[nodiscard]] task<void> send_down(http::WebSocket socket, std::string bytes) override {
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = bytes.find('\0', at);
      http::WebSocketPiece piece;
      piece.data = bytes.substr(at, end == std::string::npos ? end : end - at);
      piece.last = end != std::string::npos;
      at = piece.last ? end + 1 : bytes.size();
      CO_TRY(co_await socket.send_piece(std::move(piece)));
    }
    co_return Status{};
  }
  [[nodiscard]] Result<std::string> for_program(http::WebSocketPiece piece) override {
    if (piece.binary || piece.data.contains('\0')) return fail(Code::protocol, "messages are JSON in text frames");
    if (piece.last) piece.data.push_back('\0');
    return std::move(piece.data);
  }
  [[nodiscard]] bool is_held() const override { return takeover_.is_exclusive(); }
  [[nodiscard]] asio::awaitable<void> await_turn() override { return takeover_.await_end(); }

 private:
  services::Takeover& takeover_;  // of a workspace, which is there as long as the agent
};

// browser: the one that is meant; "": whichever runs.
task<void> converse(Call call, http::WebSocket socket, std::string target, std::string browser) {
  auto client = co_await call.services.workspace->browser.connect(std::move(target));
  if (!client) co_return co_await socket.close(1011, client.error().text());
  if (!browser.empty() && client->browser != browser)
    co_return co_await socket.close(1008, "this browser has ended: ask /json/version");
  std::string first = std::move(client->rest);
  auto wire = std::make_shared<CdpWire>(call.services.workspace->takeover);
  co_return co_await join(std::move(client->relay), std::move(socket), std::move(wire), kCdpLimits, std::move(first));
}

task<void> cdp(Call call, http::WebSocket socket) { return converse(std::move(call), std::move(socket), "", ""); }
task<void> devtools_browser(Call call, http::WebSocket socket) {
  std::string id(call.request.param("id"));
  return converse(std::move(call), std::move(socket), "", std::move(id));
}
task<void> devtools_page(Call call, http::WebSocket socket) {
  std::string id(call.request.param("id"));
  return converse(std::move(call), std::move(socket), std::move(id), "");
}

// --- what Chromium's port answers by HTTP ---

// "ws://host/cdp/devtools/page/ID?ticket=..."
std::string address(const http::Request& request, std::string_view kind, std::string_view id) {
  std::string out = origin_of(request, true);
  if (!request.segments.empty() && request.segments[0] == "cdp") out += "/cdp";
  out.append("/devtools/").append(kind).append("/").append(id);
  for (const std::string_view name : {"ticket", "api_key"})
    if (const auto value = request.query_value(name))
      return out.append("?").append(name).append("=").append(http::percent_encoded(*value));
  return out;
}

http::Response plain(int status, std::string text) { return http::text_response(status, "text/plain", std::move(text)); }

task<http::Response> json_version(Call call) {
  BrowserService& browser = call.services.workspace->browser;
  CO_TRY_ASSIGN(BrowserService::Client client, co_await browser.connect(""));
  const std::string id = client.browser;
  CO_TRY_ASSIGN(const json::Value version,
                co_await BrowserService::ask_as(std::move(client), "Browser.getVersion", json::Value::object()));
  const auto text = [&version](std::string_view name) { return json::text_of(version, name); };
  json::Value out = {{"Browser", text("product")},
                     {"Protocol-Version", text("protocolVersion")},
                     {"User-Agent", text("userAgent")},
                     {"V8-Version", text("jsVersion")},
                     {"WebKit-Version", "537.36 (" + text("revision") + ")"},
                     {"webSocketDebuggerUrl", address(call.request, "browser", id)}};
  co_return http::json_response(200, std::move(out));
}

json::Value described(const http::Request& request, const json::Value& target) {
  const std::string id = json::text_of(target, "targetId");
  json::Value out = {{"description", ""}, {"id", id}, {"webSocketDebuggerUrl", address(request, "page", id)}};
  for (const char* name : {"title", "type", "url"}) out[name] = json::text_of(target, name);
  if (const std::string opener = json::text_of(target, "openerId"); !opener.empty()) out["parentId"] = opener;
  return out;
}

task<json::Value> all_targets(BrowserService* browser) {
  CO_TRY_ASSIGN(json::Value found, co_await browser->ask("Target.getTargets", json::Value::object()));
  const auto list = found.find("targetInfos");
  if (list == found.end() || !list->is_array()) co_return fail(Code::protocol, "the browser names no targets");
  co_return std::move(*list);
}

task<http::Response> json_list(Call call) {
  CO_TRY_ASSIGN(const json::Value list, co_await all_targets(&call.services.workspace->browser));
  json::Value out = json::Value::array();
  for (const json::Value& target : list)
    if (target.is_object() && json::text_of(target, "type") != "browser") out.push_back(described(call.request, target));
  co_return http::json_response(200, std::move(out));
}

task<http::Response> json_protocol(Call call) {
  CO_TRY_ASSIGN(std::string text, co_await call.services.workspace->browser.protocol());
  co_return http::text_response(200, "application/json", std::move(text));
}

// `PUT /json/new?http://example.org/?a=b`: the address is the query, but for what shows a right.
std::string wanted_address(const http::Request& request) {
  if (const auto url = request.query_value("url")) return std::string(*url);
  for (const auto& [name, value] : request.query)
    if (name != "ticket" && name != "api_key") return value.empty() ? name : name + "=" + value;
  return "about:blank";
}

task<http::Response> json_new(Call call) {
  BrowserService& browser = call.services.workspace->browser;
  json::Value params = {{"url", wanted_address(call.request)}};
  CO_TRY_ASSIGN(const json::Value made, co_await browser.ask("Target.createTarget", std::move(params)));
  CO_TRY_ASSIGN(const json::Value list, co_await all_targets(&browser));
  for (const json::Value& target : list)
    if (target.is_object() && json::text_of(target, "targetId") == json::text_of(made, "targetId"))
      co_return http::json_response(200, described(call.request, target));
  co_return plain(404, "The new page has closed already");
}

task<http::Response> on_target(Call call, std::string method, std::string done) {
  const std::string id(call.request.param("id"));
  json::Value params = {{"targetId", id}};
  auto answered = co_await call.services.workspace->browser.ask(std::move(method), std::move(params));
  if (!answered && answered.error().code == Code::invalid_argument) co_return plain(404, "No such target id: " + id);
  if (!answered) co_return std::unexpected(std::move(answered).error());
  co_return plain(200, std::move(done));
}
task<http::Response> json_activate(Call call) { return on_target(std::move(call), "Target.activateTarget", "Target activated"); }
task<http::Response> json_close(Call call) { return on_target(std::move(call), "Target.closeTarget", "Target is closing"); }

using http::Method;

struct CdpRow {
  Method method;
  std::string_view path, summary;
  Endpoint endpoint;
  bool slash;  // may end with one: clients of Chromium's port send it
  unsigned flags;
};
constexpr CdpRow kCdpRows[] = {
    {Method::get, "/json", "Tabs and other targets", bind<json_list>(), true, kHands},
    {Method::get, "/json/list", "Tabs and other targets", bind<json_list>(), true, kHands},
    {Method::get, "/json/version", "The browser, and where it is reached", bind<json_version>(), true, kNone},
    {Method::get, "/json/protocol", "The protocol's domains, as JSON", bind<json_protocol>(), true, kNone},
    {Method::put, "/json/new", "Open a tab", bind<json_new>(), true, kHands},
    {Method::get, "/json/activate/{id}", "Bring a tab to the front", bind<json_activate>(), true, kHands},
    {Method::get, "/json/close/{id}", "Close a tab", bind<json_close>(), true, kHands},
    {Method::get, "/devtools/browser/{id}", "The browser, by WebSocket", bind_websocket<devtools_browser>(), false, kNone},
    {Method::get, "/devtools/page/{id}", "A tab, by WebSocket", bind_websocket<devtools_page>(), false, kNone},
};

}  // namespace

Area cdp_routes() {
  static std::deque<std::string> paths;  // rows only refer to them
  static const std::vector<Route> routes = [] {
    std::vector<Route> out;
    const auto add = [&out](Method method, std::string path, std::string_view summary, const Endpoint& endpoint, unsigned flags) {
      const std::string_view kept = paths.emplace_back(std::move(path));
      out.push_back({method, kept, kept, Scope::browser, kHidden | flags, Unknown::ignore, summary, endpoint});
    };
    for (const std::string prefix : {"", "/cdp"})
      for (const CdpRow& row : kCdpRows) {
        add(row.method, prefix + std::string(row.path), row.summary, row.endpoint, row.flags);
        if (row.slash) add(row.method, prefix + std::string(row.path) + "/", row.summary, row.endpoint, row.flags);
      }
    add(Method::get, "/cdp", "The browser, by WebSocket", bind_websocket<cdp>(), kNone);
    return out;
  }();
  return routes;
}

}  // namespace caisson::routes
