#include "agent/auth/origin.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

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

std::vector<std::string> listed(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (std::string one = normal(list.substr(0, comma)); !one.empty()) out.push_back(std::move(one));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return out;
}

// The host of a normalized "host:port", or "" if the text is not one.
std::string_view host_of(std::string_view authority) {
  const std::size_t end = authority.starts_with('[') ? authority.find(']') + 1 : std::min(authority.find(':'), authority.size());
  std::string_view host = authority.substr(0, end), port = authority.substr(end);
  if (!port.empty() && !port.starts_with(':')) return "";
  if (!port.empty()) port.remove_prefix(1);
  if (!std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; })) return "";
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_address(std::string_view host) {
  std::array<unsigned char, 16> ignored{};
  if (!host.starts_with('[')) return ::inet_pton(AF_INET, std::string(host).c_str(), ignored.data()) == 1;
  if (!host.ends_with(']')) return false;
  return ::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), ignored.data()) == 1;
}

}  // namespace

OriginRule::OriginRule(std::string_view allowed, bool auth_off, std::string_view hosts)
    : allowed_(listed(allowed)), hosts_(listed(hosts)), auth_off_(auth_off) {
  for (std::string& host : hosts_) host = host_of(host);
  for (const std::string& origin : allowed_)
    if (const std::size_t scheme = origin.find("://"); scheme != std::string::npos)
      hosts_.emplace_back(host_of(std::string_view(origin).substr(scheme + 3)));
}

std::string OriginRule::sources() const {
  std::string out;
  for (const std::string& origin : allowed_) {
    const std::size_t scheme = origin.find("://");
    if (scheme == std::string::npos || host_of(std::string_view(origin).substr(scheme + 3)).empty()) continue;
    // A space or semicolon would begin another source or directive.
    if (origin.find_first_of(" \t;,'\"") != std::string::npos) continue;
    out.append(out.empty() ? "" : " ").append(origin);
  }
  return out;
}

// An attacker can make a name of his resolve to us; he cannot own an address or localhost.
// Where a trusted proxy says another name than the Host header, both must be known: the page of a rebound name can send any
// header to its own server, so a proxy that passes X-Forwarded-Host on unread must not weaken this.
bool OriginRule::is_own_name(const http::Request& request) const {
  return knows(request.header("host").value_or("")) && (request.host.empty() || knows(request.host));
}

bool OriginRule::knows(std::string_view name) const {
  const std::string authority = normal(name);
  const std::string_view host = host_of(authority);
  if (host.empty()) return false;
  return host == "localhost" || host.ends_with(".localhost") || is_address(host) ||
         std::ranges::find(hosts_, host) != hosts_.end();
}

bool OriginRule::knows_host(const http::Request& request) const { return !auth_off_ || is_own_name(request); }

bool OriginRule::is_listed(std::string_view origin) const {
  return std::ranges::find(allowed_, normal(origin)) != allowed_.end();
}

bool OriginRule::permits(const http::Request& request) const {
  const auto header = request.header("origin");
  if (!header || is_listed(*header)) return true;
  const std::string origin = normal(*header);
  const std::string host = normal(request.host.empty() ? request.header("host").value_or("") : request.host);
  if (origin.starts_with("http://")) return without_port(origin.substr(7), ":80") == without_port(host, ":80");
  if (origin.starts_with("https://")) return without_port(origin.substr(8), ":443") == without_port(host, ":443");
  return false;  // "null", extensions, files
}

}  // namespace caisson::auth
