#include "agent/services/common/text.h"

#include <algorithm>

namespace caisson::services {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the sequence that starts with this byte, and the range of its second byte (RFC 3629). 0: no sequence starts with it.
struct Lead {
  std::size_t length;
  unsigned char low = 0x80, high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// How many bytes from `at` belong to one well-formed sequence, or to the valid beginning of one.
std::size_t valid_prefix(std::string_view bytes, std::size_t at, const Lead& lead) {
  std::size_t n = 1;
  while (n < lead.length && at + n < bytes.size()) {
    const auto byte = static_cast<unsigned char>(bytes[at + n]);
    const unsigned char low = n == 1 ? lead.low : 0x80, high = n == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) break;
    ++n;
  }
  return n;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Byte position after the first `characters` characters.
std::size_t position_of(std::string_view utf8, std::size_t characters) {
  std::size_t at = 0;
  for (; at < utf8.size(); ++at)
    if (!is_continuation(utf8[at]) && characters-- == 0) break;
  return at;
}

std::size_t position_from_end(std::string_view utf8, std::size_t characters) {
  std::size_t at = utf8.size();
  while (at > 0 && characters > 0)
    if (!is_continuation(utf8[--at])) --characters;
  return at;
}

// Position after the escape sequence at `at` (bytes[at] is ESC).
std::size_t after_escape(std::string_view bytes, std::size_t at) {
  if (at + 1 >= bytes.size()) return bytes.size();
  const char kind = bytes[at + 1];
  std::size_t i = at + 2;
  if (kind == '[') {  // CSI: parameters and intermediates 0x20-0x3F, one final byte
    while (i < bytes.size() && bytes[i] >= 0x20 && bytes[i] <= 0x3F) ++i;
    return i < bytes.size() && bytes[i] >= 0x40 && bytes[i] <= 0x7E ? i + 1 : i;
  }
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {  // strings: up to BEL or ESC backslash
    constexpr std::size_t kLongest = 8192;  // an unterminated string must not swallow the rest
    for (const std::size_t stop = std::min(bytes.size(), i + kLongest); i < stop; ++i) {
      if (bytes[i] == '\a') return i + 1;
      if (bytes[i] == '\x1b') return i + 1 < bytes.size() && bytes[i + 1] == '\\' ? i + 2 : i;
    }
    return at + 2;
  }
  while (i - 1 < bytes.size() && bytes[i - 1] >= 0x20 && bytes[i - 1] <= 0x2F) ++i;  // ESC intermediates final
  return std::min(i, bytes.size());
}

}  // namespace

std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  std::size_t at = 0, good = 0;  // copies well-formed text in one piece: most output is well-formed
  while (at < bytes.size()) {
    if (static_cast<unsigned char>(bytes[at]) < 0x80) {
      ++at;
      continue;
    }
    const Lead lead = lead_of(static_cast<unsigned char>(bytes[at]));
    const std::size_t n = lead.length == 0 ? 1 : valid_prefix(bytes, at, lead);
    if (n != lead.length || lead.length == 0) {
      out.append(bytes.substr(good, at - good)).append(kReplacement);
      good = at + n;
    }
    at += n;
  }
  return out.append(bytes.substr(good));
}

std::optional<BrokenText> first_broken(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const Lead lead = lead_of(static_cast<unsigned char>(bytes[at]));
    if (lead.length == 0) return BrokenText{at, 1, "invalid start byte"};
    const std::size_t n = valid_prefix(bytes, at, lead);
    if (n < lead.length)
      return BrokenText{at, n, at + n == bytes.size() ? "unexpected end of data" : "invalid continuation byte"};
    at += n;
  }
  return std::nullopt;
}

std::size_t incomplete_tail(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const std::size_t at = bytes.size() - back;
    if (is_continuation(bytes[at])) continue;
    const Lead lead = lead_of(static_cast<unsigned char>(bytes[at]));
    return lead.length > back && valid_prefix(bytes, at, lead) == back ? back : 0;
  }
  return 0;
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::ranges::count_if(utf8, [](char c) { return !is_continuation(c); }));
}

std::string cut_middle(std::string_view utf8, std::size_t max_characters) {
  const std::size_t total = max_characters == 0 || utf8.size() <= max_characters ? 0 : count_characters(utf8);
  if (total <= max_characters) return std::string(utf8);
  std::string note = "\n... [" + std::to_string(total - max_characters) + " characters truncated] ...\n";
  std::size_t keep = max_characters;
  if (max_characters >= 2 * note.size()) {
    keep = max_characters - note.size();
    note = "\n... [" + std::to_string(total - keep) + " characters truncated] ...\n";
    while (keep + note.size() > max_characters) --keep;  // the number may have gained a digit
  }
  const std::size_t head = keep / 2;
  std::string out(utf8.substr(0, position_of(utf8, head)));
  out += note;
  out += utf8.substr(position_from_end(utf8, keep - head));
  return out;
}

std::string strip_terminal(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string_view left = bytes.substr(at);
    const auto special = std::ranges::find_if(left, [](char c) { return c == '\x1b' || c == '\r' || c == '\a'; });
    const auto plain = static_cast<std::size_t>(special - left.begin());
    out.append(left.substr(0, plain));
    at += plain;
    if (at == bytes.size()) break;
    const char c = bytes[at];
    if (c == '\x1b') {
      at = after_escape(bytes, at);
      continue;
    }
    std::size_t end = at + 1;
    if (c == '\r') {  // CR CR LF: the program itself wrote CR LF to a terminal. A run of CRs is taken
                      // at once, so that none is examined twice.
      while (end < bytes.size() && bytes[end] == '\r') ++end;
      if (end < bytes.size() && bytes[end] == '\n') {
        out += '\n';
        at = end + 1;
        continue;
      }
    }
    if (c != '\a') out.append(bytes.substr(at, end - at));
    at = end;
  }
  return out;
}

std::string whole_bytes(const OutputBuffer& buffer) {
  std::string bytes = buffer.read(0);
  if (!buffer.dropped()) return bytes;
  const std::string_view head = buffer.head();
  if (buffer.begin() <= head.size())  // the head overlaps the remaining bytes
    return std::string(head.substr(0, static_cast<std::size_t>(buffer.begin()))) + bytes;
  const std::string count = std::to_string(buffer.begin() - head.size());
  return std::string(head) + "\n... [" + count + " bytes of output dropped] ...\n" + bytes;
}

std::string terminal_text(const OutputBuffer& buffer, std::size_t max_characters) {
  std::string text = to_utf8(strip_terminal(whole_bytes(buffer)));
  text.erase(text.find_last_not_of('\n') + 1);
  return cut_middle(text, max_characters);
}

std::string whole_text(const OutputBuffer& buffer, std::size_t max_characters, bool open_ended) {
  std::string bytes = whole_bytes(buffer);
  if (open_ended) bytes.resize(bytes.size() - incomplete_tail(bytes));
  return cut_middle(to_utf8(bytes), max_characters);
}

}  // namespace caisson::services
