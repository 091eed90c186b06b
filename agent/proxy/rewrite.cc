#include "agent/proxy/rewrite.h"

#include <algorithm>
#include <array>
#include <optional>

#include "agent/http/token.h"
#include "agent/proxy/fields.h"

namespace caisson::proxy {
namespace {

// They would hold for the whole origin, or for other servers, whatever the path.
constexpr auto kNeverPassed =
    std::to_array<std::string_view>({"content-length", "strict-transport-security", "public-key-pins",
                                     "public-key-pins-report-only", "alt-svc", "nel", "report-to", "reporting-endpoints"});
// In path modes our origin has more than this app.
constexpr auto kOfWholeOrigin =
    std::to_array<std::string_view>({"service-worker-allowed", "clear-site-data", "origin-agent-cluster"});

bool passes(const http::Pairs& headers, std::string_view name, bool shares_origin) {
  if (is_hop_by_hop(headers, name) || std::ranges::find(kNeverPassed, name) != kNeverPassed.end()) return false;
  return !shares_origin || std::ranges::find(kOfWholeOrigin, name) == kOfWholeOrigin.end();
}

// The rest behind the authority, if an absolute address means this app.
std::optional<std::string_view> path_of_own(std::string_view value, const Destination& from, std::string_view host) {
  const std::size_t scheme = value.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  if (const auto name = value.substr(0, scheme);
      !http::same_ignoring_case(name, "http") && !http::same_ignoring_case(name, "https"))
    return std::nullopt;
  value.remove_prefix(scheme + 3);
  const std::size_t end = std::min(value.find_first_of("/?#\\"), value.size());
  const std::string_view authority = value.substr(0, end);
  const std::string port = ":" + std::to_string(from.port);
  for (const std::string& own : {"localhost" + port, "127.0.0.1" + port, "[::1]" + port, std::string(host)})
    if (http::same_ignoring_case(authority, own)) return value.substr(end);
  return std::nullopt;
}

std::string path_for_client(std::string_view path, const Destination& from) {
  if (!from.stripped || is_under(path, from.prefix)) return std::string(path);
  return from.prefix + std::string(path);
}

struct Attribute {
  std::string_view name, value;
};

Attribute attribute_of(std::string_view text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  return {http::trim(text.substr(0, equals)), http::trim(text.substr(std::min(equals + 1, text.size())))};
}

std::string cookie_path(std::string_view path, const Destination& from) {
  if (from.prefix.empty()) return std::string(path);
  if (is_under(path, from.prefix)) return std::string(path);
  return from.stripped && path.starts_with('/') ? from.prefix + std::string(path) : from.prefix + "/";
}

}  // namespace

std::string location_for_client(std::string_view value, const Destination& from, std::string_view host) {
  if (const auto own = path_of_own(value, from, host)) {
    // "//elsewhere" would be another host once the authority is gone.
    const std::size_t path = own->find_first_not_of("/\\");
    const bool many = std::min(path, own->size()) > 1;
    if (many) return std::string(value);
    return path_for_client(own->starts_with('/') ? std::string(*own) : "/" + std::string(*own), from);
  }
  const bool rooted = value.starts_with('/') && !value.starts_with("//") && !value.starts_with("/\\");
  return rooted ? path_for_client(value, from) : std::string(value);
}

std::string cookie_for_client(std::string_view value, const Destination& from) {
  const std::size_t first = std::min(value.find(';'), value.size());
  std::string out(http::trim(value.substr(0, first)));
  // Browsers send a cookie without a name as its value alone, which could look like one of ours.
  const std::string_view name = attribute_of(out).name;
  if (name.empty() || http::same_ignoring_case(name.substr(0, 8), "caisson_")) return "";
  value.remove_prefix(std::min(first + 1, value.size()));
  bool has_path = false;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find(';'), value.size());
    const std::string_view text = http::trim(value.substr(0, end));
    value.remove_prefix(std::min(end + 1, value.size()));
    const Attribute attribute = attribute_of(text);
    if (text.empty() || http::same_ignoring_case(attribute.name, "domain")) continue;
    if (!http::same_ignoring_case(attribute.name, "path")) {
      out.append("; ").append(text);
    } else if (attribute.value.starts_with('/')) {
      out.append("; Path=").append(cookie_path(attribute.value, from));
      has_path = true;
    }
  }
  if (!has_path && !from.prefix.empty()) out.append("; Path=").append(from.prefix).append("/");
  return out;
}

http::Pairs headers_for_client(const http::Pairs& headers, const Destination& from, std::string_view host) {
  const bool shares_origin = !from.prefix.empty();
  http::Pairs out;
  for (const auto& [name, value] : headers) {
    if (!passes(headers, name, shares_origin)) continue;
    if (name == "set-cookie") {
      if (std::string cookie = cookie_for_client(value, from); !cookie.empty()) out.emplace_back(name, std::move(cookie));
    } else if (name == "location" || name == "content-location") {
      out.emplace_back(name, location_for_client(value, from, host));
    } else if (name == "cross-origin-opener-policy" && shares_origin) {
      out.emplace_back(name, "unsafe-none");
    } else {
      out.emplace_back(name, value);
    }
  }
  return out;
}

}  // namespace caisson::proxy
