// /v1/proxy: where the connections of a workspace's sessions go through. The gate decides, by the policy: what a client sets
// routes what is permitted, and permits nothing. Unlike a failing tool, a refusal here has an HTTP status of its own.
#include "agent/bridge/way_client.h"
#include "agent/routes/proxy_types.h"
#include "agent/routes/refusals.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/word.h"
#include "launcher/common/tables/way_ops.h"

namespace caisson::routes {
namespace {

using way::Op;

task<json::Value> ask(Call& call, Op op, json::Value request = json::Value::object()) {
  request["op"] = word(words(Op{}), static_cast<std::size_t>(op));
  co_return co_await bridge::ask_way(*call.services.launcher, call.services.workspace->name, std::move(request));
}

// Where no domain of the policy has a way out nothing is set: a client that looks gets that, one that sets is refused.
task<json::Value> state_of(Call& call) {
  auto state = co_await ask(call, Op::get);
  if (!state && state.error().code == Code::permission_denied) co_return json::Value::object();
  co_return state;
}

task<http::Response> get_upstream(Call call) {
  auto state = co_await state_of(call);
  if (!state) co_return refusal(state.error());
  co_return http::ok(state->value("upstream", json::Value()), "Upstream proxy");
}

task<http::Response> set_upstream(Call call, ProxyUpstreamUpdate body) {
  json::Value request = {{"server", std::move(body.server)}};
  if (body.auth_cmd && !body.auth_cmd->empty()) request["auth_cmd"] = std::move(*body.auth_cmd);
  auto state = co_await ask(call, Op::set_upstream, std::move(request));
  if (!state) co_return refusal(state.error());
  co_return http::ok(state->value("upstream", json::Value()), "Upstream proxy set");
}

task<http::Response> remove_upstream(Call call) {
  auto state = co_await ask(call, Op::remove_upstream);
  if (!state) co_return refusal(state.error());
  co_return http::ok(nullptr, "Upstream proxy removed");
}

task<http::Response> list_mappings(Call call) {
  auto state = co_await state_of(call);
  if (!state) co_return refusal(state.error());
  co_return http::ok(state->value("mappings", json::Value::array()), "Mappings");
}

task<http::Response> add_mapping(Call call, ProxyMappingAdd body) {
  json::Value request = encode(body);
  auto state = co_await ask(call, Op::add_mapping, std::move(request));
  if (!state) co_return refusal(state.error());
  const json::Value mappings = state->value("mappings", json::Value::array());
  for (const json::Value& mapping : mappings)
    if (mapping.value("source", "") == body.source) co_return http::ok(mapping, "Mapping added");
  co_return fail(Code::io, "caisson-gate does not list the new mapping");
}

// The Python SDK joins addresses so that "http://" in the path comes with one slash.
task<http::Response> remove_mapping(Call call) {
  std::string source(call.request.param("source"));
  if (source.starts_with("http:/") && !source.starts_with("http://")) source.insert(5, "/");
  json::Value request = {{"source", std::move(source)}};
  auto state = co_await ask(call, Op::remove_mapping, std::move(request));
  if (!state) co_return refusal(state.error());
  co_return http::ok(nullptr, "Mapping removed");
}

task<http::Response> list_excludes(Call call) {
  auto state = co_await state_of(call);
  if (!state) co_return refusal(state.error());
  co_return http::ok(state->value("excludes", json::Value::array()), "Excludes");
}

task<http::Response> change_excludes(Call call, ProxyBypass body, Op op) {
  json::Value request = encode(body);
  auto state = co_await ask(call, op, std::move(request));
  if (!state) co_return refusal(state.error());
  co_return http::ok(state->value("excludes", json::Value::array()), "Excludes changed");
}

task<http::Response> add_exclude(Call call, ProxyBypass body) {
  co_return co_await change_excludes(std::move(call), std::move(body), Op::add_exclude);
}

task<http::Response> remove_exclude(Call call, ProxyBypass body) {
  co_return co_await change_excludes(std::move(call), std::move(body), Op::remove_exclude);
}

task<http::Response> diagnose(Call call) {
  const auto url = call.request.query_value("url"), domain = call.request.query_value("domain");
  if (!url) {
    Issues issues;
    issues.add(json::Value::array({"query", "url"}), "missing", "Field required");
    co_return validation_response(issues);
  }
  json::Value request = {{"url", std::string(*url)}};
  if (domain) request["domain"] = std::string(*domain);
  auto found = co_await ask(call, Op::diagnose, std::move(request));
  if (!found) co_return refusal(found.error());
  co_return http::ok(std::move(*found), "What a request for it meets");
}

// What the log keeps for good. A workspace without a way out has none, and gets none by being looked at.
task<http::Response> connections(Call call) {
  auto found = co_await bridge::look_at_way(*call.services.launcher, call.services.workspace->name, Op::recent);
  if (!found && found.error().code != Code::unavailable) co_return refusal(found.error());
  json::Value data = {{"connections", found ? found->value("records", json::Value::array()) : json::Value::array()}};
  co_return http::ok(std::move(data), "The last connections and refusals");
}

// By the contract's names, which are those of the programs that do this elsewhere.
task<http::Response> health(Call call) {
  auto found = co_await ask(call, Op::health);
  json::Value wrong = found ? found->value("inconsistencies", json::Value::array()) : json::Value::array({found.error().what});
  const bool door = found && found->value("door", false), dialer = found && found->value("dialer", false),
             consistent = found && found->value("consistent", false);
  json::Value data = {{"healthy", door && dialer && consistent},
                      {"gost_alive", door},
                      {"nginx_alive", dialer},
                      {"config_consistent", consistent},
                      {"inconsistencies", std::move(wrong)}};
  co_return http::ok(std::move(data), "The way out");
}

// What goes to the proxy is led, or goes through an upstream, there; what goes directly is taken all the same.
std::string pac_text(const json::Value& state) {
  const std::string proxy = "PROXY 127.0.0.1:" + std::to_string(state.value("port", 0));
  std::string out = "function FindProxyForURL(url, host) {\n";
  const auto rule = [&out](std::string_view pattern, const std::string& way) {
    const std::string text = json::dump(json::Value(pattern));
    if (pattern.starts_with("*.")) out += "  if (dnsDomainIs(host, " + json::dump(json::Value(pattern.substr(1))) + "))";
    else if (pattern.starts_with('.'))
      out += "  if (dnsDomainIs(host, " + text + ") || host == " + json::dump(json::Value(pattern.substr(1))) + ")";
    else if (pattern.contains('/')) return;  // whoever resolves names for that asks too much of a PAC file
    else out += "  if (host == " + text + ")";
    out += " return \"" + way + "\";\n";
  };
  for (const json::Value& mapping : state.value("mappings", json::Value::array())) rule(mapping.value("source_host", ""), proxy);
  for (const json::Value& exclude : state.value("excludes", json::Value::array())) rule(exclude.get<std::string>(), "DIRECT");
  return out + "  return \"" + (state.value("upstream", json::Value()).is_null() ? "DIRECT" : proxy) + "\";\n}\n";
}

task<http::Response> pac(Call call) {
  auto state = co_await state_of(call);
  if (!state) co_return refusal(state.error());
  const bool empty = state->value("upstream", json::Value()).is_null() && state->value("mappings", json::Value::array()).empty();
  if (empty) co_return http::error_response(404, "there is neither a mapping nor an upstream proxy: no PAC file is needed");
  co_return http::text_response(200, "application/x-ns-proxy-autoconfig", pac_text(*state));
}

using http::Method;

constexpr Parameter kDiagnose[] = {
    {"url", "string", "What a session would ask for", true},
    {"domain", "string", "Policy domain of the session; without it bash, or the first that has a way out"},
};

constexpr Route kProxy[] = {
    {Method::get, "/v1/proxy/mappings", "list_proxy_mappings", Scope::proxy, kNone, Unknown::ignore,
     "The mappings of the workspace", bind<list_mappings, std::vector<ProxyMappingRoute>>()},
    {Method::post, "/v1/proxy/mappings", "add_proxy_mapping", Scope::proxy, kNone, Unknown::ignore,
     "Lead requests by plain HTTP for a host to a server of the workspace, or to another that the policy permits",
     bind<add_mapping, ProxyMappingRoute>()},
    {Method::del, "/v1/proxy/mappings/{source}", "remove_proxy_mapping", Scope::proxy, kNone, Unknown::ignore,
     "Remove a mapping; its source stands in the path as it is, or percent-encoded", bind<remove_mapping>()},
    {Method::get, "/v1/proxy/excludes", "list_proxy_excludes", Scope::proxy, kNone, Unknown::ignore,
     "What goes beside the upstream proxy", bind<list_excludes, std::vector<std::string>>()},
    {Method::post, "/v1/proxy/excludes", "add_proxy_exclude", Scope::proxy, kNone, Unknown::ignore,
     "Let hosts go beside the upstream proxy; the policy is asked as before", bind<add_exclude>()},
    {Method::del, "/v1/proxy/excludes", "remove_proxy_exclude", Scope::proxy, kNone, Unknown::ignore,
     "Let hosts go through the upstream proxy again", bind<remove_exclude>()},
    {.method = Method::get,
     .path = "/v1/proxy/diagnose",
     .operation_id = "diagnose_proxy",
     .scope = Scope::proxy,
     .flags = kMakes,
     .unknown = Unknown::ignore,
     .summary = "What a session's request for a URL would meet, step by step; connects where that is permitted",
     .endpoint = bind<diagnose, ProxyDiagnosis>(),
     .query = kDiagnose},
    {Method::get, "/v1/proxy/health", "proxy_health_check", Scope::proxy, kNone, Unknown::ignore,
     "Whether what makes the way out runs", bind<health, ProxyHealth>()},
    {Method::get, "/v1/proxy/connections", "list_proxy_connections", Scope::proxy, kNone, Unknown::ignore,
     "The last connections of the workspace's sessions to the outside, and what was refused; the audit log has all of them",
     bind<connections, ProxyConnections>()},
    {Method::get, "/v1/proxy/upstream", "get_proxy_upstream", Scope::proxy, kNone, Unknown::ignore,
     "The upstream proxy of the workspace; null where there is none", bind<get_upstream, ProxyUpstreamInfo>()},
    {Method::put, "/v1/proxy/upstream", "set_proxy_upstream", Scope::proxy, kNone, Unknown::ignore,
     "Send what goes out through a proxy, from the next connection on", bind<set_upstream, ProxyUpstreamInfo>()},
    {Method::del, "/v1/proxy/upstream", "remove_proxy_upstream", Scope::proxy, kNone, Unknown::ignore,
     "Let what goes out go without the proxy", bind<remove_upstream>()},
    {.method = Method::get,
     .path = "/v1/browser/proxy.pac",
     .operation_id = "get_proxy_pac_v1_browser_proxy_pac_get",
     .scope = Scope::proxy,
     .flags = kNone,
     .unknown = Unknown::ignore,
     .summary = "Mappings, excludes and upstream proxy as a PAC file; 404 where there is nothing to say",
     .endpoint = bind<pac>(),
     .content_type = "application/x-ns-proxy-autoconfig"},
};

}  // namespace

Area proxy_routes() { return kProxy; }

}  // namespace caisson::routes
