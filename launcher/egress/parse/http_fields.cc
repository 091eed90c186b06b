#include "launcher/egress/parse/http_fields.h"

#include <algorithm>
#include <charconv>

namespace caisson::egress {
namespace {

Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_token_char(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}
// Bytes from 0x80 on are obs-text, which values may have.
bool is_value_char(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <class Use>
void each_word(std::string_view list, const Use& use) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    if (const auto word = trim(list.substr(at, comma - at)); !word.empty()) use(word);
    at = comma + 1;
  }
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return same_word(name, one); });
}

bool is_connection_field(std::string_view name) {
  return is_one_of(name, {"connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade", "http2-settings",
                          "proxy-authenticate", "proxy-authorization", "proxy-authentication-info"});
}

// Connection may name fields that are for this connection only. Were one of these taken out, what is sent on would be another
// message.
bool is_never_dropped(std::string_view name) {
  return is_one_of(
      name, {"host", "content-length", "content-type", "content-encoding", "authorization", "cookie", "range", "cache-control"});
}

constexpr std::size_t kMaxNamed = 16;  // fields that Connection names: each is compared with every field

Outcome mark_hop_by_hop(Fields& fields) {
  std::vector<std::string_view> named;
  bool forbidden = false;
  for (const Field& field : fields)
    if (same_word(field.name, "connection"))
      each_word(field.value, [&](std::string_view word) {
        forbidden = forbidden || is_never_dropped(word);
        if (named.size() <= kMaxNamed) named.push_back(word);
      });
  if (forbidden) return malformed("Connection names a field that is not of the connection");
  if (named.size() > kMaxNamed) return malformed("Connection names too many fields");
  for (Field& field : fields)
    field.hop_by_hop = is_connection_field(field.name) ||
                       std::ranges::any_of(named, [&](std::string_view word) { return same_word(word, field.name); });
  return done(0);
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_char); }

Outcome find_head_end(std::string_view bytes, HeadScan& scan) {
  if (!bytes.empty() && !is_token_char(bytes.front())) return malformed("it does not begin as HTTP");
  for (; scan.at < bytes.size(); ++scan.at) {
    if (scan.at >= kMaxHead) return refuse(Refusal::limit, "its head is too large");
    const char c = bytes[scan.at];
    const bool after_return = scan.at > 0 && bytes[scan.at - 1] == '\r';
    if ((c == '\n') != after_return) return malformed("its head has a line feed or carriage return that ends no line");
    if (c != '\n' && c != '\r' && !is_value_char(c)) return malformed("its head has a control byte");
    if (c == '\n' && scan.at >= 3 && bytes[scan.at - 2] == '\n') return done(++scan.at);
  }
  return need_more();
}

Outcome read_field(std::string_view line, Field& field) {
  if (line.starts_with(' ') || line.starts_with('\t')) return malformed("a field is folded");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return malformed("a field has no proper name");
  if (!std::ranges::all_of(line, is_value_char)) return malformed("a field has a control byte");
  field = {line.substr(0, colon), trim(line.substr(colon + 1))};
  return done(0);
}

Outcome read_lines(std::string_view head, std::string_view& first, Fields& fields) {
  fields.clear();
  first = {};
  while (head.size() > 2) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return malformed("a line does not end");
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (first.empty()) {
      first = line;
      continue;
    }
    if (fields.size() == kMaxFields) return refuse(Refusal::limit, "it has too many fields");
    Field field;
    if (const Outcome read = read_field(line, field); read.refused()) return read;
    fields.push_back(field);
  }
  return mark_hop_by_hop(fields);
}

Outcome only_value(const Fields& fields, std::string_view name, std::optional<std::string_view>& value) {
  value.reset();
  for (const Field& field : fields) {
    if (!same_word(field.name, name)) continue;
    if (value) return malformed("it has a field twice that may be there once");
    value = field.value;
  }
  return done(0);
}

bool list_has(const Fields& fields, std::string_view name, std::string_view wanted) {
  bool found = false;
  for (const Field& field : fields)
    if (same_word(field.name, name))
      each_word(field.value, [&](std::string_view one) { found = found || same_word(one, wanted); });
  return found;
}

Outcome read_framing(const Fields& fields, int minor, Framing& framing) {
  std::optional<std::string_view> encoding, length;
  if (const Outcome read = only_value(fields, "transfer-encoding", encoding); read.refused()) return read;
  if (const Outcome read = only_value(fields, "content-length", length); read.refused()) return read;
  framing = {};
  if (encoding && length) return malformed("it has both Transfer-Encoding and Content-Length");
  if (encoding) {
    if (minor == 0 || !same_word(*encoding, "chunked")) return malformed("its Transfer-Encoding is not chunked");
    framing.kind = BodyKind::chunked;
  } else if (length) {
    // 18 digits: no sum of two overflows 64 bits.
    if (length->empty() || length->size() > 18 || !std::ranges::all_of(*length, is_digit))
      return malformed("its Content-Length is no number");
    std::from_chars(length->data(), length->data() + length->size(), framing.length);
    framing.kind = BodyKind::length;
  }
  return done(0);
}

}  // namespace caisson::egress
