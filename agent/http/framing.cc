#include "agent/http/framing.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "agent/http/token.h"

namespace caisson::http {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Control characters except HTAB. Bytes from 0x80 on are obs-text, which RFC 9110 permits in values.
bool is_value_char(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

std::unexpected<Error> refuse(std::string_view why) { return caisson::fail(Code::invalid_argument, std::string(why)); }

// The one value of that name; nullopt when absent. Two values are an error: two parsers could pick different ones.
Result<std::optional<std::string_view>> single(const Pairs& headers, std::string_view name) {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (found) return refuse("more than one " + std::string(name) + " header");
    found = value;
  }
  return found;
}

bool has_connection_token(const Pairs& headers, std::string_view token) {
  for (const auto& [key, value] : headers) {
    if (key != "connection") continue;
    std::string rest = lower(value);
    for (std::size_t at = 0; at <= rest.size();) {
      const std::size_t comma = std::min(rest.find(',', at), rest.size());
      if (trim(std::string_view(rest).substr(at, comma - at)) == token) return true;
      at = comma + 1;
    }
  }
  return false;
}

Status read_request_line(std::string_view line, const Limits& limits, Head& head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refuse("malformed request line");
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > 24) return refuse("malformed method");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return refuse("only HTTP/1.1 and HTTP/1.0 are spoken here");
  if (target.size() > limits.target_bytes) return refuse("request target is too long");
  const bool visible = std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!visible || target.contains('#')) return refuse("malformed request target");
  if (!target.starts_with('/') && !(target == "*" && method == "OPTIONS"))
    return refuse("only origin-form request targets are served");
  head.method = method;
  head.target = target;
  head.minor_version = version.back() - '0';
  return {};
}

Status read_header_line(std::string_view line, Pairs& headers) {
  if (line.front() == ' ' || line.front() == '\t') return refuse("folded header line");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return refuse("malformed header name");
  headers.emplace_back(lower(line.substr(0, colon)), trim(line.substr(colon + 1)));
  return {};
}

Status read_host(Head& head) {
  TRY_ASSIGN(const auto host, single(head.headers, "host"));
  if (!host && head.minor_version == 1) return refuse("missing host header");
  if (host && !is_host(*host)) return refuse("malformed host header");
  return {};
}

// RFC 9112 section 6.3, without the leniency that it allows.
Status read_body_kind(Head& head) {
  TRY_ASSIGN(const auto encoding, single(head.headers, "transfer-encoding"));
  TRY_ASSIGN(const auto length, single(head.headers, "content-length"));
  if (encoding) {
    if (length) return refuse("transfer-encoding together with content-length");
    if (head.minor_version == 0) return refuse("transfer-encoding on HTTP/1.0");
    if (lower(*encoding) != "chunked") return refuse("transfer-encoding other than chunked");
    head.body = BodyKind::chunked;
  } else if (length) {
    if (length->empty() || length->size() > 18 || !std::ranges::all_of(*length, is_digit))
      return refuse("malformed content-length");
    std::from_chars(length->data(), length->data() + length->size(), head.content_length);
    head.body = head.content_length == 0 ? BodyKind::none : BodyKind::length;
  }
  return {};
}

Status read_connection(Head& head) {
  const bool close = has_connection_token(head.headers, "close");
  head.keep_alive = !close && (head.minor_version == 1 || has_connection_token(head.headers, "keep-alive"));
  TRY_ASSIGN(const auto expect, single(head.headers, "expect"));
  if (expect && lower(*expect) != "100-continue") return refuse("unknown expectation");
  head.expect_continue = expect.has_value() && head.minor_version == 1 && head.body != BodyKind::none;
  for (const std::string_view name : {"authorization", "x-aio-api-key", "origin", "upgrade", "content-type"})
    if (auto once = single(head.headers, name); !once) return std::unexpected(std::move(once).error());
  return {};
}

}  // namespace

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 &&
         std::ranges::all_of(host, [](char c) { return is_token_char(c) || c == ':' || c == '[' || c == ']'; });
}

Result<std::size_t> find_head_end(std::string_view bytes, std::size_t& scanned, const Limits& limits) {
  if (!bytes.empty() && !is_upper(bytes.front())) return refuse("not an HTTP request");
  for (; scanned < bytes.size(); ++scanned) {
    if (scanned >= limits.head_bytes) return refuse("request head is too large");
    const char c = bytes[scanned];
    if (c == '\0') return refuse("NUL in the request head");
    if (c != '\n') continue;
    if (scanned == 0 || bytes[scanned - 1] != '\r') return refuse("line feed without carriage return");
    if (scanned >= 3 && bytes[scanned - 2] == '\n') return ++scanned;
  }
  return std::size_t{0};
}

Result<Head> check_head(std::string_view bytes, const Limits& limits) {
  if (bytes.size() > limits.head_bytes) return refuse("request head is too large");
  if (!bytes.ends_with("\r\n\r\n")) return refuse("incomplete request head");
  bytes.remove_suffix(2);
  Head head;
  bool first = true;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find("\r\n");
    const std::string_view line = bytes.substr(0, end);
    if (line.empty() || !std::ranges::all_of(line, is_value_char)) return refuse("control character in the request head");
    if (first) TRY(read_request_line(line, limits, head));
    else TRY(read_header_line(line, head.headers));
    if (head.headers.size() > limits.headers) return refuse("too many headers");
    first = false;
    bytes.remove_prefix(end + 2);
  }
  if (first) return refuse("malformed request line");
  TRY(read_host(head));
  TRY(read_body_kind(head));
  TRY(read_connection(head));
  return head;
}

}  // namespace caisson::http
