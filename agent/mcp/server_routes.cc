// /v1/mcp/servers/{server_name}: servers that clients add to their workspace while it runs. An entry is one of `mcpServers`.
//
// What is permitted: whoever has the scope `operator` does what the configuration file does. Everybody else adds servers to the
// domain mcp-clients alone, which is there if the operator has written its policy: that policy says what programs of clients may
// see, reach and use, and no policy that was written for the operator's own servers, with their grants and secrets, is lent to
// them. Files of the operator's are not read for them, and the approval of tools stays on.
#include "agent/bridge/launcher_client.h"
#include "agent/mcp/catalog.h"
#include "agent/mcp/forward.h"
#include "agent/mcp/rest_types.h"
#include "agent/routes/refusals.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

constexpr std::string_view kClientsDomain = "mcp-clients";
constexpr std::size_t kMostEntry = 64 * 1024;

bool is_operator(const Call& call) {
  return call.principal.bounds.scopes.permits(scope_name(Scope::operator_), auth::Access::all);
}

// What of an entry the operator alone may set; nullopt: nothing.
std::optional<std::string> of_operators(const services::ServerConfig& config) {
  if (config.domain != kClientsDomain) return "the domain " + quote(config.domain);
  if (!config.env_files.empty()) return "envFiles";
  if (!config.header_files.empty()) return "headerFiles";
  if (config.pin == "off") return "pin \"off\"";
  return std::nullopt;
}

// Why a name or prefix is not for an added server: it is, or looks like, one of this program's own.
std::optional<std::string> of_our_own(const services::ServerConfig& config) {
  for (const mcp::Server& own : mcp::kServers) {
    if (config.name == own.name) return quote(config.name) + " is a server of the sandbox itself";
    if (services::overlap(config.prefix, std::string(own.name) + "_"))
      return "the prefix " + quote(config.prefix) + " overlaps that of the server " + std::string(own.name) + ": choose another";
  }
  return std::nullopt;
}

task<http::Response> put_server(Call call, mcp::ServerEntry entry) {
  const bool of_all = is_operator(call);
  if (!of_all && !entry.given.contains("domain")) entry.given["domain"] = kClientsDomain;
  Result<services::ServerConfig> config = services::parse_server(std::string(call.request.param("server_name")), entry.given);
  if (!config) co_return refusal(config.error());
  if (const auto why = of_our_own(*config)) co_return http::error_response(409, *why);
  if (const auto why = of_all ? std::nullopt : of_operators(*config))
    co_return http::error_response(403, *why + " needs the scope operator; without it a server has the domain " +
                                            std::string(kClientsDomain) + ", and its tools are approved");
  std::string domain = config->domain;
  const auto policy = co_await call.services.launcher->policy(std::move(domain));
  if (!policy && policy.error().code == Code::not_found)
    co_return http::error_response(403, "there is no domain " + quote(config->domain) +
                                            (of_all ? "" : ": no policy of the operator's permits servers of clients"));
  if (!policy) co_return std::unexpected(policy.error());
  config->added_by = mcp::owner_of(call.principal);
  json::Value data = {{"name", config->name}, {"domain", config->domain}, {"prefix", config->prefix}};
  const Status added = call.services.workspace->mcp->add(std::move(*config), of_all);
  if (!added) co_return refusal(added.error());
  co_return http::ok(std::move(data), "MCP server added");
}

task<http::Response> delete_server(Call call) {
  const std::string name(call.request.param("server_name"));
  if (mcp::find_server(name) != nullptr) co_return http::error_response(409, quote(name) + " is a server of the sandbox itself");
  const Status removed = call.services.workspace->mcp->remove(name, mcp::owner_of(call.principal), is_operator(call));
  if (!removed) co_return refusal(removed.error());
  co_return http::ok(nullptr, "MCP server removed");
}

using http::Method;

constexpr Route kServerRoutes[] = {
    {Method::put, "/v1/mcp/servers/{server_name}", "mcp_add_server", Scope::mcp, kConflict, Unknown::ignore,
     "Add an MCP server to the workspace, or replace one that was added", bind<put_server, mcp::AddedServer>(), kMostEntry},
    {Method::del, "/v1/mcp/servers/{server_name}", "mcp_remove_server", Scope::mcp, kConflict, Unknown::ignore,
     "Remove an MCP server that was added", bind<delete_server>()},
};

}  // namespace

Area mcp_server_routes() { return kServerRoutes; }

}  // namespace caisson::routes
