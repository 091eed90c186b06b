#include "agent/http/forwarded.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

Client behind(Pairs headers, std::string_view trusted = "10.0.0.0/8", std::string_view peer = "10.0.0.1") {
  headers.insert(headers.begin(), {"host", "inner:8080"});
  Client client = client_of(headers, peer, false, *Networks::parse(trusted));
  client.proxy_id = {};  // refers to headers
  return client;
}

TEST(Forwarded, APeerThatIsNotListedIsTheClientWhateverItSends) {
  const Pairs all{{"x-forwarded-for", "203.0.113.9"},
                  {"x-forwarded-proto", "https"},
                  {"x-forwarded-host", "evil.example"},
                  {"forwarded", "for=203.0.113.9;proto=https"}};
  for (const std::string_view trusted : {"", "192.168.0.0/16"}) {
    const Client client = behind(all, trusted);
    EXPECT_EQ(client.remote, "10.0.0.1");
    EXPECT_EQ(client.scheme, "http");
    EXPECT_EQ(client.host, "inner:8080");
  }
}

TEST(Forwarded, TheClientIsTheRightmostAddressThatIsNoProxy) {
  EXPECT_EQ(behind({{"x-forwarded-for", "203.0.113.9"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"x-forwarded-for", "1.1.1.1, 203.0.113.9, 10.2.0.1"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"x-forwarded-for", "1.1.1.1"}, {"x-forwarded-for", "203.0.113.9,10.2.0.1"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"x-forwarded-for", "10.3.0.1, 10.2.0.1"}}).remote, "10.3.0.1");
}

TEST(Forwarded, ClaimsToTheLeftOfTheClientAreItsOwn) {
  EXPECT_EQ(behind({{"x-forwarded-for", "10.9.9.9, 203.0.113.9"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"x-forwarded-for", "127.0.0.1, x, 203.0.113.9, 10.2.0.1"}}).remote, "203.0.113.9");
}

TEST(Forwarded, WhatIsNoAddressEndsTheSearch) {
  for (const char* text : {"", "unknown", "_hidden", "203.0.113.9 x", "1.1.1.1,", "1.1.1.1, \"", "a:b:c", "[::1"})
    EXPECT_EQ(behind({{"x-forwarded-for", text}}).remote, "10.0.0.1") << text;
  EXPECT_EQ(behind({{"x-forwarded-for", "1.1.1.1, unknown, 10.2.0.1"}}).remote, "10.2.0.1");
}

TEST(Forwarded, AddressesMayHavePortsAndBrackets) {
  EXPECT_EQ(behind({{"x-forwarded-for", "203.0.113.9:4711"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"x-forwarded-for", "[2001:db8::9]:4711"}}).remote, "2001:db8::9");
  EXPECT_EQ(behind({{"x-forwarded-for", "2001:DB8::9"}}).remote, "2001:db8::9");
  EXPECT_EQ(behind({{"x-forwarded-for", "::ffff:203.0.113.9"}}).remote, "203.0.113.9");
}

TEST(Forwarded, SchemeAndHostAreTheProxys) {
  const Client client =
      behind({{"x-forwarded-for", "203.0.113.9"}, {"x-forwarded-proto", "HTTPS"}, {"x-forwarded-host", "public.example:8443"}});
  EXPECT_EQ(client.scheme, "https");
  EXPECT_EQ(client.host, "public.example:8443");
}

TEST(Forwarded, OfSeveralSchemesThatBesideTheClientCounts) {
  EXPECT_EQ(behind({{"x-forwarded-for", "203.0.113.9, 10.2.0.1"}, {"x-forwarded-proto", "https, http"}}).scheme, "https");
  EXPECT_EQ(behind({{"x-forwarded-for", "9.9.9.9, 203.0.113.9, 10.2.0.1"}, {"x-forwarded-proto", "https, http"}}).scheme, "http");
}

TEST(Forwarded, OtherSchemesAndMalformedHostsAreIgnored) {
  const Client client = behind({{"x-forwarded-proto", "javascript"}, {"x-forwarded-host", "a/b"}});
  EXPECT_EQ(client.scheme, "http");
  EXPECT_EQ(client.host, "inner:8080");
}

TEST(Forwarded, TheStandardHeaderSaysTheSame) {
  const Client client = behind(
      {{"forwarded", "for=1.1.1.1, For=\"[2001:db8::9]:47\"; Proto=https;host=\"public.example\", for=10.2.0.1;proto=http"}});
  EXPECT_EQ(client.remote, "2001:db8::9");
  EXPECT_EQ(client.scheme, "https");
  EXPECT_EQ(client.host, "public.example");
}

TEST(Forwarded, TheStandardHeaderDoesNotCountBesideTheOlderOnes) {
  EXPECT_EQ(behind({{"forwarded", "for=1.1.1.1"}, {"x-forwarded-for", "203.0.113.9"}}).remote, "203.0.113.9");
  EXPECT_EQ(behind({{"forwarded", "for=1.1.1.1;proto=https"}, {"x-forwarded-proto", "http"}}).remote, "10.0.0.1");
}

TEST(Forwarded, ThousandsOfHopsAreBounded) {
  std::string hops;
  for (int i = 0; i < 3000; ++i) hops += "10.1.1.1,";
  EXPECT_EQ(behind({{"x-forwarded-for", "1.1.1.1," + hops + "10.1.1.2"}}).remote, "10.1.1.1");
}

TEST(Forwarded, AProxysRequestIdIsTakenIfItIsPlainAndShort) {
  const auto id_of = [](std::string_view peer, std::string value) {
    const Pairs headers{{"x-request-id", std::move(value)}};
    return std::string(client_of(headers, peer, false, *Networks::parse("10.0.0.0/8")).proxy_id);
  };
  EXPECT_EQ(id_of("10.0.0.1", "a-B_9.c"), "a-B_9.c");
  EXPECT_EQ(id_of("192.0.2.1", "a-B_9.c"), "");
  for (const char* bad : {"", "a b", "a,b", "\"a\"", "\xc3\xa9", "a\x1b"}) EXPECT_EQ(id_of("10.0.0.1", bad), "") << bad;
  EXPECT_EQ(id_of("10.0.0.1", std::string(65, 'a')), "");
}

}  // namespace
}  // namespace caisson::http
