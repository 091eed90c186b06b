// Frames between the agent and a worker program over a pair of pipes, the same in both directions: the length of the head as
// u32 in little-endian, the head (a JSON object), then as many raw bytes as its member "bytes" says (absent: none). Used by
// both ends; each takes the other's frames as hostile. Pure, no I/O.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/json.h"

namespace caisson::frames {

// What one end accepts from the other. A frame beyond these limits ends the conversation, because the reader cannot find the next
// frame.
struct Limits {
  std::size_t head_bytes = 1024 * 1024;
  std::size_t body_bytes = 4 * 1024 * 1024;
  std::size_t head_values = 64 * 1024;
};

struct Frame {
  json::Value head = json::Value::object();
  std::string body;
};

// Length and head, to be followed by `body_bytes` bytes. Code::limit when the head is larger than any peer takes.
[[nodiscard]] Result<std::string> encode_head(json::Value head, std::size_t body_bytes);

class Decoder {
 public:
  explicit Decoder(Limits limits) : limits_(limits) {}

  // Takes bytes from the front of `bytes` until a frame is complete (which it returns) or none are left (nullopt). After an error
  // (Code::protocol) every call fails. It holds at most one MiB more than the bytes received, and never more than the limits.
  [[nodiscard]] Result<std::optional<Frame>> take(std::string_view& bytes);
  // Bytes of memory that the next frame takes after `more` further bytes have arrived.
  [[nodiscard]] std::size_t held(std::size_t more) const {
    return text_.capacity() + std::max(frame_.body.capacity(), frame_.body.size() + more);
  }
  // Bytes that the current part of the frame still lacks. A reader that asks for no more than these stops at the end of the
  // frame.
  [[nodiscard]] std::size_t wanted() const {
    if (part_ == Part::length) return length_.size() - length_have_;
    return part_ == Part::head ? wanted_ - text_.size() : body_wanted();
  }
  // Bytes that the current body still lacks; 0 outside a body.
  [[nodiscard]] std::size_t body_wanted() const { return part_ == Part::body ? wanted_ - frame_.body.size() : 0; }
  // Like take() for at most `most` bytes of a body, which read(char*, size) writes in place. Returns the result of read. When the
  // frame is complete, take() without bytes returns it.
  template <class Read>
  [[nodiscard]] std::ptrdiff_t read_body(std::size_t most, Read&& read) {
    const std::size_t have = frame_.body.size(), room = std::min(most, body_wanted());
    std::ptrdiff_t n = 0;
    frame_.body.resize_and_overwrite(have + room, [&](char* bytes, std::size_t) {
      n = read(bytes + have, room);
      return have + static_cast<std::size_t>(std::max<std::ptrdiff_t>(n, 0));
    });
    return n;
  }
  // Between two frames.
  [[nodiscard]] bool at_boundary() const { return part_ == Part::length && length_have_ == 0; }

 private:
  enum class Part { length, head, body, broken };
  [[nodiscard]] Status take_length(std::string_view& bytes);
  [[nodiscard]] Status take_head(std::string_view& bytes);

  Limits limits_;
  Part part_ = Part::length;
  std::array<unsigned char, 4> length_{};
  std::size_t length_have_ = 0;
  std::size_t wanted_ = 0;  // of the head or the body
  std::string text_;        // of the head, as far as it came
  Frame frame_;
};

}  // namespace caisson::frames
