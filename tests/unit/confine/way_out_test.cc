// When a session that goes out has a door, and what its plan says is lost.
#include <algorithm>

#include <gtest/gtest.h>

#include "launcher/compiler/planner.h"
#include "launcher/egress/list/list.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

bool stated(const Plan& plan, const char* id) {
  return std::ranges::find(plan.residual, id, &Residual::id) != plan.residual.end();
}

TEST(WayOut, NeedsANetworkNamespaceInWhichTheDoorIs) {
  Bench bench;
  bench.policy.network = policy::Network::allowlist;
  for (const Tier tier : {Tier::t1, Tier::t0}) {
    const auto refused = bench.plan(tier);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unavailable);
    EXPECT_TRUE(refused.error().what.contains("goes out (network), and there is no way out here")) << refused.error().what;
  }
  const auto plan = bench.plan(Tier::t2);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE((*plan)->inet && !stated(**plan, "no-way-out"));
  for (const bool told_apart : {true, false}) {
    bench.features = tier_features(Tier::t2);
    bench.features->cgroup = told_apart ? confine::Tried{0, ""} : confine::Tried{ENOTSUP, "cgroup v2"};
    EXPECT_EQ(stated(**bench.plan(Tier::t2), "ways-alike"), !told_apart);
  }
  bench.features = tier_features(Tier::t3);
  bench.features->egress_tproxy = {EPERM, "nft"};
  EXPECT_FALSE(bench.plan(Tier::t3)) << "a namespace without the door";
  bench.features->egress_ports = {EPERM, "listeners"};
  EXPECT_TRUE(bench.plan(Tier::t3).error().what.ends_with("here: listeners: EPERM")) << bench.plan(Tier::t3).error().what;
  bench.features.reset();
  bench.place.own_net = true;
  EXPECT_TRUE(stated(**bench.plan(Tier::t2), "no-way-out"));
  bench.policy.network = policy::Network::loopback;
  EXPECT_FALSE(stated(**bench.plan(Tier::t2), "no-way-out"));
}

TEST(WayOut, WithoutThePacketFilterItSaysAtWhichPortsTheDoorIs) {
  Bench bench;
  bench.policy.network = policy::Network::allowlist;
  egress::Rule rule;
  rule.name = "api.test", rule.ports = {{9000, 9001}}, rule.why = "a test";
  bench.policy.egress = egress::list_bytes({.rules = {rule}, .limits = {}});
  EXPECT_FALSE(stated(**bench.plan(Tier::t3), "named-ports"));
  bench.features = tier_features(Tier::t3);
  bench.features->egress_tproxy = {EPROTONOSUPPORT, "rules"};
  bench.features->egress_ports = {0, ""};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan) << plan.error().text();
  const auto said = std::ranges::find((*plan)->residual, "named-ports", &Residual::id);
  ASSERT_NE(said, (*plan)->residual.end());
  EXPECT_TRUE(said->what.contains("22, 53, 80, 443, 9000-9001;")) << said->what;
  bench.place.own_net = true;
  EXPECT_FALSE(stated(**bench.plan(Tier::t3), "named-ports"));
  bench.place.own_net = false, bench.policy.network = policy::Network::loopback;
  EXPECT_FALSE(stated(**bench.plan(Tier::t3), "named-ports"));
}

}  // namespace
}  // namespace caisson::confine
