// GET /v1/sandbox: the environment of the sessions, flat, as AIO clients expect it. They use it as a readiness probe, so it never
// waits. Also the lists of its interpreters' packages.
#include "agent/routes/sandbox_info.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

task<http::Response> get_context(Call call) {
  co_return http::text_response(200, "application/json", call.services.sandbox->text());
}

task<http::Response> packages(Call call, services::PackageManager manager) {
  CO_TRY_ASSIGN(const auto list, co_await call.services.workspace->packages.list(manager));
  co_return http::ok(encode(list));
}
task<http::Response> python_packages(Call call) { co_return co_await packages(std::move(call), services::PackageManager::pip); }
task<http::Response> nodejs_packages(Call call) { co_return co_await packages(std::move(call), services::PackageManager::npm); }

constexpr Route kSandbox[] = {
    {http::Method::get, "/v1/sandbox", "get_sandbox_context_v1_sandbox_get", Scope::sandbox, kFlat | kImmediate, Unknown::ignore,
     "Describe the environment of the sessions", bind<get_context, SandboxResponse>()},
    {http::Method::get, "/v1/sandbox/packages/python", "python_packages_v1_sandbox_packages_python_get", Scope::sandbox, kNone,
     Unknown::ignore, "List the Python packages", bind<python_packages, std::vector<services::Package>>()},
    {http::Method::get, "/v1/sandbox/packages/nodejs", "nodejs_packages_v1_sandbox_packages_nodejs_get", Scope::sandbox, kNone,
     Unknown::ignore, "List the Node.js packages", bind<nodejs_packages, std::vector<services::Package>>()},
};

}  // namespace

Area sandbox_routes() { return kSandbox; }

}  // namespace caisson::routes
