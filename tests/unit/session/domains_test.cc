// Domains that nobody uses yet are only planned, by the real caisson-policies: nothing is built.
#include "launcher/pid1/session/domains.h"

#include "launcher/compiler/canonical.h"
#include "tests/unit/session/tables.h"

namespace caisson::session {
namespace {

struct DomainsTest : testing::Test {
  DomainsTest() {
    main.name = kDefaultWorkspace;
    main.home_path = tables.dir.path();
  }
  static policy::LoadResult set(Tier locked) {
    policy::LoadResult out;
    for (const auto& [name, tier] : {std::pair("locked", locked), std::pair("open", Tier::t0)}) {
      auto policy = std::make_shared<policy::Policy>();
      policy->domain = name;
      policy->min_tier = tier;
      policy->home_path = "/home/gem";
      policy->digest = policy::digest_of(*policy);
      out.policies[name] = std::move(policy);
    }
    return out;
  }
  std::string take(const policy::LoadResult& loaded) {
    auto task = domains.put_in_force(loaded);
    EXPECT_TRUE(tables.loop->run([&task] { return task.done(); }));
    const Domains::Problems problems = task.take();
    return problems.empty() ? "" : problems.front().text();
  }
  Code code_of(const std::string& name) {
    auto task = domains.domain_in(main, name);
    EXPECT_TRUE(tables.loop->run([&task] { return task.done(); }));
    const auto domain = task.take();
    return domain ? Code::internal : domain.error().code;
  }

  Tables tables;
  Workspace main{*tables.loop};
  Uids uids{tables.host};
  Domains domains{tables.host, uids, main, [](const Workspace&, const std::string&) {}};
};

TEST_F(DomainsTest, OneThatIsRefusedStaysRefusedUntilAReload) {
  ASSERT_EQ(take(set(Tier::t3)), "");
  EXPECT_TRUE(domains.in_force().contains("open"));
  EXPECT_FALSE(domains.in_force().contains("locked"));
  EXPECT_NE(domains.refused().at("locked").find("needs tier T3"), std::string::npos) << domains.refused().at("locked");
  EXPECT_EQ(code_of("locked"), Code::unavailable);
  EXPECT_EQ(code_of("nobody"), Code::not_found);
  tables.host.features = confine::tier_features(Tier::t3);
  EXPECT_EQ(code_of("locked"), Code::unavailable) << "what has changed since counts at the next reload";
  tables.host.features = confine::tier_features(Tier::t0);
  ASSERT_EQ(take(set(Tier::t0)), "");
  EXPECT_TRUE(domains.in_force().contains("locked"));
  EXPECT_TRUE(domains.refused().empty());
}

TEST_F(DomainsTest, ASetWithAProblemLeavesEverythingAsItWas) {
  ASSERT_EQ(take(set(Tier::t3)), "");
  const std::string digest = domains.digest();
  policy::LoadResult broken;
  broken.problems.push_back({"/policies/open.json", 3, "/grants", "is not a list", ""});
  EXPECT_NE(take(broken), "");
  EXPECT_EQ(domains.digest(), digest);
  EXPECT_TRUE(domains.in_force().contains("open"));
  EXPECT_EQ(code_of("locked"), Code::unavailable);
  ASSERT_EQ(take(set(Tier::t0)), "");
  EXPECT_NE(domains.digest(), digest);
}

TEST_F(DomainsTest, WhatIsDistrustedIsMadeAnewNextTime) {
  ASSERT_EQ(take(set(Tier::t0)), "");
  Workspace other(*tables.loop);
  other.name = "a";
  other.domains["open"].checked_us = 1;
  domains.distrust(main, "open");
  EXPECT_EQ(other.domains["open"].checked_us, 1) << "each workspace has its own";
  domains.distrust(other, "open");
  EXPECT_EQ(other.domains["open"].checked_us, 0);
  domains.distrust(other, "nobody");
  EXPECT_FALSE(other.domains.contains("nobody"));
}

}  // namespace
}  // namespace caisson::session
