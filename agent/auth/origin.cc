#include "agent/auth/origin.h"

#include <algorithm>

#include "agent/http/token.h"

namespace caisson::auth {
namespace {

std::string normal(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('/')) text.remove_suffix(1);
  return http::lower(text);
}

// "host:443" and "host" are one for https, "host:80" and "host" for http.
std::string without_port(std::string authority, std::string_view default_port) {
  if (authority.ends_with(default_port)) authority.resize(authority.size() - default_port.size());
  return authority;
}

bool is_local_name(std::string_view authority) {
  if (authority.starts_with('[')) return true;  // an IPv6 address
  const std::string_view host = authority.substr(0, authority.find(':'));
  if (host == "localhost" || host.ends_with(".localhost")) return true;
  return !host.empty() && std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

OriginRule::OriginRule(std::string_view allowed, bool auth_off) : auth_off_(auth_off) {
  while (!allowed.empty()) {
    const std::size_t comma = std::min(allowed.find(','), allowed.size());
    if (std::string origin = normal(allowed.substr(0, comma)); !origin.empty()) allowed_.push_back(std::move(origin));
    allowed.remove_prefix(std::min(comma + 1, allowed.size()));
  }
}

bool OriginRule::is_listed(std::string_view origin) const {
  return std::ranges::find(allowed_, normal(origin)) != allowed_.end();
}

bool OriginRule::permits(const http::Request& request) const {
  const auto header = request.header("origin");
  if (!header || is_listed(*header)) return true;
  const std::string origin = normal(*header);
  const std::string host = normal(request.header("host").value_or(""));
  if (auth_off_ && !is_local_name(host)) return false;
  if (origin.starts_with("http://")) return without_port(origin.substr(7), ":80") == without_port(host, ":80");
  if (origin.starts_with("https://")) return without_port(origin.substr(8), ":443") == without_port(host, ":443");
  return false;  // "null", extensions, files
}

}  // namespace caisson::auth
