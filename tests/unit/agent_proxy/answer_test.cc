#include "agent/proxy/answer_head.h"

#include <gtest/gtest.h>

#include "agent/proxy/body_reader.h"

namespace caisson::proxy {
namespace {

Result<AnswerHead> parsed(const std::string& bytes, bool to_head = false) {
  std::size_t scanned = 0;
  TRY_ASSIGN(const std::size_t end, find_answer_end(bytes, scanned));
  if (end == 0) return fail(Code::io, "incomplete");
  return read_answer_head(std::string_view(bytes).substr(0, end), to_head);
}

std::string why(const std::string& lines) {
  const auto head = parsed("HTTP/1.1 200 OK\r\n" + lines + "\r\n");
  return head ? "accepted" : head.error().what;
}

TEST(AnswerHead, IsRead) {
  const auto head = parsed("HTTP/1.1 404 Not Here\r\nContent-Length: 12\r\nX:  y \r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 404);
  EXPECT_EQ(head->reason, "Not Here");
  EXPECT_EQ(head->framing, Framing::length);
  EXPECT_EQ(head->length, 12u);
  EXPECT_EQ(head->headers.back(), (std::pair<std::string, std::string>("x", "y")));
}

TEST(AnswerHead, OnlyAnAnswerThatTellsItsEndLeavesTheConnection) {
  const auto leaves = [](const std::string& bytes, bool to_head = false) { return leaves_connection(*parsed(bytes, to_head)); };
  EXPECT_TRUE(leaves("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"));
  EXPECT_TRUE(leaves("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  EXPECT_FALSE(leaves("HTTP/1.1 200 OK\r\n\r\n"));
  EXPECT_FALSE(leaves("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"));
  EXPECT_FALSE(leaves("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(leaves("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", true));
  EXPECT_FALSE(leaves("HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\n\r\n"));
}

TEST(AnswerHead, AmbiguousFramingIsRefused) {
  EXPECT_EQ(why("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "it has both a length and a transfer encoding");
  EXPECT_EQ(why("Content-Length: 1\r\nContent-Length: 1\r\n"), "it has more than one content-length");
  EXPECT_EQ(why("Content-Length: 0x1\r\n"), "its length is malformed");
  EXPECT_EQ(why("Transfer-Encoding: gzip, chunked\r\n"), "its transfer encoding is not chunked");
  EXPECT_EQ(why("A: b\r\n c\r\n"), "a header of it is folded");
  EXPECT_EQ(why("Content-Length : 1\r\n"), "a header of it has no proper name");
}

TEST(AnswerHead, NoBodyFollowsHead) {
  const auto head = parsed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->framing, Framing::none);
  EXPECT_TRUE(head->has_length);
}

TEST(AnswerHead, WithoutALengthTheBodyEndsWithTheStream) {
  const auto head = parsed("HTTP/1.1 200 OK\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->framing, Framing::until_end);
}

TEST(AnswerHead, TheExampleOfTheStandardIsAWebSocket) {
  const auto head = parsed(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  ASSERT_TRUE(head);
  EXPECT_TRUE(accepts_websocket(*head, "dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(accepts_websocket(*head, "dGhlIHNhbXBsZSBub25jZQ="));
}

// The content of a chunked body that comes in pieces of this size; "" and false if it is malformed.
std::pair<std::string, bool> unchunked(std::string_view wire, std::size_t piece) {
  AnswerHead head;
  head.framing = Framing::chunked;
  BodyReader reader(head);
  std::string bytes, all;
  while (!wire.empty() && !reader.done()) {
    bytes += wire.substr(0, piece);
    wire.remove_prefix(std::min(piece, wire.size()));
    std::string content;
    if (!reader.take(bytes, content)) return {"", false};
    all += content;
  }
  return {all, reader.done()};
}

TEST(BodyReader, ChunksInPiecesOfAnySizeAreTheSame) {
  for (std::size_t piece = 1; piece < 40; ++piece)
    EXPECT_EQ(unchunked("3;a=b\r\nabc\r\nA \r\n0123456789\r\n0\r\nX: y\r\n\r\n", piece),
              (std::pair<std::string, bool>("abc0123456789", true)));
}

TEST(BodyReader, MalformedChunksAreRefused) {
  for (const char* wire : {"x\r\n", "-1\r\n", "3\r\nabcd\r\n", "3\nabc\r\n", "\r\n", "3 x\r\nabc\r\n", "0x3\r\nabc\r\n",
                           "ffffffffffffffff\r\n", "+3\r\nabc\r\n"})
    EXPECT_EQ(unchunked(wire, 100), (std::pair<std::string, bool>("", false))) << wire;
}

TEST(BodyReader, LinesAndTrailersAreBounded) {
  EXPECT_FALSE(unchunked("3;" + std::string(2000, 'a'), 100).second);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 100; ++i) trailers += "a: " + std::string(200, 'b') + "\r\n";
  EXPECT_FALSE(unchunked(trailers + "\r\n", 100).second);
}

}  // namespace
}  // namespace caisson::proxy
