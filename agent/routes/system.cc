// The probes. /v1/ping and /healthz say that the process answers; /readyz that it can serve, so that an orchestrator
// sends no traffic before. These three need no key and tell nothing else.
#include "agent/routes/status.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> ping(Call) { co_return http::ok("pong", "pong"); }

task<http::Response> healthz(Call) { co_return http::ok({{"status", "alive"}}); }

task<http::Response> readyz(Call call) {
  const AgentStatus& status = *call.services.status;
  if (!status.ready) co_return http::error_response(503, "Not ready: " + status.reason);
  co_return http::ok({{"status", "ready"}});
}

constexpr Route kSystem[] = {
    {http::Method::get, "/v1/ping", "ping", Scope::system, kPublic, Unknown::ignore, "Answer", bind<ping, std::string>()},
    {http::Method::get, "/healthz", "healthz", Scope::system, kPublic, Unknown::ignore, "Tell whether the process answers",
     bind<healthz>()},
    {http::Method::get, "/readyz", "readyz", Scope::system, kPublic, Unknown::ignore,
     "Tell whether requests can be served: 503 until the launcher has answered", bind<readyz>()},
};

}  // namespace

Area system_routes() { return kSystem; }

}  // namespace caisson::routes
