// A preset over a domain: the stricter of both in every field, more only by name, and nothing of it undone by a domain.
#include "launcher/compiler/canonical.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

struct Preset : testing::Test {
  Preset() { std::filesystem::create_directory(dir.path() + "/presets"); }
  std::shared_ptr<const Policy> with(const std::string& domain, const std::string& preset) {
    dir.write("d.json", "{\"extends\": \"base\"" + domain + "}");
    dir.write("presets/p.json", preset);
    auto loaded = load_directory(dir.path(), {"", "p"});
    for (const Problem& problem : loaded.problems) ADD_FAILURE() << problem.text();
    const auto it = loaded.policies.find("d");
    return it == loaded.policies.end() ? std::make_shared<const Policy>() : it->second;
  }
  Texts problems(const std::string& preset) {
    dir.write("presets/p.json", preset);
    Texts out;
    for (const Problem& problem : load_directory(dir.path(), {"", "p"}).problems)
      out.push_back(problem.text().substr(dir.path().size() + 1));
    return out;
  }
  Directory dir;
};

TEST_F(Preset, TakesAwayFromADomainThatSaysNothing) {
  const auto p = with("", R"({"network": "none", "home": "private", "umask": "077", "min_tier": "T2", "limits": {"processes": 8},
    "require": ["mount_ns"], "devices": [], "audit": {"keep_days": 900}, "why": {"/network": "for a test"}})");
  EXPECT_EQ(p->network, Network::none);
  EXPECT_EQ(p->home, Scope::private_);
  EXPECT_EQ(p->tmp, Scope::workspace);
  EXPECT_EQ(p->umask, 077U);
  EXPECT_EQ(p->min_tier, Tier::t2);
  EXPECT_EQ(p->limits.processes, 8U);
  EXPECT_EQ(p->limits.execs, 64U);
  EXPECT_TRUE(p->require.contains(Mechanism::mount_ns));
  EXPECT_TRUE(p->devices.empty());
  EXPECT_EQ(p->audit.keep_days, 900U);
  EXPECT_EQ(p->why.at("/network"), "for a test");
  EXPECT_EQ(p->preset, "p");
  EXPECT_EQ(p->layers.back(), "presets/p.json");
}

TEST_F(Preset, ADomainThatIsStricterStaysSoWithItsReason) {
  const auto p = with(R"(, "network": "none", "limits": {"processes": 4}, "umask": "137", "why": {"/limits/processes": "mine"})",
                      R"({"limits": {"processes": 8}, "umask": "077", "why": {"/limits/processes": "the preset's"}})");
  EXPECT_EQ(p->network, Network::none);
  EXPECT_EQ(p->limits.processes, 4U);
  EXPECT_EQ(p->umask, 0177U);
  EXPECT_EQ(p->why.at("/limits/processes"), "mine");
}

TEST_F(Preset, ADomainsWeakenCannotUndoIt) {
  const auto p = with(R"(, "limits": {"processes": 900}, "devices": ["null", "tty"], "hide": [],
    "weaken": [{"field": "/limits/processes", "why": "for a test"}, {"field": "/devices", "why": "for a test"},
               {"field": "/hide", "why": "for a test"}])",
                      R"({"limits": {"processes": 8}, "devices": ["null"], "hide": ["/usr/lib/caisson"]})");
  EXPECT_EQ(p->limits.processes, 8U);
  EXPECT_EQ(p->devices, Texts{"null"});
  EXPECT_EQ(p->hide, Texts{"/usr/lib/caisson"});
  EXPECT_TRUE(p->weaken.empty()) << "what is no longer weaker is not called so";
}

TEST_F(Preset, ProtectedNamesAreTheDomainsAndItsOwn) {
  const auto p = with(R"(, "protect": ["mine"])", R"({"protect": [".git/hooks", "mine"], "protect_home": true})");
  EXPECT_EQ(p->protect, (Texts{"mine", ".git/hooks"}));
  EXPECT_TRUE(p->protect_home);
}

TEST_F(Preset, GivesMoreOnlyByNameAndWithItsReason) {
  EXPECT_EQ(problems(R"({"limits": {"processes": 900}})").size(), 1U);
  const std::string more = R"({"limits": {"processes": 900}, "weaken": [{"field": "/limits/processes", "why": "the preset's"}]})";
  const auto p = with("", more);
  EXPECT_EQ(p->limits.processes, 900U);
  EXPECT_EQ(p->weaken, (std::map<std::string, std::string>{{"/limits/processes", "the preset's"}}));
  EXPECT_EQ(with(R"(, "limits": {"processes": 4})", more)->limits.processes, 4U) << "a domain keeps what it took away from base";
  EXPECT_EQ(with(R"(, "limits": {"processes": 1000}, "weaken": [{"field": "/limits/processes", "why": "the domain's"}])", more)
                ->limits.processes,
            1000U);
}

TEST_F(Preset, AddsAGrantByNameOnly) {
  EXPECT_EQ(problems(R"({"grants": [{"path": "/srv"}]})").size(), 1U);
  const std::string more = R"({"grants": [{"path": "/srv"}], "weaken": [{"field": "/grants/srv", "why": "the preset's"}]})";
  const auto p = with("", more);
  EXPECT_EQ(p->grants.back().path, "/usr");
  EXPECT_EQ(p->grants[1].path, "/srv");
  EXPECT_TRUE(p->weaken.contains("/grants/srv"));
}

TEST_F(Preset, NarrowsAPathAndAllThatIsGrantedBelowIt) {
  const auto p = with(R"(, "grants": [{"path": "/usr/local/own", "access": "read-write", "execute": true}],
    "weaken": [{"field": "/grants/usr/local/own", "why": "for a test"}])",
                      R"({"grants": [{"path": "/usr/local"}, {"path": "/data"}]})");
  std::map<std::string, const Grant*> grants;
  for (const Grant& g : p->grants) grants[g.path] = &g;
  EXPECT_TRUE(grants.at("/usr")->execute);
  for (const char* path : {"/usr/local", "/usr/local/own", "/data"}) {
    EXPECT_EQ(grants.at(path)->access, Access::read) << path;
    EXPECT_FALSE(grants.at(path)->execute) << path;
  }
  EXPECT_TRUE(p->weaken.empty());
}

TEST_F(Preset, SpeaksToDomainsThatLackWhatItTakesAway) {
  dir.write("base.json", R"({"grants": [{"path": "/usr", "execute": true}], "syscalls": {"allow": ["io"]}})");
  dir.write("seccomp/more.json", R"({"name": "more", "why": "for the tests", "allow": [{"names": ["open"]}]})");
  const auto p = with("", R"({"hide": ["/data/x"], "syscalls": {"deny": ["read"]}, "grants": [{"path": "/usr/share"}]})");
  EXPECT_EQ(p->syscalls.deny, Texts{"read"});
}

TEST_F(Preset, HoldsOnlyWhatCanBeMoreOrLess) {
  EXPECT_EQ(problems(R"({"hostname": "x"})"), Texts{"presets/p.json:1 /hostname: cannot be in a preset: a preset applies to "
                                                    "every domain, and this field has no stricter value"});
  EXPECT_EQ(problems(R"({"extends": "base"})").size(), 1U);
  EXPECT_EQ(problems(R"({"env": {"set": {"PATH": "/x"}}})").size(), 1U);
}

TEST_F(Preset, OneThatIsNotThereIsNamed) {
  dir.write("presets/finance.json", "{}");
  const auto loaded = load_directory(dir.path(), {"", "finanse"});
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(loaded.problems[0].text(), dir.path() + "/presets: has no preset 'finanse'; meant 'finance'?");
  EXPECT_TRUE(loaded.policies.empty());
  EXPECT_EQ(load_directory(dir.path(), {"", "../d"}).problems.size(), 1U) << "a name, not a path";
}

TEST_F(Preset, IsInTheDigest) {
  const auto plain = dir.policy();
  EXPECT_NE(with("", "{}")->digest, plain->digest);
  EXPECT_EQ(to_json(*with("", "{}"))["preset"], "p");
}

}  // namespace
}  // namespace caisson::policy
