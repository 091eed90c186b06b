// BodyReader: finds the content of an answer's body among the bytes of a connection. Chunk extensions and trailers are dropped.
#pragma once

#include <cstdint>
#include <string>

#include "agent/proxy/answer_head.h"

namespace caisson::proxy {

class BodyReader {
 public:
  explicit BodyReader(const AnswerHead& head)
      : framing_(head.framing), left_(head.framing == Framing::length ? head.length : 0) {}
  // Moves the content at the front of `bytes` into `content`, which must be empty. Bytes that are no whole line yet, or that
  // follow the body, stay.
  [[nodiscard]] Status take(std::string& bytes, std::string& content);
  [[nodiscard]] bool done() const {
    return framing_ == Framing::none || (framing_ == Framing::length && left_ == 0) ||
           (framing_ == Framing::chunked && at_ == At::end);
  }
  // Whether the end of the stream may end the body.
  [[nodiscard]] bool until_end() const { return framing_ == Framing::until_end; }

 private:
  enum class At { size, data, data_end, trailer, end };
  [[nodiscard]] Status take_chunked(std::string& bytes, std::string& content);
  // One step; false: more bytes are needed.
  [[nodiscard]] Result<bool> step(std::string_view& rest, std::string& content);
  [[nodiscard]] Status read_size(std::string_view line);

  Framing framing_;
  At at_ = At::size;
  std::uint64_t left_;  // of the body, or of the chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace caisson::proxy
