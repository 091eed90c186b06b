// Frames: however the bytes are cut, the same frames come out; what is too large or no frame is refused for good.
#include "agent/frames/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace caisson::frames {
namespace {

std::string frame(json::Value head, std::string_view body) {
  return encode_head(std::move(head), body.size()).value() + std::string(body);
}

json::Value numbered(int id) {
  json::Value head = json::Value::object();
  head["id"] = id;
  return head;
}

std::vector<Frame> decode(Decoder& decoder, std::string_view bytes, std::size_t step) {
  std::vector<Frame> out;
  while (!bytes.empty()) {
    std::string_view piece = bytes.substr(0, step);
    bytes.remove_prefix(piece.size());
    while (!piece.empty()) {
      auto taken = decoder.take(piece);
      if (!taken) return out;
      if (*taken) out.push_back(std::move(**taken));
    }
  }
  return out;
}

TEST(Frame, ComesOutTheSameHoweverItIsCut) {
  const std::string bytes = frame(numbered(1), "") + frame(numbered(2), "some bytes") + frame(numbered(3), "");
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{7}, bytes.size()}) {
    Decoder decoder({});
    const std::vector<Frame> out = decode(decoder, bytes, step);
    ASSERT_EQ(out.size(), 3U) << step;
    EXPECT_EQ(out[1].head["id"], 2);
    EXPECT_EQ(out[1].body, "some bytes");
    EXPECT_TRUE(out[2].body.empty());
    EXPECT_TRUE(decoder.at_boundary());
  }
}

TEST(Frame, WhoReadsNoMoreThanIsWantedReadsNothingBehindIt) {
  const std::string one = frame(numbered(1), "some bytes");
  for (const std::string& bytes : {one, frame(numbered(1), "")}) {
    Decoder decoder({});
    std::string_view left = bytes;
    while (true) {
      std::string_view piece = left.substr(0, decoder.wanted());
      ASSERT_FALSE(piece.empty());
      left.remove_prefix(piece.size());
      const auto taken = decoder.take(piece);
      ASSERT_TRUE(taken);
      if (*taken) break;
    }
    EXPECT_TRUE(left.empty());
  }
}

TEST(Frame, NothingIsReadBehindABrokenOne) {
  Decoder decoder({.head_bytes = 100, .body_bytes = 10, .head_values = 16});
  EXPECT_TRUE(decode(decoder, frame(numbered(1), "eleven byte") + frame(numbered(2), ""), 64).empty());
  std::string_view more = "xx";
  EXPECT_FALSE(decoder.take(more));
}

TEST(Frame, BodiesUpToTheLimitAreTaken) {
  Decoder decoder({.head_bytes = 100, .body_bytes = 10, .head_values = 16});
  EXPECT_EQ(decode(decoder, frame(numbered(1), "ten bytes!"), 64).size(), 1U);
}

TEST(Frame, AHeadThatNoPeerTakesIsNotWritten) {
  json::Value head = json::Value::object();
  head["x"] = std::string(2 << 20, 'x');
  EXPECT_EQ(encode_head(std::move(head), 0).error().code, Code::limit);
}

}  // namespace
}  // namespace caisson::frames
