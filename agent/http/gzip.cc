#include "agent/http/gzip.h"

#include <array>
#include <new>
#include <utility>

#include <zlib.h>

namespace caisson::http {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, and gzip's frame
constexpr int kMemory = 8;

}  // namespace

struct Gzip::Stream {
  z_stream z{};
};

Gzip::Gzip(int level) : stream_(std::make_unique<Stream>()) {
  // With these arguments only a lack of memory makes it fail.
  if (::deflateInit2(&stream_->z, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
}

Gzip::~Gzip() { ::deflateEnd(&stream_->z); }

void Gzip::turn(std::string_view bytes, int flush) {
  std::array<unsigned char, 16 * 1024> piece;
  z_stream& z = stream_->z;
  z.next_in = reinterpret_cast<z_const Bytef*>(const_cast<char*>(bytes.data()));  // only read, despite its type
  z.avail_in = static_cast<unsigned>(bytes.size());
  do {
    z.next_out = piece.data();
    z.avail_out = static_cast<unsigned>(piece.size());
    (void)::deflate(&z, flush);  // with room for output and a valid stream no error is possible
    out_.append(reinterpret_cast<const char*>(piece.data()), piece.size() - z.avail_out);
  } while (z.avail_out == 0);
}

void Gzip::append(std::string_view bytes) {
  if (!bytes.empty()) turn(bytes, Z_NO_FLUSH);
}

std::string Gzip::finish() {
  turn("", Z_FINISH);
  ::deflateReset(&stream_->z);
  return std::exchange(out_, {});
}

}  // namespace caisson::http
