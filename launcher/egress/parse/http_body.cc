#include "launcher/egress/parse/http_body.h"

#include <algorithm>
#include <array>
#include <utility>

#include "launcher/egress/parse/http_head.h"

namespace caisson::egress {
namespace {

constexpr unsigned kMaxDigits = 15;  // of a chunk's size: the sum of two never overflows
constexpr std::size_t kMaxExtensions = 256, kMaxTrailers = 8 * 1024;

Outcome malformed(std::string_view why) { return refuse(Refusal::framing, why); }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

}  // namespace

BodyEnd::BodyEnd(Framing framing) {
  switch (framing.kind) {
    case BodyKind::none:
      break;
    case BodyKind::length:
      left_ = framing.length;
      at_ = left_ > 0 ? At::content : At::end;
      break;
    case BodyKind::chunked:
      at_ = At::size;
      break;
    case BodyKind::until_close:
      at_ = At::close;
      break;
  }
}

void BodyEnd::skip(std::uint64_t bytes) {
  left_ -= std::min(bytes, certain());
  if (left_ > 0) return;
  if (at_ == At::content) at_ = At::end;
  else if (at_ == At::data) at_ = At::data_return;
}

Outcome BodyEnd::take(std::string_view bytes) {
  if (at_ == At::close) return need_more();
  std::size_t used = 0;
  while (at_ != At::end) {
    if (used == bytes.size()) return need_more();
    if (certain() > 0) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - used));
      skip(size);
      used += size;
      continue;
    }
    if (const Outcome read = step(bytes[used]); read.refused()) return read;
    ++used;
  }
  return done(used);
}

// One byte that is not content. Every line ends with both CR and LF: a parser that takes LF alone would see other chunks.
Outcome BodyEnd::step(char c) {
  switch (at_) {
    case At::size:
      if (const int digit = hex_value(c); digit >= 0) {
        if (++digits_ > kMaxDigits) return malformed("a chunk is too large");
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return need_more();
      }
      if (digits_ == 0 || (c != '\r' && c != ';')) return malformed("a chunk's size is malformed");
      at_ = c == '\r' ? At::size_feed : At::extension;
      return need_more();
    case At::extension:
      if (c == '\r') return at_ = At::size_feed, need_more();
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || ++line_ > kMaxExtensions)
        return malformed("a chunk's extension is malformed");
      return need_more();
    case At::size_feed:
      if (c != '\n') return malformed("a chunk's size does not end with CR and LF");
      at_ = left_ > 0 ? At::data : At::trailer;
      digits_ = 0;
      line_ = 0;
      return need_more();
    case At::data_return:
      if (c != '\r') return malformed("a chunk is longer than its size");
      at_ = At::data_feed;
      return need_more();
    case At::data_feed:
      if (c != '\n') return malformed("a chunk is longer than its size");
      at_ = At::size;
      return need_more();
    case At::trailer:
      if (c == '\r') return at_ = At::trailer_feed, need_more();
      if (++trailers_ > kMaxTrailers) return malformed("its trailers are too large");
      trailer_ += c;
      return need_more();
    case At::trailer_feed:
      return c == '\n' ? end_trailer() : malformed("a trailer does not end with CR and LF");
    case At::content:
    case At::close:
    case At::data:
    case At::end:
      break;
  }
  std::unreachable();
}

Outcome BodyEnd::end_trailer() {
  if (trailer_.empty()) return at_ = At::end, need_more();
  Field field;
  if (const Outcome read = read_field(trailer_, field); read.refused()) return read;
  // RFC 9110 6.5.1: a recipient that merges trailers into the head would see another message.
  for (const std::string_view name : {"content-length", "transfer-encoding", "host", "connection", "upgrade", "trailer",
                                      "authorization", "cookie", "content-encoding", "content-type", "content-range", "expect"})
    if (same_word(field.name, name)) return malformed("a trailer is no trailer");
  if (is_override(field.name)) return malformed("a trailer could make it another request");
  trailer_.clear();
  at_ = At::trailer;
  return need_more();
}

}  // namespace caisson::egress
