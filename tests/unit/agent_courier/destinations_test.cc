#include "agent/courier/destinations.h"

#include <gtest/gtest.h>

namespace caisson::courier {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

TEST(TracesUrl, TheGeneralAddressGetsThePathOfTraces) {
  EXPECT_EQ((*traces_url("", "http://c:4318"))->target, "/v1/traces");
  EXPECT_EQ((*traces_url("", "http://c:4318/"))->target, "/v1/traces");
  EXPECT_EQ((*traces_url("", "http://c:4318/otlp/"))->target, "/otlp/v1/traces");
}

TEST(TracesUrl, ThatOfTracesIsTakenAsItIsAndGoesFirst) {
  EXPECT_EQ((*traces_url("http://c/x?y=1", "http://d"))->target, "/x?y=1");
  EXPECT_EQ((*traces_url("http://c", "http://d"))->target, "/");
}

TEST(TracesUrl, WithoutAnyThereIsNone) { EXPECT_FALSE(traces_url("", "")->has_value()); }

TEST(TracesUrl, AnErrorNamesTheVariable) {
  EXPECT_TRUE(traces_url("", "c:4318").error().text().starts_with("OTEL_EXPORTER_OTLP_ENDPOINT: must be "));
  EXPECT_FALSE(traces_url("", "http://c?x=1"));
}

TEST(OtlpHeaders, AreNamesAndPercentEncodedValues) {
  EXPECT_EQ(*parse_headers("a=b, x-key = Basic%20abc%3D ,"), (Headers{{"a", "b"}, {"x-key", "Basic abc="}}));
  EXPECT_EQ(*parse_headers("a=b=c"), (Headers{{"a", "b=c"}}));
  EXPECT_TRUE(parse_headers("")->empty());
}

TEST(OtlpHeaders, WhatCouldBecomeASecondHeaderIsRefused) {
  for (const char* text : {"a", "=b", "a b=c", "a=%0d%0ax: y", "a=%0", "a=%zz", "a=%", "a:b=c", "a=\x7f"})
    EXPECT_FALSE(parse_headers(text)) << text;
  EXPECT_FALSE(parse_headers(std::string(16 * 1024 + 1, 'a')));
  std::string many;
  for (int i = 0; i < 33; ++i) many += "a=b,";
  EXPECT_FALSE(parse_headers(many));
}

TEST(OtlpHeaders, AnErrorDoesNotRepeatThem) { EXPECT_FALSE(parse_headers("k=hunter2%0a").error().text().contains("hunter2")); }

}  // namespace
}  // namespace caisson::courier
