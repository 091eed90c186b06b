#include "launcher/egress/parse/http_head.h"

#include <gtest/gtest.h>

#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;
using Form = RequestHead::Form;

auto reader(RequestHead& head) {
  return [&head] {
    return [&head, scan = HeadScan()](std::string_view bytes) mutable { return read_request_head(bytes, scan, head); };
  };
}
// The words of the refusal, "done" or "need_more".
std::string outcome(std::string_view bytes) {
  RequestHead head;
  const Outcome read = in_every_cut(bytes, reader(head));
  if (read.done()) return "done";
  return read.refused() ? std::string(word(words(read.refusal), static_cast<std::size_t>(read.refusal))) : "need_more";
}
std::string get(std::string_view fields) { return outcome("GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n"); }
std::string host_of(const RequestHead& head) {
  return head.host ? host_text(*head.host) + ":" + std::to_string(head.port) : "none";
}

TEST(RequestHead, OfAPlainRequest) {
  const std::string bytes = "GET /a?b=c HTTP/1.1\r\nHost: Example.ORG.\r\nX-A:\t one \r\nx-b:\r\n\r\nrest";
  RequestHead head;
  expect_exact(bytes, reader(head));
  HeadScan scan;
  ASSERT_TRUE(read_request_head(bytes, scan, head).done());
  EXPECT_EQ(head.form, Form::origin);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(host_of(head), "example.org:80");
  EXPECT_TRUE(head.keep_alive && head.minor == 1 && head.body.kind == BodyKind::none);
  ASSERT_EQ(head.fields.size(), 3U);
  EXPECT_EQ(head.fields[1].name, "X-A");
  EXPECT_EQ(head.fields[1].value, "one");
  EXPECT_EQ(head.fields[2].value, "");
}

RequestHead read(std::string_view bytes) {
  RequestHead head;
  HeadScan scan;
  const Outcome outcome = read_request_head(bytes, scan, head);
  EXPECT_TRUE(outcome.done()) << outcome.why << ": " << bytes;
  return head;
}

TEST(RequestHead, OfAProxyRequest) {
  RequestHead head = read("POST HTTP://example.org:8080?q HTTP/1.1\r\nHost: example.org:8080\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(head.form, Form::absolute);
  EXPECT_EQ(head.target, "/?q");
  EXPECT_EQ(host_of(head), "example.org:8080");
  EXPECT_TRUE(head.body.kind == BodyKind::length && head.body.length == 3);
  head = read("GET http://[2001:db8::1]/x HTTP/1.0\r\n\r\n");
  EXPECT_EQ(host_of(head), "2001:db8::1:80");
  EXPECT_FALSE(head.keep_alive);
  head = read("GET http://0x7f.1 HTTP/1.1\r\nHost: 127.0.0.1\r\nProxy-Connection: close\r\n\r\n");
  EXPECT_EQ(host_of(head), "127.0.0.1:80");
  EXPECT_EQ(head.target, "/");
  EXPECT_FALSE(head.keep_alive);
}

TEST(RequestHead, OfConnect) {
  RequestHead head = read("CONNECT Example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n");
  EXPECT_EQ(head.form, Form::authority);
  EXPECT_EQ(host_of(head), "example.org:443");
  EXPECT_EQ(head.target, "");
  EXPECT_EQ(host_of(read("CONNECT [::1]:22 HTTP/1.0\r\n\r\n")), "::1:22");
  EXPECT_EQ(host_of(read("CONNECT a.b:22 HTTP/1.1\r\nHost: a.b\r\n\r\n")), "a.b:22");
  for (const char* target :
       {"example.org", "example.org:", "example.org:0", "example.org:65536", "example.org:443/", "http://example.org:443", ":443",
        "a@b.c:443", "::1:443", "[::1]443", "[::1", "a.b:4 43", "a.b:+80", "a.b:080443", "/"})
    EXPECT_EQ(outcome("CONNECT "s + target + " HTTP/1.1\r\n\r\n"), "framing") << target;
  EXPECT_EQ(outcome("CONNECT a.b:443 HTTP/1.1\r\nHost: c.d:443\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:80\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n"), "framing");
  EXPECT_EQ(outcome("CONNECT a.b:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), "framing");
}

TEST(RequestHead, TheHostFieldSaysWhatTheTargetSays) {
  EXPECT_EQ(outcome("GET http://a.b/ HTTP/1.1\r\nHost: evil.org\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("GET http://a.b/ HTTP/1.1\r\nHost: a.b:81\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("GET http://a.b:81/ HTTP/1.1\r\nHost: a.b\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("GET http://a.b/ HTTP/1.0\r\nHost: evil.org\r\n\r\n"), "host_differs");
  EXPECT_EQ(outcome("GET http://a.b/ HTTP/1.1\r\n\r\n"), "framing");
  EXPECT_EQ(get(""), "framing");
  for (const char* host : {"", "a b", "a,b", "a/b", "a@b", "a:b", "a:0", "a:", "[::1", "a..b", "1.2.3.4.5", "b\xc3\xbc"})
    EXPECT_EQ(get("Host: "s + host + "\r\n"), "framing") << host;
  EXPECT_EQ(get("Host: a.b\r\nHost: a.b\r\n"), "framing");
  EXPECT_EQ(get("Host: a.b\r\nhOST: c.d\r\n"), "framing");
  EXPECT_EQ(outcome("GET / HTTP/1.0\r\n\r\n"), "done");
  EXPECT_EQ(host_of(read("GET / HTTP/1.0\r\n\r\n")), "none");
  EXPECT_EQ(host_of(read("OPTIONS * HTTP/1.1\r\nHost: a.b:81\r\n\r\n")), "a.b:81");
}

TEST(RequestHead, FramingIsOneWayOrRefused) {
  const auto with = [](std::string_view fields) { return get("Host: a.b\r\n" + std::string(fields)); };
  EXPECT_EQ(with("Transfer-Encoding: chunked\r\n"), "done");
  EXPECT_EQ(with("Content-Length: 0\r\n"), "done");
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5, 5\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: -1\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length: 5 \x0b\r\n",
                             "Content-Length:\r\n",
                             "Content-Length: 1000000000000000000\r\n",
                             "Content-Length: 5a\r\n",
                             "Transfer-Encoding: xchunked\r\n",
                             "Transfer-Encoding: chunked, identity\r\n",
                             "Transfer-Encoding: gzip, chunked\r\n",
                             "Transfer-Encoding: identity\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding:\r\n",
                             "Transfer-Encoding: \x0b"
                             "chunked\r\n",
                             "Transfer-Encoding : chunked\r\n",
                             "Content-Length : 5\r\n",
                             "Transfer-Encoding\r\n : chunked\r\n"})
    EXPECT_EQ(with(fields), "framing") << fields;
  EXPECT_EQ(outcome("GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), "framing");
}

TEST(RequestHead, WhatTwoParsersCouldReadDifferentlyIsRefused) {
  for (const std::string& head : {"GET / HTTP/1.1\nHost: a\n\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\n\r\n"s,
                                  "GET / HTTP/1.1\rHost: a\r\r"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"s,
                                  "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  " GET / HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"s,
                                  "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET /\r\nHost: a\r\n\r\n"s,
                                  "GET / HTTP/2.0\r\nHost: a\r\n\r\n"s,
                                  "GET / http/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET / HTTP/1.2\r\nHost: a\r\n\r\n"s,
                                  "PRI * HTTP/2.0\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\n folded\r\nHost: a\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nA: b\x7f\r\n\r\n"s,
                                  "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET a HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "GET * HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "G{T / HTTP/1.1\r\nHost: a\r\n\r\n"s,
                                  "\x16\x03\x01"s,
                                  "\x05\x01\x00"s,
                                  "\0"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"s,
                                  "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n"s})
    EXPECT_EQ(outcome(head), "framing") << head;
}

TEST(RequestHead, FieldsOfTheConnectionAreMarked) {
  const RequestHead head = read(
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Mine , close,,Keep-Alive\r\nx-mine: 1\r\nX-Other: 2\r\nProxy-Authorization: "
      "Basic x\r\n"
      "TE: trailers\r\nHTTP2-Settings: a\r\nUpgrade: h2c\r\nCookie: a\r\n\r\n");
  std::string kept;
  for (const Field& field : head.fields)
    if (!field.hop_by_hop) kept += std::string(field.name) + " ";
  EXPECT_EQ(kept, "Host X-Other Cookie ");
  EXPECT_FALSE(head.keep_alive || head.websocket);
  for (const char* named : {"host", "Content-Length", "close, cookie", "authorization"})
    EXPECT_EQ(get("Host: a\r\nConnection: "s + named + "\r\n"), "framing") << named;
  std::string many = "Host: a\r\nConnection: a";
  for (int i = 0; i < 16; ++i) many += ",a";
  EXPECT_EQ(get(many + "\r\n"), "framing");
}

TEST(RequestHead, WebSocketAndExpectations) {
  const std::string upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
  EXPECT_TRUE(read(upgrade + "\r\n").websocket);
  EXPECT_FALSE(read(upgrade + "Content-Length: 1\r\n\r\n").websocket);
  EXPECT_FALSE(read("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").websocket);
  EXPECT_TRUE(read("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n").expect_continue);
  EXPECT_TRUE(only_reads("GET") && only_reads("HEAD") && only_reads("OPTIONS"));
  EXPECT_FALSE(only_reads("POST") || only_reads("get") || only_reads("TRACE") || only_reads("CONNECT"));
}

TEST(RequestHead, IsBounded) {
  std::string fields = "Host: a\r\n";
  for (int i = 0; i < 99; ++i) fields += "A: b\r\n";
  RequestHead head;
  HeadScan scan;
  EXPECT_TRUE(read_request_head("GET / HTTP/1.1\r\n" + fields + "\r\n", scan, head).done());
  scan = {};
  EXPECT_TRUE(read_request_head("GET / HTTP/1.1\r\n" + fields + "A: b\r\n\r\n", scan, head).refusal == Refusal::limit);
  const auto sized = [](std::size_t size) {
    std::string bytes = "GET / HTTP/1.1\r\nHost: a\r\nA: ";
    return bytes + std::string(size - bytes.size() - 4, 'a') + "\r\n\r\n";
  };
  scan = {};
  EXPECT_TRUE(read_request_head(sized(kMaxHead), scan, head).done());
  scan = {};
  EXPECT_TRUE(read_request_head(sized(kMaxHead + 1), scan, head).refusal == Refusal::limit);
  scan = {};
  EXPECT_TRUE(read_request_head(std::string(kMaxHead + 1, 'a'), scan, head).refusal == Refusal::limit);
  EXPECT_EQ(outcome(std::string(33, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n"), "framing");
}

}  // namespace
}  // namespace caisson::egress
