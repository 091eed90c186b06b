#include "agent/proxy/destination.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "agent/http/token.h"
#include "agent/proxy/fields.h"

namespace caisson::proxy {
namespace {

constexpr std::string_view kPortHeader = "x-aio-proxy-port";
constexpr std::string_view kDigits = "0123456789";

std::unexpected<Error> no_port(std::string_view text) {
  return fail(Code::invalid_argument, quote(text) + " is not a port: digits alone, from 1 to 65535");
}

// The name of a Host header without its port and the dot of the root.
std::string_view name_of(std::string_view host) {
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_address_when(std::string label, char separator, int family) {
  std::ranges::replace(label, '-', separator);
  std::array<unsigned char, 16> ignored{};
  return ::inet_pton(family, label.c_str(), ignored.data()) == 1;
}

// Cluster DNS and nip.io make names from addresses: 10-1-2-3.space.pod.cluster.local, 10-1-2-3.service.space.svc.cluster.local.
// The first number of such a name is part of an address, not a port.
bool has_address_as_label(std::string_view name) {
  const std::string label(name.substr(0, name.find('.')));
  return is_address_when(label, '.', AF_INET) || is_address_when(label, ':', AF_INET6);
}

// "*" for OPTIONS *.
std::string asked_path(const http::Request& head) { return head.path.empty() ? "*" : head.path; }

Result<std::optional<Destination>> by_header(const http::Request& head) {
  std::optional<Destination> found;
  for (const auto& [name, value] : head.headers) {
    if (name != kPortHeader) continue;
    if (found) return fail(Code::invalid_argument, "x-aio-proxy-port is given more than once");
    found.emplace(Destination{.port = port_from(value), .prefix = "", .path = asked_path(head)});
    if (found->port == 0) return no_port(value);
  }
  return found;
}

Result<std::optional<Destination>> by_path(const http::Request& head) {
  if (head.segments.size() < 2 || (head.segments[0] != "proxy" && head.segments[0] != "absproxy")) return std::nullopt;
  Destination found;
  found.stripped = head.segments[0] == "proxy";
  const std::string_view path = head.path;
  const std::string first = "/" + head.segments[0] + "/";
  if (!path.starts_with(first)) return std::nullopt;  // with escapes: another path
  const std::size_t end = std::min(path.find('/', first.size()), path.size());
  const std::string_view text = path.substr(first.size(), end - first.size());
  found.port = port_from(text);
  if (found.port == 0) return no_port(text);
  found.prefix = path.substr(0, end);
  found.lacks_slash = end == path.size();
  found.path = path.substr(found.stripped ? end : 0);
  if (found.path.empty()) found.path = "/";
  return found;
}

}  // namespace

PreviewHosts::PreviewHosts(std::string_view domains, bool auth_off) : any_(domains.empty() && !auth_off) {
  if (domains == "none") return;
  while (!domains.empty()) {
    const std::size_t comma = std::min(domains.find(','), domains.size());
    if (const auto one = name_of(http::trim(domains.substr(0, comma))); !one.empty()) domains_.push_back(http::lower(one));
    domains.remove_prefix(std::min(comma + 1, domains.size()));
  }
}

std::string_view PreviewHosts::digits_of(std::string_view host) const {
  host = name_of(host);
  const std::size_t hyphen = std::min(host.find_first_not_of(kDigits), host.size());
  if (hyphen == 0 || hyphen + 1 >= host.size() || host[hyphen] != '-') return "";
  const std::string rest = http::lower(host.substr(hyphen + 1));
  const auto covers = [&](const std::string& domain) {
    return rest == domain || (rest.size() > domain.size() + 1 && rest.ends_with("." + domain));
  };
  const std::string_view digits = host.substr(0, hyphen);
  if (any_) return port_from(digits) != 0 && !has_address_as_label(host) ? digits : "";
  return std::ranges::any_of(domains_, covers) ? digits : "";
}

std::string PreviewHosts::workspace_of(std::string_view host) const {
  if (digits_of(host).empty()) return "";
  host = name_of(host);
  const std::string rest = http::lower(host.substr(host.find('-') + 1));
  const auto before = [&rest](std::string_view domain) {
    const std::string end = "." + std::string(domain);
    return rest.size() > end.size() && rest.ends_with(end) ? rest.substr(0, rest.size() - end.size()) : "";
  };
  if (any_) return before("localhost");
  for (const std::string& domain : domains_)
    if (std::string label = before(domain); !label.empty()) return label;
  return "";
}

Result<std::optional<Destination>> destination_of(const http::Request& head, const PreviewHosts& hosts) {
  TRY_ASSIGN(auto found, by_header(head));
  if (found) return found;
  if (const std::string_view digits = hosts.digits_of(head.header("host").value_or("")); !digits.empty()) {
    found.emplace(Destination{.port = port_from(digits), .prefix = "", .path = asked_path(head)});
    found->workspace = hosts.workspace_of(head.header("host").value_or(""));
    if (found->port == 0) return no_port(digits);
    return found;
  }
  return by_path(head);
}

}  // namespace caisson::proxy
