#include "launcher/egress/parse/http_body.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

// Of the bytes in parts of these sizes, as one outcome.
Outcome take_parts(BodyEnd body, std::string_view bytes, const auto& next_size) {
  std::size_t at = 0;
  while (true) {
    const std::string_view part = bytes.substr(at, next_size());
    const Outcome outcome = body.take(part);
    if (outcome.refused()) return outcome;
    if (outcome.done()) return done(at + outcome.size);
    at += part.size();
    if (at == bytes.size()) return need_more();
  }
}

Outcome take(Framing framing, std::string_view bytes) {
  const Outcome whole = BodyEnd(framing).take(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    bool first = true;
    expect_same(take_parts(BodyEnd(framing), bytes, [&] { return std::exchange(first, false) ? cut : bytes.size(); }), whole,
                bytes, cut);
  }
  if (!bytes.empty()) expect_same(take_parts(BodyEnd(framing), bytes, [] { return 1U; }), whole, bytes, 1);
  return whole;
}
Outcome chunked(std::string_view bytes) { return take({BodyKind::chunked}, bytes); }

TEST(BodyEnd, OfNoneOrALength) {
  EXPECT_TRUE(take({BodyKind::none}, "abc").done());
  EXPECT_EQ(take({BodyKind::none}, "abc").size, 0U);
  EXPECT_EQ(take({BodyKind::length, 0}, "abc").size, 0U);
  EXPECT_EQ(take({BodyKind::length, 2}, "abc").size, 2U);
  EXPECT_TRUE(take({BodyKind::length, 4}, "abc").step == Outcome::Step::need_more);
  EXPECT_TRUE(take({BodyKind::until_close}, "abc").step == Outcome::Step::need_more);
  EXPECT_TRUE(BodyEnd().ended());
}

TEST(BodyEnd, OfChunks) {
  for (const std::string_view body :
       {"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "A\r\n0123456789\r\na\r\n\r\n0\r\n\r\n!!!\r\n000\r\n\r\n",
        "1;a=b;c=\"d\"\r\nx\r\n0;e\r\n\r\n", "1\r\nx\r\n0\r\nX-Sum: a\r\nY:\r\n\r\n"}) {
    const Outcome outcome = chunked(std::string(body) + "GET / HTTP/1.1\r\n");
    EXPECT_TRUE(outcome.done()) << outcome.why << body;
    EXPECT_EQ(outcome.size, body.size());
  }
  EXPECT_TRUE(chunked("5\r\nhello\r\n0\r\n").step == Outcome::Step::need_more);
}

TEST(BodyEnd, MalformedChunksAreRefused) {
  for (const std::string_view body : {"\r\n",
                                      ";\r\n",
                                      "x\r\n",
                                      " 5\r\nhello\r\n",
                                      "5 \r\nhello\r\n",
                                      "5\nhello\n",
                                      "5\r\nhello!\r\n",
                                      "5\r\nhell\r\n0\r\n\r\n",
                                      "5\r\nhello\n0\r\n\r\n",
                                      "5\rhello",
                                      "-1\r\n",
                                      "+1\r\n",
                                      "0x5\r\nhello\r\n",
                                      "0000000000000000\r\n",
                                      "ffffffffffffffff\r\n",
                                      "5;a\nhello\r\n",
                                      "5;\x01\r\nhello\r\n",
                                      "0\r\nno colon\r\n\r\n",
                                      "0\r\n folded: a\r\n\r\n",
                                      "0\r\nA: b\n\r\n",
                                      "0\r\nA : b\r\n\r\n",
                                      "0\r\nContent-Length: 3\r\n\r\n",
                                      "0\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      "0\r\nHost: a\r\n\r\n",
                                      "0\r\n: a\r\n\r\n",
                                      "0\r\nA: b\rc\r\n\r\n",
                                      "0\r\n\rX"})
    EXPECT_TRUE(chunked(body).refusal == Refusal::framing) << body;
}

TEST(BodyEnd, IsBounded) {
  EXPECT_TRUE(BodyEnd({BodyKind::chunked}).take("1;" + std::string(300, 'a')).refused());
  EXPECT_TRUE(BodyEnd({BodyKind::chunked}).take("0\r\nA: " + std::string(9000, 'a')).refused());
  std::string many = "0\r\n";
  for (int i = 0; i < 4000; ++i) many += "A:\r\nB:\r\n";
  EXPECT_TRUE(BodyEnd({BodyKind::chunked}).take(many).refused());
}

TEST(BodyEnd, ContentMayPassAtItsSide) {
  BodyEnd body({BodyKind::chunked});
  EXPECT_EQ(body.certain(), 0U);
  EXPECT_FALSE(body.take("10\r\nab").done());
  EXPECT_EQ(body.certain(), 14U);
  body.skip(14);
  EXPECT_EQ(body.certain(), 0U);
  EXPECT_EQ(body.take("\r\n0\r\n\r\nx").size, 7U);
  EXPECT_TRUE(body.ended());
  BodyEnd length({BodyKind::length, 1ULL << 50});
  EXPECT_EQ(length.certain(), 1ULL << 50);
  length.skip(1ULL << 50);
  EXPECT_TRUE(length.ended());
}

// The same of every way to cut, for bytes that are nearly chunks.
TEST(BodyEnd, AnyBytesEndTheSameWay) {
  std::mt19937 random(7);
  const std::string_view alphabet = "0123aF;\r\n: xA";
  int ended = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = "3;x\r\nabc\r\n1\r\nz\r\n0\r\nA: b\r\n\r\n";
    for (unsigned i = random() % 3; i > 0; --i) bytes[random() % bytes.size()] = alphabet[random() % alphabet.size()];
    const Outcome whole = BodyEnd({BodyKind::chunked}).take(bytes);
    expect_same(take_parts(BodyEnd({BodyKind::chunked}), bytes, [&] { return random() % 4 + 1; }), whole, bytes, 0);
    ended += whole.done();
  }
  EXPECT_GT(ended, 1000);
}

}  // namespace
}  // namespace caisson::egress
