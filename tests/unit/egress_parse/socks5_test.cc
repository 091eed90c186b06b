#include "launcher/egress/parse/socks5.h"

#include <gtest/gtest.h>

#include "tests/unit/egress_parse/split.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

Outcome greeting(std::string_view bytes) {
  return in_every_cut(bytes, [] { return [](std::string_view part) { return read_socks_greeting(part); }; });
}
// host:port, or the word of the refusal.
std::string request(std::string_view bytes) {
  SocksRequest read;
  const auto make = [&] { return [&](std::string_view part) { return read_socks_request(part, read); }; };
  const Outcome outcome = in_every_cut(bytes, make);
  if (outcome.refused()) return std::string(word(words(outcome.refusal), static_cast<std::size_t>(outcome.refusal)));
  if (!outcome.done()) return "need_more";
  expect_exact(bytes, make);
  return host_text(*read.host) + ":" + std::to_string(read.port);
}

TEST(Socks5, Greeting) {
  EXPECT_EQ(greeting("\x05\x01\x00rest"s).size, 3U);
  EXPECT_EQ(greeting("\x05\x03\x02\x01\x00"s).size, 5U);
  EXPECT_TRUE(greeting("\x05\x01\x02"s).refusal == Refusal::method);
  EXPECT_TRUE(greeting("\x05\x00"s).refusal == Refusal::framing);
  EXPECT_TRUE(greeting("\x04\x01\x00\x50"s).refusal == Refusal::framing);
  EXPECT_TRUE(greeting("GET"s).refusal == Refusal::framing);
  EXPECT_TRUE(greeting("\x05\x02\x00"s).step == Outcome::Step::need_more);
  EXPECT_EQ(socks_greeting_answer(true), "\x05\x00"s);
  EXPECT_EQ(socks_greeting_answer(false), "\x05\xff"s);
}

TEST(Socks5, Request) {
  EXPECT_EQ(request("\x05\x01\x00\x03\x0b"s
                    "Example.ORG"
                    "\x01\xbb"s),
            "example.org:443");
  EXPECT_EQ(request("\x05\x01\x00\x01\xa9\xfe\xa9\xfe\x00\x50"s), "169.254.169.254:80");
  EXPECT_EQ(request("\x05\x01\x00\x03\x0a"s
                    "0xa9fea9fe"
                    "\x00\x50"s),
            "169.254.169.254:80");
  EXPECT_EQ(request("\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x16"s), "::1:22");
  EXPECT_EQ(request("\x05\x01\x00\x04"s + std::string(10, '\0') + "\xff\xff\x7f\x00\x00\x01\x00\x16"s), "127.0.0.1:22");
  EXPECT_EQ(request("\x05\x01\x00\x03\x05"s
                    "a.b"
                    "\x00"s),
            "need_more");
}

TEST(Socks5, OtherRequestsAreRefused) {
  EXPECT_EQ(request("\x05\x02\x00\x01\x01\x01\x01\x01\x00\x50"s), "method");   // BIND
  EXPECT_EQ(request("\x05\x03\x00\x01\x01\x01\x01\x01\x00\x50"s), "method");   // UDP ASSOCIATE
  EXPECT_EQ(request("\x05\x01\x01\x01\x01\x01\x01\x01\x00\x50"s), "framing");  // reserved byte
  EXPECT_EQ(request("\x05\x01\x00\x02\x01\x01\x01\x01\x00\x50"s), "framing");
  EXPECT_EQ(request("\x04\x01\x00\x50\x01\x01\x01\x01\x00"s), "framing");
  EXPECT_EQ(request("\x05\x01\x00\x01\x01\x01\x01\x01\x00\x00"s), "framing");  // port 0
  EXPECT_EQ(request("\x05\x01\x00\x03\x00\x00\x50"s), "framing");
  EXPECT_EQ(request("\x05\x01\x00\x03\x04"s
                    "a\0.b"
                    "\x00\x50"s),
            "framing");
  EXPECT_EQ(request("\x05\x01\x00\x03\x03"s
                    "a b"
                    "\x00\x50"s),
            "framing");
}

TEST(Socks5, Answer) { EXPECT_EQ(socks_answer(SocksReply::not_allowed), "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"s); }

}  // namespace
}  // namespace caisson::egress
