#include "agent/http/response.h"

#include <utility>

#include "agent/http/json_text.h"

namespace caisson::http {
namespace {

Response envelope(bool success, std::string_view message, json::Value data, std::optional<std::string> hint) {
  return json_response(200, {{"success", success},
                             {"message", message},
                             {"data", std::move(data)},
                             {"hint", hint ? json::Value(*hint) : json::Value(nullptr)}});
}

}  // namespace

Response json_response(int status, json::Value value) {
  Response response;
  response.status = status;
  if (weight(value) <= kAtOnce) response.body = json::dump(value);
  else response.values = std::move(value);
  return response;
}

std::string text_of(const Response& response) { return response.values ? json::dump(*response.values) : response.body; }

Response text_response(int status, std::string content_type, std::string body) {
  Response response;
  response.status = status;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

Response ok(json::Value data, std::string_view message, std::optional<std::string> hint) {
  return envelope(true, message, std::move(data), std::move(hint));
}

Response fail(std::string_view message, json::Value data, std::optional<std::string> hint) {
  return envelope(false, message, std::move(data), std::move(hint));
}

// Written out in the order that clients of the original see; exactly these three members.
Response error_response(int status, std::string_view message) {
  return text_response(status, "application/json",
                       R"({"success":false,"message":)" + json::dump(json::Value(message)) + R"(,"data":null})");
}

Response session_not_found() { return error_response(404, "Session not found"); }

Response already_sent() {
  Response response;
  response.sent = true;
  return response;
}

}  // namespace caisson::http
