#include "agent/traces/otlp.h"

#include <algorithm>
#include <utility>

#include "launcher/common/base/json.h"

namespace caisson::traces {
namespace {

constexpr int kInternal = 1, kServer = 2;
constexpr std::string_view kFailed = R"({"code":2})";  // STATUS_CODE_ERROR
constexpr std::size_t kMaxPath = 1024, kMaxText = 256;
constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

// Most texts are plain and are copied. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (!std::ranges::all_of(text, is_plain))
    return json::Value(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return '"' + std::string(text) + '"';
}

// A JSON object or array. Names are constants of this file and the like, and need no escaping.
class Text {
 public:
  explicit Text(char opening) : text_(1, opening) {}
  void add(std::string_view name, std::string_view json) { next().append("\"").append(name).append("\":").append(json); }
  void add(std::string_view json) { next().append(json); }
  [[nodiscard]] std::string closed_by(char closing) && { return std::move(text_ += closing); }

 private:
  std::string& next() { return text_.size() == 1 ? text_ : text_ += ','; }
  std::string text_;
};

class AttributeList {
 public:
  void text(std::string_view key, std::string_view value, std::size_t most = kMaxText) {
    if (!value.empty()) add(key, "stringValue", json_text(value.substr(0, most)));
  }
  void number(std::string_view key, int value) { add(key, "intValue", json_text(std::to_string(value))); }
  [[nodiscard]] std::string list() && { return std::move(list_).closed_by(']'); }

 private:
  void add(std::string_view key, std::string_view type, std::string_view json) {
    std::string one = "{\"key\":\"";
    one.append(key).append("\",\"value\":{\"").append(type).append("\":").append(json).append("}}");
    list_.add(one);
  }
  Text list_{'['};
};

// The members that spans of both kinds have.
std::string span_text(Text text, std::string_view name, int kind, const Period& period, AttributeList about, bool failed) {
  text.add("name", json_text(name));
  text.add("kind", std::to_string(kind));
  text.add("startTimeUnixNano", json_text(std::to_string(period.start_ns())));
  text.add("endTimeUnixNano", json_text(std::to_string(period.end_ns())));
  if (failed) text.add("status", kFailed);
  text.add("attributes", std::move(about).list());
  return std::move(text).closed_by('}');
}

std::string of_request(const Span& span) {
  // A method that no standard has is one value, so that a client cannot make as many names as it likes.
  const std::string_view method =
      std::ranges::find(kMethods, span.method) != std::end(kMethods) ? std::string_view(span.method) : "_OTHER";
  AttributeList about;
  about.text("http.request.method", method);
  about.text("http.route", span.route);
  about.text("url.path", span.path, kMaxPath);
  about.text("url.scheme", span.scheme);
  about.text("caisson.request.id", span.request_id);
  about.text("caisson.workspace", span.workspace);
  about.text("caisson.session.id", span.session);
  if (span.status != 0) about.number("http.response.status_code", span.status);
  if (span.status >= 500) about.text("error.type", std::to_string(span.status));
  const std::string name =
      std::string(method == "_OTHER" ? "HTTP" : method) + (span.route.empty() ? "" : " ") + std::string(span.route);
  Text text('{');
  text.add("traceId", json_text(span.trace));
  text.add("spanId", json_text(span.id));
  if (!span.parent.empty()) text.add("parentSpanId", json_text(span.parent));
  if (!span.state.empty()) text.add("traceState", json_text(span.state));
  return span_text(std::move(text), name, kServer, span.period, std::move(about), span.status >= 500);
}

std::string of_child(const Span& span, const Child& child) {
  AttributeList about;
  for (const auto& [key, value] : child.attributes) about.text(key, value);
  about.text("error.type", child.error);
  Text text('{');
  text.add("traceId", json_text(span.trace));
  text.add("spanId", json_text(child.id));
  text.add("parentSpanId", json_text(span.id));
  return span_text(std::move(text), child.name, kInternal, child.period, std::move(about), !child.error.empty());
}

}  // namespace

std::string spans_text(const Span& span) {
  std::string out = of_request(span);
  for (const Child& child : span.children) out.append(",").append(of_child(span, child));
  return out;
}

std::string request_text(std::string_view service, std::string_view spans) {
  AttributeList resource;
  resource.text("service.name", service);
  resource.text("service.version", CAISSON_VERSION);
  std::string out = R"({"resourceSpans":[{"resource":{"attributes":)" + std::move(resource).list() +
                    R"(},"scopeSpans":[{"scope":{"name":"caisson-agent","version":")" CAISSON_VERSION R"("},"spans":[)";
  return out.append(spans).append("]}]}]}");
}

}  // namespace caisson::traces
