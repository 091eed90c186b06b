// The messages of a viewer (RFC 6143, 7.5, and the community's RFB protocol for what lies beyond it): how long each is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace caisson::services::rfb {

enum Message : std::uint8_t {
  kSetPixelFormat = 0,
  kSetEncodings = 2,
  kUpdateRequest = 3,
  kKey = 4,
  kPointer = 5,
  kCutText = 6,
  kContinuousUpdates = 150,
  kFence = 248,
  kXvp = 250,
  kSetDesktopSize = 251,
  kQemu = 255,
};

// The bytes of a message up to what tells its length; all of them where that is fixed. looks: it asks for pictures, and does
// nothing.
struct Row {
  std::uint8_t type;
  std::size_t head;
  bool looks;
};
inline constexpr Row kRows[] = {
    {kSetPixelFormat, 20, true},
    {kSetEncodings, 4, true},
    {kUpdateRequest, 10, true},
    {kKey, 8, false},
    {kPointer, 6, false},
    {kCutText, 8, false},
    {kContinuousUpdates, 10, true},
    {kFence, 9, true},
    {kXvp, 4, false},
    {kSetDesktopSize, 8, false},
    {kQemu, 12, false},
};

[[nodiscard]] constexpr const Row* row_of(std::uint8_t type) {
  const auto* const row = std::ranges::find(kRows, type, &Row::type);
  return row == std::end(kRows) ? nullptr : row;
}

inline constexpr std::string_view kVersion = "RFB 003.008\n";
// With this encoding, pointer messages whose mask has bit 7 are one byte longer, once the server has agreed.
inline constexpr std::int32_t kExtendedMouseButtons = -316;
inline constexpr std::size_t kScreenBytes = 16, kEncodingBytes = 4;

[[nodiscard]] constexpr std::uint8_t byte(std::string_view text, std::size_t at) { return static_cast<std::uint8_t>(text[at]); }
[[nodiscard]] constexpr std::uint32_t u32(std::string_view text, std::size_t at) {
  return std::uint32_t{byte(text, at)} << 24 | std::uint32_t{byte(text, at + 1)} << 16 | std::uint32_t{byte(text, at + 2)} << 8 |
         byte(text, at + 3);
}

// How many bytes follow a head, which is of a row above and whole.
[[nodiscard]] constexpr std::uint64_t bytes_behind(std::string_view head) {
  switch (byte(head, 0)) {
    case kSetEncodings:
      return (std::uint64_t{byte(head, 2)} << 8 | byte(head, 3)) * kEncodingBytes;
    case kCutText: {  // a negative length is that of an extended one
      const auto length = static_cast<std::int32_t>(u32(head, 4));
      return length < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(std::int64_t{length})
                        : static_cast<std::uint64_t>(length);
    }
    case kFence:
      return byte(head, 8);
    case kSetDesktopSize:
      return byte(head, 6) * kScreenBytes;
    default:
      return 0;
  }
}

}  // namespace caisson::services::rfb
