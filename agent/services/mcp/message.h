// JSON-RPC 2.0 as MCP uses it (modelcontextprotocol.io, "Base Protocol"), with clients and with servers. Pure values.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::mcp {

// JSON-RPC 2.0, section 5.1; below -32000 those of MCP 2026-07-28.
enum class ErrorCode : int {
  parse = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal = -32603,
  resource_not_found = -32002,  // up to 2025-11-25
  header_mismatch = -32020,
  missing_capability = -32021,
  unsupported_version = -32022,
};

struct Message {
  enum class Kind { request, notification, response };
  Kind kind = Kind::request;
  json::Value id = nullptr;  // of a request or response: text or an integer
  std::string method;        // empty for a response
  json::Value params = json::Value::object();
  json::Value result = nullptr, error = nullptr;  // of a response: one of the two
};

// What goes wrong with a request: the error of its answer, and the answer's HTTP status.
struct Failure {
  ErrorCode code;
  std::string text;
  json::Value data = nullptr;
  int status = 200;
};
template <class T>
using Or = std::expected<T, Failure>;

inline constexpr std::size_t kMostMessage = 8 * 1024 * 1024;

// Status 400: the text is no JSON.
[[nodiscard]] Or<json::Value> parse_text(std::string_view text);
// Status 400: it is no message. `id`: of the answer, as far as one was readable; else null.
[[nodiscard]] Or<Message> message_of(json::Value value, json::Value& id);
// Both.
[[nodiscard]] Or<Message> parse_message(std::string_view text, json::Value& id);

[[nodiscard]] json::Value request_message(json::Value id, std::string_view method, json::Value params);
[[nodiscard]] json::Value notification_message(std::string_view method, json::Value params);
[[nodiscard]] json::Value result_message(json::Value id, json::Value result);
[[nodiscard]] json::Value error_message(json::Value id, const Failure& failure);
// What clients offer to servers that ask: roots, sampling, elicitation. The part of a client's capabilities that says so.
[[nodiscard]] json::Value askable(const json::Value& capabilities);
// Whether a client with these capabilities can be asked this.
[[nodiscard]] bool offers(const json::Value& capabilities, std::string_view method, const json::Value& params);
[[nodiscard]] Failure not_offered(std::string_view method);
// The outcome that a response tells. Its error is a stranger's: bounded.
[[nodiscard]] Or<json::Value> outcome_of(Message response);

}  // namespace caisson::mcp
