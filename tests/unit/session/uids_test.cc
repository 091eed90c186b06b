#include "launcher/pid1/session/uids.h"

#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

struct UidsTest : testing::Test {
  UidsTest() { main.name = kDefaultWorkspace, main.place.outer_uid = 1000; }
  Tables tables;
  Workspace main{*tables.loop};
  Uids uids{tables.host};
};

TEST_F(UidsTest, EachIsGivenOnceAndThoseThatCameBackInTheirOrder) {
  std::set<uid_t> given;
  for (unsigned i = 0; i + 2 < Uids::kMost; ++i) given.insert(uids.take(main).value());
  EXPECT_EQ(given.size(), Uids::kMost - 2);
  EXPECT_GE(*given.begin(), Uids::kFirst);
  EXPECT_LT(*given.rbegin(), Uids::kFirst + Uids::kMost);
  const uid_t one = *given.begin(), other = *given.rbegin();
  uids.give_back(other);
  uids.give_back(one);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(given.insert(uids.take(main).value()).second) << "not while others were never given";
  EXPECT_EQ(uids.take(main), other);
  EXPECT_EQ(uids.take(main), one);
  const auto none = uids.take(main);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::limit);
}

TEST_F(UidsTest, AWorkspacesOwnIsItsSessionsAndNeverAnothers) {
  Workspace made(*tables.loop);
  made.name = "a", made.place.outer_uid = 30000;
  EXPECT_EQ(uids.take(made), 30000U);
  EXPECT_EQ(uids.take(made), 30000U);
  uids.give_back(30000);
  std::set<uid_t> given;
  for (unsigned i = 0; i < Uids::kMost; ++i) given.insert(uids.take(main).value());
  EXPECT_FALSE(given.contains(30000));
  EXPECT_FALSE(uids.take(main)) << "what was given back belongs to a workspace";
}

TEST_F(UidsTest, WithUserNamespacesAllHaveTheWorkspaces) {
  tables.host.features = confine::tier_features(Tier::t3);
  EXPECT_EQ(uids.take(main), 1000U);
  EXPECT_EQ(uids.take(main), 1000U);
}

}  // namespace
}  // namespace caisson::session
