#include "agent/http/framing.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

std::string refused(std::string_view head) {
  const auto result = check_head(head, Limits{});
  return result ? "accepted" : result.error().what;
}

TEST(Framing, PlainRequestIsAccepted) {
  const auto head =
      check_head("POST /v1/x?a=1 HTTP/1.1\r\nHost: localhost:8080\r\nContent-Length: 5\r\nX-A:  b \r\n\r\n", Limits{});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "POST");
  EXPECT_EQ(head->target, "/v1/x?a=1");
  EXPECT_EQ(head->body, BodyKind::length);
  EXPECT_EQ(head->content_length, 5u);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_EQ(head->headers.back(), (std::pair<std::string, std::string>("x-a", "b")));
}

TEST(Framing, AmbiguousBodiesAreRefused) {
  const std::string start = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(refused(start + "Transfer-Encoding: xchunked\r\n\r\n"), "transfer-encoding other than chunked");
  EXPECT_EQ(refused(start + "Transfer-Encoding: identity\r\n\r\n"), "transfer-encoding other than chunked");
  EXPECT_EQ(refused(start + "Transfer-Encoding: gzip, chunked\r\n\r\n"), "transfer-encoding other than chunked");
  EXPECT_EQ(refused(start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "more than one transfer-encoding header");
  EXPECT_EQ(refused(start + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
            "transfer-encoding together with content-length");
  EXPECT_EQ(refused(start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), "more than one content-length header");
  for (const char* length : {"5, 5", "+5", "-1", "0x5", "", "5 5", "99999999999999999999"})
    EXPECT_EQ(refused(start + "Content-Length: " + length + "\r\n\r\n"), "malformed content-length") << length;
  EXPECT_EQ(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "transfer-encoding on HTTP/1.0");
}

TEST(Framing, HostIsRequiredOnce) {
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), "missing host header");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), "more than one host header");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), "malformed host header");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost:\r\n\r\n"), "malformed host header");
  EXPECT_EQ(refused("GET / HTTP/1.0\r\n\r\n"), "accepted");
}

TEST(Framing, TargetsAreOriginForm) {
  EXPECT_EQ(refused("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), "only origin-form request targets are served");
  EXPECT_EQ(refused("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), "only origin-form request targets are served");
  EXPECT_EQ(refused("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), "only origin-form request targets are served");
  EXPECT_EQ(refused("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), "accepted");
  EXPECT_EQ(refused("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"), "malformed request target");
  EXPECT_EQ(refused("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n"), "malformed request target");
  EXPECT_EQ(refused("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), "request target is too long");
}

TEST(Framing, MalformedLinesAreRefused) {
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n"), "folded header line");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), "malformed header name");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n"), "malformed header name");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"), "control character in the request head");
  EXPECT_EQ(refused("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), "malformed request target");
  EXPECT_EQ(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), "only HTTP/1.1 and HTTP/1.0 are spoken here");
  EXPECT_EQ(refused("GET /\r\nHost: a\r\n\r\n"), "malformed request line");
  EXPECT_EQ(refused("\r\n\r\n"), "control character in the request head");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n"), "unknown expectation");
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: a\r\nX-AIO-API-Key: a\r\nX-AIO-API-Key: b\r\n\r\n"),
            "more than one x-aio-api-key header");
}

TEST(Framing, TooManyHeadersAreRefused) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 101; ++i) head += "a: b\r\n";
  EXPECT_EQ(refused(head + "\r\n"), "too many headers");
}

TEST(Framing, KeepAliveFollowsVersionAndConnection) {
  const auto keeps = [](std::string_view version, std::string_view connection) {
    return check_head("GET / HTTP/" + std::string(version) + "\r\nHost: a\r\nConnection: " + std::string(connection) + "\r\n\r\n",
                      Limits{})
        ->keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", "x"));
  EXPECT_FALSE(keeps("1.1", "x, Close"));
  EXPECT_FALSE(keeps("1.0", "x"));
  EXPECT_TRUE(keeps("1.0", "Keep-Alive"));
}

TEST(FramingEnd, HeadIsFoundAcrossPieces) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  std::size_t scanned = 0;
  for (std::size_t n = 1; n < head.size(); ++n) EXPECT_EQ(find_head_end(head.substr(0, n), scanned, Limits{}), 0u);
  EXPECT_EQ(find_head_end(head + "rest", scanned, Limits{}), head.size());
}

TEST(FramingEnd, HopelessBytesAreRefusedEarly) {
  const auto first_error = [](std::string_view bytes) {
    std::size_t scanned = 0;
    const auto end = find_head_end(bytes, scanned, Limits{});
    return end ? "none" : end.error().what;
  };
  using namespace std::string_view_literals;
  EXPECT_EQ(first_error("GET / HTTP/1.1\nHost: a\n\n"), "line feed without carriage return");
  EXPECT_EQ(first_error("\x16\x03\x01"), "not an HTTP request");
  EXPECT_EQ(first_error("GET /\0 HTTP/1.1"sv), "NUL in the request head");
  EXPECT_EQ(first_error("GET /" + std::string(20000, 'a')), "request head is too large");
}

}  // namespace
}  // namespace caisson::http
