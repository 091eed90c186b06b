// Big-endian numbers and parts of a message, each checked against the bytes that are left.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::egress {

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }
  [[nodiscard]] bool whole() const { return good_ && at_end(); }
  [[nodiscard]] std::size_t left() const { return left_.size(); }
  // Zero and empty where the bytes do not suffice; then nothing is good any more.
  [[nodiscard]] std::uint32_t number(std::size_t width) {
    std::uint32_t value = 0;
    for (const char c : take(width)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  [[nodiscard]] std::string_view take(std::size_t size) {
    if (size > left_.size()) {
      good_ = false;
      left_ = {};
    }
    const std::string_view taken = left_.substr(0, good_ ? size : 0);
    left_.remove_prefix(taken.size());
    return taken;
  }
  // A part with its size in front, in so many bytes.
  [[nodiscard]] std::string_view part(std::size_t width) { return take(number(width)); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace caisson::egress
