// The plan is pure: tiers are made up here, no root and no kernel is asked.
#include "launcher/compiler/planner.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>
#include <linux/landlock.h>
#include <nlohmann/json.hpp>

#include "launcher/compiler/load.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

MechanismState state(const Plan& plan, Mechanism m) { return plan.mechanisms[static_cast<std::size_t>(m)].state; }

rlim_t processes(const Plan& plan) {
  return std::ranges::find(plan.limits, RLIMIT_NPROC, &std::pair<int, rlimit>::first)->second.rlim_max;
}

bool stated(const Plan& plan, const char* id) {
  return std::ranges::find(plan.residual, id, &Residual::id) != plan.residual.end();
}

TEST(Plan, FullTierHasEveryWallButTheCgroup) {
  const auto plan = Bench().plan(Tier::t3);
  ASSERT_TRUE(plan) << plan.error().text();
  for (int m = 0; m < kMechanismCount; ++m)
    EXPECT_EQ((*plan)->mechanisms[m].state == MechanismState::enforced,
              static_cast<Mechanism>(m) != Mechanism::cgroup && static_cast<Mechanism>(m) != Mechanism::io)
        << mechanism_name(static_cast<Mechanism>(m));
  EXPECT_EQ((*plan)->proc, Proc::full);
  EXPECT_TRUE((*plan)->inet);
}

TEST(Plan, WithoutFreshProcThereIsNoPidNamespace) {
  const auto plan = Bench().plan(Tier::t2);
  ASSERT_TRUE(plan);
  EXPECT_FALSE((*plan)->pid_ns);
  EXPECT_EQ(state(**plan, Mechanism::pid_ns), MechanismState::unavailable);
  EXPECT_EQ((*plan)->proc, Proc::none);
}

TEST(Plan, FloorTierKeepsLandlockAndSaysWhatIsMissing) {
  const auto plan = Bench().plan(Tier::t0);
  ASSERT_TRUE(plan);
  EXPECT_TRUE((*plan)->binds.empty());
  EXPECT_FALSE((*plan)->inet) << "inet sockets need an own network namespace";
  EXPECT_TRUE(std::ranges::any_of((*plan)->landlock, [](const LandlockRule& r) { return r.path == "/usr"; }));
  EXPECT_FALSE(std::ranges::any_of((*plan)->landlock, [](const LandlockRule& r) { return r.path == "/"; }));
  EXPECT_FALSE((*plan)->residual.empty());
}

TEST(Plan, ToolsAreAReadOnlyGrantOfEverySession) {
  Bench bench;
  EXPECT_EQ((*bench.plan(Tier::t3))->tools, "");
  bench.place.tools = "/usr/lib/caisson/tools";
  EXPECT_EQ((*bench.plan(Tier::t3))->tools, "") << "nothing is there";
  bench.sources["/usr/lib/caisson/tools"] = {true, true, 1, 4};
  const auto plan = bench.plan(Tier::t3);
  const auto bind = std::ranges::find((*plan)->binds, "/caisson", &Bind::target);
  ASSERT_NE(bind, (*plan)->binds.end());
  EXPECT_EQ(bind->source, "/usr/lib/caisson/tools");
  EXPECT_TRUE(bind->read_only && bind->execute && bind->directory);
  EXPECT_EQ((*plan)->tools, "/caisson");
  const auto floor = bench.plan(Tier::t0);
  EXPECT_EQ((*floor)->tools, "/usr/lib/caisson/tools") << "without a mount namespace they are where they lie";
  const auto rule = std::ranges::find((*floor)->landlock, "/usr/lib/caisson/tools", &LandlockRule::path);
  ASSERT_NE(rule, (*floor)->landlock.end());
  EXPECT_EQ(rule->access & LANDLOCK_ACCESS_FS_WRITE_FILE, 0U);
}

TEST(Plan, PrivateHomeNeedsAMountNamespace) {
  Bench bench;
  bench.policy.home = policy::Scope::private_;
  EXPECT_TRUE(bench.plan(Tier::t3));
  const auto plan = bench.plan(Tier::t0);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::unavailable);
}

TEST(Plan, OneUidIsSaid) {
  const auto plan = Bench().plan(Tier::t1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(state(**plan, Mechanism::uid), MechanismState::unavailable);
}

TEST(Plan, MinTierFailsClosed) {
  Bench bench;
  bench.policy.min_tier = Tier::t2;
  const auto plan = bench.plan(Tier::t0);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::unavailable);
  EXPECT_EQ(plan.error().what, "policy 'test' needs tier T2, this container gives T0 (see: caisson probe)");
}

TEST(Plan, RequiredMechanismFailsClosed) {
  Bench bench;
  bench.policy.require = {Mechanism::cgroup};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().what.find("requires cgroup"), std::string::npos) << plan.error().what;
}

TEST(Plan, DisabledMechanismIsSaidToBeDisabled) {
  Bench bench;
  bench.policy.disable = {Mechanism::net_ns};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan);
  EXPECT_EQ(state(**plan, Mechanism::net_ns), MechanismState::disabled_by_policy);
  EXPECT_FALSE((*plan)->inet) << "never inet in the container's own network";
}

TEST(Plan, WithoutACgroupTheSessionsOfAUidTogetherHaveFewThousandProcesses) {
  Bench bench;
  const std::uint64_t own = bench.policy.limits.processes;
  EXPECT_EQ(processes(**bench.plan(Tier::t3)), 2048 + 4 * own);
  EXPECT_EQ(processes(**bench.plan(Tier::t2)), 2048 + 4 * own);
  EXPECT_EQ(processes(**bench.plan(Tier::t0)), own) << "a uid for each session";
  EXPECT_EQ(processes(**bench.plan(Tier::t1)), 2048 + 4 * own) << "one uid for all sessions";
}

TEST(Plan, WithACgroupTheCountOfAUidComesNeverFirst) {
  Bench bench;
  bench.features.emplace(tier_features(Tier::t3)).cgroup = {0, ""};
  EXPECT_EQ(processes(**bench.plan(Tier::t3)), 16384U);
}

TEST(Plan, LimitsOfDisksNeedThePolicyTheControllerAndADisk) {
  Bench bench;
  Features& features = bench.features.emplace(tier_features(Tier::t3));
  const auto io = [&bench] { return (*bench.plan(Tier::t3))->mechanisms[static_cast<std::size_t>(Mechanism::io)]; };
  EXPECT_EQ(io().state, MechanismState::disabled_by_policy);
  bench.policy.limits.io_write_bytes_per_second = 1U << 20;
  EXPECT_EQ(io().reason, "no cgroup");
  features.cgroup = {0, ""};
  features.io = {ENOTSUP, "the io controller is not delegated to us"};
  EXPECT_EQ(io().reason, "the io controller is not delegated to us");
  features.io = {0, ""};
  bench.place.no_disks = "no disk";
  EXPECT_EQ(io().reason, "no disk");
  bench.place.disks = {"8:0"};
  EXPECT_EQ(io().state, MechanismState::enforced);
  EXPECT_EQ((*bench.plan(Tier::t3))->disks, std::vector<std::string>{"8:0"});
}

TEST(Plan, LimitsOfDisksFailClosedOnlyWhenRequired) {
  Bench bench;
  bench.policy.limits.io_read_bytes_per_second = 1U << 20;
  EXPECT_TRUE(bench.plan(Tier::t3)) << "unavailable, and said";
  bench.policy.require = {Mechanism::io};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().what, "policy 'test' requires io, which is not available: no cgroup");
}

TEST(Plan, HiddenPathsThatCannotBeCoveredAreStated) {
  Bench bench;
  bench.policy.hide = {"/usr/lib/caisson"};
  EXPECT_FALSE(stated(**bench.plan(Tier::t2), "hidden-readable"));
  EXPECT_TRUE(stated(**bench.plan(Tier::t0), "hidden-readable"));
}

TEST(Plan, ProtectedNamesNeedMountsOrThatThePolicyGoesWithoutByName) {
  Bench bench;
  bench.policy.protect = {".git/config"};
  EXPECT_TRUE(stated(**bench.plan(Tier::t2), "protect-new-names"));
  EXPECT_FALSE((*bench.plan(Tier::t3))->protect.empty());
  for (const Tier tier : {Tier::t0, Tier::t1}) {
    const auto plan = bench.plan(tier);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().what,
              "policy 'test' has 'protect', which needs a mount namespace, tier T2 or T3 (see: caisson probe); this is " +
                  std::string(tier_name(tier)));
  }
  bench.policy.disable = {Mechanism::mount_ns};
  EXPECT_TRUE(stated(**bench.plan(Tier::t3), "protect-off"));
  EXPECT_TRUE((*bench.plan(Tier::t3))->protect.empty());
}

TEST(Plan, AWritableProcSysOfTheHostsRootIsStated) {
  Bench bench;
  Features& features = bench.features.emplace(tier_features(Tier::t2));
  features.proc_sys_writable = true;
  EXPECT_TRUE(stated(**bench.plan(Tier::t2), "proc-sys-writable"));
  features.uid_remapped = true;
  EXPECT_FALSE(stated(**bench.plan(Tier::t2), "proc-sys-writable"));
}

TEST(Plan, AKernelWithoutLandlockScopesIsStated) {
  Bench bench;
  Features& features = bench.features.emplace(tier_features(Tier::t3));
  EXPECT_FALSE(stated(**bench.plan(Tier::t3), "landlock-no-scopes"));
  features.landlock_abi = 5;
  EXPECT_TRUE(stated(**bench.plan(Tier::t3), "landlock-no-scopes"));
}

TEST(Plan, SessionsOfOneUidThatSeeEachOtherAreStated) {
  Bench bench;
  Features& features = bench.features.emplace(tier_features(Tier::t0));
  EXPECT_FALSE(stated(**bench.plan(Tier::t0), "peers-tunable")) << "each has a uid of its own";
  features.user_ns = {0, ""};  // and no mounts in it: AppArmor
  features.landlock_abi = 5;
  const auto plan = bench.plan(Tier::t0);
  EXPECT_TRUE(stated(**plan, "peers-tunable"));
  EXPECT_TRUE(std::ranges::any_of((*plan)->residual, [](const Residual& r) { return r.what.contains("can end and stop"); }));
}

TEST(Plan, WhatNeitherLandlockNorMountsGovernSeccompDoes) {
  Bench bench;
  for (const auto& [abi, wanted] : {std::pair(2, Ungoverned::truncation), std::pair(3, Ungoverned::ioctl),
                                    std::pair(4, Ungoverned::ioctl), std::pair(5, Ungoverned::nothing)}) {
    bench.features.emplace(tier_features(Tier::t0)).landlock_abi = abi;
    const auto plan = bench.plan(Tier::t0);
    EXPECT_EQ((*plan)->ungoverned, wanted) << abi;
    EXPECT_FALSE(stated(**plan, "landlock-no-truncate"));
    const auto& reason = (*plan)->mechanisms[static_cast<int>(Mechanism::landlock)].reason;
    EXPECT_EQ(reason.contains("seccomp refuses"), wanted != Ungoverned::nothing) << reason;
    bench.features.emplace(tier_features(Tier::t2)).landlock_abi = abi;
    EXPECT_EQ((*bench.plan(Tier::t2))->ungoverned, Ungoverned::nothing) << abi;
  }
}

TEST(Plan, WithoutSeccompEitherTruncationIsStated) {
  Bench bench;
  bench.features.emplace(tier_features(Tier::t0)).landlock_abi = 2;
  bench.policy.require.erase(Mechanism::seccomp);
  bench.policy.disable.insert(Mechanism::seccomp);
  const auto plan = bench.plan(Tier::t0);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ((*plan)->ungoverned, Ungoverned::nothing);
  EXPECT_TRUE(stated(**plan, "landlock-no-truncate"));
}

TEST(Plan, WithoutLandlockNoScopesIsStated) {
  Bench bench;
  Features& features = bench.features.emplace(tier_features(Tier::t2));
  features.landlock_abi = 0;
  const auto plan = bench.plan(Tier::t2);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE(std::ranges::any_of((*plan)->residual, [](const Residual& r) { return r.what.contains("can end and stop"); }));
}

TEST(Plan, AStagedHomeIsTheWorkspacesOwnAndHasAQuota) {
  Bench bench;
  EXPECT_TRUE(stated(**bench.plan(Tier::t3), "home-quota"));
  bench.place.home_staged = bench.place.home_quota = true;
  bench.sources.erase("/srv/home");
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan) << plan.error().text();
  const auto home = std::ranges::find((*plan)->binds, bench.policy.home_path, &Bind::target);
  ASSERT_NE(home, (*plan)->binds.end());
  EXPECT_TRUE(home->staged);
  EXPECT_FALSE(stated(**plan, "home-quota"));
}

TEST(Plan, AWorkspacesProcessesAreCountedByItsUid) {
  Bench bench;
  bench.place.processes = 77;
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan);
  const auto limit = std::ranges::find((*plan)->limits, static_cast<int>(RLIMIT_NPROC), &std::pair<int, rlimit>::first);
  ASSERT_NE(limit, (*plan)->limits.end());
  EXPECT_EQ(limit->second.rlim_max, 77U);
}

TEST(Plan, ALoopbackOfItsOwnIsNotSaidToBeShared) {
  Bench bench;
  EXPECT_TRUE(stated(**bench.plan(Tier::t3), "loopback-shared"));
  bench.place.own_net = true;
  EXPECT_FALSE(stated(**bench.plan(Tier::t3), "loopback-shared"));
}

TEST(Plan, MountsAreOrderedParentsFirst) {
  Bench bench;
  bench.policy.grants.push_back({"/home/gem/ro", "/srv/ro", policy::Access::read, false, true, false, ""});
  bench.sources["/srv/ro"] = {true, true, 1, 9};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan);
  const auto at = [&](const char* target) {
    return std::ranges::find((*plan)->binds, target, &Bind::target) - (*plan)->binds.begin();
  };
  EXPECT_LT(at("/home/gem"), at("/home/gem/ro"));
}

TEST(Plan, ACopyOfTheSystemNeedsTheFullTierAWorkspaceAndUsr) {
  Bench bench;
  bench.policy.system_packages = true;
  for (const Tier tier : {Tier::t0, Tier::t1, Tier::t2}) {
    const auto none = bench.plan(tier);
    ASSERT_FALSE(none) << tier_name(tier);
    EXPECT_NE(none.error().what.find("a fresh /proc, tier T3"), std::string::npos) << none.error().what;
  }
  EXPECT_TRUE(bench.plan(Tier::t3));
  bench.place.system.clear();
  EXPECT_EQ(bench.plan(Tier::t3).error().code, Code::unavailable);
  bench.place.system = "/run/system";
  bench.policy.grants.front().path = bench.policy.grants.front().source = "/usr/bin";
  bench.sources["/usr/bin"] = {true, true, 1, 2};
  EXPECT_EQ(bench.plan(Tier::t3).error().code, Code::invalid_argument);
}

void grant(Bench& bench, const char* path, const char* source, policy::Access access = policy::Access::read) {
  bench.policy.grants.push_back({path, source, access, false, true, false, ""});
  bench.sources[source] = {true, true, 1, bench.sources.size() + 10};
}

// The grants of the plan that the policy does not name: what is held.
std::vector<std::string> held(Bench& bench, Tier tier) {
  std::vector<std::string> out;
  for (const Bind& b : (*bench.plan(tier))->binds)
    if (b.held) out.push_back(b.target + " " + b.source);
  return out;
}

TEST(Plan, Flaw04WhatIsAboveSomethingHiddenOrGrantedInsideAWritableGrantIsHeld) {
  Bench bench;
  grant(bench, "/srv/data", "/data", policy::Access::read_write);
  grant(bench, "/srv/data/c/ro", "/data/c/ro");
  grant(bench, "/home/gem/x/tool", "/tool");
  grant(bench, "/tmp/y/tool", "/tool");
  bench.policy.hide = {"/usr/lib/caisson", "/srv/data/a/b/hidden", "/srv/data/a/other", "/srv/data/c/ro/d/hidden",
                       "/srv/data/top"};
  for (const Tier tier : {Tier::t2, Tier::t3})
    EXPECT_EQ(held(bench, tier),
              (std::vector<std::string>{"/home/gem/x /srv/home/x", "/srv/data/a /data/a", "/srv/data/a/b /data/a/b",
                                        "/srv/data/c /data/c", "/tmp/y /run/stage/tmp/y"}));
  bench.policy.home = bench.policy.tmp = policy::Scope::private_;
  EXPECT_EQ(held(bench, Tier::t3).size(), 3U) << "what is made for one session nobody else can move";
}

TEST(Plan, WhatIsLookedThroughForProtectedNamesIsWhatSessionsWriteTo) {
  Bench bench;
  const auto told = [&bench] {
    std::string out = (*bench.plan(Tier::t3))->protect;
    std::ranges::replace(out, '\0', ' ');
    return out;
  };
  grant(bench, "/srv/data", "/data", policy::Access::read_write);
  grant(bench, "/srv/ro", "/ro");
  EXPECT_EQ(told(), "");
  bench.policy.protect = {".git/config"};
  for (const char* part :
       {"h/home/gem ", "n.git/config ", "s/srv/data p/srv/data =/data ", "s/srv/ro ", "s/home/gem l/home/gem ", "s/tmp l/tmp "})
    EXPECT_TRUE(told().contains(part)) << part << " in " << told();
  EXPECT_FALSE(told().contains("p/srv/ro"));
  bench.policy.protect_home = true;
  EXPECT_TRUE(told().contains("p/home/gem ")) << told();
  bench.policy.home = policy::Scope::private_;
  EXPECT_TRUE(told().contains("s/home/gem p/home/gem ")) << told();
}

TEST(Plan, Flaw04OnlyWhatWasHiddenInAWritableGrantIsMissedWhenItIsNot) {
  Bench bench;
  grant(bench, "/srv/data", "/data", policy::Access::read_write);
  bench.policy.hide = {"/usr/missing", "/srv/data/there", "/srv/data/missing"};
  bench.sources["hide /srv/data/there"] = {true, true, 1, 9};
  EXPECT_EQ((*bench.plan(Tier::t3))->makeable, std::vector<std::string>{"/srv/data/missing"});
}

TEST(Plan, Flaw04MoreMountsThanASessionCanHaveAreRefused) {
  Bench bench;
  grant(bench, "/srv/data", "/data", policy::Access::read_write);
  std::string deep = "/srv/data";
  for (int i = 0; i < 300; ++i) deep += "/d";
  bench.policy.hide = {deep};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::invalid_argument);
  EXPECT_TRUE(plan.error().what.starts_with("policy 'test' needs more than 256 mounts: ")) << plan.error().what;
}

TEST(Plan, Flaw04WithoutMountsACarveOutIsRefusedAndWhatIsHiddenIsStatedAsReadable) {
  for (const Tier tier : {Tier::t1, Tier::t0}) {
    Bench bench;
    grant(bench, "/srv/data", "/data", policy::Access::read_write);
    bench.policy.hide = {"/srv/data/a/hidden"};
    EXPECT_TRUE(stated(**bench.plan(tier), "hidden-readable"));
    grant(bench, "/srv/data/a/ro", "/data/a/ro");
    const auto plan = bench.plan(tier);
    ASSERT_FALSE(plan);
    EXPECT_TRUE(plan.error().what.contains("'/srv/data/a/ro' is read-only inside '/srv/data', which is writable"))
        << plan.error().what;
  }
}

TEST(Plan, WhatIsGrantedOfTheSystemIsInItsCopyAndNothingElse) {
  Bench bench;
  bench.policy.system_packages = true;
  bench.policy.hide = {"/srv/data/hidden", "/usr/lib/caisson"};
  bench.policy.links["/etc/localtime"] = "../usr/share/zoneinfo/Etc/UTC";
  bench.policy.links["/bin"] = "usr/bin";
  grant(bench, "/etc/ssl/certs", "/etc/ssl/certs");
  grant(bench, "/srv/data", "/srv/elsewhere", policy::Access::read_write);
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan) << plan.error().text();
  const auto what = nlohmann::json::parse((*plan)->system.request);
  const auto copies = what["copies"].get<std::vector<std::string>>();
  EXPECT_EQ(std::ranges::count(copies, "/etc/ssl/certs"), 1);
  for (const char* never : {"/etc", "/var", "/etc/shadow", "/etc/ssl", "/var/lib"})
    EXPECT_EQ(std::ranges::count(copies, never), 0);
  EXPECT_TRUE(what["files"].contains("/etc/passwd") && (*plan)->files.empty());
  EXPECT_TRUE(what["links"].contains("/etc/localtime") && !what["links"].contains("/bin"));
  const auto bind = [&](const char* target) { return *std::ranges::find((*plan)->binds, target, &Bind::target); };
  EXPECT_TRUE(bind("/usr").staged && !bind("/usr").read_only && bind("/usr").source == (*plan)->system.directory + "/usr");
  EXPECT_TRUE((*plan)->system.directory.starts_with("/run/system/"));
  EXPECT_EQ(std::ranges::count((*plan)->binds, "/etc/ssl/certs", &Bind::target), 0);
  // Where the policy has something of its own, the copy ends.
  EXPECT_EQ(std::ranges::count((*plan)->binds, "/srv", &Bind::target), 0);
  EXPECT_FALSE(bind("/srv/data").staged);
  EXPECT_EQ(what["without"], nlohmann::json::array({"/usr/lib/caisson"}));
  EXPECT_EQ((*plan)->hide, std::vector<std::string>{"/srv/data/hidden"});
}

TEST(Plan, PoliciesShareACopyOnlyWhereItIsTheSame) {
  const auto place = [](const std::function<void(Bench&)>& change) {
    Bench bench;
    bench.policy.system_packages = true;
    change(bench);
    const auto plan = bench.plan(Tier::t3);
    return plan ? (*plan)->system.directory : plan.error().text();
  };
  const std::string usual = place([](Bench&) {});
  EXPECT_EQ(place([](Bench& b) { b.policy.domain = "other", b.policy.limits.processes = 3; }), usual);
  EXPECT_NE(place([](Bench& b) { grant(b, "/etc/ssl/certs", "/etc/ssl/certs"); }), usual);
  EXPECT_NE(place([](Bench& b) { b.policy.files["/etc/hosts"] = "x"; }), usual);
  EXPECT_NE(place([](Bench& b) { b.policy.hide = {"/usr/share/doc"}; }), usual);
  EXPECT_NE(place([](Bench& b) { b.policy.home_path = "/root"; }), usual);
}

TEST(Plan, NothingIsMountedInsideTheCopy) {
  const std::function<void(Bench&)> changes[] = {
      [](Bench& b) { grant(b, "/etc/elsewhere", "/srv/conf"); },
      [](Bench& b) { grant(b, "/var/shared", "/var/shared", policy::Access::read_write); },
      [](Bench& b) { grant(b, "/usr/local", "/usr/local"); }, [](Bench& b) { b.policy.home_path = "/var/home"; }};
  for (const auto& change : changes) {
    Bench bench;
    bench.policy.system_packages = true;
    change(bench);
    const auto plan = bench.plan(Tier::t3);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Code::invalid_argument);
    EXPECT_NE(plan.error().what.find("something of its own"), std::string::npos) << plan.error().what;
  }
}

TEST(Plan, AbsentOptionalGrantIsReported) {
  Bench bench;
  bench.policy.grants.push_back({"/etc/nothing", "/etc/nothing", policy::Access::read, false, false, false, ""});
  bench.sources["/etc/nothing"] = {};
  const auto plan = bench.plan(Tier::t3);
  ASSERT_TRUE(plan);
  EXPECT_EQ((*plan)->absent, std::vector<std::string>{"/etc/nothing"});
}

}  // namespace
}  // namespace caisson::confine
