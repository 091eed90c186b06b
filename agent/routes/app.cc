#include "agent/routes/app.h"

#include "agent/http/failure.h"
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
  RouteExchange(Arrival arrival, const Services& services)
      : Exchange(std::move(arrival.head)),
        services_(services),
        workspace_(std::move(arrival.workspace)),
        route_(*arrival.match.route) {
    if (workspace_) {
      workspace = workspace_->name;
      services_.workspace = workspace_.get();
    }
    response_headers = std::move(arrival.cors);
    body_limit = route_.body_limit;
    streamed_body = (route_.flags & kStreamedBody) != 0;
    websocket = route_.endpoint.websocket != nullptr;
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

}  // namespace

App::App(Services& services, const AppSettings& settings, const std::vector<const Route*>& table)
    : services_(services),
      auth_off_(settings.auth_off),
      key_(settings.api_key),
      origins_(settings.allow_origin, settings.auth_off, settings.allow_host),
      router_(table) {}

asio::awaitable<http::Admission> App::admit(http::Request head) {
  Arrival arrival{.head = std::move(head)};
  for (const Check check : checks())
    if (auto answer = co_await (this->*check)(arrival)) co_return std::move(*answer);
  co_return std::make_unique<RouteExchange>(std::move(arrival), services_);
}

}  // namespace caisson::routes
