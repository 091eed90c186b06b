// Requests and replies as libxcb's headers describe them (made from xcb-proto), without libxcb itself: that library waits without
// a limit for a server that stops in the middle of a reply, and takes replies of any length.
#pragma once

#include <xcb/xproto.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace caisson::display {

template <class T>
[[nodiscard]] std::string_view bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// The T at an offset; all zero where the bytes end before it.
template <class T>
[[nodiscard]] T read_at(std::string_view bytes, std::size_t offset = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline void pad_to_words(std::string& bytes) { bytes.resize((bytes.size() + 3) / 4 * 4); }

// A request of the core protocol: struct with what follows it, padded, its length filled in. At most 262,140 bytes.
template <class T>
[[nodiscard]] std::string core_request(std::uint8_t opcode, T head, std::string_view more = {}) {
  head.major_opcode = opcode;
  std::string out(bytes_of(head));
  pad_to_words(out);
  out += more;
  pad_to_words(out);
  const auto words = static_cast<std::uint16_t>(out.size() / 4);
  std::memcpy(out.data() + 2, &words, sizeof words);
  return out;
}
// The same of an extension, whose number the server gives (QueryExtension).
template <class T>
[[nodiscard]] std::string extension_request(std::uint8_t extension, std::uint8_t opcode, T head, std::string_view more = {}) {
  head.minor_opcode = opcode;
  return core_request(extension, head, more);
}

}  // namespace caisson::display
