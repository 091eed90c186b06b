#include "agent/routes/app.h"

#include "agent/bridge/openings.h"
#include "agent/http/peer.h"
#include "agent/proxy/proxy.h"
#include "agent/routes/meter.h"
#include "agent/services/common/counted.h"
#include "agent/services/workspace/workspaces.h"
#include "agent/traces/traced.h"

namespace caisson::routes {
namespace {

class RouteExchange final : public http::Exchange {
 public:
  RouteExchange(Arrival arrival, const Services& services)
      : Exchange(std::move(arrival.head)),
        services_(services),
        workspace_(std::move(arrival.workspace)),
        principal_(std::move(arrival.principal)),
        route_(*arrival.match.route),
        meter_(&route_, request.method) {
    if (workspace_) {
      workspace = workspace_->name;
      services_.workspace = workspace_.get();
    }
    response_headers = std::move(arrival.cors);
    body_limit = route_.body_limit;
    streamed_body = (route_.flags & kStreamedBody) != 0;
    logged = (route_.flags & kProbe) == 0;
    immediate = (route_.flags & kImmediate) != 0;
    websocket = route_.endpoint.websocket != nullptr;
  }

  asio::awaitable<http::Response> serve(http::StreamWriter& writer) override {
    meter_.begin();
    const std::string id = request.id;
    std::shared_ptr<traces::Span> span = request.span;
    Call call{services_, std::move(request), route_, &writer, principal_};
    auto work = route_.endpoint.handler(std::move(call));
    if (span) work = traces::with_span(std::move(work), std::move(span));
    Result<http::Response> result = co_await std::move(work);
    http::Response response = to_response(std::move(result), id);
    meter_.answered(response.status);
    co_return response;
  }

  task<void> converse(http::WebSocket socket) override {
    meter_.upgraded();
    Call call{services_, std::move(request), route_, nullptr, principal_};
    co_return co_await route_.endpoint.websocket(std::move(call), std::move(socket));
  }

 private:
  Services services_;
  const services::WorkspacePtr workspace_;  // kept for as long as a handler works with its services
  const auth::Principal principal_;
  const Route& route_;
  Meter meter_;
};

http::Response server_full() {
  http::Response response = http::error_response(503, "Too many open connections");
  response.headers = {{"retry-after", "1"}};
  response.close = true;
  return response;
}

// Whose requests under way are counted together. Without keys an address is all that tells clients apart.
std::string owner_of(const Arrival& arrival) {
  const auth::Principal& principal = arrival.principal;
  const bool open = principal.kind == auth::Kind::open || principal.kind == auth::Kind::published;
  return principal.root + " " + (open ? http::network_of(arrival.head.remote) : principal.name);
}

// Only a row of the route table is a span's route. A path that no row has stands in url.path alone, because clients choose it and
// routes are names to group by.
void name_span(const Arrival& arrival) {
  if (arrival.head.span && arrival.match.route != nullptr) arrival.head.span->route = arrival.match.route->path;
}

std::vector<std::string_view> area_names() {
  std::vector<std::string_view> out;
  for (const Tag& tag : tags())
    if (tag.scope != Scope::auth) out.push_back(tag.name);  // it hands out no more than the client has
  out.push_back(kPreviewArea);
  return out;
}

}  // namespace

App::App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table)
    : services_(services),
      gate_(settings.auth, area_names()),
      origins_(settings.allow_origin, settings.auth.off, settings.allow_host),
      preview_hosts_(settings.preview_hosts, settings.auth.off),
      rates_(settings.requests_per_second),
      router_(table) {
  services_.gate = &gate_;
  if (services_.openings != nullptr)
    gate_.session_areas = [openings = services_.openings](const std::string& domain) { return openings->areas(domain); };
  services_.frame_ancestors = origins_.sources();
}

bool App::is_probe(const http::Request& head) const {
  const Match asked = router_.find(head.method, head.segments);
  return asked.route != nullptr && (asked.route->flags & kProbe) != 0;
}

asio::awaitable<http::Admission> App::admit(http::Request head) {
  Arrival arrival{.head = std::move(head)};
  if (arrival.head.probes_only && !is_probe(arrival.head)) co_return server_full();
  for (const Check check : checks()) {
    // Anybody's token can name an unknown key and waits for some seconds, as a request under way that gives way to none.
    if (check == &App::await_key && keys_awaited_ >= kMaxKeysAwaited) continue;
    std::optional<services::Counted<std::size_t>> counted;
    if (check == &App::await_key) counted.emplace(keys_awaited_);
    if (auto answer = co_await (this->*check)(arrival)) {
      Meter(arrival.match.route, arrival.head.method).answered(answer->status);
      name_span(arrival);
      co_return std::move(*answer);
    }
  }
  name_span(arrival);
  if (arrival.head.probes_only && goes_to_port(arrival)) co_return server_full();
  const bool keyed = goes_to_port(arrival) || !is_keyless(*arrival.match.route);
  std::function<bool()> allowed;
  if (keyed) allowed = permission(arrival);
  std::string owner = keyed ? owner_of(arrival) : "";
  const bool narrow = arrival.principal.bounds.port || arrival.principal.bounds.path;
  std::unique_ptr<http::Exchange> exchange;
  if (goes_to_port(arrival)) exchange = proxied(std::move(arrival));
  else exchange = std::make_unique<RouteExchange>(std::move(arrival), services_);
  exchange->allowed = std::move(allowed);
  exchange->owner = std::move(owner);
  exchange->narrow = narrow;
  co_return exchange;
}

// The check that an admitted request must keep passing.
std::function<bool()> App::permission(const Arrival& arrival) {
  const auth::Principal& principal = arrival.principal;
  if (principal.kind != auth::Kind::published) return [this, principal] { return is_good(principal); };
  return [ports = services_.openings, workspace = *principal.bounds.workspace, port = *principal.bounds.port] {
    return ports->keeps(workspace, port);
  };
}

// The files of keys are looked at even while no request comes, which page_token() does first.
bool App::is_good(const auth::Principal& principal) {
  const auth::Gate::Now now = auth::Gate::Now::read();
  (void)gate_.page_token(http::Request(), now);
  return gate_.is_rooted(principal, now);
}

// Whether Authorization is, or could be, a credential for us. It may be the app's own if something else identified the client.
bool App::drops_authorization(const Arrival& arrival) {
  if (gate_.off()) return false;
  using auth::Kind;
  const Kind kind = arrival.principal.kind;
  const bool by_secret = kind == Kind::key || kind == Kind::jwt || kind == Kind::minted;
  if (by_secret && !arrival.head.header("x-aio-api-key")) return true;
  const auto authorization = arrival.head.header("authorization").value_or("");
  const auto secret = authorization.substr(std::min(authorization.rfind(' ') + 1, authorization.size()));
  return gate_.may_be_ours("app of " + arrival.principal.name, secret, auth::Gate::Now::read());
}

std::unique_ptr<http::Exchange> App::proxied(Arrival arrival) {
  const services::WorkspacePtr workspace = arrival.workspace ? arrival.workspace : services_.workspaces->standard();
  const bool drop = drops_authorization(arrival);
  auto exchange = services_.proxy->exchange(std::move(arrival.head), std::move(**arrival.port), drop, workspace->name, workspace);
  exchange->response_headers = std::move(arrival.cors);
  return exchange;
}

}  // namespace caisson::routes
