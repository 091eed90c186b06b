// /v1/proxy/asks: what sessions were refused because no rule names it, and what of it an operator allows. caisson-gate keeps
// both, and decides by the policy (`egress_ask`) whether clients of the API have a say.
#include "agent/bridge/way_client.h"
#include "agent/routes/asks_types.h"
#include "agent/routes/refusals.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/word.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::routes {
namespace {

using way::Op;

// A workspace without a way out has no questions, and gets no way out by being looked at.
task<http::Response> list_asks(Call call) {
  auto found = co_await bridge::look_at_way(*call.services.launcher, call.services.workspace->name, Op::asks);
  if (!found && found.error().code != Code::unavailable) co_return refusal(found.error());
  json::Value data = found ? std::move(*found) : json::Value{{"asked", json::Value::array()}, {"granted", json::Value::array()}};
  co_return http::ok(std::move(data), "What sessions ask for");
}

task<http::Response> decide(Call call, Op op, json::Value request) {
  if (!call.principal.name.empty()) request["who"] = call.principal.name;
  const auto id = json::parse(call.request.param("id"), {.max_bytes = 16, .max_depth = 1, .max_values = 1});
  if (!id || !id->is_number_integer()) co_return refusal(Error{Code::not_found, "no such number"});
  request["id"] = *id;
  auto done = co_await bridge::look_at_way(*call.services.launcher, call.services.workspace->name, op, std::move(request));
  if (!done) co_return refusal(done.error());
  co_return http::ok(std::move(*done), "Decided");
}

task<http::Response> allow_ask(Call call, AskAllow body) { co_return co_await decide(std::move(call), Op::allow, encode(body)); }
task<http::Response> deny_ask(Call call) { co_return co_await decide(std::move(call), Op::deny, json::Value::object()); }
task<http::Response> revoke_grant(Call call) { co_return co_await decide(std::move(call), Op::revoke, json::Value::object()); }

using http::Method;

constexpr Route kAsks[] = {
    {Method::get, "/v1/proxy/asks", "list_asks", Scope::operator_, kNone, Unknown::ignore,
     "What sessions of the workspace were refused because no rule names it, and the grants in force", bind<list_asks, Asks>()},
    {Method::post, "/v1/proxy/asks/{id}/allow", "allow_ask", Scope::operator_, kNone, Unknown::reject,
     "Allow it: for one connection, for the session, or for a time; or get the rule that the policy takes",
     bind<allow_ask, AskDecided>()},
    {Method::post, "/v1/proxy/asks/{id}/deny", "deny_ask", Scope::operator_, kNone, Unknown::ignore,
     "Have it asked no more while the workspace lasts", bind<deny_ask, AskDecided>()},
    {Method::del, "/v1/proxy/grants/{id}", "revoke_grant", Scope::operator_, kNone, Unknown::ignore,
     "Take a grant back, from the next connection on", bind<revoke_grant, AskDecided>()},
};

}  // namespace

Area ask_routes() { return kAsks; }

}  // namespace caisson::routes
