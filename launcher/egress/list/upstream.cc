#include "launcher/egress/list/upstream.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "launcher/common/base/word.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kNoServer = " is no proxy: [http://|https://|socks5://][user:password@]host:port";

std::string_view name_of(Upstream::Kind kind) { return word(words(kind), static_cast<std::size_t>(kind)); }

std::optional<Upstream::Kind> kind_of(std::string_view name) {
  for (const auto kind : {Upstream::Kind::http, Upstream::Kind::https, Upstream::Kind::socks5})
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::optional<int> hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> without_percent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto high = i + 2 < text.size() ? hex(text[i + 1]) : std::nullopt, low = high ? hex(text[i + 2]) : std::nullopt;
    if (!low) return std::nullopt;
    out += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  return out;
}

// What could end a line of a head, or is no text, stands in no credential.
bool is_text(std::string_view text) {
  return text.size() <= kMaxCredential &&
         std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; });
}

std::optional<std::uint16_t> read_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() && port != 0 ? std::optional(port) : std::nullopt;
}

// Lines "key value", in this order; each once but the last two.
void put(std::string& out, std::string_view key, std::string_view value) { ((out += key) += ' ').append(value) += '\n'; }

std::optional<std::string_view> take(std::string_view& bytes, std::string_view key) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos || !bytes.starts_with(key) || end <= key.size() || bytes[key.size()] != ' ')
    return std::nullopt;
  const std::string_view value = bytes.substr(key.size() + 1, end - key.size() - 1);
  bytes.remove_prefix(end + 1);
  return value;
}

Status take_patterns(std::string_view& bytes, std::string_view key, std::vector<Pattern>& into) {
  while (const auto text = take(bytes, key)) {
    TRY_ASSIGN(Pattern pattern, read_pattern(*text));
    if (into.size() == kMaxPatterns) return fail(Code::limit, "too many patterns");
    into.push_back(std::move(pattern));
  }
  if (patterns_size(into) > kMaxPatternBytes) return fail(Code::limit, "its patterns are too long");
  return {};
}

}  // namespace

// A password may have colons and "@"; what is shown of a wrong text has none of it.
Result<Upstream> read_server(std::string_view text) {
  Upstream out;
  std::string_view rest = text;
  const std::size_t scheme = rest.find("://");
  if (scheme != std::string_view::npos) {
    const std::string_view said = rest.substr(0, scheme);
    const auto kind = kind_of(said == "socks5h" ? "socks5" : said);
    if (!kind) return fail(Code::invalid_argument, "a proxy is spoken to by http, https or socks5, not by " + quote(said));
    out.kind = *kind;
    rest.remove_prefix(scheme + 3);
    if (rest.ends_with('/')) rest.remove_suffix(1);
  }
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view said = rest.substr(0, at);
    const std::size_t colon = said.find(':');
    const std::string_view parts[] = {said.substr(0, colon), colon == std::string_view::npos ? "" : said.substr(colon + 1)};
    const auto user = scheme == std::string_view::npos ? std::string(parts[0]) : without_percent(parts[0]);
    const auto password = scheme == std::string_view::npos ? std::string(parts[1]) : without_percent(parts[1]);
    if (!user || !password) return fail(Code::invalid_argument, "a percent sign in the credential is followed by no number");
    TRY(set_credential(out, *user + ":" + *password));
    rest.remove_prefix(at + 1);
  }
  const std::size_t colon = rest.rfind(':');
  const auto port = colon != std::string_view::npos ? read_port(rest.substr(colon + 1)) : std::nullopt;
  const auto host = port ? read_host(rest.substr(0, colon)) : fail(Code::invalid_argument, "");
  if (!host) return fail(Code::invalid_argument, quote(rest) + std::string(kNoServer));
  out.host = *host;
  out.port = *port;
  return out;
}

Status set_credential(Upstream& upstream, std::string_view text) {
  const std::size_t colon = upstream.user.empty() ? text.find(':') : std::string_view::npos;
  if (upstream.user.empty() && (colon == std::string_view::npos || colon == 0))
    return fail(Code::invalid_argument, "a credential is user:password");
  std::string user(colon != std::string_view::npos ? text.substr(0, colon) : std::string_view(upstream.user));
  const std::string_view password = colon != std::string_view::npos ? text.substr(colon + 1) : text;
  if (!is_text(user) || !is_text(password))
    return fail(Code::invalid_argument, "user and password have at most 255 bytes each, and no control characters");
  upstream.user = std::move(user);
  upstream.password = password;
  return {};
}

std::string server_text(const Upstream& upstream) {
  const bool v6 = std::holds_alternative<Address>(upstream.host) && std::get<Address>(upstream.host).v6;
  const std::string host = host_text(upstream.host);
  const std::string scheme = upstream.kind != Upstream::Kind::http ? std::string(name_of(upstream.kind)) + "://" : "";
  return scheme + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(upstream.port);
}

bool goes_through(const Upstream& upstream, const Host& host) {
  return (upstream.include.empty() || matches_any(upstream.include, host)) && !matches_any(upstream.exclude, host);
}

bool proxy_permitted(const List& list, const Upstream& upstream, const Address& address) {
  if (!upstream.of_policy)
    return address_permitted(list, decide(list, upstream.host, upstream.port), upstream.host, address, upstream.port);
  switch (class_of(address)) {
    case AddressClass::global:
    case AddressClass::private_:
    case AddressClass::shared:
      return true;
    case AddressClass::loopback:
      return std::holds_alternative<Address>(upstream.host);
    default:
      return false;
  }
}

std::size_t patterns_size(const std::vector<Pattern>& patterns) {
  constexpr std::size_t kAround = std::string_view("exclude \n").size();
  std::size_t out = 0;
  for (const Pattern& pattern : patterns) out += kAround + pattern.text.size();
  return out;
}

std::string upstream_bytes(const Upstream& upstream) {
  std::string out;
  put(out, "kind", name_of(upstream.kind));
  put(out, "host", host_text(upstream.host));
  put(out, "port", std::to_string(upstream.port));
  put(out, "user", upstream.user);
  put(out, "password", upstream.password);
  put(out, "secret", upstream.secret);
  put(out, "command", upstream.command);
  put(out, "resolve", upstream.resolve_here ? "here" : "there");
  put(out, "of", upstream.of_policy ? "policy" : "client");
  for (const Pattern& pattern : upstream.include) put(out, "include", pattern.text);
  for (const Pattern& pattern : upstream.exclude) put(out, "exclude", pattern.text);
  return out;
}

Result<Upstream> read_upstream(std::string_view bytes) {
  const auto wrong = [] { return fail(Code::protocol, "an upstream is malformed"); };
  Upstream out;
  const auto name = take(bytes, "kind"), text = take(bytes, "host"), digits = take(bytes, "port"), user = take(bytes, "user"),
             password = take(bytes, "password"), secret = take(bytes, "secret"), command = take(bytes, "command"),
             resolve = take(bytes, "resolve"), of = take(bytes, "of");
  const auto kind = name ? kind_of(*name) : std::nullopt;
  if (!kind || !text || !digits || !user || !password || !secret || !command || !resolve || !of) return wrong();
  const auto host = read_host(*text);
  const auto port = read_port(*digits);
  if (!host || !port || !is_text(*user) || !is_text(*password) || (*resolve != "here" && *resolve != "there") ||
      (*of != "policy" && *of != "client") || (!command->empty() && !is_command(*command)))
    return wrong();
  out.kind = *kind;
  out.host = *host, out.port = *port, out.user = *user, out.password = *password;
  out.secret = *secret, out.command = *command;
  out.resolve_here = *resolve == "here", out.of_policy = *of == "policy";
  TRY(take_patterns(bytes, "include", out.include));
  TRY(take_patterns(bytes, "exclude", out.exclude));
  if (!bytes.empty()) return wrong();
  return out;
}

}  // namespace caisson::egress
