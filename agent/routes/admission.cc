// The checks of a request's head, before a byte of its body is read. App::checks() is their order: rate, origin, target,
// identity, route, scope, workspace; http/framing.cc has checked the framing before. A new check is a row there. The answers of
// the checks after check_identity are only for holders of a key. The route comes before the workspace: finding a route costs
// nothing, an unknown workspace costs a question to the launcher. The checks of credentials are in admission_identity.cc.
#include <algorithm>

#include "agent/http/failure.h"
#include "agent/routes/app.h"
#include "agent/services/workspace/workspaces.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

http::Response no_content() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

bool asks_options(const http::Request& head) { return head.method == http::Method::options; }

// Whether a request of this scope needs the workspace's processes; reading its log, for example, does not wake it.
bool wakes(Scope scope) { return scope != Scope::system && scope != Scope::audit; }

}  // namespace

std::span<const App::Check> App::checks() {
  static constexpr Check kChecks[] = {&App::check_rate,     &App::check_host,       &App::check_origin, &App::find_target,
                                      &App::check_inside,   &App::answer_preflight, &App::await_key,    &App::exchange_credential,
                                      &App::check_identity, &App::check_port,       &App::check_route,  &App::check_scope,
                                      &App::find_workspace, &App::wake_workspace,   &App::check_ended,  &App::check_takeover};
  return kChecks;
}

// First, because the later checks cost more. Probes are exempt: behind one address (NAT), other clients would make them fail.
asio::awaitable<App::Answer> App::check_rate(Arrival& arrival) {
  const auto wait = rates_.exceeded(arrival.head.remote);
  if (!wait) co_return std::nullopt;
  const Match asked = router_.find(arrival.head.method, arrival.head.segments);
  if (asked.route != nullptr && (asked.route->flags & kProbe) != 0) co_return std::nullopt;
  http::Response refusal = http::error_response(429, "Too many requests a second from this address");
  refusal.headers = {{"retry-after", std::to_string(wait->count())}};
  co_return refusal;
}

asio::awaitable<App::Answer> App::check_host(Arrival& arrival) {
  const bool preview = preview_hosts_.lists(arrival.head.header("host").value_or(""));
  const bool unkeyed = gate_.is_peer(arrival.head) && !auth::names_credential(arrival.head);  // check_identity() asks again
  if (preview || (unkeyed ? origins_.is_own_name(arrival.head) : origins_.knows_host(arrival.head))) co_return std::nullopt;
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

// Browsers send a preflight without credentials. A client with the key is told the path's methods, as by 405.
asio::awaitable<App::Answer> App::answer_preflight(Arrival& arrival) {
  if (!asks_options(arrival.head)) co_return std::nullopt;
  if (arrival.cors.empty() && (gate_.off() || auth::names_credential(arrival.head))) co_return std::nullopt;
  co_return preflight(arrival.head);
}

// A path of ours on the name of a preview is the app's, and never public.
asio::awaitable<App::Answer> App::find_target(Arrival& arrival) {
  arrival.port = proxy::destination_of(arrival.head, preview_hosts_);
  if (arrival.port && services_.proxy == nullptr) arrival.port = std::nullopt;
  if (arrival.port && !*arrival.port) arrival.match = router_.find(arrival.head.method, arrival.head.segments);
  co_return std::nullopt;
}

// From inside a workspace only the API is there: no page, no preview, and nothing that takes or gives credentials, because what
// it gave would be good outside.
asio::awaitable<App::Answer> App::check_inside(Arrival& arrival) {
  if (arrival.head.inside.empty()) co_return std::nullopt;
  const Route* route = arrival.match.route;
  const bool to_port = !arrival.port || *arrival.port;
  const bool other = route != nullptr && ((route->flags & (kPage | kInside)) != 0 || route->scope == Scope::auth);
  if (to_port || other) co_return http::error_response(404, "Not Found");
  co_return std::nullopt;
}

asio::awaitable<App::Answer> App::check_port(Arrival& arrival) {
  if (!arrival.port) co_return http::error_response(400, arrival.port.error().what);
  if (!*arrival.port) co_return std::nullopt;
  const proxy::Destination& to = **arrival.port;
  // A worker would see, and answer, what this browser asks below that path from now on: keys in addresses, and the pages of
  // whatever listens on that port later. A name of its own is the place for one.
  if (!to.prefix.empty() && arrival.head.header("service-worker"))
    co_return http::error_response(403, "Service workers need a name of their own for the port (CAISSON_PREVIEW_HOSTS)");
  if (arrival.head.verb == "CONNECT" || arrival.head.verb == "TRACE") co_return http::error_response(405, "Method Not Allowed");
  if (!to.stripped || !to.lacks_slash) co_return std::nullopt;
  // Relative addresses of the app's first page need the slash.
  http::Response there = http::error_response(307, "The address of this port ends with a slash");
  const std::string& target = arrival.head.target;
  there.headers = {{"location", to.prefix + "/" + target.substr(std::min(target.find('?'), target.size()))}};
  co_return there;
}

asio::awaitable<App::Answer> App::check_route(Arrival& arrival) {
  if (goes_to_port(arrival)) co_return std::nullopt;
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
  if ((!goes_to_port(arrival) && !has_workspace(*arrival.match.route)) || services_.workspaces == nullptr) co_return std::nullopt;
  const http::Request& head = arrival.head;
  const std::size_t named = head.count_of(kWorkspaceHeader);
  if (named > 1) co_return http::error_response(400, "X-Caisson-Workspace is given more than once");
  const std::optional<std::string>& own = arrival.principal.bounds.workspace;
  if (named == 0 && !own) co_return std::nullopt;
  std::string name = named == 0 ? *own : std::string(*head.header(kWorkspaceHeader));
  if (own && name != *own) co_return http::error_response(404, "Workspace not found");  // as if it did not exist
  auto found = co_await services_.workspaces->find(std::move(name));
  if (!found && found.error().code == Code::not_found) co_return http::error_response(404, "Workspace not found");
  if (!found) co_return http::internal_failure(found.error().text(), arrival.head.id);
  arrival.workspace = std::move(*found);
  co_return std::nullopt;
}

asio::awaitable<App::Answer> App::wake_workspace(Arrival& arrival) {
  const Route* route = arrival.match.route;
  const bool wanted = goes_to_port(arrival) || (has_workspace(*route) && wakes(route->scope));
  if (!wanted || services_.workspaces == nullptr) co_return std::nullopt;
  const services::WorkspacePtr meant = arrival.workspace ? arrival.workspace : services_.workspaces->standard();
  // A request without a credential does not wake a workspace that its owner has paused.
  if (meant->paused && arrival.principal.kind == auth::Kind::published)
    co_return http::error_response(503, "The workspace is paused; a request with a credential wakes it");
  const Status awake = co_await services_.workspaces->wake(meant);
  if (!awake) co_return http::internal_failure(awake.error().text(), arrival.head.id);
  co_return std::nullopt;
}

// The workspace may have ended, and another one of its name begun, while the launcher was asked.
asio::awaitable<App::Answer> App::check_ended(Arrival& arrival) {
  if (!arrival.principal.is_over()) co_return std::nullopt;
  co_return http::credential_ended();
}

asio::awaitable<App::Answer> App::check_takeover(Arrival& arrival) {
  if (arrival.match.route == nullptr || services_.workspace == nullptr) co_return std::nullopt;
  co_return refuse_taken(*arrival.match.route, arrival.workspace ? *arrival.workspace : *services_.workspace);
}

http::Pairs App::cors_headers(const http::Request& head) const {
  const auto origin = head.header("origin");
  if (!origin || !origins_.is_listed(*origin)) return {};
  return {{"access-control-allow-origin", std::string(*origin)},
          {"access-control-expose-headers", "mcp-session-id, x-request-id"},
          {"vary", "Origin"}};
}

http::Response App::preflight(const http::Request& head) const {
  const Match match = router_.find(http::Method::options, head.segments);
  http::Response response = no_content();
  response.headers = cors_headers(head);
  // The same Allow for every path unless a listed origin asks: without a key nobody learns which paths exist.
  const bool listed = !response.headers.empty();
  const bool tell = listed && !match.allowed.empty();
  const std::string allow = tell ? allow_header(match.allowed) : "DELETE, GET, HEAD, OPTIONS, POST, PUT";
  response.headers.emplace_back("allow", allow);
  if (listed) {
    response.headers.emplace_back("access-control-allow-methods", allow);
    response.headers.emplace_back(
        "access-control-allow-headers",
        "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, "
        "mcp-session-id, x-aio-api-key, x-caisson-workspace");
    response.headers.emplace_back("access-control-max-age", "600");
  }
  return response;
}

}  // namespace caisson::routes
