// That the check of narrowed plans lets through what narrowing makes, and nothing that is wider by any field.
#include "launcher/pid1/execute/subset.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "launcher/common/policy/rows.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/narrow.h"
#include "tests/unit/confine/tiers.h"
#include "tests/unit/policy/chance.h"
#include "tests/unit/policy/reach.h"

namespace caisson::confine {
namespace {

using policy::Access;
using policy::Chance;
using policy::Policy;

Sources sources_of(const Policy& policy, const Place& place) {
  Sources out;
  ino_t next = 100;
  for (const policy::Grant& grant : policy.grants) out[grant.source] = {true, true, 1, ++next};
  out[place.home_source] = {true, true, 1, 3};
  return out;
}

// The plan as the launcher takes it, which has the claims of its domain.
Result<std::shared_ptr<const Plan>> planned(const std::shared_ptr<const Policy>& policy, Tier tier, bool alone = false) {
  Bench bench;
  bench.place.home_source = policy->home_path;
  bench.place.own_net = alone;
  return make_plan(policy, tier_features(tier), sources_of(*policy, bench.place), bench.place);
}

std::string binds_text(const Plan& plan) {
  std::string out;
  for (const Bind& b : plan.binds)
    out += "\n" + b.target + " of " + b.source + (b.read_only ? "" : " written") + (b.execute ? " run" : "") +
           (b.held     ? " held"
            : b.staged ? " staged"
                       : "");
  return out + "\n";
}

TEST(Subset, WhatNarrowingMakesIsNeverWider) {
  Chance chance{std::mt19937(5)};
  std::map<Tier, std::size_t> compared;
  for (int round = 0; round < 9000; ++round) {
    const auto whole = std::make_shared<const Policy>(chance.policy());
    const policy::Narrowing by = chance.narrowing(*whole);
    const auto less = policy::narrow(whole, by);
    if (!less) continue;
    ASSERT_EQ(wider(**less, *whole), std::nullopt) << json::dump(policy::to_json(*whole)) << json::dump(policy::to_json(**less));
    for (const Tier tier : {Tier::t1, Tier::t0, Tier::t2, Tier::t3}) {
      const auto domain = planned(whole, tier), narrowed = planned(*less, tier, chance.in(2));
      if (!domain || !narrowed) continue;
      ++compared[tier];
      ASSERT_EQ(wider(**narrowed, **domain), std::nullopt)
          << tier_name(tier) << binds_text(**domain) << "\nnarrowed:" << binds_text(**narrowed)
          << json::dump(policy::to_json(*whole)) << json::dump(policy::to_json(**less));
    }
  }
  for (const Tier tier : {Tier::t1, Tier::t0}) EXPECT_GT(compared[tier], 100U);
  for (const Tier tier : {Tier::t2, Tier::t3}) EXPECT_GT(compared[tier], 1000U);
}

// A policy with something changed at random, for more or for less.
Policy altered(Policy policy, Chance& chance) {
  for (std::size_t n = 1 + chance.below(3); n > 0; --n) {
    const std::size_t at = policy.grants.empty() ? 0 : chance.below(policy.grants.size());
    switch (chance.below(9)) {
      case 0:
        policy.grants.push_back(chance.grant(chance.path(true)));
        break;
      case 1:
        if (!policy.grants.empty()) policy.grants.erase(policy.grants.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 2:
        if (!policy.grants.empty()) policy.grants[at].access = chance.in(3) ? Access::read_write : Access::read;
        break;
      case 3:
        if (!policy.grants.empty()) policy.grants[at].execute = chance.in(3);
        break;
      case 4:
        if (!policy.grants.empty()) policy.grants[at].path += "/b", policy.grants[at].source += "/b";
        break;
      case 5:
        if (!policy.hide.empty()) policy.hide.pop_back();
        break;
      case 6:
        policy.protect = chance.names(3);
        break;
      case 7:
        policy.home = policy::Scope::private_;
        break;
      default:
        policy.protect_home = chance.in(2);
    }
  }
  std::ranges::sort(policy.grants, {}, &policy::Grant::path);
  const auto twice = std::ranges::unique(policy.grants, {}, &policy::Grant::path);
  policy.grants.erase(twice.begin(), twice.end());
  return policy;
}

// Whatever another program makes of a request: what the check lets through reaches no more.
TEST(Subset, WhatIsNotRefusedReachesNothingThatTheDomainDoesNot) {
  Chance chance{std::mt19937(7)};
  std::size_t passed = 0, refused = 0;
  for (int round = 0; round < 12000; ++round) {
    const auto whole = std::make_shared<const Policy>(chance.policy());
    const auto less = std::make_shared<const Policy>(altered(*whole, chance));
    const auto domain = planned(whole, Tier::t3), narrowed = planned(less, Tier::t3);
    if (!domain || !narrowed) continue;
    if (wider(**narrowed, **domain)) {
      ++refused;
      continue;
    }
    ++passed;
    std::vector<std::string> paths;
    for (int i = 0; i < 20; ++i) paths.push_back(chance.path(false));
    for (const auto* grants : {&whole->grants, &less->grants})
      for (const policy::Grant& grant : *grants) paths.push_back(grant.path), paths.push_back(grant.path + "/x");
    for (const std::string& hidden : whole->hide) paths.push_back(hidden), paths.push_back(hidden + "/x");
    for (const std::string& path : paths) {
      const policy::Reach before = reach(*whole, path), after = reach(*less, path);
      const bool same = !after.read || after.source == before.source;
      ASSERT_TRUE(after.read <= before.read && after.write <= before.write && after.execute <= before.execute && same)
          << path << "\ndomain:" << binds_text(**domain) << "\nnarrowed:" << binds_text(**narrowed)
          << json::dump(policy::to_json(*whole)) << json::dump(policy::to_json(*less));
    }
  }
  EXPECT_GT(passed, 1000U);
  EXPECT_GT(refused, 1000U);
}

// A domain with something in every member that a mutation can widen.
struct Domain : Bench {
  Domain() {
    policy.grants.push_back({.path = "/srv/data", .source = "/data", .access = Access::read_write, .execute = true});
    policy.grants.push_back({.path = "/srv/data/fixed", .source = "/data/fixed"});
    policy.hide = {"/srv/data/secret", "/usr/lib/caisson"};
    policy.protect = {".git/config"};
    policy.devices = {"null"};
    policy.links["/bin"] = "usr/bin";
    policy.network = policy::Network::none;
    policy.limits.io_read_bytes_per_second = 1 << 20;
    place.disks = {"8:0"};
    Features& all = features.emplace(tier_features(Tier::t3));
    all.cgroup = all.io = {0, ""};
    for (const char* source : {"/data", "/data/fixed"}) sources[source] = {true, true, 1, 7};
  }
};

using Mutations = std::map<std::string, std::function<void(Plan&)>>;

// By rule of the plan: how a plan of that domain becomes wider.
Mutations plan_mutations() {
  const auto bind = [](Plan& plan, const char* target) -> Bind& { return *std::ranges::find(plan.binds, target, &Bind::target); };
  return {
      {"tier", [](Plan& p) { p.tier = Tier::t1; }},
      {"user_ns", [](Plan& p) { p.user_ns = false; }},
      {"mount_ns", [](Plan& p) { p.mount_ns = false; }},
      {"pid_ns", [](Plan& p) { p.pid_ns = false; }},
      {"ipc_ns", [](Plan& p) { p.ipc_ns = false; }},
      {"uts_ns", [](Plan& p) { p.uts_ns = false; }},
      {"net_ns", [](Plan& p) { p.net_ns = false; }},
      {"cgroup_ns", [](Plan& p) { p.cgroup_ns = false; }},
      {"cgroup", [](Plan& p) { p.cgroup = false; }},
      {"io", [](Plan& p) { p.io = false; }},
      {"connected", [](Plan& p) { p.connected = true; }},
      {"nested", [](Plan& p) { p.nested = true; }},
      {"single_use", [](Plan& p) { p.single_use = false; }},
      {"inet", [](Plan& p) { p.inet = true; }},
      {"change_uid", [](Plan& p) { p.change_uid = false; }},
      {"observe", [](Plan& p) { p.observe = !p.observe; }},
      {"ungoverned", [](Plan& p) { p.ungoverned = Ungoverned::ioctl; }},
      {"proc", [](Plan& p) { p.proc = Proc::shared; }},
      {"binds", [bind](Plan& p) { bind(p, "/usr").read_only = false; }},
      {"binds execute", [bind](Plan& p) { bind(p, "/srv/data/fixed").execute = true; }},
      {"binds source", [bind](Plan& p) { bind(p, "/srv/data").source = "/root"; }},
      {"binds another", [](Plan& p) { p.binds.push_back({.target = "/root", .source = "/root"}); }},
      {"binds below another", [](Plan& p) { p.binds.push_back({.target = "/usr/share", .source = "/root", .read_only = true}); }},
      {"binds carve-out", [](Plan& p) { std::erase_if(p.binds, [](const Bind& b) { return b.target == "/srv/data/fixed"; }); }},
      {"binds device", [bind](Plan& p) { bind(p, "/usr").device = true; }},
      {"binds staged", [bind](Plan& p) { bind(p, "/usr").staged = true; }},
      {"binds held",
       [](Plan& p) {
         p.binds.push_back({.target = "/srv/data/a", .source = "/root", .read_only = false, .staged = true, .held = true});
       }},
      {"binds another device",
       [](Plan& p) { p.binds.push_back({.target = "/dev/sda", .source = "/dev/sda", .read_only = false, .device = true}); }},
      {"directories", [](Plan& p) { p.directories.emplace_back("/srv/data/new"); }},
      {"files", [](Plan& p) { p.files[0].second = "root:x:0:0::/root:/bin/bash\n"; }},
      {"files fewer", [](Plan& p) { p.files.clear(); }},
      {"links", [](Plan& p) { p.links.emplace_back("/lib", "/proc/1/root"); }},
      {"hide", [](Plan& p) { std::erase(p.hide, "/srv/data/secret"); }},
      {"makeable", [](Plan& p) { p.makeable.emplace_back("/srv/data/new"); }},
      {"tools", [](Plan& p) { p.tools = "/srv/data"; }},
      {"private_tmp_options", [](Plan& p) { p.private_tmp_options = "size=1000000000000"; }},
      {"system", [](Plan& p) { p.system.directory = "/run/system/x"; }},
      {"home_options", [](Plan& p) { p.home_options = "size=1000000000000"; }},
      {"landlock", [](Plan& p) { p.landlock[0].access = ~0ULL; }},
      {"landlock another", [](Plan& p) { p.landlock.push_back({"/srv", ~0ULL, true}); }},
      {"landlock_fs", [](Plan& p) { p.landlock_fs = 0; }},
      {"landlock_scoped", [](Plan& p) { p.landlock_scoped = 0; }},
      {"limits", [](Plan& p) { p.limits[0].second.rlim_max += 1; }},
      {"limits soft", [](Plan& p) { p.limits[1].second.rlim_cur += 1; }},
      {"limits fewer", [](Plan& p) { p.limits.pop_back(); }},
      {"mechanisms", [](Plan& p) { p.mechanisms[static_cast<int>(Mechanism::seccomp)].state = MechanismState::unavailable; }},
      {"mechanisms io", [](Plan& p) { p.mechanisms[static_cast<int>(Mechanism::io)].reason = "it is not needed"; }},
      {"residual", [](Plan& p) { std::erase_if(p.residual, [](const Residual& r) { return r.id == "file-locks"; }); }},
      {"residual words", [](Plan& p) { p.residual[0].what = "nothing"; }},
  };
}

// The launcher puts these there itself, or does not act on them.
constexpr std::string_view kOurs[] = {"policy", "disks", "protect", "absent", "closed", "claims", "view", "canonical"};

TEST(Subset, APlanThatIsWiderByAnyFieldIsRefused) {
  Domain bench;
  const Plan domain = **bench.plan(Tier::t3);
  ASSERT_EQ(wider(domain, domain), std::nullopt);
  std::set<std::string> done;
  for (const auto& [name, widen] : plan_mutations()) {
    Plan changed = domain;
    changed.single_use = true;
    Plan whole = changed;
    widen(changed);
    const std::string field = name.substr(0, name.find(' '));
    EXPECT_EQ(wider(changed, whole), field) << name;
    done.insert(field);
  }
  for (const std::string& rule : plan_rules())
    EXPECT_NE(done.contains(rule), std::ranges::find(kOurs, rule) != std::end(kOurs)) << rule << " has no mutation";
}

// Every field of a policy: a narrowed plan with another value of a field that requests cannot narrow, or a larger one of one that
// they can, is refused by its name.
TEST(Subset, APolicyThatIsWiderByAnyFieldIsRefused) {
  Domain bench;
  bench.policy.home = bench.policy.tmp = policy::Scope::private_;
  bench.policy.protect_home = true;
  const Policy& domain = bench.policy;
  const auto another = []<class T>(const policy::Row& row, T& value) {
    if constexpr (std::same_as<T, bool>) value = !value;
    else if constexpr (std::same_as<T, std::string>) value += "x";
    else if constexpr (std::same_as<T, std::vector<policy::Grant>>) value[0].access = Access::read_write;
    else if constexpr (std::same_as<T, policy::Words>) row.pointer == "/protect" ? value.clear() : value.push_back("/another");
    else if constexpr (std::same_as<T, policy::Map>) value["/another"] = "x";
    else if constexpr (std::same_as<T, std::vector<policy::SyscallSet>>) value.push_back({.name = "another"});
    else if constexpr (std::same_as<T, std::set<Mechanism>>) value.insert(Mechanism::seccomp);
    else if constexpr (std::same_as<T, std::set<std::uint16_t>>) value.insert(8000);
    else if constexpr (std::integral<T>) value += 1;
    else value = static_cast<T>(static_cast<int>(value) + 1);
  };
  for (const policy::Row& row : policy::kRows) {
    Policy changed = domain;
    std::visit([&](auto member) { another(row, policy::value_of(changed, member)); }, row.member);
    if (row.member == policy::Member(&Policy::digest)) EXPECT_EQ(wider(changed, domain), std::nullopt);
    else EXPECT_EQ(wider(changed, domain), row.pointer.empty() ? "/layers" : row.pointer) << row.pointer;
  }
  const auto whole = *planned(std::make_shared<Policy>(domain), Tier::t3);
  Plan plan = *whole;
  auto more = std::make_shared<Policy>(domain);
  more->limits.processes += 1;
  plan.policy = more;
  EXPECT_EQ(wider(plan, *whole), "policy/limits/processes");
}

TEST(Subset, TheStrictestValuesAreNoWider) {
  Domain bench;
  bench.policy.network = policy::Network::loopback;
  const auto whole = std::make_shared<const Policy>(bench.policy);
  const auto domain = bench.plan(Tier::t3);
  const auto by = policy::parse_narrowing(
      *json::parse(R"({"home": "private", "tmp": "private", "network": "none", "protect_home": true, "protect": [".vscode"],
                       "limits": {"processes": 1, "tmp_bytes": 65536}, "grants": [{"path": "/usr/bin", "execute": true}]})"));
  ASSERT_TRUE(by) << by.error().text();
  bench.policy = **policy::narrow(whole, *by);
  bench.place.own_net = true;
  bench.sources["/usr/bin"] = {true, true, 1, 9};
  EXPECT_EQ(wider(**bench.plan(Tier::t3), **domain), std::nullopt);
}

// What the list permits is not for the launcher to read: a request leaves it as it is, or takes it away with the network.
TEST(Subset, AWayOutIsTheDomainsOrNone) {
  Domain bench;
  bench.policy.network = policy::Network::allowlist;
  bench.policy.egress = "a list";
  const auto domain = bench.plan(Tier::t3);
  EXPECT_EQ(wider(**bench.plan(Tier::t3), **domain), std::nullopt);
  bench.policy.egress = "another";
  EXPECT_EQ(wider(**bench.plan(Tier::t3), **domain), "policy/egress");
  bench.policy.egress.clear();
  bench.policy.network = policy::Network::none;
  EXPECT_EQ(wider(**bench.plan(Tier::t3), **domain), std::nullopt);
  bench.policy.network = policy::Network::open;
  EXPECT_EQ(wider(**bench.plan(Tier::t3), **domain), "policy/network");
}

// A domain without limits of disks: a request's need the controller.
TEST(Subset, LimitsOfDisksThatOnlyTheRequestHasAreNoWider) {
  Domain bench;
  bench.policy.limits.io_read_bytes_per_second = policy::kNoIoLimit;
  const auto domain = bench.plan(Tier::t3);
  bench.policy.limits.io_write_bytes_per_second = 1 << 20;
  const auto narrowed = bench.plan(Tier::t3);
  EXPECT_EQ(wider(**narrowed, **domain), std::nullopt);
  Plan lying = **narrowed;
  lying.io = false;
  EXPECT_EQ(wider(lying, **domain), "mechanisms");
}

TEST(Subset, ASessionWithoutTheCopyOfTheSystemHasWhatWasGrantedOfIt) {
  Domain bench;
  bench.policy.system_packages = true;
  bench.policy.links["/etc/localtime"] = "../usr/share/zoneinfo/Etc/UTC";
  bench.policy.grants.push_back({.path = "/etc/ssl", .source = "/etc/ssl"});
  bench.sources["/etc/ssl"] = {true, true, 1, 8};
  bench.policy.syscalls.allow = {policy::kPackagesSet};
  bench.policy.sets = {{.name = policy::kPackagesSet}};
  const auto whole = std::make_shared<const Policy>(bench.policy);
  const auto domain = *bench.plan(Tier::t3);
  ASSERT_FALSE(domain->system.empty());
  bench.policy = **policy::narrow(whole, {.grants = {}, .limits = {}, .protect = {}, .system_none = true});
  const Plan narrowed = **bench.plan(Tier::t3);
  EXPECT_EQ(wider(narrowed, *domain), std::nullopt);
  for (const auto& [field, widen] : std::vector<std::pair<std::string, std::function<void(Plan&)>>>{
           {"binds", [](Plan& p) { std::ranges::find(p.binds, "/usr", &Bind::target)->read_only = false; }},
           {"binds", [](Plan& p) { p.binds.push_back({.target = "/etc", .source = "/etc"}); }},
           {"files", [](Plan& p) { p.files.clear(); }},
           {"links", [](Plan& p) { p.links.clear(); }},
           {"hide", [](Plan& p) { std::erase(p.hide, "/usr/lib/caisson"); }}}) {
    Plan changed = narrowed;
    widen(changed);
    EXPECT_EQ(wider(changed, *domain), field);
  }
}

// Names that are protected in a grant are not in the home around it.
TEST(Subset, AGrantInTheHomeKeepsItsProtectedNames) {
  Domain bench;
  bench.place.home_source = "/home/gem";
  bench.policy.grants.push_back({.path = "/home/gem/x", .source = "/home/gem/x", .access = Access::read_write, .execute = true});
  bench.sources["/home/gem"] = bench.sources["/home/gem/x"] = {true, true, 1, 8};
  const Plan domain = **bench.plan(Tier::t3);
  Plan changed = domain;
  std::erase_if(changed.binds, [](const Bind& b) { return b.target == "/home/gem/x"; });
  EXPECT_EQ(wider(changed, domain), "binds");
}

}  // namespace
}  // namespace caisson::confine
