#include "launcher/common/telling/shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace caisson {
namespace {

std::vector<Share> all_of(Shares& shares, std::uint64_t whose) {
  std::vector<Share> out;
  while (Share one = shares.take(whose)) out.push_back(std::move(one));
  return out;
}

TEST(Shares, WhoeverTakesAllItGetsLeavesSomeForOthers) {
  Shares shares(4096);
  std::vector<Share> first = all_of(shares, 1);
  EXPECT_EQ(first.size(), 1366U);
  const std::vector<Share> second = all_of(shares, 2), third = all_of(shares, 3);
  EXPECT_TRUE(second.size() == 910 && third.size() == 607) << second.size() << " " << third.size();
  EXPECT_FALSE(shares.take(1));
  first.resize(600);
  EXPECT_TRUE(shares.take(1)) << "what was given back can be taken again";
}

TEST(Shares, EveryOneIsTakenOnceAndNoMore) {
  Shares shares(16);
  std::vector<Share> taken;
  for (std::uint64_t whose = 0; whose < 20; ++whose)
    if (Share one = shares.take(whose)) taken.push_back(std::move(one));
  EXPECT_EQ(taken.size(), 16U);
  const Share copy = taken.back();
  taken.pop_back();
  EXPECT_FALSE(shares.take(30));
  taken.pop_back();
  EXPECT_TRUE(shares.take(30));
}

TEST(Shares, OneMayOutliveThem) {
  Share kept;
  {
    Shares shares(1);
    kept = shares.take(1);
  }
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace caisson
