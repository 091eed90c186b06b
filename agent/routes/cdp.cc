// /cdp, /json and /devtools: the DevTools protocol, with the paths and answers of Chromium's own port, at the root and below
// /cdp. Nothing listens in the workspace: each client is a relay in the session `browser` (services/browser). Messages are copied
// in pieces and never held. Addresses in answers name this server as the client does, with the ticket or key of its request.
#include <deque>

#include "agent/http/target.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/tables/fields.h"

namespace caisson::routes {
namespace {

using services::BrowserService;
using services::Relay;

constexpr std::uint64_t kMostCdpMessage = 256ULL * 1024 * 1024;  // as caisson-cdp takes it
constexpr std::size_t kCdpPieceBytes = 64 * 1024;
constexpr double kLastBytesSeconds = 5;

// --- WebSocket ---

struct Conversation {
  Conversation(Relay::Pointer r, http::WebSocket s, const asio::any_io_executor& executor)
      : relay(std::move(r)), socket(std::move(s)), over(executor) {}
  const Relay::Pointer relay;
  const http::WebSocket socket;
  bool said_all = false;  // nothing more comes from the browser
  bridge::Notifier over;
};
using ConversationPtr = std::shared_ptr<Conversation>;

// What the browser says, cut at each NUL.
task<void> send_messages(ConversationPtr talk, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\0');
    http::WebSocketPiece piece;
    piece.data = bytes.substr(0, end);
    piece.last = end != std::string_view::npos;
    bytes.remove_prefix(piece.last ? end + 1 : bytes.size());
    CO_TRY(co_await talk->socket.send_piece(std::move(piece)));
  }
  co_return Status{};
}

task<void> pass_down(ConversationPtr talk, std::string bytes) {
  while (true) {
    if (!co_await send_messages(talk, bytes)) break;
    auto next = co_await Relay::read(talk->relay, kCdpPieceBytes);
    if (!next || next->empty()) break;
    bytes = std::move(*next);
  }
  talk->said_all = true;
  talk->over.notify_all();
  co_return co_await talk->socket.close(1001, "the browser has let this client go");
}

task<void> pass_up(ConversationPtr talk) {
  while (true) {
    CO_TRY_ASSIGN(auto piece, co_await talk->socket.receive_piece(kMostCdpMessage));
    if (!piece) co_return Status{};
    if (piece->binary || piece->data.contains('\0'))
      co_return co_await talk->socket.close(1003, "messages are JSON in text frames");
    if (piece->last) piece->data.push_back('\0');
    if (piece->data.empty()) continue;
    CO_TRY(co_await Relay::write(talk->relay, std::move(piece->data)));
  }
}

task<void> join(BrowserService::Client client, http::WebSocket socket) {
  const asio::any_io_executor executor = client.relay->program()->executor();
  const auto talk = std::make_shared<Conversation>(client.relay, std::move(socket), executor);
  spawn(executor, "cdp client", pass_down(talk, std::move(client.rest)));
  Status passed = co_await pass_up(talk);
  talk->relay->end();
  const auto deadline = bridge::deadline_after(kLastBytesSeconds);
  while (!talk->said_all)
    if (!co_await talk->over.wait_until(deadline)) break;
  if (!talk->said_all) talk->socket.abort();
  co_return passed;
}

// browser: the one that is meant; "": whichever runs.
task<void> converse(Call call, http::WebSocket socket, std::string target, std::string browser) {
  auto client = co_await call.services.workspace->browser.connect(std::move(target));
  if (!client) co_return co_await socket.close(1011, client.error().text());
  if (!browser.empty() && client->browser != browser)
    co_return co_await socket.close(1008, "this browser has ended: ask /json/version");
  co_return co_await join(std::move(*client), std::move(socket));
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
  std::string out = request.scheme == "https" ? "wss://" : "ws://";
  out.append(request.host);
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
  CO_TRY_ASSIGN(const BrowserService::Client client, co_await browser.connect(""));
  client.relay->end();
  CO_TRY_ASSIGN(const json::Value version, co_await browser.ask("Browser.getVersion", json::Value::object()));
  const auto text = [&version](std::string_view name) { return json::text_of(version, name); };
  json::Value out = {{"Browser", text("product")},
                     {"Protocol-Version", text("protocolVersion")},
                     {"User-Agent", text("userAgent")},
                     {"V8-Version", text("jsVersion")},
                     {"WebKit-Version", "537.36 (" + text("revision") + ")"},
                     {"webSocketDebuggerUrl", address(call.request, "browser", client.browser)}};
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
};
constexpr CdpRow kCdpRows[] = {
    {Method::get, "/json", "Tabs and other targets", bind<json_list>(), true},
    {Method::get, "/json/list", "Tabs and other targets", bind<json_list>(), true},
    {Method::get, "/json/version", "The browser, and where it is reached", bind<json_version>(), true},
    {Method::put, "/json/new", "Open a tab", bind<json_new>(), true},
    {Method::get, "/json/activate/{id}", "Bring a tab to the front", bind<json_activate>(), true},
    {Method::get, "/json/close/{id}", "Close a tab", bind<json_close>(), true},
    {Method::get, "/devtools/browser/{id}", "The browser, by WebSocket", bind_websocket<devtools_browser>(), false},
    {Method::get, "/devtools/page/{id}", "A tab, by WebSocket", bind_websocket<devtools_page>(), false},
};

}  // namespace

Area cdp_routes() {
  static std::deque<std::string> paths;  // rows only refer to them
  static const std::vector<Route> routes = [] {
    std::vector<Route> out;
    const auto add = [&out](Method method, std::string path, std::string_view summary, const Endpoint& endpoint) {
      const std::string_view kept = paths.emplace_back(std::move(path));
      out.push_back({method, kept, kept, Scope::browser, kHidden, Unknown::ignore, summary, endpoint});
    };
    for (const std::string prefix : {"", "/cdp"})
      for (const CdpRow& row : kCdpRows) {
        add(row.method, prefix + std::string(row.path), row.summary, row.endpoint);
        if (row.slash) add(row.method, prefix + std::string(row.path) + "/", row.summary, row.endpoint);
      }
    add(Method::get, "/cdp", "The browser, by WebSocket", bind_websocket<cdp>());
    return out;
  }();
  return routes;
}

}  // namespace caisson::routes
