// /mcp and /v1/mcp: Streamable HTTP (modelcontextprotocol.io, "Transports"). The answer to a POST is JSON, unless a server says
// something before its result; then it is a stream. GET is the stream of what comes unasked, and continues one that broke.
#include "agent/mcp/methods.h"
#include "agent/mcp/rest_types.h"
#include "agent/mcp/streams.h"
#include "agent/routes/table.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using mcp::ErrorCode;
using mcp::Failure;
using mcp::Message;
using services::ClientSessionPtr;

constexpr std::string_view kSession = "mcp-session-id";

http::Response failed(json::Value id, const Failure& failure) {
  return http::json_response(failure.status, mcp::error_message(std::move(id), failure));
}

http::Response taken_note() {
  http::Response response;
  response.status = 202;
  response.content_type.clear();
  return response;
}

mcp::Or<ClientSessionPtr> session_of(const Call& call) {
  const auto id = call.request.header(kSession);
  if (!id)
    return std::unexpected(Failure{
        .code = ErrorCode::invalid_request, .text = "Bad request: Mcp-Session-Id is missing; initialize first", .status = 400});
  ClientSessionPtr session = call.services.workspace->mcp->sessions.use(std::string(*id), mcp::owner_of(call.principal));
  if (!session) return std::unexpected(Failure{.code = ErrorCode::invalid_request, .text = "Session not found", .status = 404});
  return session;
}

void take_note(const ClientSessionPtr& session, Message message) {
  if (!session) return;
  if (message.kind == Message::Kind::response) {
    session->deliver(std::move(message));
  } else if (message.method == "notifications/cancelled") {
    if (const auto id = message.params.find("requestId"); id != message.params.end()) session->call_off(*id);
  }
}

constexpr std::size_t kMostInBatch = 64;

http::Request part_of(const http::Request& request) {
  http::Request out = request;
  out.body.clear();
  return out;
}

// Of revision 2025-03-26 alone: each message is answered as if it had come by itself, one after another.
task<http::Response> post_batch(Call call, json::Value messages) {
  const Failure wrong{.code = ErrorCode::invalid_request, .text = "Invalid request: a batch has 1 to 64 messages", .status = 400};
  if (messages.empty() || messages.size() > kMostInBatch) co_return failed(nullptr, wrong);
  auto session = session_of(call);
  if (!session) co_return failed(nullptr, session.error());
  json::Value answers = json::Value::array();
  for (json::Value& value : messages) {
    json::Value id;
    auto message = mcp::message_of(std::move(value), id);
    if (message && message->kind != Message::Kind::request) {
      take_note(*session, std::move(*message));
      continue;
    }
    mcp::Or<json::Value> result;
    if (!message) {
      result = std::unexpected(message.error());
    } else if (message->method == "initialize") {
      result = std::unexpected(Failure{.code = ErrorCode::invalid_request, .text = "initialize comes by itself"});
    } else {
      mcp::Client client = mcp::client_of(call, mcp::Revision::v2025_03_26, *session);
      auto exchange = std::make_shared<services::Exchange>((*session)->executor);
      Call part{call.services, part_of(call.request), call.route, nullptr, call.principal};
      if (mcp::is_forwarded(*message))
        result = co_await mcp::forward(std::move(client), std::move(*message), nullptr, std::move(exchange));
      else result = co_await mcp::answer(std::move(part), std::move(client), std::move(*message));
    }
    answers.push_back(result ? mcp::result_message(std::move(id), std::move(*result))
                             : mcp::error_message(std::move(id), result.error()));
  }
  if (answers.empty()) co_return taken_note();
  co_return http::json_response(200, std::move(answers));
}

task<http::Response> post_message(Call call) {
  json::Value id;
  CO_TRY_ASSIGN(http::Lane::Turn turn, co_await call.work(call.request.body.size()));
  auto parsed = mcp::parse_text(call.request.body);
  if (!parsed) co_return failed(nullptr, parsed.error());
  call.request.body = std::string();
  turn = {};
  if (parsed->is_array()) {
    const auto named = mcp::revision_of(call.request, Message{});
    if (named && *named == mcp::Revision::v2025_03_26) co_return co_await post_batch(std::move(call), std::move(*parsed));
  }
  auto message = mcp::message_of(std::move(*parsed), id);
  if (!message) co_return failed(std::move(id), message.error());
  const auto revision = mcp::revision_of(call.request, *message);
  if (!revision) co_return failed(std::move(id), revision.error());
  const bool begins = message->method == "initialize" && !is_stateless(*revision);
  ClientSessionPtr session;
  if (!is_stateless(*revision) && !begins) {
    auto found = session_of(call);
    if (!found) co_return failed(std::move(id), found.error());
    session = std::move(*found);
  }
  if (message->kind != Message::Kind::request) {
    take_note(session, std::move(*message));
    co_return taken_note();
  }
  mcp::Client client = mcp::client_of(call, *revision, session);
  if (message->method == "subscriptions/listen" && is_stateless(*revision))
    co_return co_await mcp::answer_listener(std::move(call), std::move(client), std::move(*message));
  if (mcp::is_forwarded(*message))
    co_return co_await mcp::answer_in_stream(std::move(call), std::move(client), std::move(*message));
  services::McpSessions& sessions = call.services.workspace->mcp->sessions;
  const std::string owner = mcp::owner_of(call.principal);
  const auto offered = message->params.find("capabilities");
  json::Value capabilities = offered != message->params.end() && offered->is_object() ? *offered : json::Value::object();
  auto result = co_await mcp::answer(std::move(call), std::move(client), std::move(*message));
  if (!result) co_return failed(std::move(id), result.error());
  http::Response response = http::json_response(200, mcp::result_message(std::move(id), std::move(*result)));
  if (begins) response.headers.emplace_back(kSession, sessions.begin(owner, std::move(capabilities))->id);
  co_return response;
}

task<http::Response> get_stream(Call call) {
  if (!call.request.accepts_event_stream()) {
    const Failure why{
        .code = ErrorCode::invalid_request, .text = "Not Acceptable: Client must accept text/event-stream", .status = 406};
    co_return failed("server-error", why);
  }
  auto session = session_of(call);
  if (!session && call.request.header(kSession)) co_return failed(nullptr, session.error());
  if (!session) {  // of no session: a client of 2026-07-28, which has no such stream
    http::Response response = http::error_response(405, "Method Not Allowed: there is a stream of a session alone");
    response.headers = {{"allow", "DELETE, GET, OPTIONS, POST"}};
    co_return response;
  }
  co_return co_await mcp::stream_of_session(std::move(call), std::move(*session));
}

task<http::Response> end_session(Call call) {
  const auto id = call.request.header(kSession);
  const bool ended = id && call.services.workspace->mcp->sessions.end(std::string(*id), mcp::owner_of(call.principal));
  if (ended) co_return http::ok(nullptr, "Session ended");
  const Failure why{.code = ErrorCode::invalid_request,
                    .text = id ? "Session not found" : "Bad request: Mcp-Session-Id is missing",
                    .status = id ? 404 : 400};
  co_return failed(nullptr, why);
}

// --- the same tools over REST ---

task<http::Response> list_servers(Call call) {
  const bool hidden = call.request.query_value("include_hidden").value_or("") == "true";
  std::vector<std::string> names;
  for (const mcp::Server& server : mcp::kServers) names.emplace_back(server.name);
  for (const auto& server : call.services.workspace->mcp->servers())
    if ((hidden || !server->config().hidden) && server->config().permits(call.principal.name))
      names.push_back(server->config().name);
  co_return http::ok(encode(names));
}

http::Response no_server() { return http::error_response(404, "MCP server not found"); }

// A configured one that the credential may use. A name of this program's own servers is theirs.
services::McpServer::Pointer configured_server(const Call& call) {
  services::McpServer::Pointer server = call.services.workspace->mcp->find(call.request.param("server_name"));
  return server && server->config().permits(call.principal.name) ? server : nullptr;
}

task<http::Response> list_configured_tools(Call call, services::McpServer::Pointer server) {
  mcp::Client client = mcp::client_of(call, mcp::Revision::v2025_11_25, nullptr);
  auto tools = co_await mcp::tools_of(std::move(client), std::move(server));
  if (!tools) co_return http::fail(tools.error().text);
  json::Value data = json::Value::object();
  data["tools"] = std::move(*tools);
  co_return http::ok(std::move(data));
}

task<http::Response> execute_configured_tool(Call call, services::McpServer::Pointer server, json::Value arguments) {
  mcp::Client client = mcp::client_of(call, mcp::Revision::v2025_11_25, nullptr);
  std::string tool(call.request.param("tool_name"));
  auto result = co_await mcp::call_on(std::move(client), std::move(server), std::move(tool), std::move(arguments));
  if (!result && result.error().code == ErrorCode::invalid_params && result.error().text.starts_with("Unknown tool"))
    co_return http::error_response(404, "MCP tool not found");
  if (!result) co_return http::fail(result.error().text);
  co_return http::ok(std::move(*result));
}

task<http::Response> list_server_tools(Call call) {
  const mcp::Server* server = mcp::find_server(call.request.param("server_name"));
  if (server == nullptr) {
    auto configured = configured_server(call);
    if (!configured) co_return no_server();
    co_return co_await list_configured_tools(std::move(call), std::move(configured));
  }
  json::Value tools = json::Value::array();
  for (const mcp::Tool& tool : server->tools())
    if (mcp::permits(call.principal.bounds.scopes, tool)) tools.push_back(mcp::describe(tool));
  json::Value data = json::Value::object();
  data["tools"] = std::move(tools);
  co_return http::ok(std::move(data));
}

task<http::Response> execute_tool(Call call, mcp::ToolArguments arguments) {
  const mcp::Server* server = mcp::find_server(call.request.param("server_name"));
  if (server == nullptr) {
    auto configured = configured_server(call);
    if (!configured) co_return no_server();
    co_return co_await execute_configured_tool(std::move(call), std::move(configured), std::move(arguments.given));
  }
  const auto tools = server->tools();
  const auto tool = std::ranges::find(tools, call.request.param("tool_name"), &mcp::Tool::name);
  if (tool == tools.end() || !mcp::permits(call.principal.bounds.scopes, *tool))
    co_return http::error_response(404, "MCP tool not found");
  auto outcome = co_await mcp::call_tool(std::move(call), *tool, std::move(arguments.given));
  if (!outcome) co_return http::fail(outcome.error().text);
  co_return http::ok(mcp::encode(std::move(*outcome)));
}

// For operators: what each server does, and its last words.
task<http::Response> list_states(Call call) {
  json::Value states = json::Value::array();
  for (const auto& server : call.services.workspace->mcp->servers()) states.push_back(server->status());
  json::Value data = json::Value::object();
  data["servers"] = std::move(states);
  co_return http::ok(std::move(data));
}

task<http::Response> approve_tools(Call call) {
  const services::McpServer::Pointer server = call.services.workspace->mcp->find(call.request.param("server_name"));
  if (!server) co_return no_server();
  if (server->config().pin.size() == 64) co_return http::fail("its tools are pinned by the configuration: change `pin` there");
  server->approve();
  co_return http::ok(server->status());
}

using http::Method;

constexpr Parameter kServersQuery[] = {{"include_hidden", "boolean", "Also servers that are not shown", false, {}, "false"}};

constexpr Route kMcp[] = {
    {Method::post, "/mcp", "mcp_post", Scope::mcp, kHidden, Unknown::ignore, "A message of MCP", bind<post_message>(),
     mcp::kMostMessage},
    {Method::get, "/mcp", "mcp_get", Scope::mcp, kHidden | kEventStream, Unknown::ignore, "The stream of MCP",
     bind<get_stream>()},
    {Method::del, "/mcp", "mcp_delete", Scope::mcp, kHidden, Unknown::ignore, "End a session of MCP", bind<end_session>()},
    {Method::post, "/v1/mcp", "mcp_v1_post", Scope::mcp, kHidden, Unknown::ignore, "A message of MCP", bind<post_message>(),
     mcp::kMostMessage},
    {Method::get, "/v1/mcp", "mcp_v1_get", Scope::mcp, kHidden | kEventStream, Unknown::ignore, "The stream of MCP",
     bind<get_stream>()},
    {Method::del, "/v1/mcp", "mcp_v1_delete", Scope::mcp, kHidden, Unknown::ignore, "End a session of MCP", bind<end_session>()},
    {Method::get, "/v1/mcp/servers", "list_mcp_servers_v1_mcp_servers_get", Scope::mcp, kNone, Unknown::ignore,
     "Names of the MCP servers", bind<list_servers, std::vector<std::string>>(), kDefaultBodyLimit, kServersQuery},
    {Method::get, "/v1/mcp/{server_name}/tools", "list_mcp_tools_v1_mcp__server_name__tools_get", Scope::mcp, kNone,
     Unknown::ignore, "Tools of an MCP server", bind<list_server_tools, mcp::ListToolsResult>()},
    {Method::post, "/v1/mcp/{server_name}/tools/{tool_name}", "execute_mcp_tool_v1_mcp__server_name__tools__tool_name__post",
     Scope::mcp, kNone, Unknown::ignore, "Call a tool of an MCP server", bind<execute_tool, mcp::CallToolResult>()},
    {Method::get, "/v1/mcp/states", "mcp_states", Scope::operator_, kNone, Unknown::ignore,
     "What the configured MCP servers do, and the last that they wrote to stderr", bind<list_states>()},
    {Method::post, "/v1/mcp/{server_name}/approve", "mcp_approve", Scope::operator_, kNone, Unknown::ignore,
     "Approve the tools that an MCP server has now", bind<approve_tools>()},
};

}  // namespace

Area mcp_routes() { return kMcp; }

}  // namespace caisson::routes
