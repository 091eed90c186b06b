#include "agent/http/response_head.h"

#include <algorithm>
#include <ctime>

#include <boost/beast/http/status.hpp>

namespace caisson::http {
namespace {

// RFC 9110 IMF-fixdate, made once a second.
const std::string& date_now() {
  static std::time_t made_at = 0;
  static std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != made_at) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char buffer[40];
    const std::size_t n = std::strftime(buffer, sizeof buffer, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    text.assign(buffer, n);
    made_at = now;
  }
  return text;
}

bool is_safe(std::string_view value) {
  return std::ranges::none_of(value, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

void add(std::string& out, std::string_view name, std::string_view value) {
  if (is_safe(value) && is_safe(name) && !name.contains(':')) out.append(name).append(": ").append(value).append("\r\n");
}

void add_connection(std::string& out, const HeadOptions& options) {
  if (!options.keep_alive) add(out, "connection", "close");
  else if (options.minor_version == 0) add(out, "connection", "keep-alive");
  out += "\r\n";
}

}  // namespace

std::string response_head(const Response& response, const HeadOptions& options) {
  namespace beast_http = boost::beast::http;
  const auto reason = beast_http::obsolete_reason(beast_http::int_to_status(static_cast<unsigned>(response.status)));
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out.append(reason.data(), reason.size()).append("\r\n");
  add(out, "date", date_now());
  add(out, "server", "caisson");
  // Answers hold output of programs: never to be sniffed into HTML, never to be kept by a shared cache unless they say so.
  add(out, "x-content-type-options", "nosniff");
  const auto is_caching = [](const auto& header) { return header.first == "cache-control"; };
  if (std::ranges::none_of(response.headers, is_caching)) add(out, "cache-control", "no-store");
  if (!options.request_id.empty()) add(out, "x-request-id", options.request_id);
  if (!response.content_type.empty() && response.status != 204) add(out, "content-type", response.content_type);
  for (const auto& [name, value] : response.headers) add(out, name, value);
  if (options.content_length) {
    if (response.status != 204) add(out, "content-length", std::to_string(*options.content_length));
  } else if (options.minor_version == 1) {
    add(out, "transfer-encoding", "chunked");
  }
  add_connection(out, options);
  return out;
}

std::string relayed_head(const RelayedHead& head, const HeadOptions& options) {
  std::string out = "HTTP/1.1 " + std::to_string(head.status) + " " + (is_safe(head.reason) ? head.reason : "") + "\r\n";
  for (const auto& [name, value] : head.headers) add(out, name, value);
  if (!options.request_id.empty()) add(out, "x-request-id", options.request_id);
  if (head.length) add(out, "content-length", std::to_string(*head.length));
  else if (!head.bodiless && options.minor_version == 1) add(out, "transfer-encoding", "chunked");
  add_connection(out, options);
  return out;
}

}  // namespace caisson::http
