#include "agent/http/forwarded.h"

#include <algorithm>
#include <vector>

#include "agent/http/framing.h"
#include "agent/http/token.h"

namespace caisson::http {
namespace {

constexpr std::size_t kMaxHops = 64, kLongestId = 64;
using Words = std::vector<std::string_view>;

// The elements of all headers of this name, in order. Commas inside quotes do not separate. More than kMaxHops: the last ones.
Words elements(const Pairs& headers, std::string_view name, char separator = ',') {
  Words out;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= value.size(); ++i) {
      if (i < value.size() && value[i] == '"') quoted = !quoted;
      if (i < value.size() && (quoted || value[i] != separator)) continue;
      out.push_back(trim(std::string_view(value).substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (out.size() > kMaxHops) out.erase(out.begin(), out.end() - kMaxHops);
  return out;
}

// The value of a parameter of one Forwarded element, without quotes; "" if there is none. A value with escapes is no address or
// host.
std::string_view parameter(std::string_view element, std::string_view wanted) {
  while (!element.empty()) {
    const std::size_t end = std::min(element.find(';'), element.size());
    const std::string_view pair = trim(element.substr(0, end));
    element.remove_prefix(std::min(end + 1, element.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !same_ignoring_case(pair.substr(0, equals), wanted)) continue;
    std::string_view value = pair.substr(equals + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "";
}

// "192.0.2.1", "192.0.2.1:80", "[2001:db8::1]", "[2001:db8::1]:80" and the bare IPv6 address that X-Forwarded-For has.
std::optional<AddressBytes> node_address(std::string_view node) {
  if (node.starts_with('[')) {
    const std::size_t end = node.find(']');
    return end == std::string_view::npos ? std::nullopt : address_bytes(node.substr(1, end - 1));
  }
  if (std::ranges::count(node, ':') == 1) node = node.substr(0, node.find(':'));
  return address_bytes(node);
}

// Which element names the client, counted from the right: the first that is not a trusted proxy's, or the leftmost. An element
// that is no address ends the search: what is behind it cannot be attributed. nullopt: the peer itself is all that is known.
std::optional<std::size_t> client_hop(const Words& nodes, const Networks& trusted) {
  std::optional<std::size_t> found;
  for (std::size_t hop = 0; hop < nodes.size(); ++hop) {
    const auto address = node_address(nodes[nodes.size() - 1 - hop]);
    if (!address) break;
    found = hop;
    if (!trusted.contains(*address)) break;
  }
  return found;
}

// What was said beside the client's address. If not every proxy said something, only the last element is certain to be a proxy's.
std::string_view said(const Words& values, const Words& nodes, std::optional<std::size_t> hop) {
  if (values.empty()) return "";
  return values.size() == nodes.size() && hop ? values[values.size() - 1 - *hop] : values.back();
}

void take(Client& client, std::string_view scheme, std::string_view host) {
  if (same_ignoring_case(scheme, "https")) client.scheme = "https";
  else if (same_ignoring_case(scheme, "http")) client.scheme = "http";
  if (is_host(host)) client.host = host;
}

std::string_view plain_id(const Pairs& headers) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
  };
  const Words ids = elements(headers, "x-request-id");
  const bool usable = ids.size() == 1 && !ids[0].empty() && ids[0].size() <= kLongestId && std::ranges::all_of(ids[0], plain);
  return usable ? ids[0] : "";
}

}  // namespace

Client client_of(const Pairs& headers, std::string_view peer, bool encrypted, const Networks& trusted) {
  Client client{.remote = std::string(peer), .scheme = encrypted ? "https" : "http", .host = {}};
  if (const auto host = std::ranges::find(headers, "host", [](const auto& h) { return std::string_view(h.first); });
      host != headers.end())
    client.host = host->second;
  if (!trusted.contains(peer)) return client;
  client.proxy_id = plain_id(headers);
  Words nodes = elements(headers, "x-forwarded-for");
  Words schemes = elements(headers, "x-forwarded-proto"), hosts = elements(headers, "x-forwarded-host");
  if (nodes.empty() && schemes.empty() && hosts.empty()) {
    for (const std::string_view element : elements(headers, "forwarded")) {
      nodes.push_back(parameter(element, "for"));
      schemes.push_back(parameter(element, "proto"));
      hosts.push_back(parameter(element, "host"));
    }
  }
  const auto hop = client_hop(nodes, trusted);
  if (hop) client.remote = address_text(*node_address(nodes[nodes.size() - 1 - *hop]));
  take(client, said(schemes, nodes, hop), said(hosts, nodes, hop));
  return client;
}

}  // namespace caisson::http
