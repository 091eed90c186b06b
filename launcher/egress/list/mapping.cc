#include "launcher/egress/list/mapping.h"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace caisson::egress {
namespace {

std::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  return fail(Code::invalid_argument, quote(text) + std::string(why));
}

std::optional<std::uint16_t> read_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port != 0 ? std::optional(port) : std::nullopt;
}

// Bytes that a request's target may have (RFC 3986 3.3): nothing that would end it or begin another part of it.
bool is_path(std::string_view path) {
  return path.starts_with('/') && std::ranges::all_of(path, [](char c) { return c > 0x20 && c < 0x7f && c != '?' && c != '#'; });
}

struct Parts {
  std::string_view host, port;
  std::optional<std::string_view> path;
};

// "host:port/path", with brackets around an address that has colons itself.
Parts split(std::string_view text) {
  Parts out;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) out.path = text.substr(slash);
  const std::string_view place = text.substr(0, slash);
  const std::size_t bracket = place.rfind(']');
  const std::size_t colon = place.find(':', bracket == std::string_view::npos ? 0 : bracket);
  out.host = place.substr(0, colon);
  if (colon != std::string_view::npos) out.port = place.substr(colon + 1);
  return out;
}

Status read_source(std::string_view text, Mapping& out) {
  std::string_view rest = text;
  if (rest.starts_with("https://"))
    return wrong(text, " is TLS, which is not opened here: only requests of plain HTTP are led elsewhere");
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  if (rest.contains("://")) return wrong(text, " has a scheme that is none of http");
  const Parts parts = split(rest);
  auto host = read_pattern(parts.host);
  if (!host || parts.host.starts_with('.'))
    return wrong(text, " is no source: [http://]host[:port][/path], with *. in front of a host, or * behind a path");
  out.host = std::move(*host);
  if (!parts.port.empty()) {
    const auto port = read_port(parts.port);
    if (!port) return wrong(text, " has no port from 1 to 65535");
    out.port = *port;
  }
  std::string_view path = parts.path.value_or("/");
  if (path.ends_with("/*")) path.remove_suffix(1);
  if (!is_path(path) || path.contains('*')) return wrong(text, " has a path that none can have; * may stand behind its last /");
  out.path = path;
  return {};
}

Status read_target(std::string_view text, Mapping& out) {
  Parts parts = split(text.starts_with("http://") ? text.substr(7) : text);
  if (parts.port.empty()) std::swap(parts.host, parts.port);  // "3000"
  const auto port = read_port(parts.port);
  if (!port) return wrong(text, " is no target: [host:]port[/path]");
  out.to_port = *port;
  out.inside = parts.host.empty() || parts.host == "localhost" || parts.host == "127.0.0.1";
  if (!out.inside) {
    const auto host = read_host(parts.host);
    if (!host) return wrong(text, " has a host that is neither a name nor an address");
    out.to_host = *host;
  }
  if (!parts.path) return {};
  if (!is_path(*parts.path)) return wrong(text, " has a path that none can have");
  out.to_path = *parts.path;
  return {};
}

bool begins(const Mapping& mapping, std::string_view path) {
  if (!path.starts_with(mapping.path)) return false;
  return mapping.path.ends_with('/') || path.size() == mapping.path.size() || path[mapping.path.size()] == '/';
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

Result<Mapping> read_mapping(std::string_view source, std::string_view target) {
  if (source.size() > kMaxMappingText || target.size() > kMaxMappingText)
    return fail(Code::invalid_argument, "source and target have at most 512 bytes each");
  Mapping out{.source = std::string(source), .target = std::string(target)};
  TRY(read_source(source, out));
  TRY(read_target(target, out));
  return out;
}

std::string place_text(const Mapping& mapping) {
  std::string host = mapping.inside ? "127.0.0.1" : host_text(mapping.to_host);
  if (host.contains(':')) host = "[" + host + "]";
  return host + ":" + std::to_string(mapping.to_port);
}

const Mapping* find_mapping(const Mappings& mappings, const Host& host, std::uint16_t port, std::string_view target) {
  const auto rank = [](const Mapping& one) {
    return std::tuple(one.host.suffix.empty(), one.host.suffix.size(),
                      one.path.size());  // the name itself before those below one
  };
  const Mapping* best = nullptr;
  for (const Mapping& one : mappings)
    if (one.port == port && matches(one.host, host) && begins(one, path_of(target)) &&
        (best == nullptr || rank(*best) < rank(one)))
      best = &one;
  return best;
}

bool may_be_mapped(const Mappings& mappings, const Host& host, std::uint16_t port) {
  return std::ranges::any_of(mappings, [&](const Mapping& one) { return one.port == port && matches(one.host, host); });
}

std::string mapped_target(const Mapping& mapping, std::string_view target) {
  if (!mapping.to_path) return std::string(target);
  std::string_view rest = target.substr(mapping.path.size());
  const bool twice = mapping.to_path->ends_with('/') && rest.starts_with('/');
  if (twice) rest.remove_prefix(1);
  const bool joined = mapping.to_path->ends_with('/') || rest.empty() || rest.starts_with('/') || rest.starts_with('?');
  return *mapping.to_path + (joined ? "" : "/") + std::string(rest);
}

std::string mapping_bytes(const Mappings& mappings) {
  std::string out;
  for (const Mapping& one : mappings) out += one.source + '\n' + one.target + '\n';
  return out;
}

Result<Mappings> read_mappings(std::string_view bytes) {
  Mappings out;
  while (!bytes.empty()) {
    const std::size_t first = bytes.find('\n');
    const std::size_t second = first == std::string_view::npos ? first : bytes.find('\n', first + 1);
    if (second == std::string_view::npos || out.size() == kMaxMappings) return fail(Code::protocol, "mappings are malformed");
    TRY_ASSIGN(Mapping one, read_mapping(bytes.substr(0, first), bytes.substr(first + 1, second - first - 1)));
    out.push_back(std::move(one));
    bytes.remove_prefix(second + 1);
  }
  return out;
}

}  // namespace caisson::egress
