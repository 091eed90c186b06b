// multipart/form-data (RFC 7578), parsed as it arrives: the parts of an upload may be larger than memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/common/base/result.h"

namespace caisson::http {

// The boundary of a Content-Type; nullopt: the type is not multipart/form-data, or its boundary cannot be used.
[[nodiscard]] std::optional<std::string> multipart_boundary(std::string_view content_type);

class Multipart {
 public:
  enum class Kind { begin, data, end, done };
  struct Event {
    Kind kind = Kind::done;
    std::string name;                     // begin: of the form's field
    std::optional<std::string> filename;  // begin
    std::string data;                     // data
  };

  explicit Multipart(const std::string& boundary) : delimiter_("\r\n--" + boundary), buffer_("\r\n") {}

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  // The next event; nullopt: more bytes are needed. invalid_argument: the body is not a form.
  [[nodiscard]] Result<std::optional<Event>> next();

 private:
  enum class State { preamble, headers, data, done };
  [[nodiscard]] Result<std::optional<Event>> next_headers();

  std::string delimiter_;
  std::string buffer_;
  State state_ = State::preamble;
  bool at_start_ = false;  // of a part's data: the line break behind its headers is still there
};

}  // namespace caisson::http
