// The policies in force, and their reload. The launcher answers and decides; the agent can change nothing.
#include "agent/bridge/launcher_client.h"
#include "agent/routes/table.h"
#include "launcher/common/tables/posture.h"

namespace caisson::routes {
namespace {

task<http::Response> list_policies(Call call) {
  CO_TRY_ASSIGN(const json::Value answer, co_await call.services.launcher->policy(""));
  json::Value data = json::Value::object();
  for (const char* key : {"digest", "preset", "domains", "refused"}) data[key] = answer.value(key, json::Value());
  co_return http::ok(std::move(data), "Policies in force");
}

task<http::Response> get_policy(Call call) {
  std::string domain(call.request.param("domain"));
  auto answer = co_await call.services.launcher->policy(std::move(domain));
  if (!answer && answer.error().code == Code::not_found) co_return http::error_response(404, answer.error().text());
  if (!answer) co_return std::unexpected(std::move(answer).error());
  json::Value policy = answer->value("policy", json::Value());
  policy["score"] = score_json(policy);  // by the rules of `caisson policy explain`
  co_return http::ok(std::move(policy), "Policy in force");
}

// Invalid policies are an expected outcome, like a failing tool: HTTP 200, success false, every problem in data.
task<http::Response> reload_policies(Call call) {
  CO_TRY_ASSIGN(const json::Value answer, co_await call.services.launcher->policy_reload());
  json::Value data = json::Value::object();
  for (const char* key : {"old", "new", "problems"}) data[key] = answer.value(key, json::Value());
  if (answer.value("accepted", false)) co_return http::ok(std::move(data), "Policies reloaded");
  co_return http::fail("the policies have problems, the old ones stay", std::move(data));
}

constexpr Route kPolicies[] = {
    {http::Method::get, "/v1/policies", "list_policies", Scope::sandbox, kNone, Unknown::ignore,
     "The policy domains with their digests, the preset, and the domains whose demands cannot be met here",
     bind<list_policies>()},
    {http::Method::get, "/v1/policies/{domain}", "get_policy", Scope::sandbox, kNone, Unknown::ignore,
     "All that a domain's policy holds, each with its reason, and its posture score with every point that was taken off",
     bind<get_policy>()},
    {http::Method::post, "/v1/policies/reload", "reload_policies", Scope::sandbox, kWhole, Unknown::ignore,
     "Read the policy files again: taken whole or not at all; running sessions keep theirs", bind<reload_policies>()},
};

}  // namespace

Area policy_routes() { return kPolicies; }

}  // namespace caisson::routes
