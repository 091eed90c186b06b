#include "agent/http/target.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

TEST(Target, SegmentsAndQueryAreDecodedOnce) {
  const auto target = decode_target("/v1/a%20b/%252f?x=1+2&y=%26&z");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1", "a b", "%2f"}));
  EXPECT_EQ(target->query, (Pairs{{"x", "1 2"}, {"y", "&"}, {"z", ""}}));
}

TEST(Target, EncodedSlashStaysInsideItsSegment) {
  const auto target = decode_target("/v1%2fping/a%2Fb");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"v1/ping", "a/b"}));
}

TEST(Target, TrailingSlashIsAnotherPath) {
  EXPECT_EQ(decode_target("/a/")->segments, (std::vector<std::string>{"a", ""}));
  EXPECT_TRUE(decode_target("/")->segments.empty());
}

TEST(Target, TraversalAndGarbageAreRefused) {
  for (const char* target : {"//", "/a//b", "/.", "/a/..", "/a/./b", "/%2e%2e/x", "/.%2E/x", "/%00", "/a%0a", "/%", "/%4", "/%zz",
                             "/%ff", "/%c0%af", "/%ed%a0%80", "/?a=%00", "/?%zz", "a", ""})
    EXPECT_FALSE(decode_target(target)) << target;
}

TEST(Target, QueryIsBounded) {
  std::string target = "/?";
  for (int i = 0; i < 101; ++i) target += "a=b&";
  EXPECT_FALSE(decode_target(target));
}

}  // namespace
}  // namespace caisson::http
