// Hosts: one canonical form for each, and no other spelling that passes as another host.
#include "launcher/egress/list/host.h"

#include <gtest/gtest.h>

#include <map>

namespace caisson::egress {
namespace {

using namespace std::string_literals;

std::string canonical(std::string_view text) {
  const auto host = read_host(text);
  return host ? host_text(*host) : "refused";
}
bool is_name(std::string_view text) {
  const auto host = read_host(text);
  return host && std::holds_alternative<Name>(*host);
}
AddressClass class_of_text(std::string_view text) {
  const auto host = read_host(text);
  if (!host || !std::holds_alternative<Address>(*host)) {
    ADD_FAILURE() << text << " is no address";
    return AddressClass::global;
  }
  return class_of(std::get<Address>(*host));
}
std::string class_word(std::string_view text) {
  const AddressClass kind = class_of_text(text);
  return std::string(word(words(kind), static_cast<std::size_t>(kind)));
}

TEST(Host, MetadataHasOneFormInAllSpellings) {
  for (const char* spelling : {"169.254.169.254", "169.254.169.254.", "0xa9fea9fe", "0xA9FEA9FE", "2852039166", "025177524776",
                               "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "169.16689662",
                               "0xa9.254.0251.0xfe", "0000000000251.254.169.254", "0xA9.0xFEA9FE", "[::ffff:169.254.169.254]",
                               "::ffff:a9fe:a9fe", "[0:0:0:0:0:ffff:169.254.169.254]", "::FFFF:A9FE:A9FE", "169.254.0xa9fe"})
    EXPECT_EQ(canonical(spelling), "169.254.169.254") << spelling;
  for (const char* carrying : {"::169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
                               "2001:0:1:2:3:4:5601:5601", "2a00::5efe:169.254.169.254", "fd00::200:5efe:a9fe:a9fe",
                               "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:1a9:fe:a9fe::", "64:ff9b:1:2:a9:fea9:fe00:0"})
    EXPECT_EQ(class_word(carrying), "metadata") << carrying;
}

TEST(Host, NumbersThatNoProgramTakesAreRefused) {
  for (const char* text :
       {"256.1.1.1", "1.2.3.4.5", "4294967296", "1.2.65536", "1.16777216", "0x", "1.0x", "08.1.1.1", "1..2", "127.0.0.1..",
        "1.2.3.400", "99999999999999999999", "0x100000000", "foo.1", "foo.0x7f", "a.b.09", "1e3.5"})
    EXPECT_EQ(canonical(text), "refused") << text;
}

TEST(Host, NamesAreLowerCaseWithoutATrailingDot) {
  EXPECT_EQ(canonical("API.Example.ORG."), "api.example.org");
  EXPECT_EQ(canonical("xn--Bcher-kva.example"), "xn--bcher-kva.example");
  EXPECT_EQ(canonical("_dmarc.example.org"), "_dmarc.example.org");
  EXPECT_EQ(canonical("localhost"), "localhost");
  EXPECT_EQ(canonical("1.2.3.4a"), "1.2.3.4a");
  EXPECT_EQ(canonical("0x1g.org"), "0x1g.org");
  EXPECT_EQ(canonical(std::string(63, 'a') + ".org"), std::string(63, 'a') + ".org");
  EXPECT_TRUE(is_name("1password.com"));
}

TEST(Host, WhatIsNoHostIsRefused) {
  for (const std::string& text : {""s,
                                  "."s,
                                  ".."s,
                                  "a..b"s,
                                  ".a"s,
                                  "a.b.."s,
                                  "a b"s,
                                  " a"s,
                                  "a\t"s,
                                  "a\0.b"s,
                                  "evil.org\0.example.org"s,
                                  "\x01"s,
                                  "a\x7f"s,
                                  "a%2eb"s,
                                  "b\xc3\xbc"
                                  "cher.example"s,
                                  "a\xe3\x80\x82org"s,
                                  "fe80::1%eth0"s,
                                  "[fe80::1%25eth0]"s,
                                  "[::1"s,
                                  "::1]"s,
                                  "[1.2.3.4]"s,
                                  "[]"s,
                                  ":"s,
                                  "::1."s,
                                  "a:80"s,
                                  "a/b"s,
                                  "a@b"s,
                                  "*.org"s,
                                  "a*"s,
                                  "a,b"s,
                                  "-a.org"s,
                                  "a.-b"s,
                                  "_"s,
                                  "-"s,
                                  "a.--"s,
                                  std::string(64, 'a') + ".org",
                                  std::string(256, 'a')})
    EXPECT_EQ(canonical(text), "refused") << text;
  std::string name = "a";  // 1 + 126 * 2 = 253, and one more
  for (int i = 0; i < 126; ++i) name += ".a";
  EXPECT_EQ(canonical(name), name);
  EXPECT_EQ(canonical(name + "b"), "refused");
}

TEST(Host, Ipv6IsWrittenAsRfc5952Says) {
  EXPECT_EQ(canonical("2001:0DB8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");
  EXPECT_EQ(canonical("2001:db8:0:1:1:1:1:1"), "2001:db8:0:1:1:1:1:1");
  EXPECT_EQ(canonical("[::]"), "::");
  EXPECT_EQ(canonical("0:0:0:0:0:0:0:1"), "::1");
  EXPECT_EQ(canonical("1:0:0:0:0:0:0:0"), "1::");
  EXPECT_EQ(canonical("::127.0.0.1"), "::7f00:1");
  EXPECT_EQ(canonical("1:0:0:2:0:0:0:3"), "1:0:0:2::3");
}

TEST(Host, CanonicalTextIsReadAsItself) {
  for (const char* text : {"a.b", "1.2.3.4", "::1", "64:ff9b::a9fe:a9fe", "fe80::1", "2001:db8::1:0:0:1"}) {
    EXPECT_EQ(canonical(text), text);
    EXPECT_EQ(canonical(canonical(text)), text);
  }
}

struct Border {
  const char* before;  // the last address that is not of the block
  const char *first, *last;
  const char* after;
  const char *outside_before, *kind, *outside_after;  // classes
};

TEST(AddressClass, HoldsAtTheBordersOfEachBlock) {
  for (const Border& b : {
           Border{"0.0.0.0", "0.0.0.1", "0.255.255.255", "1.0.0.0", "reserved", "reserved", "global"},
           Border{"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", "global", "private", "global"},
           Border{"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", "global", "shared", "global"},
           Border{"100.100.100.199", "100.100.100.200", "100.100.100.200", "100.100.100.201", "shared", "metadata", "shared"},
           Border{"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", "global", "loopback", "global"},
           Border{"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17", "global", "metadata", "global"},
           Border{"169.253.255.255", "169.254.0.0", "169.254.169.253", "169.254.169.254", "global", "link_local", "metadata"},
           Border{"169.254.170.1", "169.254.170.2", "169.254.170.2", "169.254.170.3", "link_local", "metadata", "link_local"},
           Border{"169.254.170.2", "169.254.170.24", "169.254.255.255", "169.255.0.0", "metadata", "link_local", "global"},
           Border{"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", "global", "private", "global"},
           Border{"191.255.255.255", "192.0.0.0", "192.0.0.191", "192.0.0.192", "global", "reserved", "metadata"},
           Border{"192.0.0.192", "192.0.0.193", "192.0.0.255", "192.0.1.0", "metadata", "reserved", "global"},
           Border{"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", "global", "reserved", "global"},
           Border{"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", "global", "reserved", "global"},
           Border{"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", "global", "private", "global"},
           Border{"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", "global", "reserved", "global"},
           Border{"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", "global", "reserved", "global"},
           Border{"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", "global", "reserved", "global"},
           Border{"223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", "global", "multicast", "reserved"},
           Border{"239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255", "multicast", "reserved", "multicast"},
           Border{"::", "::1", "::1", "::2", "reserved", "loopback", "reserved"},
           Border{"1fff:ffff::", "2000::", "2000:ffff::", "2001:2::", "reserved", "global", "reserved"},
           Border{"2000:ffff::", "2001:1::", "2001:1ff:ffff::", "2001:200::", "global", "reserved", "global"},
           Border{"2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::", "2001:db9::", "global", "reserved", "global"},
           Border{"3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::", "global", "reserved", "global"},
           Border{"3fff:1000::", "4000::", "fbff:ffff::", "fc00::", "global", "reserved", "private"},
           Border{"fbff:ffff::", "fc00::", "fdff:ffff::", "fe00::", "reserved", "private", "reserved"},
           Border{"fd00:ec2::253", "fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::255", "private", "metadata", "private"},
           Border{"fd00:ec2::22", "fd00:ec2::23", "fd00:ec2::23", "fd00:ec2::24", "private", "metadata", "private"},
           Border{"fd20:ce::253", "fd20:ce::254", "fd20:ce::254", "fd20:ce::255", "private", "metadata", "private"},
           Border{"fe7f:ffff::", "fe80::", "febf:ffff::", "fec0::", "reserved", "link_local", "reserved"},
           Border{"feff:ffff::", "ff00::", "ffff:ffff::", "::", "reserved", "multicast", "reserved"},
           Border{"64:ff9a:ffff::", "64:ff9b::8.8.8.8", "64:ff9b::ffff:fffe", "64:ff9b::1:0:0", "reserved", "", "reserved"},
       }) {
    EXPECT_EQ(class_word(b.before), b.outside_before) << b.before;
    EXPECT_EQ(class_word(b.after), b.outside_after) << b.after;
    if (*b.kind == '\0') continue;
    for (const char* inside : {b.first, b.last}) EXPECT_EQ(class_word(inside), b.kind) << inside;
  }
}

TEST(AddressClass, FormsThatCarryAnAddressAreOfItsClass) {
  for (const auto& [text, kind] : std::map<std::string, std::string>{
           {"::ffff:10.0.0.1", "private"},
           {"::ffff:8.8.8.8", "global"},  // another spelling of 8.8.8.8, not a translation
           {"64:ff9b::10.0.0.1", "private"},
           {"64:ff9b::100.64.0.1", "shared"},
           {"64:ff9b::127.0.0.1", "loopback"},
           {"64:ff9b::8.8.8.8", "translated"},
           {"64:ff9b:1:0:0:0:808:808", "reserved"},   // 0.0.0.0 in another layout
           {"64:ff9b:1:a0a:a:a0a:a00:1", "private"},  // private in all four layouts
           {"64:ff9b:1:808:8:808:808:808", "translated"},
           {"64:ff9b:1:808:8:808:a00:1", "translated"},
           {"64:ff9b:2::1", "reserved"},
           {"2002:a00:1::1", "private"},
           {"2002:7f00:1::", "loopback"},
           {"2002:808:808::1", "translated"},
           {"2001:0:a00:1:0:0:f5ff:fffe", "private"},  // Teredo: the client 10.0.0.1, flipped
           {"2001:0:a00:1:0:0:f7f7:f7f7", "translated"},
           {"::10.0.0.1", "private"},
           {"::8.8.8.8", "translated"},
           {"2a00::5efe:10.0.0.1", "private"},
           {"2a00::200:5efe:8.8.8.8", "translated"},
           {"2001:db8::5efe:10.0.0.1", "reserved"},
           {"fe80::5efe:8.8.8.8", "link_local"},
           {"ff02::5efe:8.8.8.8", "multicast"},
       })
    EXPECT_EQ(class_word(text), kind) << text;
}

TEST(AddressClass, AMappedAddressThatNobodyReadIsItsIpv4One) {
  Address mapped{.v6 = true};
  mapped.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 169, 254, 169, 254};
  EXPECT_EQ(class_of(mapped), AddressClass::metadata);
}

}  // namespace
}  // namespace caisson::egress
