#include "agent/services/mcp/message.h"

#include <algorithm>
#include <utility>

namespace caisson::mcp {
namespace {

std::unexpected<Failure> invalid(std::string what) {
  return std::unexpected(
      Failure{.code = ErrorCode::invalid_request, .text = "Invalid request: " + std::move(what), .status = 400});
}

struct Offer {
  std::string_view method, capability;
};
constexpr Offer kOffers[] = {
    {"sampling/createMessage", "sampling"}, {"elicitation/create", "elicitation"}, {"roots/list", "roots"}};

bool is_id(const json::Value& id) { return id.is_string() || id.is_number_integer(); }

}  // namespace

Or<json::Value> parse_text(std::string_view text) {
  const json::Bounds bounds{.max_bytes = kMostMessage, .max_depth = 64, .max_values = 256 * 1024};
  auto parsed = json::parse(text, bounds);
  if (!parsed)
    return std::unexpected(Failure{.code = ErrorCode::parse, .text = "Parse error: " + parsed.error().what, .status = 400});
  return std::move(*parsed);
}

Or<Message> parse_message(std::string_view text, json::Value& id) {
  id = nullptr;
  auto value = parse_text(text);
  if (!value) return std::unexpected(std::move(value).error());
  return message_of(std::move(*value), id);
}

Or<Message> message_of(json::Value value, json::Value& id) {
  id = nullptr;
  if (!value.is_object()) return invalid("a message is an object");
  if (value.value("jsonrpc", json::Value()) != "2.0") return invalid(R"("jsonrpc" must be "2.0")");
  Message message;
  const auto given = value.find("id");
  if (given != value.end()) {
    if (!is_id(*given)) return invalid("an id is text or an integer");
    id = message.id = std::move(*given);
  }
  const auto method = value.find("method");
  if (method == value.end()) {
    if (given == value.end() || (!value.contains("result") && !value.contains("error"))) return invalid("method is missing");
    message.kind = Message::Kind::response;
    if (const auto result = value.find("result"); result != value.end()) message.result = std::move(*result);
    if (const auto error = value.find("error"); error != value.end()) message.error = std::move(*error);
    return message;
  }
  if (!method->is_string()) return invalid("method must be text");
  message.method = std::move(method->get_ref<std::string&>());
  message.kind = given == value.end() ? Message::Kind::notification : Message::Kind::request;
  if (const auto params = value.find("params"); params != value.end()) {
    if (!params->is_object()) return invalid("params must be an object");
    message.params = std::move(*params);
  }
  return message;
}

json::Value request_message(json::Value id, std::string_view method, json::Value params) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"method", method}, {"params", std::move(params)}};
}

json::Value notification_message(std::string_view method, json::Value params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

json::Value result_message(json::Value id, json::Value result) {
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"result", std::move(result)}};
}

json::Value error_message(json::Value id, const Failure& failure) {
  json::Value error = {{"code", static_cast<int>(failure.code)}, {"message", failure.text}};
  if (!failure.data.is_null()) error["data"] = failure.data;
  return {{"jsonrpc", "2.0"}, {"id", std::move(id)}, {"error", std::move(error)}};
}

json::Value askable(const json::Value& capabilities) {
  json::Value out = json::Value::object();
  if (!capabilities.is_object()) return out;
  for (const Offer& offer : kOffers)
    if (const auto found = capabilities.find(offer.capability); found != capabilities.end() && found->is_object())
      out[std::string(offer.capability)] = *found;
  return out;
}

bool offers(const json::Value& capabilities, std::string_view method, const json::Value& params) {
  const auto offer = std::ranges::find(kOffers, method, &Offer::method);
  if (offer == std::end(kOffers)) return false;
  const auto found = capabilities.find(offer->capability);
  if (found == capabilities.end() || !found->is_object()) return false;
  if (method == "elicitation/create") {  // {} is from before there were modes
    if (params.value("mode", json::Value()) == "url") return found->contains("url");
    return found->contains("form") || !found->contains("url");
  }
  const bool with_tools = params.contains("tools") || params.contains("toolChoice");
  return method != "sampling/createMessage" || !with_tools || found->contains("tools");
}

Failure not_offered(std::string_view method) {
  return {.code = ErrorCode::method_not_found, .text = "The client does not offer " + quote(method)};
}

Or<json::Value> outcome_of(Message response) {
  if (response.error.is_null()) return std::move(response.result);
  Failure failure{.code = ErrorCode::internal, .text = "an error without a message"};
  if (response.error.is_object()) {
    if (const auto code = response.error.find("code"); code != response.error.end() && code->is_number_integer())
      failure.code = static_cast<ErrorCode>(code->get<int>());
    if (const auto text = response.error.find("message"); text != response.error.end() && text->is_string())
      failure.text = text->get_ref<const std::string&>().substr(0, 16 * 1024);
    if (const auto data = response.error.find("data"); data != response.error.end()) failure.data = std::move(*data);
  }
  return std::unexpected(std::move(failure));
}

}  // namespace caisson::mcp
