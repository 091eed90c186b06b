// The methods of MCP that this server carries out, for both kinds of revisions.
#pragma once

#include "agent/mcp/catalog.h"
#include "agent/mcp/revision.h"

namespace caisson::mcp {

// The result of a request. Failures: the method is unknown (status 404 where requests are stateless), or its parameters are
// wrong.
[[nodiscard]] asio::awaitable<Or<json::Value>> answer(Call call, Revision revision, Message message);

// A tool by its name, with what tools/call and the REST mirror have in common.
[[nodiscard]] asio::awaitable<Or<Outcome>> call_tool(Call call, const Tool& tool, json::Value arguments);

// The tools that a client sees, described.
[[nodiscard]] json::Value listed(const Filter& filter, const auth::Scopes& scopes);

}  // namespace caisson::mcp
