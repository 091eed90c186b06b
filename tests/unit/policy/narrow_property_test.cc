// That a narrowed session reaches nothing that the whole policy's does not: random policies, narrowings and paths, by a model of
// what the mounts come to.
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/narrow.h"
#include "tests/unit/policy/chance.h"
#include "tests/unit/policy/directory.h"
#include "tests/unit/policy/reach.h"

namespace caisson::policy {
namespace {

TEST(NarrowProperty, Flaw03ANarrowedSessionReachesNothingThatTheWholePolicyDoesNot) {
  Chance chance{std::mt19937(3)};
  std::size_t narrowed = 0, with_grants = 0, near_hidden = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto whole = std::make_shared<const Policy>(chance.policy());
    const Narrowing by = chance.narrowing(*whole);
    const auto less = narrow(whole, by);
    if (!less) {
      EXPECT_TRUE(by.grants) << less.error().text();
      continue;
    }
    ++narrowed;
    for (const std::string& name : whole->protect) EXPECT_NE(std::ranges::find((*less)->protect, name), (*less)->protect.end());
    for (const std::string& name : by.protect) EXPECT_NE(std::ranges::find((*less)->protect, name), (*less)->protect.end());
    EXPECT_GE((*less)->protect_home, whole->protect_home || by.protect_home);
    with_grants += by.grants && !by.grants->empty() ? 1 : 0;
    std::vector<std::string> paths;
    for (int i = 0; i < 20; ++i) paths.push_back(chance.path(false));
    for (const auto* grants : {&whole->grants, &(*less)->grants})
      for (const Grant& grant : *grants) paths.push_back(grant.path), paths.push_back(grant.path + "/x");
    for (const std::string& hidden : whole->hide) paths.push_back(hidden), paths.push_back(hidden + "/x"), ++near_hidden;
    for (const std::string& path : paths) {
      const Reach before = reach(*whole, path), after = reach(**less, path);
      const bool same = !after.read || after.source == before.source;
      ASSERT_TRUE(after.read <= before.read && after.write <= before.write && after.execute <= before.execute && same)
          << path << "\nwhole: " << json::dump(to_json(*whole)) << "\nnarrowed: " << json::dump(to_json(**less));
    }
  }
  EXPECT_GT(narrowed, 6000U);  // else it has shown little
  EXPECT_GT(with_grants, 300U);
  EXPECT_GT(near_hidden, 3000U);
}

}  // namespace
}  // namespace caisson::policy
