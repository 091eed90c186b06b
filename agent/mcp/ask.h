// Operations of the API asked from within, on behalf of the client of a call: with its scopes, its workspace, its takeover.
#pragma once

#include <string>

#include "agent/mcp/tool.h"

namespace caisson::mcp {

struct Asked {
  http::Method method = http::Method::post;
  std::string path;  // of a row of the route table, with its parameters
  json::Value body = nullptr;
  http::Pairs query = {};
};

// The answer of the operation's handler, as the client would get it. internal: no row has that path.
[[nodiscard]] task<http::Response> ask(Call call, Asked asked);

// The envelope of an answer that is JSON.
struct Told {
  bool success = false;
  std::string message;  // with the hint, and of a 422 what is wrong
  json::Value data;
};
[[nodiscard]] Told told_of(const http::Response& response);
[[nodiscard]] task<Told> ask_told(Call call, Asked asked);

}  // namespace caisson::mcp
