// The probes. /v1/ping and /healthz say that the process answers; /readyz that it can serve, so that an orchestrator
// sends no traffic before. /healthz fails if the launcher has been silent for so long that only a restart helps. These three need
// no key and tell nothing but each check, its state and why.
#include "agent/bridge/launcher_client.h"
#include "agent/routes/status.h"
#include "agent/routes/table.h"

namespace caisson::routes {
namespace {

task<http::Response> ping(Call) { co_return http::ok("pong", "pong"); }

// Every request to the launcher has a deadline of at most 30 s, and the launcher answers none of them late.
constexpr std::chrono::seconds kSilent{15}, kStuck{90};

AgentStatus::Check launcher_speaks(const Services& services, std::chrono::seconds limit) {
  if (services.launcher != nullptr && services.launcher->silence() > limit)
    return {"launcher", false, "the launcher does not answer"};
  return {"launcher", true};
}

json::Value described(const AgentStatus::Check& check) {
  json::Value out{{"name", check.name}, {"passed", check.passed}};
  out["why"] = check.passed ? json::Value(nullptr) : json::Value(check.why);
  return out;
}

http::Response outcome(std::string_view passed, std::string_view failed, const std::vector<AgentStatus::Check>& checks) {
  json::Value list = json::Value::array();
  const AgentStatus::Check* failing = nullptr;
  for (const AgentStatus::Check& check : checks) {
    list.push_back(described(check));
    if (failing == nullptr && !check.passed) failing = &check;
  }
  if (failing == nullptr) return http::ok({{"status", passed}, {"checks", std::move(list)}});
  const std::string message = std::string(failed) + ": " + failing->why;
  return http::json_response(
      503,
      {{"success", false}, {"message", message}, {"data", {{"status", failed}, {"checks", std::move(list)}}}, {"hint", nullptr}});
}

task<http::Response> healthz(Call call) {
  const std::vector<AgentStatus::Check> checks{launcher_speaks(call.services, kStuck)};
  co_return outcome("alive", "Not alive", checks);
}

task<http::Response> readyz(Call call) {
  const AgentStatus& status = *call.services.status;
  const AgentStatus::Check launcher = status.launcher.passed ? launcher_speaks(call.services, kSilent) : status.launcher;
  const std::vector<AgentStatus::Check> checks{status.serving, launcher, status.sessions};
  co_return outcome("ready", "Not ready", checks);
}

constexpr Route kSystem[] = {
    {http::Method::get, "/v1/ping", "ping", Scope::system, kPublic | kProbe | kImmediate, Unknown::ignore, "Answer",
     bind<ping, std::string>()},
    {http::Method::get, "/healthz", "healthz", Scope::system, kPublic | kProbe | kImmediate, Unknown::ignore,
     "Tell whether the process answers", bind<healthz>()},
    {http::Method::get, "/readyz", "readyz", Scope::system, kPublic | kProbe | kImmediate, Unknown::ignore,
     "Tell whether requests can be served, and which check fails if not", bind<readyz>()},
};

}  // namespace

Area system_routes() { return kSystem; }

}  // namespace caisson::routes
