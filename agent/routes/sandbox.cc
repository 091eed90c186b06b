// GET /v1/sandbox: the environment of the sessions, flat, as AIO clients expect it. They use it as a readiness probe, so
// it never waits for anything.
#include "agent/routes/sandbox_info.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> get_context(Call call) { co_return http::json_response(200, encode(call.services.sandbox->context())); }

constexpr Route kSandbox[] = {
    {http::Method::get, "/v1/sandbox", "get_sandbox_context_v1_sandbox_get", Scope::sandbox, kFlat, Unknown::ignore,
     "Describe the environment of the sessions", bind<get_context, SandboxResponse>()},
};

}  // namespace

Area sandbox_routes() { return kSandbox; }

}  // namespace caisson::routes
