#include "agent/mcp/tool.h"

#include "agent/http/base64.h"

namespace caisson::mcp {

Outcome text_outcome(std::string text) {
  Outcome out;
  out.content.push_back({{"type", "text"}, {"text", std::move(text)}});
  return out;
}

Outcome error_outcome(std::string text) {
  Outcome out = text_outcome(std::move(text));
  out.is_error = true;
  return out;
}

Outcome structured_outcome(json::Value object) {
  Outcome out = text_outcome(json::dump(object));
  out.structured = std::move(object);
  return out;
}

Outcome image_outcome(std::string_view bytes, std::string_view media_type) {
  Outcome out;
  out.content.push_back({{"type", "image"}, {"data", http::base64_encode(bytes)}, {"mimeType", media_type}});
  return out;
}

json::Value encode(Outcome outcome) {
  json::Value out = {{"content", std::move(outcome.content)}, {"isError", outcome.is_error}};
  if (outcome.structured) out["structuredContent"] = std::move(*outcome.structured);
  return out;
}

namespace detail {

std::string text_of(const routes::Issues& issues) {
  std::string out = "Wrong arguments: ";
  for (const json::Value& issue : issues.detail()) {
    if (!out.ends_with(": ")) out += "; ";
    std::string where;
    for (const json::Value& step : issue["loc"])
      where += (where.empty() ? "" : ".") + (step.is_string() ? step.get<std::string>() : json::dump(step));
    out += (where.empty() ? "" : where + ": ") + issue["msg"].get<std::string>();
  }
  return out;
}

}  // namespace detail

}  // namespace caisson::mcp
