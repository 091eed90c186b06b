// The addresses of names inside, and what the system says of names outside.
#include <gtest/gtest.h>

#include "launcher/egress/dialer/name_files.h"
#include "launcher/egress/door/name_table.h"

namespace caisson::egress {
namespace {

Address address(std::string_view text) { return std::get<Address>(*read_host(text)); }
Name numbered(std::size_t i) { return Name{"n" + std::to_string(i) + ".test"}; }

TEST(NameTable, GivesEachNameOneAddressAndBack) {
  NameTable names;
  const auto a = names.address_of({"a.test"}, 1), b = names.address_of({"b.test"}, 2);
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
  EXPECT_EQ(names.address_of({"a.test"}, 3), a);
  EXPECT_EQ(names.name_of(*a, 4), Name{"a.test"});
  EXPECT_EQ(names.name_of(*b, 4), Name{"b.test"});
  EXPECT_TRUE(is_synthetic(*a) && is_synthetic(*b));
}

TEST(NameTable, KnowsNoNameOfOtherAddresses) {
  NameTable names;
  ASSERT_TRUE(names.address_of({"a.test"}, 1));
  for (const char* text :
       {"198.18.0.0", "198.18.0.2", "198.19.255.255", "198.17.255.255", "198.20.0.0", "127.0.0.1", "2001:db8::1"})
    EXPECT_FALSE(names.name_of(address(text), 1)) << text;
}

TEST(NameTable, WhenItIsFullOnlyAnHourMakesRoom) {
  NameTable names;
  for (std::size_t i = 0; i < NameTable::kMostNames; ++i) ASSERT_TRUE(names.address_of(numbered(i), 1)) << i;
  EXPECT_FALSE(names.address_of({"one-more.test"}, NameTable::kKeepUs));
  const auto first = names.address_of(numbered(0), 2);
  const auto made = names.address_of({"one-more.test"}, NameTable::kKeepUs + 1);
  ASSERT_TRUE(first && made);
  EXPECT_NE(*made, *first) << "it was used after all others";
  EXPECT_EQ(names.name_of(*first, NameTable::kKeepUs + 1), numbered(0));
  EXPECT_EQ(names.name_of(*made, NameTable::kKeepUs + 1), Name{"one-more.test"});
  EXPECT_EQ(names.size(), NameTable::kMostNames);
}

TEST(NameTable, LongNamesFillItSooner) {
  NameTable names;
  const std::string label(60, 'x');
  std::size_t count = 0;
  while (names.address_of({std::to_string(count) + label + "." + label + "." + label + ".test"}, 1)) ++count;
  EXPECT_LT(count, NameTable::kMostBytes / 180);
  EXPECT_TRUE(names.address_of({"short.test"}, 1) || names.size() == count);
}

TEST(NameFiles, ServersAreThoseOfTheFile) {
  const auto servers = servers_in(
      "# nameserver 9.9.9.9\nsearch a.test\nnameserver 1.1.1.1\n nameserver\t2606:4700::1111 \nnameserver fe80::1%eth0\n"
      "nameserver 8.8.8.8;x\nnameserver 8.8.4.4\n");
  ASSERT_EQ(servers.size(), 3U);
  EXPECT_EQ(servers[0].text(), "1.1.1.1");
  EXPECT_EQ(servers[1].text(), "2606:4700::1111");
  EXPECT_EQ(servers[2].text(), "8.8.8.8");
  EXPECT_EQ(servers_in("options ndots:5").front().text(), "127.0.0.1");
}

TEST(NameFiles, HostsHaveAllTheirAddresses) {
  const auto hosts = hosts_in(
      "127.0.0.1 localhost\n1.2.3.4\tAPI.test api # x.test\n::5 api.test\nno-address name.test\n1.2.3.4\n5.6.7.8 bad_name! "
      "ok.test");
  EXPECT_EQ(hosts.at("api.test").size(), 2U);
  EXPECT_EQ(hosts.at("api").size(), 1U);
  EXPECT_EQ(hosts.at("ok.test").front().text(), "5.6.7.8");
  EXPECT_FALSE(hosts.contains("x.test") || hosts.contains("name.test"));
}

}  // namespace
}  // namespace caisson::egress
