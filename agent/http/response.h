// Response: what a handler returns, and the envelope {success, message, data, hint} that AIO clients expect around it.
// Expected failures of a tool are HTTP 200 with success:false, because clients re-run a command that gets a 5xx.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/http/request.h"
#include "launcher/common/base/json.h"

namespace caisson::http {

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Pairs headers;  // extra ones; a value with CR, LF or NUL is dropped when written
  std::string body;
  std::optional<json::Value> values;  // large values instead of a body: the connection makes their text, in parts
  bool sent = false;                  // an EventStream has already answered
  bool close = false;                 // close the connection after this response
};

// Never throws: bytes of process output that are not UTF-8 become U+FFFD.
[[nodiscard]] Response json_response(int status, json::Value value);
// The text of its body or values, made in one part.
[[nodiscard]] std::string text_of(const Response& response);
[[nodiscard]] Response text_response(int status, std::string content_type, std::string body);

// 200 {"success":true,"message":...,"data":...,"hint":null}
[[nodiscard]] Response ok(json::Value data, std::string_view message = "Operation successful",
                          std::optional<std::string> hint = std::nullopt);
// 200 {"success":false,"message":...,"data":...,"hint":null}: an expected failure of a tool.
[[nodiscard]] Response fail(std::string_view message, json::Value data = nullptr, std::optional<std::string> hint = std::nullopt);
// {"success":false,"message":...,"data":null} with an HTTP error status: for HTTP's own failures and unknown sessions.
[[nodiscard]] Response error_response(int status, std::string_view message);
[[nodiscard]] Response session_not_found();
// To be returned by a handler that has answered through an EventStream.
[[nodiscard]] Response already_sent();

}  // namespace caisson::http
