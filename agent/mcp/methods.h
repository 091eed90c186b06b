// The methods of MCP that this program carries out itself, for both kinds of revisions.
#pragma once

#include "agent/mcp/catalog.h"
#include "agent/mcp/forward.h"
#include "agent/mcp/revision.h"

namespace caisson::mcp {

// The result of a request. Failures: the method is unknown (status 404 where requests are stateless), or its parameters are
// wrong.
[[nodiscard]] asio::awaitable<Or<json::Value>> answer(Call call, Client client, Message message);
// Adds to a result what the client's revision wants of a result of that method, and takes away what it does not know.
void complete(json::Value& result, Revision revision, std::string_view method);

// A tool by its name, with what tools/call and the REST mirror have in common.
[[nodiscard]] asio::awaitable<Or<Outcome>> call_tool(Call call, const Tool& tool, json::Value arguments);

// The tools of this program that a client sees, described.
[[nodiscard]] json::Value listed(const Filter& filter, const auth::Scopes& scopes);

}  // namespace caisson::mcp
