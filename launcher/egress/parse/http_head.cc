#include "launcher/egress/parse/http_head.h"

#include <algorithm>
#include <charconv>

namespace caisson::egress {
namespace {

using Form = RequestHead::Form;
constexpr std::size_t kMaxMethod = 32;
constexpr std::string_view kScheme = "http://";
constexpr std::string_view kOverrides[] = {"x-http-method",    "x-http-method-override", "x-method-override",
                                           "x-original-url",   "x-original-uri",         "x-rewrite-url",
                                           "x-forwarded-path", "x-forwarded-prefix",     "x-forwarded-uri",
                                           "x-forwarded-url",  "x-forwarded-host",       "x-forwarded-method"};

Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }

std::optional<std::uint16_t> read_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text.size() <= 5;
  return whole && value >= 1 && value <= 65535 ? std::optional(static_cast<std::uint16_t>(value)) : std::nullopt;
}

// http://host[:port][/path][?query]: the path with its query becomes the target.
Outcome read_absolute(std::string_view target, RequestHead& head) {
  if (target.size() < kScheme.size() || !same_word(target.substr(0, kScheme.size()), kScheme))
    return malformed("its target is neither a path nor http://host/path (https goes through CONNECT)");
  target.remove_prefix(kScheme.size());
  const std::size_t end = std::min(target.find_first_of("/?"), target.size());
  const auto place = read_host_port(target.substr(0, end), 80);
  if (!place) return malformed("its target has no proper host");
  head.form = Form::absolute;
  head.host = place->host;
  head.port = place->port;
  head.target = target.substr(end).starts_with('/') ? "" : "/";
  head.target += target.substr(end);
  return done(0);
}

Outcome read_authority(std::string_view target, RequestHead& head) {
  const auto place = read_host_port(target, 0);
  if (!place) return malformed("CONNECT takes host:port");
  head.form = Form::authority;
  head.host = place->host;
  head.port = place->port;
  return done(0);
}

Outcome read_target(std::string_view target, RequestHead& head) {
  if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f; }) || target.find('#') != std::string_view::npos)
    return malformed("its target has a byte that no target has");
  if (head.method == "CONNECT") return read_authority(target, head);
  if (target == "*" && head.method == "OPTIONS") head.form = Form::asterisk;
  else if (!target.starts_with('/')) return read_absolute(target, head);
  head.target = target;
  return done(0);
}

Outcome read_request_line(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return malformed("its request line is malformed");
  head.method = line.substr(0, first);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(head.method) || head.method.size() > kMaxMethod) return malformed("its method is malformed");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return malformed("only HTTP/1.1 and HTTP/1.0 are spoken here");
  head.minor = version.back() - '0';
  return read_target(line.substr(first + 1, last - first - 1), head);
}

// The Host field must say what the target says: a request to an allowed host with the Host of another one is fronting.
Outcome read_host_field(RequestHead& head) {
  std::optional<std::string_view> text;
  if (const Outcome read = only_value(head.fields, "host", text); read.refused()) return read;
  if (!text) return head.minor == 1 && head.form != Form::authority ? malformed("it has no Host") : done(0);
  const auto place = read_host_port(*text, head.form == Form::authority ? head.port : 80);
  if (!place) return malformed("its Host is malformed");
  if (!head.host) head.host = place->host, head.port = place->port;
  if (*head.host != place->host || head.port != place->port)
    return refuse(Refusal::host_differs, "its Host is not the host of its target");
  return done(0);
}

Outcome read_connection(RequestHead& head) {
  std::optional<std::string_view> expect, upgrade;
  if (const Outcome read = only_value(head.fields, "expect", expect); read.refused()) return read;
  if (const Outcome read = only_value(head.fields, "upgrade", upgrade); read.refused()) return read;
  if (expect && !same_word(*expect, "100-continue")) return malformed("its expectation is unknown");
  head.expect_continue = expect.has_value() && head.minor == 1;
  // Clients of proxies write Proxy-Connection in place of Connection.
  const auto says = [&](std::string_view word) {
    return list_has(head.fields, "connection", word) || list_has(head.fields, "proxy-connection", word);
  };
  head.keep_alive = !says("close") && (head.minor == 1 || says("keep-alive"));
  head.websocket = upgrade && same_word(*upgrade, "websocket") && list_has(head.fields, "connection", "upgrade") &&
                   head.method == "GET" && head.minor == 1 && head.body.kind == BodyKind::none;
  return done(0);
}

}  // namespace

std::optional<HostPort> read_host_port(std::string_view text, std::uint16_t otherwise) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view host_part = text.substr(0, colon);
  // Outside of brackets the first colon ends the host, so that ::1 is no host with an empty name.
  if (bracket != std::string_view::npos && host_part.size() != bracket + 1) return std::nullopt;
  const auto host = read_host(host_part);
  const auto port = colon == std::string_view::npos ? std::optional(otherwise) : read_port(text.substr(colon + 1));
  if (!host || !port || *port == 0) return std::nullopt;
  return HostPort{*host, *port};
}

bool only_reads(std::string_view method) { return method == "GET" || method == "HEAD" || method == "OPTIONS"; }

// CGI, WSGI, Rack and PHP have one name for '-' and '_'.
bool is_override(std::string_view name) {
  std::string spelled(name);
  std::ranges::replace(spelled, '_', '-');
  return std::ranges::any_of(kOverrides, [&spelled](std::string_view one) { return same_word(spelled, one); });
}

bool has_override(const RequestHead& head) {
  return std::ranges::any_of(head.fields, [](const Field& field) { return is_override(field.name); });
}

Outcome read_request_head(std::string_view bytes, HeadScan& scan, RequestHead& head) {
  const Outcome found = find_head_end(bytes, scan);
  if (!found.done()) return found;
  head = {};
  std::string_view line;
  if (const Outcome read = read_lines(bytes.substr(0, found.size), line, head.fields); read.refused()) return read;
  if (const Outcome read = read_request_line(line, head); read.refused()) return read;
  if (const Outcome read = read_host_field(head); read.refused()) return read;
  if (const Outcome read = read_framing(head.fields, head.minor, head.body); read.refused()) return read;
  if (head.form == Form::authority && (head.body.kind == BodyKind::chunked || head.body.length > 0))
    return malformed("CONNECT has a body");
  if (const Outcome read = read_connection(head); read.refused()) return read;
  return found;
}

}  // namespace caisson::egress
