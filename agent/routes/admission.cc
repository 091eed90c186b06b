// The checks of a request's head, before a byte of its body is read. App::checks() is their order.
#include <algorithm>

#include "agent/http/failure.h"
#include "agent/http/log.h"
#include "agent/routes/app.h"
#include "agent/services/workspace/workspaces.h"

namespace caisson::routes {
namespace {

http::Response no_content() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

bool asks_options(const http::Request& head) { return head.method == http::Method::options; }

constexpr std::string_view kWorkspaceHeader = "x-caisson-workspace";

// Whether a request of this scope is about what a workspace runs: who asks for its log need not wake it.
bool wakes(Scope scope) { return scope != Scope::system && scope != Scope::workspaces && scope != Scope::audit; }

}  // namespace

std::span<const App::Check> App::checks() {
  static constexpr Check kChecks[] = {&App::check_host,  &App::check_origin,   &App::answer_preflight, &App::check_identity,
                                      &App::check_route, &App::find_workspace, &App::wake_workspace};
  return kChecks;
}

asio::awaitable<App::Answer> App::check_host(Arrival& arrival) {
  if (origins_.knows_host(arrival.head)) co_return std::nullopt;
  const std::string host = quote(arrival.head.header("host").value_or(""));
  co_return http::error_response(403, "Host " + host +
                                          " is not allowed: without authentication only addresses, localhost and the names"
                                          " in CAISSON_ALLOW_HOST are served");
}

asio::awaitable<App::Answer> App::check_origin(Arrival& arrival) {
  if (!origins_.permits(arrival.head)) co_return http::error_response(403, "Origin is not allowed");
  arrival.cors = cors_headers(arrival.head);
  co_return std::nullopt;
}

// Browsers send a preflight without credentials; who has the key is told what the path takes, as by 405.
asio::awaitable<App::Answer> App::answer_preflight(Arrival& arrival) {
  if (!asks_options(arrival.head)) co_return std::nullopt;
  if (arrival.cors.empty() && (auth_off_ || auth::key_of(arrival.head))) co_return std::nullopt;
  co_return preflight(arrival.head);
}

asio::awaitable<App::Answer> App::check_identity(Arrival& arrival) {
  arrival.match = router_.find(arrival.head.method, arrival.head.segments);
  if (is_public(arrival) || has_key(arrival.head)) co_return std::nullopt;
  http::Response refusal = co_await refuse_key(arrival.head.remote, auth::key_of(arrival.head).has_value());
  refusal.headers.insert(refusal.headers.end(), arrival.cors.begin(), arrival.cors.end());
  co_return refusal;
}

asio::awaitable<App::Answer> App::check_route(Arrival& arrival) {
  Match& match = arrival.match;
  if (match.allowed.empty()) co_return http::error_response(404, "Not Found");
  if (match.route == nullptr) {
    http::Response told = asks_options(arrival.head) ? no_content() : http::error_response(405, "Method Not Allowed");
    told.headers = {{"allow", allow_header(match.allowed)}};
    co_return told;
  }
  arrival.head.params = std::move(match.params);
  co_return std::nullopt;
}

asio::awaitable<App::Answer> App::find_workspace(Arrival& arrival) {
  if (is_public(arrival) || arrival.match.route->scope == Scope::workspaces || services_.workspaces == nullptr)
    co_return std::nullopt;
  const http::Request& head = arrival.head;
  const auto named = std::ranges::count(head.headers, kWorkspaceHeader, [](const auto& h) { return std::string_view(h.first); });
  if (named == 0) co_return std::nullopt;
  if (named > 1) co_return http::error_response(400, "X-Caisson-Workspace is given more than once");
  std::string name(*head.header(kWorkspaceHeader));
  auto found = co_await services_.workspaces->find(std::move(name));
  if (!found && found.error().code == Code::not_found) co_return http::error_response(404, "Workspace not found");
  if (!found) co_return http::internal_failure(found.error().text());
  arrival.workspace = std::move(*found);
  co_return std::nullopt;
}

asio::awaitable<App::Answer> App::wake_workspace(Arrival& arrival) {
  if (is_public(arrival) || !wakes(arrival.match.route->scope) || services_.workspaces == nullptr) co_return std::nullopt;
  const services::WorkspacePtr meant = arrival.workspace ? arrival.workspace : services_.workspaces->standard();
  const Status awake = co_await services_.workspaces->wake(meant);
  if (!awake) co_return http::internal_failure(awake.error().text());
  co_return std::nullopt;
}

bool App::is_public(const Arrival& arrival) {
  return arrival.match.route != nullptr && (arrival.match.route->flags & kPublic) != 0;
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
