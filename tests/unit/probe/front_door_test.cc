// What statements say of the front door.
#include "launcher/probe/front_door.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

json::Value peers(std::string_view list) { return front_door("key", list)["trusted_peers"]; }
json::Value ranges(std::string_view list) { return peers(list)["ranges"]; }

TEST(FrontDoor, IsShutWithoutSettings) {
  EXPECT_EQ(front_door("", ""), json::parse(R"({"key_required": true, "trusted_peers": {"count": 0, "ranges": []}})").value());
}

TEST(FrontDoor, SaysThatNobodyNeedsAKey) { EXPECT_EQ(front_door("none", "")["key_required"], false); }

TEST(FrontDoor, SpellsEachRangeInOneWayAndNamesItOnce) {
  EXPECT_EQ(ranges(" 192.0.2.1,192.0.2.1/32 ,10.0.0.0/8, 2001:DB8:0::/32,::ffff:192.0.2.1, ::ffff:10.0.0.0/104"),
            json::Value({"10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"}));
}

TEST(FrontDoor, LeavesNothingOutThatIsNoRange) {
  EXPECT_EQ(ranges("router.example,10.0.0.0/33,10.0.0.0/x,10.0.0.0/"),
            json::Value({"'10.0.0.0/'", "'10.0.0.0/33'", "'10.0.0.0/x'", "'router.example'"}));
}

TEST(FrontDoor, EscapesAndCutsWhatIsNoRange) {
  const std::string hostile = "\x1b[31m\n\xff" + std::string(100'000, 'x');
  const json::Value named = ranges(hostile);
  ASSERT_EQ(named.size(), 1U);
  const auto text = named[0].get<std::string>();
  EXPECT_LT(text.size(), 200U);
  EXPECT_EQ(text.find_first_of("\x1b\n\xff"), std::string::npos);
}

TEST(FrontDoor, CountsMoreRangesThanItNames) {
  std::string list;
  for (int i = 0; i < 256; ++i) list += "192.0.2." + std::to_string(i) + ",";
  EXPECT_EQ(peers(list)["count"], 256);
  EXPECT_EQ(ranges(list).size(), 64U);
}

}  // namespace
}  // namespace caisson
