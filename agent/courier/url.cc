#include "agent/courier/url.h"

#include <algorithm>
#include <charconv>

namespace caisson::courier {
namespace {

constexpr std::size_t kMaxUrl = 2048, kMaxHost = 253;

std::unexpected<Error> bad_url(const char* what) { return fail(Code::invalid_argument, std::string("must be ") + what); }

bool is_host(std::string_view host, bool bracketed) {
  if (host.empty() || host.size() > kMaxHost) return false;
  return std::ranges::all_of(host, [bracketed](char c) {
    const bool digit = c >= '0' && c <= '9';
    if (bracketed) return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
    return digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kPlain = "http://", kTls = "https://";
  if (text.size() > kMaxUrl || !std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; }))
    return bad_url("at most 2048 visible characters of ASCII");
  Url url;
  url.tls = text.starts_with(kTls);
  if (!url.tls && !text.starts_with(kPlain)) return bad_url("an address that begins with https:// or http://");
  text.remove_prefix(url.tls ? kTls.size() : kPlain.size());
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, end);
  url.target = text.substr(end);
  if (url.target.contains('#') || authority.contains('@')) return bad_url("an address without a user, a password and a fragment");
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  url.authority = authority;
  const bool bracketed = authority.starts_with('[');
  const std::size_t closed = bracketed ? authority.find(']') : std::string_view::npos;
  if (bracketed && closed == std::string_view::npos) return bad_url("an address with a host");
  const std::size_t host_end = bracketed ? closed + 1 : std::min(authority.find(':'), authority.size());
  url.host = bracketed ? authority.substr(1, closed - 1) : authority.substr(0, host_end);
  if (!is_host(url.host, bracketed)) return bad_url("an address with a host");
  std::string_view port = authority.substr(host_end);
  url.port = url.tls ? 443 : 80;
  if (port.empty()) return url;
  port.remove_prefix(1);
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (authority[host_end] != ':' || error != std::errc() || stop != port.data() + port.size() || url.port == 0)
    return bad_url("an address with a port from 1 to 65535");
  return url;
}

}  // namespace caisson::courier
