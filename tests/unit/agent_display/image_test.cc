#include "agent/display/image.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <vector>

#include <jpeglib.h>

namespace caisson::display {
namespace {

// Each pixel of another colour.
std::vector<std::uint8_t> noise(int width, int height) {
  std::vector<std::uint8_t> out;
  std::uint32_t state = 1;
  for (int i = 0; i < width * height * 4; ++i)
    out.push_back(static_cast<std::uint8_t>((state = state * 1664525 + 1013904223) >> 24));
  return out;
}
Picture picture(int width, int height, const std::vector<std::uint8_t>& pixels) {
  return {.width = width, .height = height, .pixels = pixels.data()};
}

TEST(Png, ItHasThePixelsOfTheScreen) {
  const auto pixels = noise(37, 11);
  const auto bytes = encode_png(picture(37, 11, pixels), 1 << 20);
  ASSERT_TRUE(bytes);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_TRUE(png_image_begin_read_from_memory(&image, bytes->data(), bytes->size()));
  image.format = PNG_FORMAT_BGR;
  std::vector<std::uint8_t> read(PNG_IMAGE_SIZE(image));
  ASSERT_TRUE(png_image_finish_read(&image, nullptr, read.data(), 0, nullptr));
  ASSERT_EQ(image.width, 37U);
  ASSERT_EQ(image.height, 11U);
  for (std::size_t i = 0; i < 37 * 11; ++i)
    for (std::size_t part = 0; part < 3; ++part) ASSERT_EQ(read[i * 3 + part], pixels[i * 4 + part]) << i;
}
TEST(Png, MoreBytesThanAllowedAreAnError) {
  const auto pixels = noise(100, 100);
  EXPECT_EQ(encode_png(picture(100, 100, pixels), 1000).error().code, Code::limit);
}
TEST(Jpeg, ItIsAPictureOfTheSize) {
  const auto pixels = noise(64, 48);
  for (const int quality : {0, 50, 100}) {
    const auto bytes = encode_jpeg(picture(64, 48, pixels), quality, 1 << 20);
    ASSERT_TRUE(bytes) << quality;
    jpeg_decompress_struct jpeg{};
    jpeg_error_mgr error{};
    jpeg.err = jpeg_std_error(&error);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes->data()), bytes->size());
    EXPECT_EQ(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
    EXPECT_EQ(jpeg.image_width, 64U);
    EXPECT_EQ(jpeg.image_height, 48U);
    jpeg_destroy_decompress(&jpeg);
  }
}
TEST(Jpeg, MoreBytesThanAllowedAreAnError) {
  const auto pixels = noise(300, 300);
  EXPECT_EQ(encode_jpeg(picture(300, 300, pixels), 100, 1000).error().code, Code::limit);
  EXPECT_EQ(encode_jpeg(picture(300, 300, pixels), 100, 80'000).error().code, Code::limit) << "after a buffer was written";
}
TEST(Image, ASizeOutOfBoundsIsAnError) {
  for (const auto& [width, height] : {std::pair(0, 5), std::pair(5, 0), std::pair(-1, 5), std::pair(65'535, 65'535)}) {
    EXPECT_EQ(encode_png({.width = width, .height = height}, 1 << 20).error().code, Code::limit);
    EXPECT_EQ(encode_jpeg({.width = width, .height = height}, 80, 1 << 20).error().code, Code::limit);
  }
}

TEST(Cursor, ItIsDrawnWhereItsHotSpotIs) {
  std::vector<std::uint8_t> pixels(4 * 4 * 4, 100);
  const std::uint32_t argb[] = {0xFF102030, 0x00000000, 0x80400000, 0xFFFFFFFF};
  draw_cursor({.x = 2, .y = 2, .hot_x = 1, .hot_y = 1, .width = 2, .height = 2, .argb = argb}, 4, 4, pixels.data());
  const auto at = [&](int x, int y, int part) { return pixels[static_cast<std::size_t>((y * 4 + x) * 4 + part)]; };
  EXPECT_EQ(at(1, 1, 0), 0x30);
  EXPECT_EQ(at(1, 1, 2), 0x10);
  EXPECT_EQ(at(2, 1, 0), 100) << "through a clear pixel what is below is seen";
  EXPECT_EQ(at(1, 2, 2), 0x40 + 100 * 127 / 255);
  EXPECT_EQ(at(2, 2, 1), 0xFF);
  EXPECT_EQ(at(0, 0, 0), 100);
}
TEST(Cursor, WhatLiesOutsideIsCut) {
  std::vector<std::uint8_t> pixels(2 * 2 * 4);
  const std::vector<std::uint32_t> argb(64 * 64, 0xFFFFFFFF);
  for (const auto& [x, y] : {std::pair(-40, -40), std::pair(1, 1), std::pair(-32768, 32767), std::pair(32767, -32768)})
    draw_cursor({.x = x, .y = y, .hot_x = 3, .hot_y = 3, .width = 64, .height = 64, .argb = argb}, 2, 2, pixels.data());
  draw_cursor({.x = 0, .y = 0, .width = 64, .height = 64, .argb = std::span(argb).first(1)}, 2, 2, pixels.data());
  EXPECT_EQ(pixels[0], 0xFF);
}

}  // namespace
}  // namespace caisson::display
