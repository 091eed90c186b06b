#include "agent/courier/url.h"

#include <gtest/gtest.h>

namespace caisson::courier {
namespace {

TEST(Url, HasHostPortAndTarget) {
  const auto url = parse_url("https://issuer.test:8443/a/keys?x=1");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "issuer.test");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->authority, "issuer.test:8443");
  EXPECT_EQ(url->target, "/a/keys?x=1");
}

TEST(Url, HasThePortOfItsScheme) {
  EXPECT_EQ(parse_url("http://a")->port, 80);
  EXPECT_EQ(parse_url("https://a")->port, 443);
  EXPECT_EQ(parse_url("http://a")->target, "/");
  EXPECT_EQ(parse_url("http://a?x")->target, "/?x");
}

TEST(Url, AnAddressOfIpv6LosesItsBrackets) {
  const auto url = parse_url("http://[::1]:9/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 9);
}

TEST(Url, WhatCouldBeReadInTwoWaysIsRefused) {
  for (const char* text : {"",
                           "a",
                           "//a/",
                           "ftp://a/",
                           "HTTP://a/",
                           "http://",
                           "http:///a",
                           "http://:1/",
                           "http://a:/",
                           "http://a:0/",
                           "http://a:65536/",
                           "http://a:1x/",
                           "http://a:1:2/",
                           "http://u@a/",
                           "http://u:p@a/",
                           "http://a/#f",
                           "http://a#f",
                           "http://a b/",
                           "http://a/\r\nX: y",
                           "http://a/\x80",
                           "http://[::1/",
                           "http://[::1]x/",
                           "http://[g]/",
                           "http://a\\b/",
                           "http://a%20b/"})
    EXPECT_FALSE(parse_url(text)) << text;
  EXPECT_FALSE(parse_url("http://a/" + std::string(2048, 'x')));
}

TEST(Url, AnErrorDoesNotRepeatTheAddress) {
  EXPECT_FALSE(parse_url("https://user:hunter2@a/").error().text().contains("hunter2"));
}

}  // namespace
}  // namespace caisson::courier
