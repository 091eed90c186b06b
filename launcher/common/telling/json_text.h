// JSON as text, written by hand: who only tells needs objects of strings and numbers and nothing that could fail or parse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caisson {

class JsonText {
 public:
  JsonText& string(std::string_view key, std::string_view value) {
    name(key);
    quoted(value);
    return *this;
  }
  JsonText& number(std::string_view key, std::int64_t value) {
    name(key);
    out_ += std::to_string(value);
    return *this;
  }
  JsonText& raw(std::string_view key, std::string_view json) {  // of another JsonText, or an array of such
    name(key);
    out_ += json;
    return *this;
  }
  [[nodiscard]] std::string text() const { return out_ + "}"; }
  [[nodiscard]] bool empty() const { return out_.size() == 1; }

 private:
  void name(std::string_view key) {
    if (out_.size() > 1) out_ += ',';
    quoted(key);
    out_ += ':';
  }
  // All that is not printable ASCII by its number: a byte is a byte, whatever encoding a session pretends.
  void quoted(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    out_ += '"';
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\') (out_ += "\\u00") += {kHex[byte >> 4], kHex[byte & 15]};
      else out_ += c;
    }
    out_ += '"';
  }
  std::string out_ = "{";
};

}  // namespace caisson
