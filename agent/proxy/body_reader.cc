#include "agent/proxy/body_reader.h"

#include <algorithm>
#include <charconv>

namespace caisson::proxy {
namespace {

constexpr std::size_t kChunkLine = 1024;  // a size with its extensions, or a trailer
constexpr std::size_t kTrailers = 8 * 1024;

std::unexpected<Error> bad_body(std::string_view why) { return fail(Code::protocol, std::string(why)); }

}  // namespace

Status BodyReader::take(std::string& bytes, std::string& content) {
  if (framing_ == Framing::chunked) return take_chunked(bytes, content);
  if (framing_ == Framing::until_end || (framing_ == Framing::length && bytes.size() <= left_)) {
    left_ -= framing_ == Framing::length ? bytes.size() : 0;
    content.swap(bytes);
  } else if (framing_ == Framing::length) {
    content.assign(bytes, 0, left_);
    bytes.erase(0, left_);
    left_ = 0;
  }
  return {};
}

Status BodyReader::take_chunked(std::string& bytes, std::string& content) {
  std::string_view rest = bytes;
  while (at_ != At::end) {
    TRY_ASSIGN(const bool moved, step(rest, content));
    if (!moved) break;
  }
  bytes.erase(0, bytes.size() - rest.size());
  return {};
}

Result<bool> BodyReader::step(std::string_view& rest, std::string& content) {
  if (at_ == At::data) {
    const std::size_t size = std::min<std::uint64_t>(left_, rest.size());
    content.append(rest.substr(0, size));
    rest.remove_prefix(size);
    left_ -= size;
    if (left_ > 0) return false;
    at_ = At::data_end;
    return true;
  }
  const std::size_t feed = rest.substr(0, kChunkLine).find('\n');
  if (feed == std::string_view::npos) {
    if (rest.size() >= kChunkLine) return bad_body("a line of its body is too long");
    return false;
  }
  if (feed == 0 || rest[feed - 1] != '\r') return bad_body("its chunks are malformed");
  const std::string_view line = rest.substr(0, feed - 1);
  rest.remove_prefix(feed + 1);
  if (at_ == At::size) TRY(read_size(line));
  else if (at_ == At::data_end && !line.empty()) return bad_body("its chunks are malformed");
  else if (at_ == At::data_end) at_ = At::size;
  else if (line.empty()) at_ = At::end;
  else if ((trailer_bytes_ += line.size()) > kTrailers) return bad_body("its trailers are too large");
  return true;
}

Status BodyReader::read_size(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
  if (digits.empty() || digits.size() > 15) return bad_body("a chunk's size is malformed");
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad_body("a chunk's size is malformed");
  std::string_view after = line.substr(digits.size());
  after.remove_prefix(std::min(after.find_first_not_of(" \t"), after.size()));
  if (!after.empty() && !after.starts_with(';')) return bad_body("a chunk's size is malformed");
  at_ = left_ == 0 ? At::trailer : At::data;
  return {};
}

}  // namespace caisson::proxy
