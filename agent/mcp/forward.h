// Requests that configured MCP servers carry out, under the names that the hub's clients see: a server's prefix stands before its
// own names of tools and prompts; addresses of resources are unchanged, and belong to the first server that offers them.
#pragma once

#include <memory>
#include <string>

#include "agent/mcp/catalog.h"
#include "agent/mcp/revision.h"
#include "agent/services/mcp/mcp_hub.h"

namespace caisson::mcp {

using services::ClientSessionPtr;
using services::MessageStreamPtr;

// On whose behalf a request is made, apart from its connection: the request may outlive that.
struct Client {
  services::McpHub* hub;  // of a workspace, whose slot outlives all requests
  http::Server* server;   // has the access log
  bridge::LauncherClient* launcher;
  std::string workspace;
  ClientSessionPtr session;  // of a stateless request: of it alone
  std::string identity;      // the credential's name, for rules
  Revision revision = Revision::v2025_11_25;
  Filter filter;
  auth::Scopes scopes;
};
[[nodiscard]] Client client_of(const Call& call, Revision revision, ClientSessionPtr session);
// What tells credentials apart: one of the same origin is another.
[[nodiscard]] std::string owner_of(const auth::Principal& principal);

// Whether a configured server is to carry the request out, and not this program.
[[nodiscard]] bool is_forwarded(const Message& message);

// Carries it out. stream: for what the server says meanwhile; nullptr: the client hears of nothing but the result.
[[nodiscard]] asio::awaitable<Or<json::Value>> forward(Client client, Message message, MessageStreamPtr stream,
                                                       services::ExchangePtr exchange);
// The parts of forward(): a request to a server under its own names, with its record; to the client's own copy or the shared one,
// or to that copy for that asker.
[[nodiscard]] asio::awaitable<Or<json::Value>> send(Client client, services::McpServer::Pointer server, std::string method,
                                                    json::Value params, MessageStreamPtr stream, services::ExchangePtr exchange);
[[nodiscard]] asio::awaitable<Or<json::Value>> send_to(Client client, services::McpServer::Pointer server,
                                                       services::ServerInstance::Pointer copy, std::string method,
                                                       json::Value params, services::AskerPtr asker,
                                                       services::ExchangePtr exchange);
// Whether the client wants to hear this notifications/message. meta: of its request.
[[nodiscard]] bool wants_log(const Client& client, const json::Value& meta, const json::Value& notification);
// As forward() of tools/call, by the server's own name of the tool; for the REST mirror.
[[nodiscard]] asio::awaitable<Or<json::Value>> call_on(Client client, services::McpServer::Pointer server, std::string tool,
                                                       json::Value arguments);

// What the client sees of a kind, of all servers that it may use. Names of tools that this program has are left out.
[[nodiscard]] asio::awaitable<json::Value> listed_of_servers(Client client, services::Kind kind);
// The same of one server, by its own names.
[[nodiscard]] asio::awaitable<Or<json::Value>> tools_of(Client client, services::McpServer::Pointer server);

// resources/subscribe, resources/unsubscribe, logging/setLevel: for the session from now on.
[[nodiscard]] asio::awaitable<Or<json::Value>> follow(Client client, Message message);
[[nodiscard]] asio::awaitable<Or<json::Value>> set_level(Client client, json::Value params);

}  // namespace caisson::mcp
