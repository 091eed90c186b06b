#include "agent/traces/span.h"

#include <gtest/gtest.h>

namespace caisson::traces {
namespace {

// The example of W3C Trace Context.
constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kSpan = "00f067aa0ba902b7";
std::string parent_text(const std::string& version, const std::string& flags, const std::string& rest = "") {
  return version + "-" + kTrace + "-" + kSpan + "-" + flags + rest;
}

TEST(Traceparent, HasTraceSpanAndWhetherItIsSampled) {
  const auto parent = parse_traceparent(parent_text("00", "01"));
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace, kTrace);
  EXPECT_EQ(parent->span, kSpan);
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(parse_traceparent(parent_text("00", "00"))->sampled);
  EXPECT_FALSE(parse_traceparent(parent_text("00", "fe"))->sampled) << "only the lowest bit says so";
  EXPECT_TRUE(parse_traceparent(parent_text("00", "ff"))->sampled);
}

TEST(Traceparent, OfALaterVersionMayBeLonger) {
  EXPECT_TRUE(parse_traceparent(parent_text("cc", "01")));
  EXPECT_TRUE(parse_traceparent(parent_text("cc", "01", "-what-comes")));
  EXPECT_FALSE(parse_traceparent(parent_text("cc", "01", ".what-comes")));
  EXPECT_FALSE(parse_traceparent(parent_text("00", "01", "-what-comes")));
}

TEST(Traceparent, WhatIsNotValidIsNotFollowed) {
  const std::string good = parent_text("00", "01");
  EXPECT_FALSE(parse_traceparent(""));
  EXPECT_FALSE(parse_traceparent(parent_text("ff", "01")));
  EXPECT_FALSE(parse_traceparent(" " + good));
  EXPECT_FALSE(parse_traceparent(good.substr(0, 54)));
  EXPECT_FALSE(parse_traceparent("00-" + std::string(32, '0') + "-" + kSpan + "-01"));
  EXPECT_FALSE(parse_traceparent("00-" + std::string(kTrace) + "-" + std::string(16, '0') + "-01"));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const char wrong : {'G', 'A', ' ', '\0', '_'}) {
      std::string bad = good;
      bad[i] = wrong;
      EXPECT_FALSE(parse_traceparent(bad)) << bad;
    }
}

TEST(Tracestate, IsAListOfKeysAndValues) {
  for (const std::string text : {"a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1 , b=2,,", "0@t-_*/=x y", ""})
    EXPECT_EQ(valid_tracestate(text), text);
  EXPECT_EQ(valid_tracestate("a=" + std::string(256, 'v')).size(), 258U);
}

TEST(Tracestate, WhatIsNotWhollyValidIsNotPassedOn) {
  for (const char* text : {"a", "=1", "a=", "A=1", "_a=1", "a b=1", "a=1=2", "a=1,b", "a=\x7f", "a=\xff", "a=1\r\nx: y"})
    EXPECT_EQ(valid_tracestate(text), "") << text;
  EXPECT_EQ(valid_tracestate("a=" + std::string(257, 'v')), "");
  std::string many;
  for (int i = 0; i < 33; ++i) many += "a=b,";
  EXPECT_EQ(valid_tracestate(many), "");
  EXPECT_EQ(valid_tracestate("a=1" + std::string(510, ',')), "") << "longer than anybody has to pass on";
}

TEST(TraceIds, AreDigitsAndUnlikeEachOther) {
  const std::string id = new_id(16);
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(id, new_id(16));
  EXPECT_EQ(new_id(8).size(), 16U);
}

}  // namespace
}  // namespace caisson::traces
