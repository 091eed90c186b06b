// The lists of a workspace's domains, joined.
#include "launcher/egress/list/lists.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

std::string joined(const std::string& domain, const std::string& list) {
  return domain + '\n' + std::to_string(list.size()) + '\n' + list;
}
std::string bytes_for(const std::string& name) { return list_bytes({.rules = {{.name = name, .why = "a test"}}}); }

TEST(Lists, EachDomainGetsItsOwn) {
  const auto lists = read_lists(joined("bash", bytes_for("a.test")) + joined("shell", bytes_for("b.test")));
  ASSERT_TRUE(lists);
  ASSERT_EQ(lists->of.size(), 2U);
  EXPECT_EQ(lists->of.at("bash")->rules.at(0).name, "a.test");
  EXPECT_EQ(lists->of.at("shell")->rules.at(0).name, "b.test");
  EXPECT_FALSE(lists->alike);
}

TEST(Lists, AlikeAreThoseOfEqualBytes) {
  const std::string list = bytes_for("a.test");
  EXPECT_TRUE(read_lists(joined("bash", list))->alike);
  EXPECT_TRUE(read_lists(joined("bash", list) + joined("shell", list))->alike);
  EXPECT_FALSE(read_lists(joined("a", list) + joined("b", list) + joined("c", bytes_for("b.test")))->alike);
}

TEST(Lists, NoneAtAllPermitNothing) {
  const auto lists = read_lists("");
  ASSERT_TRUE(lists);
  EXPECT_TRUE(lists->of.empty());
}

TEST(Lists, NoPartOfThemIsTaken) {
  const std::string whole = joined("bash", bytes_for("a.test"));
  for (std::size_t size = 1; size < whole.size(); ++size) EXPECT_FALSE(read_lists(whole.substr(0, size))) << size;
  EXPECT_FALSE(read_lists(whole + '\n'));
}

TEST(Lists, WhatPid1NeverWritesIsRefused) {
  const std::string list = bytes_for("a.test"), size = std::to_string(list.size());
  EXPECT_TRUE(read_lists("bash\n" + size + '\n' + list));
  for (const std::string& head :
       {"\n" + size, std::string(65, 'd') + '\n' + size, "bash\n+" + size, "bash\n " + size, "bash\n" + size + " ",
        std::string("bash\n-1"), std::string("bash\n99999999"), std::string("bash\n18446744073709551617")})
    EXPECT_FALSE(read_lists(head + '\n' + list)) << head;
  EXPECT_FALSE(read_lists(joined("bash", list) + joined("bash", list))) << "twice";
  std::string many;
  for (std::size_t i = 0; i < kMaxLists; ++i) many += joined("d" + std::to_string(i), list);
  EXPECT_TRUE(read_lists(many));
  EXPECT_FALSE(read_lists(many + joined("one-more", list)));
}

}  // namespace
}  // namespace caisson::egress
