// Where a body ends. Its bytes are relayed as they are; this one only counts along, so that the head behind it is read as a head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/egress/parse/http_fields.h"

namespace caisson::egress {

class BodyEnd {
 public:
  BodyEnd() = default;
  explicit BodyEnd(Framing framing);
  // `bytes`: the next ones, which no call has had. done: so many of them are the body's last. need_more: all are the body's. A
  // body that has ended takes none.
  Outcome take(std::string_view bytes);
  [[nodiscard]] bool ended() const { return at_ == At::end; }
  // Bytes that are certainly of the body's content: they need not pass through take() (splice).
  [[nodiscard]] std::uint64_t certain() const { return at_ == At::data || at_ == At::content ? left_ : 0; }
  void skip(std::uint64_t bytes);  // at most certain()

 private:
  enum class At { content, close, size, extension, size_feed, data, data_return, data_feed, trailer, trailer_feed, end };
  Outcome step(char c);
  Outcome end_trailer();

  At at_ = At::end;
  std::uint64_t left_ = 0;    // of the content, or of the chunk's data
  unsigned digits_ = 0;       // of the chunk's size
  std::size_t line_ = 0;      // bytes of the chunk's extensions
  std::size_t trailers_ = 0;  // bytes of all trailers
  std::string trailer_;       // the one that has not ended
};

}  // namespace caisson::egress
