// Plans of a home and a /tmp to be read, and of programs that sandbox themselves.
#include <algorithm>

#include <gtest/gtest.h>
#include <linux/landlock.h>

#include "launcher/compiler/planner.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

TEST(Plan, AHomeToBeReadIsFrozenAndWhatIsTakenFromItStaysWritable) {
  Bench bench;
  bench.policy.home = bench.policy.tmp = policy::Scope::read;
  bench.policy.grants.push_back({"/home/gem/Downloads", "home:Downloads", policy::Access::read_write, false, false, false, ""});
  bench.policy.grants.push_back({"/tmp/.X11-unix", "workspace:display", policy::Access::read_write, false, false, false, ""});
  for (const Tier tier : {Tier::t2, Tier::t3}) {
    const Plan plan = **bench.plan(tier);
    for (const char* path : {"/home/gem", "/tmp"}) {
      const Bind& around = *std::ranges::find(plan.binds, path, &Bind::target);
      EXPECT_TRUE(around.read_only && around.frozen && !around.held) << path;
      EXPECT_EQ(std::ranges::find(plan.landlock, path, &LandlockRule::path), plan.landlock.end()) << path;
    }
    const Bind& downloads = *std::ranges::find(plan.binds, "/home/gem/Downloads", &Bind::target);
    EXPECT_TRUE(downloads.held && downloads.staged && !downloads.read_only && downloads.frozen && !downloads.execute);
    const Bind& display = *std::ranges::find(plan.binds, "/tmp/.X11-unix", &Bind::target);
    EXPECT_TRUE(!display.held && display.staged && display.source == "/run/stage/display");
    for (const char* path : {"/home/gem/Downloads", "/tmp/.X11-unix"})
      EXPECT_NE(std::ranges::find(plan.landlock, path, &LandlockRule::path), plan.landlock.end()) << path;
  }
  EXPECT_EQ(bench.plan(Tier::t0).error().code, Code::unavailable);
  bench.policy.home = policy::Scope::private_;
  EXPECT_EQ((*bench.plan(Tier::t3))->absent, std::vector<std::string>{"/home/gem/Downloads"});
  bench.policy.home = policy::Scope::workspace;
  const Plan whole = **bench.plan(Tier::t3);
  EXPECT_TRUE(std::ranges::none_of(whole.binds, [](const Bind& b) { return b.target == "/home/gem/Downloads"; }));
}

TEST(Plan, ProgramsThatNestWriteToTheirOwnProcAndAreSaidTo) {
  Bench bench;
  bench.policy.syscalls.allow.emplace_back("nested-sandbox");
  const Plan plan = **bench.plan(Tier::t3);
  EXPECT_TRUE(plan.nested);
  const auto rule = std::ranges::find(plan.landlock, "/proc", &LandlockRule::path);
  ASSERT_NE(rule, plan.landlock.end());
  EXPECT_TRUE((rule->access & LANDLOCK_ACCESS_FS_WRITE_FILE) != 0 && (rule->access & LANDLOCK_ACCESS_FS_MAKE_REG) == 0);
  const auto residual = [](const Plan& p, const char* id) {
    return std::ranges::find(p.residual, id, &Residual::id) != p.residual.end();
  };
  EXPECT_TRUE(residual(plan, "nested-user-ns"));
  EXPECT_FALSE(residual(plan, "nested-namespaces-unbounded"));
  EXPECT_TRUE(residual(**bench.plan(Tier::t2), "nested-namespaces-unbounded"));
  EXPECT_EQ(bench.plan(Tier::t0).error().code, Code::unavailable);
}

}  // namespace
}  // namespace caisson::confine
