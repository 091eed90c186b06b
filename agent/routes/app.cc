#include "agent/routes/app.h"

#include <algorithm>

#include "agent/http/failure.h"
#include "agent/http/log.h"
#include "agent/services/workspace/workspaces.h"

namespace caisson::routes {
namespace {

// What a handler returned, as an answer. Failures of tools are 200: clients re-run a command that gets a 5xx.
http::Response to_response(Result<http::Response> result) {
  if (result) return std::move(*result);
  if (result.error().code == Code::internal) return http::internal_failure(result.error().text());
  return http::fail(result.error().text());
}

class RouteExchange final : public http::Exchange {
 public:
  RouteExchange(http::Request head, const Services& services, services::WorkspacePtr of, const Route& route, http::Pairs cors)
      : Exchange(std::move(head)), services_(services), workspace_(std::move(of)), route_(route) {
    if (workspace_) {
      workspace = workspace_->name;
      services_.workspace = workspace_.get();
    }
    response_headers = std::move(cors);
    body_limit = route.body_limit;
    streamed_body = (route.flags & kStreamedBody) != 0;
    websocket = route.endpoint.websocket != nullptr;
  }

  asio::awaitable<http::Response> serve(http::StreamWriter& writer) override {
    Call call{services_, std::move(request), route_, &writer};
    Result<http::Response> result = co_await route_.endpoint.handler(std::move(call));
    co_return to_response(std::move(result));
  }

  task<void> converse(http::WebSocket socket) override {
    Call call{services_, std::move(request), route_, nullptr};
    co_return co_await route_.endpoint.websocket(std::move(call), std::move(socket));
  }

 private:
  Services services_;
  const services::WorkspacePtr workspace_;  // kept for as long as a handler works with its services
  const Route& route_;
};

http::Response no_content() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

constexpr std::string_view kWorkspaceHeader = "x-caisson-workspace";

// Whether a request of this scope is about what a workspace runs: who asks for its log need not wake it.
bool wakes(Scope scope) { return scope != Scope::system && scope != Scope::workspaces && scope != Scope::audit; }

}  // namespace

App::App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table)
    : services_(services),
      auth_off_(settings.auth_off),
      key_(settings.api_key),
      origins_(settings.allow_origin, settings.auth_off, settings.allow_host),
      router_(table) {}

asio::awaitable<http::Admission> App::admit(http::Request head) {
  if (!origins_.knows_host(head)) {
    const std::string host = quote(head.header("host").value_or(""));
    co_return http::error_response(403, "Host " + host +
                                            " is not allowed: without authentication only addresses, localhost and the names"
                                            " in CAISSON_ALLOW_HOST are served");
  }
  if (!origins_.permits(head)) co_return http::error_response(403, "Origin is not allowed");
  http::Pairs cors = cors_headers(head);
  const bool asks_options = head.method == http::Method::options;
  // Browsers send a preflight without credentials; who has the key is told what the path takes, as by 405.
  if (asks_options && (!cors.empty() || !(auth_off_ || auth::key_of(head)))) co_return preflight(head);

  Match match = router_.find(head.method, head.segments);
  const bool is_public = match.route != nullptr && (match.route->flags & kPublic) != 0;
  if (!is_public && !has_key(head)) {
    http::Response refusal = co_await refuse_key(head.remote, auth::key_of(head).has_value());
    refusal.headers.insert(refusal.headers.end(), cors.begin(), cors.end());
    co_return refusal;
  }
  if (match.allowed.empty()) co_return http::error_response(404, "Not Found");
  if (match.route == nullptr) {
    http::Response told = asks_options ? no_content() : http::error_response(405, "Method Not Allowed");
    told.headers = {{"allow", allow_header(match.allowed)}};
    co_return told;
  }
  head.params = std::move(match.params);
  services::WorkspacePtr workspace;
  if (!is_public && match.route->scope != Scope::workspaces && services_.workspaces != nullptr) {
    const auto named =
        std::ranges::count(head.headers, kWorkspaceHeader, [](const auto& h) { return std::string_view(h.first); });
    if (named > 1) co_return http::error_response(400, "X-Caisson-Workspace is given more than once");
    if (named == 1) {
      std::string name(*head.header(kWorkspaceHeader));
      auto found = co_await services_.workspaces->find(std::move(name));
      if (!found && found.error().code == Code::not_found) co_return http::error_response(404, "Workspace not found");
      if (!found) co_return http::internal_failure(found.error().text());
      workspace = std::move(*found);
    }
  }
  if (!is_public && wakes(match.route->scope) && services_.workspaces != nullptr) {
    const services::WorkspacePtr meant = workspace ? workspace : services_.workspaces->standard();
    const Status awake = co_await services_.workspaces->wake(meant);
    if (!awake) co_return http::internal_failure(awake.error().text());
  }
  co_return std::make_unique<RouteExchange>(std::move(head), services_, std::move(workspace), *match.route, std::move(cors));
}

// An empty configured key matches nothing: main.cc refuses to start without one unless auth is off.
bool App::has_key(const http::Request& head) const {
  if (auth_off_) return true;
  const auto given = auth::key_of(head);
  return given && !given->empty() && key_.matches(*given);
}

asio::awaitable<http::Response> App::refuse_key(std::string remote, bool given) {
  const auth::Failures::Verdict verdict = failures_.record(remote, auth::Failures::Clock::now());
  if (verdict.log) log::warn((given ? "wrong API key from " : "request without an API key from ") + remote);
  if (given && verdict.delay.count() > 0) co_await sleep_for(verdict.delay);
  http::Response refusal =
      http::error_response(401, given ? "Unauthorized: wrong API key"
                                      : "Unauthorized: send the API key as X-AIO-API-Key, Authorization: Bearer or ?api_key=");
  refusal.headers = {{"www-authenticate", "Bearer realm=\"caisson\""}};
  co_return refusal;
}

http::Pairs App::cors_headers(const http::Request& head) const {
  const auto origin = head.header("origin");
  if (!origin || !origins_.is_listed(*origin)) return {};
  return {{"access-control-allow-origin", std::string(*origin)}, {"vary", "Origin"}};
}

http::Response App::preflight(const http::Request& head) const {
  const Match match = router_.find(http::Method::options, head.segments);
  http::Response response = no_content();
  response.headers = cors_headers(head);
  // The same Allow for every path unless a listed origin asks: what exists is not told without a key.
  const bool listed = !response.headers.empty();
  const bool tell = listed && !match.allowed.empty();
  const std::string allow = tell ? allow_header(match.allowed) : "DELETE, GET, HEAD, OPTIONS, POST, PUT";
  response.headers.emplace_back("allow", allow);
  if (listed) {
    response.headers.emplace_back("access-control-allow-methods", allow);
    response.headers.emplace_back("access-control-allow-headers",
                                  "accept, authorization, content-type, x-aio-api-key, x-caisson-workspace");
    response.headers.emplace_back("access-control-max-age", "600");
  }
  return response;
}

}  // namespace caisson::routes
