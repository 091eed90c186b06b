// /mcp and /v1/mcp: Streamable HTTP (modelcontextprotocol.io, "Transports"). Each POST has one message, and its answer is JSON.
// The server sends no message of its own, so GET has no stream.
#include "agent/mcp/methods.h"
#include "agent/mcp/rest_types.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using mcp::ErrorCode;
using mcp::Failure;
using mcp::Message;

constexpr std::string_view kSession = "mcp-session-id";

// Who may use a session: the credential that began it, and not another one of the same origin.
std::string owner_of(const auth::Principal& principal) {
  return principal.holder() + " " + std::string(auth::kind_name(principal.kind)) + " " + principal.name;
}

http::Response failed(json::Value id, const Failure& failure) {
  return http::json_response(failure.status, mcp::error_message(std::move(id), failure));
}

http::Response taken_note() {
  http::Response response;
  response.status = 202;
  response.content_type.clear();
  return response;
}

// nullopt: the session is there.
std::optional<Failure> check_session(const Call& call) {
  const auto id = call.request.header(kSession);
  if (!id)
    return Failure{
        .code = ErrorCode::invalid_request, .text = "Bad request: Mcp-Session-Id is missing; initialize first", .status = 400};
  if (call.services.workspace->mcp_sessions.use(std::string(*id), owner_of(call.principal))) return std::nullopt;
  return Failure{.code = ErrorCode::invalid_request, .text = "Session not found", .status = 404};
}

task<http::Response> post_message(Call call) {
  json::Value id;
  CO_TRY_ASSIGN(http::Lane::Turn turn, co_await call.work(call.request.body.size()));
  auto message = mcp::parse_message(call.request.body, id);
  if (!message) co_return failed(std::move(id), message.error());
  call.request.body = std::string();
  turn = {};
  const auto revision = mcp::revision_of(call.request, *message);
  if (!revision) co_return failed(std::move(id), revision.error());
  const bool begins = message->method == "initialize";
  if (!is_stateless(*revision) && !begins)
    if (const auto why = check_session(call)) co_return failed(std::move(id), *why);
  if (message->kind != Message::Kind::request) co_return taken_note();
  services::McpSessions& sessions = call.services.workspace->mcp_sessions;
  const std::string owner = owner_of(call.principal);
  auto result = co_await mcp::answer(std::move(call), *revision, std::move(*message));
  if (!result) co_return failed(std::move(id), result.error());
  http::Response response = http::json_response(200, mcp::result_message(std::move(id), std::move(*result)));
  if (begins && !is_stateless(*revision)) response.headers.emplace_back(kSession, sessions.begin(owner));
  co_return response;
}

task<http::Response> get_stream(Call call) {
  if (call.request.accepts_event_stream()) {
    http::Response response = http::error_response(405, "Method Not Allowed: nothing is sent unasked");
    response.headers = {{"allow", "DELETE, OPTIONS, POST"}};
    co_return response;
  }
  const Failure why{
      .code = ErrorCode::invalid_request, .text = "Not Acceptable: Client must accept text/event-stream", .status = 406};
  co_return failed("server-error", why);
}

task<http::Response> end_session(Call call) {
  const auto id = call.request.header(kSession);
  const bool ended = id && call.services.workspace->mcp_sessions.end(std::string(*id), owner_of(call.principal));
  if (ended) co_return http::ok(nullptr, "Session ended");
  const Failure why{.code = ErrorCode::invalid_request,
                    .text = id ? "Session not found" : "Bad request: Mcp-Session-Id is missing",
                    .status = id ? 404 : 400};
  co_return failed(nullptr, why);
}

// --- the same tools over REST ---

task<http::Response> list_servers(Call) {
  std::vector<std::string> names;
  for (const mcp::Server& server : mcp::kServers) names.emplace_back(server.name);
  co_return http::ok(encode(names));
}

http::Response no_server() { return http::error_response(404, "MCP server not found"); }

task<http::Response> list_server_tools(Call call) {
  const mcp::Server* server = mcp::find_server(call.request.param("server_name"));
  if (server == nullptr) co_return no_server();
  json::Value tools = json::Value::array();
  for (const mcp::Tool& tool : server->tools())
    if (mcp::permits(call.principal.bounds.scopes, tool)) tools.push_back(mcp::describe(tool));
  json::Value data = json::Value::object();
  data["tools"] = std::move(tools);
  co_return http::ok(std::move(data));
}

task<http::Response> execute_tool(Call call, mcp::ToolArguments arguments) {
  const mcp::Server* server = mcp::find_server(call.request.param("server_name"));
  if (server == nullptr) co_return no_server();
  const auto tools = server->tools();
  const auto tool = std::ranges::find(tools, call.request.param("tool_name"), &mcp::Tool::name);
  if (tool == tools.end() || !mcp::permits(call.principal.bounds.scopes, *tool))
    co_return http::error_response(404, "MCP tool not found");
  auto outcome = co_await mcp::call_tool(std::move(call), *tool, std::move(arguments.given));
  if (!outcome) co_return http::fail(outcome.error().text);
  co_return http::ok(mcp::encode(std::move(*outcome)));
}

using http::Method;

// No server is hidden.
constexpr Parameter kServersQuery[] = {{"include_hidden", "boolean", "Also servers that are not shown", false, {}, "false"}};

constexpr Route kMcp[] = {
    {Method::post, "/mcp", "mcp_post", Scope::mcp, kHidden, Unknown::ignore, "A message of MCP", bind<post_message>(),
     mcp::kMostMessage},
    {Method::get, "/mcp", "mcp_get", Scope::mcp, kHidden | kImmediate, Unknown::ignore, "The stream of MCP", bind<get_stream>()},
    {Method::del, "/mcp", "mcp_delete", Scope::mcp, kHidden, Unknown::ignore, "End a session of MCP", bind<end_session>()},
    {Method::post, "/v1/mcp", "mcp_v1_post", Scope::mcp, kHidden, Unknown::ignore, "A message of MCP", bind<post_message>(),
     mcp::kMostMessage},
    {Method::get, "/v1/mcp", "mcp_v1_get", Scope::mcp, kHidden | kImmediate, Unknown::ignore, "The stream of MCP",
     bind<get_stream>()},
    {Method::del, "/v1/mcp", "mcp_v1_delete", Scope::mcp, kHidden, Unknown::ignore, "End a session of MCP", bind<end_session>()},
    {Method::get, "/v1/mcp/servers", "list_mcp_servers_v1_mcp_servers_get", Scope::mcp, kNone, Unknown::ignore,
     "Names of the MCP servers", bind<list_servers, std::vector<std::string>>(), kDefaultBodyLimit, kServersQuery},
    {Method::get, "/v1/mcp/{server_name}/tools", "list_mcp_tools_v1_mcp__server_name__tools_get", Scope::mcp, kNone,
     Unknown::ignore, "Tools of an MCP server", bind<list_server_tools, mcp::ListToolsResult>()},
    {Method::post, "/v1/mcp/{server_name}/tools/{tool_name}", "execute_mcp_tool_v1_mcp__server_name__tools__tool_name__post",
     Scope::mcp, kNone, Unknown::ignore, "Call a tool of an MCP server", bind<execute_tool, mcp::CallToolResult>()},
};

}  // namespace

Area mcp_routes() { return kMcp; }

}  // namespace caisson::routes
