#include "agent/proxy/request_head.h"

#include <algorithm>
#include <array>

#include "agent/http/token.h"
#include "agent/proxy/fields.h"

namespace caisson::proxy {
namespace {

constexpr std::string_view kOurCookies = "caisson_";

// Credentials of ours, what this proxy sets itself, and what clients could say about addresses that nobody has checked.
constexpr auto kNotPassedOn = std::to_array<std::string_view>(
    {"host", "content-length", "expect", "x-aio-api-key", "x-aio-proxy-port", "forwarded", "x-real-ip", "http2-settings"});

bool is_passed_on(const http::Pairs& headers, std::string_view name) {
  return std::ranges::find(kNotPassedOn, name) == kNotPassedOn.end() && !name.starts_with("x-caisson-") &&
         !name.starts_with("x-forwarded-") && !is_hop_by_hop(headers, name);
}

std::string cookies_for_app(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find(';'), value.size());
    const std::string_view one = http::trim(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
    if (one.empty() || http::same_ignoring_case(one.substr(0, kOurCookies.size()), kOurCookies)) continue;
    if (!out.empty()) out += "; ";
    out += one;
  }
  return out;
}

// "http://HOST" of the page's own origin becomes the app's, which compares it with its Host.
std::string origin_for_app(std::string_view value, std::string_view host, const std::string& own) {
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos || !http::same_ignoring_case(value.substr(scheme + 3), host)) return std::string(value);
  return "http://" + own;
}

void add_one(std::string& out, const std::string& name, const std::string& value, std::string_view host, const std::string& own) {
  if (name == "cookie") {
    if (const std::string kept = cookies_for_app(value); !kept.empty()) add_field(out, name, kept);
  } else if (name == "origin") {
    add_field(out, name, origin_for_app(value, host, own));
  } else if (name == "referer") {
    add_field(out, name, value.substr(0, value.find_first_of("?#")));  // the page's address may have had a key in its query
  } else {
    add_field(out, name, value);
  }
}

}  // namespace

bool asks_websocket(const http::Request& request) {
  return request.method == http::Method::get && request.minor_version == 1 && !has_body(request) &&
         list_has(request.headers, "connection", "upgrade") && list_has(request.headers, "upgrade", "websocket") &&
         request.header("sec-websocket-version") == "13" && request.header("sec-websocket-key").has_value();
}

bool is_chunked(const http::Request& request) { return request.header("transfer-encoding").has_value(); }

bool has_body(const http::Request& request) {
  return is_chunked(request) || request.header("content-length").value_or("0") != "0";
}

bool is_repeatable(const http::Request& request) {
  using http::Method;
  const Method m = request.method;
  return !has_body(request) && !asks_websocket(request) &&
         (m == Method::get || m == Method::head || m == Method::options || m == Method::put || m == Method::del);
}

// Auth compares decoded names, so a credential is recognized by its decoded name, too. decode_target() skips empty pairs as this
// does, so the two run side by side.
std::string query_for_app(const http::Request& request) {
  std::string_view raw = request.target;
  raw.remove_prefix(std::min(raw.find('?'), raw.size()));
  if (raw.empty()) return "";
  raw.remove_prefix(1);
  std::string out;
  std::size_t at = 0;
  while (!raw.empty()) {
    const std::size_t end = std::min(raw.find('&'), raw.size());
    const std::string_view pair = raw.substr(0, end);
    raw.remove_prefix(std::min(end + 1, raw.size()));
    if (pair.empty()) continue;
    const std::string& name = request.query.at(at++).first;
    if (name == "api_key" || name == "ticket") continue;
    out.append(out.empty() ? "?" : "&").append(pair);
  }
  return out;
}

std::string request_head(const http::Request& request, const Destination& to, bool drop_authorization) {
  const std::string_view host = request.header("host").value_or("");
  const std::string own = "localhost:" + std::to_string(to.port);
  const bool upgrade = asks_websocket(request);
  std::string out = request.verb + " " + to.path + query_for_app(request) + " HTTP/1.1\r\n";
  add_field(out, "host", own);
  for (const auto& [name, value] : request.headers) {
    if (!is_passed_on(request.headers, name) || (drop_authorization && name == "authorization")) continue;
    add_one(out, name, value, host, own);
  }
  add_field(out, "x-forwarded-for", request.remote);
  if (const std::string_view named = request.host.empty() ? host : request.host; !named.empty())
    add_field(out, "x-forwarded-host", named);
  add_field(out, "x-forwarded-proto", request.scheme);
  if (to.stripped) add_field(out, "x-forwarded-prefix", to.prefix);
  if (is_chunked(request)) add_field(out, "transfer-encoding", "chunked");
  else if (const auto length = request.header("content-length")) add_field(out, "content-length", *length);
  if (upgrade) add_field(out, "upgrade", "websocket");
  add_field(out, "connection", upgrade ? "Upgrade" : "keep-alive");
  return out + "\r\n";
}

}  // namespace caisson::proxy
