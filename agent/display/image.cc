#include "agent/display/image.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

namespace caisson::display {
namespace {

struct Sink {
  std::string bytes;
  std::size_t most = 0;
  bool full = false;

  [[nodiscard]] bool add(const void* data, std::size_t size) {
    full = full || size > most - bytes.size();
    if (!full) bytes.append(static_cast<const char*>(data), size);
    return !full;
  }
};

Result<std::string> finished(bool done, Sink&& sink, const char* kind) {
  if (sink.full)
    return fail(Code::limit, "the screen takes more than " + std::to_string(sink.most) + " bytes as " + std::string(kind));
  if (!done) return fail(Code::internal, "the screen cannot be encoded as " + std::string(kind));
  return std::move(sink.bytes);
}

Status check_size(const Picture& picture) {
  if (picture.width < 1 || picture.height < 1 || std::int64_t{picture.width} * picture.height > kMostPixels)
    return fail(Code::limit, "a screen of " + std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                                 " pixels cannot be shown");
  return {};
}

void png_out(png_structp png, png_bytep data, png_size_t size) {
  if (!static_cast<Sink*>(png_get_io_ptr(png))->add(data, size)) png_error(png, "full");
}
void png_flush_nothing(png_structp) {}
[[noreturn]] void png_fail(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void png_ignore(png_structp, png_const_charp) {}

// Holds nothing that a long jump of the library would leave behind.
bool write_png(png_structp png, png_infop info, const Picture& picture) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const auto width = static_cast<png_uint_32>(picture.width), height = static_cast<png_uint_32>(picture.height);
  // Level 1 and no filter: a third of the time of the defaults, for a tenth more bytes.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  png_set_bgr(png);
  png_set_filler(png, 0, PNG_FILLER_AFTER);
  for (png_uint_32 y = 0; y < height; ++y) png_write_row(png, picture.pixels + std::size_t{y} * width * 4);
  png_write_end(png, info);
  return true;
}

struct JpegError {
  jpeg_error_mgr manager;  // first: the library's pointer to it is one to us
  std::jmp_buf back;
};
struct JpegSink {
  jpeg_destination_mgr manager;  // first, for the same reason
  Sink* sink;
  JOCTET buffer[64 * 1024];
};

[[noreturn]] void jpeg_fail(j_common_ptr jpeg) { std::longjmp(reinterpret_cast<JpegError*>(jpeg->err)->back, 1); }
void jpeg_silent(j_common_ptr, int) {}
void jpeg_begin(j_compress_ptr jpeg) {
  auto* out = reinterpret_cast<JpegSink*>(jpeg->dest);
  out->manager.next_output_byte = out->buffer;
  out->manager.free_in_buffer = sizeof out->buffer;
}
boolean jpeg_full(j_compress_ptr jpeg) {
  auto* out = reinterpret_cast<JpegSink*>(jpeg->dest);
  if (!out->sink->add(out->buffer, sizeof out->buffer)) jpeg_fail(reinterpret_cast<j_common_ptr>(jpeg));
  jpeg_begin(jpeg);
  return TRUE;
}
void jpeg_end(j_compress_ptr jpeg) {
  auto* out = reinterpret_cast<JpegSink*>(jpeg->dest);
  if (!out->sink->add(out->buffer, sizeof out->buffer - out->manager.free_in_buffer))
    jpeg_fail(reinterpret_cast<j_common_ptr>(jpeg));
}

bool write_jpeg(jpeg_compress_struct& jpeg, JpegError& error, JpegSink& out, const Picture& picture, int quality) {
  jpeg.err = jpeg_std_error(&error.manager);
  error.manager.error_exit = jpeg_fail;
  error.manager.emit_message = jpeg_silent;
  if (setjmp(error.back) != 0) return false;
  jpeg_create_compress(&jpeg);
  out.manager.init_destination = jpeg_begin;
  out.manager.empty_output_buffer = jpeg_full;
  out.manager.term_destination = jpeg_end;
  jpeg.dest = &out.manager;
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.input_components = 4;
  jpeg.in_color_space = JCS_EXT_BGRX;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg.dct_method = JDCT_IFAST;
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    // The library does not write to it.
    JSAMPROW row = const_cast<JSAMPROW>(picture.pixels) + std::size_t{jpeg.next_scanline} * jpeg.image_width * 4;
    (void)jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

Result<std::string> encode_png(const Picture& picture, std::size_t most) {
  TRY(check_size(picture));
  Sink sink{.bytes = {}, .most = most};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, png_fail, png_ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  bool done = false;
  if (info != nullptr) {
    png_set_write_fn(png, &sink, png_out, png_flush_nothing);
    done = write_png(png, info, picture);
  }
  png_destroy_write_struct(&png, &info);
  return finished(done, std::move(sink), "PNG");
}

Result<std::string> encode_jpeg(const Picture& picture, int quality, std::size_t most) {
  TRY(check_size(picture));
  Sink sink{.bytes = {}, .most = most};
  jpeg_compress_struct jpeg{};
  JpegError error{};
  JpegSink out{};
  out.sink = &sink;
  const bool done = write_jpeg(jpeg, error, out, picture, std::clamp(quality, 0, 100));
  jpeg_destroy_compress(&jpeg);
  return finished(done, std::move(sink), "JPEG");
}

void draw_cursor(const Cursor& cursor, int width, int height, std::uint8_t* pixels) {
  const int left = cursor.x - cursor.hot_x, top = cursor.y - cursor.hot_y;
  for (int row = std::max(0, -top); row < cursor.height && top + row < height; ++row) {
    for (int column = std::max(0, -left); column < cursor.width && left + column < width; ++column) {
      const auto index =
          static_cast<std::size_t>(row) * static_cast<std::size_t>(cursor.width) + static_cast<std::size_t>(column);
      if (index >= cursor.argb.size()) return;
      const std::uint32_t argb = cursor.argb[index], under = 255 - (argb >> 24);
      std::uint8_t* pixel =
          pixels +
          (static_cast<std::size_t>(top + row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(left + column)) * 4;
      for (unsigned part = 0; part < 3; ++part)
        pixel[part] =
            static_cast<std::uint8_t>(std::min<std::uint32_t>(255, (argb >> (8 * part) & 0xFF) + pixel[part] * under / 255));
    }
  }
}

}  // namespace caisson::display
