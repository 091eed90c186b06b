#include "agent/http/target.h"

#include <algorithm>

namespace caisson::http {
namespace {

constexpr std::size_t kMaxQueryPairs = 100;
// What is below is one segment: a URL, which clients of this API write there as it is, or percent-encoded.
constexpr std::string_view kUrlBelow = "/v1/proxy/mappings/";

std::unexpected<Error> refuse(std::string_view why) { return caisson::fail(Code::invalid_argument, std::string(why)); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Well-formed UTF-8 (no overlong forms, no surrogates, at most U+10FFFF).
bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i);
    const std::size_t extra = lead < 0x80 ? 0 : lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : 3;
    if (extra == 3 && (lead < 0xf0 || lead > 0xf4)) return false;
    if (i + extra >= text.size()) return false;
    for (std::size_t k = 1; k <= extra; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    if (extra == 2 && ((lead == 0xe0 && byte(i + 1) < 0xa0) || (lead == 0xed && byte(i + 1) > 0x9f))) return false;
    if (extra == 3 && ((lead == 0xf0 && byte(i + 1) < 0x90) || (lead == 0xf4 && byte(i + 1) > 0x8f))) return false;
    i += extra + 1;
  }
  return true;
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::optional<std::string> decoded = percent_decoded(text, plus_is_space);
  if (!decoded) return refuse("bad percent escape");
  std::string& out = *decoded;
  const bool control = std::ranges::any_of(out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (out.contains('\0') || (control && !plus_is_space)) return refuse("control character in the request target");
  if (!is_utf8(out)) return refuse("request target is not UTF-8");
  return std::move(out);
}

Status decode_path(std::string_view path, std::vector<std::string>& segments) {
  const std::string_view url = path.starts_with(kUrlBelow) ? path.substr(kUrlBelow.size()) : "";
  path.remove_prefix(1);
  if (!url.empty()) path.remove_suffix(url.size() + 1);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view raw = path.substr(0, slash);
    if (raw.empty()) return refuse("empty path segment");
    TRY_ASSIGN(std::string segment, decode(raw, false));
    if (segment == "." || segment == "..") return refuse("dot path segment");
    segments.push_back(std::move(segment));
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
    if (path.empty()) segments.emplace_back();  // a trailing slash names another resource
  }
  if (url.empty()) return {};
  TRY_ASSIGN(std::string segment, decode(url, false));
  segments.push_back(std::move(segment));
  return {};
}

Status decode_query(std::string_view query, Pairs& out) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    if (out.size() == kMaxQueryPairs) return refuse("too many query parameters");
    const std::size_t equals = std::min(pair.find('='), pair.size());
    TRY_ASSIGN(std::string name, decode(pair.substr(0, equals), true));
    TRY_ASSIGN(std::string value, decode(pair.substr(std::min(equals + 1, pair.size())), true));
    out.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kUnreserved = "-._~", kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kUnreserved.contains(c);
    if (plain) out += c;
    else out.append("%").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

Result<Target> decode_target(std::string_view target) {
  Target out;
  if (target == "*") return out;  // OPTIONS *
  if (!target.starts_with('/')) return refuse("request target must begin with a slash");
  const std::size_t mark = std::min(target.find('?'), target.size());
  out.path = target.substr(0, mark);
  TRY(decode_path(out.path, out.segments));
  TRY(decode_query(target.substr(std::min(mark + 1, target.size())), out.query));
  return out;
}

}  // namespace caisson::http
