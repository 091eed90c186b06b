// Pictures of the screen as PNG and JPEG, and the pointer's picture upon them. Pure functions; the pixels may change meanwhile,
// as the X server shares their memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "launcher/common/base/result.h"

namespace caisson::display {

// Rows without gaps; a pixel is blue, green, red, unused.
struct Picture {
  int width = 0, height = 0;
  const std::uint8_t* pixels = nullptr;  // width * height * 4 bytes
};
inline constexpr std::int64_t kMostPixels = 4096 * 4096;

// Code::limit: the image would have more than `most` bytes. `quality`: 0 to 100.
[[nodiscard]] Result<std::string> encode_png(const Picture& picture, std::size_t most);
[[nodiscard]] Result<std::string> encode_jpeg(const Picture& picture, int quality, std::size_t most);

// The pointer's picture as XFIXES gives it: premultiplied ARGB.
struct Cursor {
  int x = 0, y = 0;  // of its hot spot on the screen
  int hot_x = 0, hot_y = 0;
  int width = 0, height = 0;
  std::span<const std::uint32_t> argb;  // width * height
};
inline constexpr int kMostCursorSide = 512;
// Draws it onto pixels of a picture of this size; what lies outside is cut.
void draw_cursor(const Cursor& cursor, int width, int height, std::uint8_t* pixels);

}  // namespace caisson::display
