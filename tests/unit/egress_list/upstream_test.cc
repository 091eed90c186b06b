#include "launcher/egress/list/upstream.h"

#include <gtest/gtest.h>

#include <utility>

#include "launcher/common/egress/protocol.h"

namespace caisson::egress {
namespace {

using namespace std::string_literals;

std::string read_as(std::string_view text) {
  const auto read = read_server(text);
  if (!read) return "no: " + read.error().what;
  return server_text(*read) + " " + read->user + " " + read->password;
}
bool matched(std::string_view pattern, std::string_view host) {
  const auto read = read_pattern(pattern);
  return read && matches(*read, *read_host(host));
}

TEST(Upstream, Servers) {
  EXPECT_EQ(read_as("proxy.test:3128"), "proxy.test:3128  ");
  EXPECT_EQ(read_as("http://Proxy.TEST.:3128/"), "proxy.test:3128  ");
  EXPECT_EQ(read_as("socks5h://10.0.0.1:1080"), "socks5://10.0.0.1:1080  ");
  EXPECT_EQ(read_as("https://user:pass@proxy.test:443"), "https://proxy.test:443 user pass");
  EXPECT_EQ(read_as("[2a00::1]:3128"), "[2a00::1]:3128  ");
  EXPECT_EQ(read_as("user:pass@proxy.test:3128"), "proxy.test:3128 user pass");
  EXPECT_EQ(read_as("user:p@ss:w%41rd@proxy.test:3128"), "proxy.test:3128 user p@ss:w%41rd");  // as it is
  EXPECT_EQ(read_as("http://us%40er:p%3a%2541@proxy.test:3128"), "proxy.test:3128 us@er p:%41");
  EXPECT_EQ(read_as("user@proxy.test:3128"), "proxy.test:3128 user ");
}

TEST(Upstream, WhatIsNoServerIsRefusedAndItsPasswordNotRepeated) {
  for (const std::string_view text :
       {"", "proxy.test", ":3128", "proxy.test:", "proxy.test:0", "proxy.test:65536", "proxy.test:31x", "ftp://proxy.test:21",
        "://proxy.test:80", "proxy .test:80", "a:b\r\nX: y@proxy.test:80", ":secret@proxy.test:80", "http://a:%zz@proxy.test:80",
        "http://a:%0d@proxy.test:80", "user:secret@", "user:secret@proxy.test/path:80"})
    EXPECT_TRUE(read_as(text).starts_with("no: ")) << text;
  EXPECT_FALSE(read_as("user:secret@nowhere").contains("secret"));
  EXPECT_FALSE(read_as("http://user:secret@").contains("secret"));
  EXPECT_TRUE(read_as(std::string(256, 'a') + ":b@proxy.test:80").starts_with("no: "));
  EXPECT_TRUE(read_as(std::string(255, 'a') + ":" + std::string(255, 'b') + "@proxy.test:80").starts_with("proxy.test:80 aaa"));
}

TEST(Upstream, BytesAreReadAsTheyWereWritten) {
  Upstream out = *read_server("socks5://us%20er:pa%20ss%C3%A9@[2a00::1]:1080");
  out.include = {*read_pattern("*.in.test"), *read_pattern("10.0.0.0/8")};
  out.exclude = {*read_pattern(".out.test")};
  out.resolve_here = out.of_policy = true;
  const std::string bytes = upstream_bytes(out);
  const auto again = read_upstream(bytes);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(upstream_bytes(*again), bytes);
  EXPECT_EQ(again->password, "pa ss\xc3\xa9");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    if (const auto cut = read_upstream(bytes.substr(0, size)); cut) EXPECT_TRUE(bytes[size - 1] == '\n') << size;
  EXPECT_FALSE(read_upstream(bytes + "more\n"));
  EXPECT_FALSE(read_upstream("kind ftp" + bytes.substr(bytes.find('\n'))));
}

std::vector<Pattern> long_patterns(std::size_t count) {
  std::vector<Pattern> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(*read_pattern(std::string(63, static_cast<char>('a' + i % 26)) + "." + std::string(63, 'x') + "." +
                                std::string(63, 'y') + "." + std::string(60, 'z')));
  return out;
}

// The longest is one message to the dialer; what would be none is no upstream wherever it is read.
TEST(Upstream, ItsPatternsAreBoundedByTheirBytes) {
  constexpr std::size_t kEach = sizeof "exclude \n" - 1 + 252, kMost = kMaxPatternBytes / kEach;
  const std::string longest(kMaxCredential, 'c'), host = std::string(63, 'p') + "." + long_patterns(1)[0].text.substr(64);
  Upstream out = *read_server(longest + ":" + longest + "@" + host + ":31280");
  out.include = out.exclude = long_patterns(kMost);
  EXPECT_EQ(patterns_size(out.include), kMost * kEach);
  const std::string domain(64, 'd');
  EXPECT_LE(domain.size() + 1 + upstream_bytes(out).size(), kMaxText);
  EXPECT_TRUE(read_upstream(upstream_bytes(out)));
  for (auto* patterns : {&out.include, &out.exclude}) {
    const auto kept = std::exchange(*patterns, long_patterns(kMost + 1));
    EXPECT_FALSE(read_upstream(upstream_bytes(out)));
    *patterns = kept;
  }
}

TEST(Upstream, WhatGoesThroughIt) {
  Upstream out = *read_server("proxy.test:3128");
  const Host a = *read_host("a.in.test"), b = *read_host("b.in.test"), other = *read_host("other.test");
  EXPECT_TRUE(goes_through(out, a) && goes_through(out, other));
  out.exclude = {*read_pattern("b.in.test")};
  EXPECT_TRUE(goes_through(out, a) && !goes_through(out, b) && goes_through(out, other));
  out.include = {*read_pattern(".in.test")};
  EXPECT_TRUE(goes_through(out, a) && !goes_through(out, b) && !goes_through(out, other));
}

TEST(Upstream, Patterns) {
  EXPECT_TRUE(matched("example.org", "EXAMPLE.org."));
  EXPECT_FALSE(matched("example.org", "a.example.org"));
  EXPECT_TRUE(matched(".example.org", "example.org") && matched(".example.org", "a.b.example.org"));
  EXPECT_FALSE(matched(".example.org", "anexample.org"));
  EXPECT_TRUE(matched("*.example.org", "a.example.org"));
  EXPECT_FALSE(matched("*.example.org", "example.org"));
  EXPECT_TRUE(matched("10.0.0.0/8", "10.255.0.1") && matched("10.0.0.1", "10.0.0.1") && matched("2a00::/16", "2a00::1"));
  EXPECT_FALSE(matched("10.0.0.0/8", "11.0.0.1"));
  for (const std::string_view text : {"", ".", "*.", "*", "a.*.org", "*.10.0.0.1", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/",
                                      "x/8", "a b", "http://a.org", "a.org:80", "10.0.0.0/8x", "10.0.0.0/4294967304"})
    EXPECT_FALSE(read_pattern(text)) << text;
  EXPECT_EQ(read_pattern("*.Example.ORG")->text, "*.example.org");
}

TEST(Upstream, WhereAProxyMayBe) {
  const List list{.rules = {{.name = "proxy.test", .ports = {{3128, 3128}}, .private_ = true, .why = "a test"}}};
  Upstream out = *read_server("proxy.test:3128");
  const auto permitted = [&](std::string_view address) {
    return proxy_permitted(list, out, std::get<Address>(*read_host(address)));
  };
  EXPECT_TRUE(permitted("93.184.216.34") && permitted("10.0.0.1"));
  EXPECT_FALSE(permitted("127.0.0.1") || permitted("169.254.169.254") || permitted("224.0.0.1"));
  out.port = 3129;
  EXPECT_FALSE(permitted("93.184.216.34"));
  out.of_policy = true;
  EXPECT_TRUE(permitted("93.184.216.34") && permitted("10.0.0.1"));
  EXPECT_FALSE(permitted("127.0.0.1") || permitted("169.254.169.254") || permitted("169.254.1.1") || permitted("224.0.0.1"));
  out.host = *read_host("127.0.0.1");
  EXPECT_TRUE(permitted("127.0.0.1"));
}

}  // namespace
}  // namespace caisson::egress
