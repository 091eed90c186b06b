#include "launcher/egress/parse/http_answer.h"

#include <gtest/gtest.h>

#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

Outcome read_cut(std::string_view bytes, AnswerHead& head, bool to_head = false) {
  const auto make = [&] {
    return [&, scan = HeadScan()](std::string_view part) mutable { return read_answer_head(part, to_head, scan, head); };
  };
  const Outcome outcome = in_every_cut(bytes, make);
  if (outcome.done()) expect_exact(bytes, make);
  return outcome;
}
AnswerHead answer(std::string_view bytes, bool to_head = false) {
  AnswerHead head;
  const Outcome outcome = read_cut(bytes, head, to_head);
  EXPECT_TRUE(outcome.done()) << outcome.why << ": " << bytes;
  HeadScan scan;
  (void)read_answer_head(bytes, to_head, scan, head);
  return head;
}

TEST(AnswerHead, TellsWhereItsBodyEnds) {
  AnswerHead head = answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_TRUE(head.status == 200 && head.reason == "OK" && head.body.kind == BodyKind::length && head.body.length == 5 &&
              head.keep_alive);
  EXPECT_TRUE(answer("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n").body.kind == BodyKind::chunked);
  head = answer("HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_TRUE(head.body.kind == BodyKind::until_close && !head.keep_alive);
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    head = answer("HTTP/1.1 "s + status + "\r\n\r\n");
    EXPECT_TRUE(head.body.kind == BodyKind::none && head.keep_alive && !head.interim) << status;
  }
  EXPECT_TRUE(answer("HTTP/1.1 304 \r\nContent-Length: 5\r\n\r\n").body.kind == BodyKind::none);
  EXPECT_TRUE(answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).body.kind == BodyKind::none);
  EXPECT_TRUE(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true).body.kind == BodyKind::none);
}

TEST(AnswerHead, InterimAndSwitching) {
  for (const char* status : {"100 Continue", "103 Early Hints", "199 x"}) {
    const AnswerHead head = answer("HTTP/1.1 "s + status + "\r\nLink: x\r\n\r\n");
    EXPECT_TRUE(head.interim && !head.switches && head.body.kind == BodyKind::none) << status;
  }
  const AnswerHead head = answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
  EXPECT_TRUE(head.switches && !head.interim && !head.keep_alive);
}

TEST(AnswerHead, AConnectionIsKeptOnlyWhereBothSay) {
  EXPECT_FALSE(answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a, Close\r\n\r\n").keep_alive);
  EXPECT_FALSE(answer("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_TRUE(answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").keep_alive);
}

TEST(AnswerHead, AmbiguousOnesAreRefused) {
  for (const std::string& bytes : {"HTTP/1.1 20 OK\r\n\r\n"s,
                                   "HTTP/1.1 2000 OK\r\n\r\n"s,
                                   "HTTP/1.1  200 OK\r\n\r\n"s,
                                   "HTTP/1.1 099 x\r\n\r\n"s,
                                   "HTTP/1.1 600 x\r\n\r\n"s,
                                   "HTTP/2.0 200 OK\r\n\r\n"s,
                                   "HTTP/1.1\t200 OK\r\n\r\n"s,
                                   "ICY 200 OK\r\n\r\n"s,
                                   "http/1.1 200 OK\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\nA: b\n\n"s,
                                   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"s,
                                   "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"s,
                                   "HTTP/1.1 204 x\r\nContent-Length: 1\r\n\r\n"s,
                                   "HTTP/1.1 100 x\r\nTransfer-Encoding: chunked\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\n A: b\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\nA : b\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n"s,
                                   "HTTP/1.1 200 O\0K\r\n\r\n"s,
                                   "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n"s,
                                   "\r\nHTTP/1.1 200 OK\r\n\r\n"s}) {
    AnswerHead head;
    EXPECT_TRUE(read_cut(bytes, head).refusal == Refusal::framing) << bytes;
  }
}

}  // namespace
}  // namespace caisson::egress
