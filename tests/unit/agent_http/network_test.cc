#include "agent/http/network.h"

#include <gtest/gtest.h>

namespace caisson::http {
namespace {

bool holds(std::string_view list, std::string_view address) {
  const auto networks = Networks::parse(list);
  return networks && networks->contains(address);
}

TEST(Network, AnAddressIsItself) {
  EXPECT_TRUE(holds("192.0.2.1", "192.0.2.1"));
  EXPECT_FALSE(holds("192.0.2.1", "192.0.2.2"));
  EXPECT_TRUE(holds("2001:db8::1", "2001:0db8:0:0::1"));
}

TEST(Network, ARangeHoldsItsFirstAndLastAddress) {
  EXPECT_TRUE(holds("10.0.0.0/9", "10.0.0.0"));
  EXPECT_TRUE(holds("10.0.0.0/9", "10.127.255.255"));
  EXPECT_FALSE(holds("10.0.0.0/9", "10.128.0.0"));
  EXPECT_TRUE(holds("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(holds("2001:db8::/33", "2001:db8:8000::"));
}

TEST(Network, TheEmptyPrefixOfAFamilyHoldsAllOfIt) {
  EXPECT_TRUE(holds("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(holds("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(holds("::/0", "203.0.113.9"));
}

TEST(Network, ARangeOfEveryAddressIsKnown) {
  for (const char* all : {"0.0.0.0/0", "::/0", "10.0.0.0/8, 0.0.0.0/0"})
    EXPECT_TRUE(Networks::parse(all)->has_everything()) << all;
  for (const char* some : {"", "0.0.0.0/1", "::/1", "10.0.0.0/8"}) EXPECT_FALSE(Networks::parse(some)->has_everything()) << some;
}

TEST(Network, AMappedAddressIsTheIPv4Address) {
  EXPECT_TRUE(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(holds("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_FALSE(holds("10.0.0.0/8", "::10.1.2.3"));
}

TEST(Network, AListMayHaveSpacesAndEmptyParts) {
  EXPECT_TRUE(holds(" 192.0.2.1 ,, 10.0.0.0/8,", "10.1.1.1"));
  EXPECT_TRUE(Networks::parse("")->empty());
}

TEST(Network, MalformedListsAreErrors) {
  for (const char* list :
       {"x", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0", "010.0.0.1", "2001:db8::1/32",
        "::/129", "[::1]", "1.2.3.4:80", "fe80::1%eth0", "10.0.0.0/8/8", "10.0.0.0 /8", "0x0a000001"})
    EXPECT_FALSE(Networks::parse(list)) << list;
}

TEST(Network, TooManyRangesAreAnError) {
  std::string list;
  for (int i = 0; i < 257; ++i) list += "192.0.2.1,";
  EXPECT_FALSE(Networks::parse(list));
}

TEST(Network, WhatIsNoAddressIsInNoRange) {
  for (const char* address : {"", "unknown", "10.0.0.1 ", "10.0.0.1:80", "::ffff:999.0.0.1"})
    EXPECT_FALSE(holds("::/0", address)) << address;
  EXPECT_FALSE(holds("::/0", std::string_view("10.0.0.1\0", 9)));
}

TEST(Network, AnAddressHasOneSpelling) {
  EXPECT_EQ(address_text(*address_bytes("::FFFF:10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(address_text(*address_bytes("2001:0DB8:0::1")), "2001:db8::1");
}

}  // namespace
}  // namespace caisson::http
