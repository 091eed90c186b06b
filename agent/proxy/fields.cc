#include "agent/proxy/fields.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "agent/http/token.h"

namespace caisson::proxy {
namespace {

constexpr auto kHopByHop =
    std::to_array<std::string_view>({"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
                                     "te", "trailer", "transfer-encoding", "upgrade"});

}  // namespace

bool list_has(const http::Pairs& headers, std::string_view name, std::string_view element) {
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (http::same_ignoring_case(http::trim(rest.substr(0, comma)), element)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

bool is_hop_by_hop(const http::Pairs& headers, std::string_view name) {
  return std::ranges::find(kHopByHop, name) != kHopByHop.end() || list_has(headers, "connection", name);
}

void add_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

std::uint16_t port_from(std::string_view text) {
  if (text.empty() || text.size() > 5 || text.front() == '0') return 0;
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port > 65535) return 0;
  return static_cast<std::uint16_t>(port);
}

bool is_under(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/' || path[prefix.size()] == '?');
}

}  // namespace caisson::proxy
