// Questions of servers up to 2025-11-25 to clients of 2026-07-28, which are asked by the answer to their request
// (services/mcp/pending_calls.h).
#pragma once

#include "agent/mcp/forward.h"

namespace caisson::mcp {

// Whether the server may answer this request with questions that the client cannot be sent.
[[nodiscard]] bool may_be_interrupted(const Client& client, const services::McpServer& server, std::string_view method);
// What a request that goes on with another one must have in common with it: its parameters as the client wrote them, but for
// those that change with each round.
[[nodiscard]] std::string binding_of(std::string_view method, const json::Value& params);

// Has the server carry the request out, or goes on with the one of its requestState. The result is the server's, or the questions
// that it has. Failures: the server's; invalid_params, if the state or the responses are no ones that are waited for.
[[nodiscard]] asio::awaitable<Or<json::Value>> converse(Client client, services::McpServer::Pointer server, std::string method,
                                                        json::Value params, std::string binding, MessageStreamPtr stream,
                                                        services::ExchangePtr exchange);

}  // namespace caisson::mcp
