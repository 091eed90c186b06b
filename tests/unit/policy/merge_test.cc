// A domain over base: what is joined, what is replaced, and what counts as giving more.
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

std::string weaken(const std::string& field) {
  return "\"weaken\": [{\"field\": \"" + field + "\", \"why\": \"for a test\"}],\n";
}
std::string ask(const std::string& field) {
  return "; if this is intended, give a reason in weaken: {\"field\": \"" + field + "\", \"why\": \"…\"}";
}

TEST(Merge, LessIsTakenWithoutCeremony) {
  Directory dir;
  EXPECT_EQ(dir.with("\"limits\": {\"processes\": 3}, \"home\": \"private\", \"network\": \"none\", \"min_tier\": \"T2\", "
                     "\"umask\": \"077\", "
                     "\"require\": [\"mount_ns\"], \"devices\": []"),
            Texts{});
  const auto policy = dir.policy();
  EXPECT_EQ(policy->limits.processes, 3U);
  EXPECT_EQ(policy->limits.execs, 64U);
  EXPECT_EQ(policy->home, Scope::private_);
  EXPECT_EQ(policy->network, Network::none);
  EXPECT_EQ(policy->min_tier, Tier::t2);
  EXPECT_EQ(policy->umask, 077U);
  EXPECT_TRUE(policy->devices.empty());
  EXPECT_EQ(policy->hide, std::vector<std::string>{"/usr/lib/caisson"});
}

TEST(Merge, MoreNeedsItsReason) {
  Directory dir;
  EXPECT_EQ(dir.with("\"limits\": {\"processes\": 600}"),
            Texts{"d.json:2 /limits/processes: gives more than base: 600 instead of 512" + ask("/limits/processes")});
  EXPECT_EQ(dir.with(weaken("/limits/processes") + "\"limits\": {\"processes\": 600}"), Texts{});
  EXPECT_EQ(dir.policy()->weaken, (std::map<std::string, std::string>{{"/limits/processes", "for a test"}}));
  EXPECT_EQ(dir.policy()->limits.processes, 600U);
}

TEST(Merge, EachKindOfWidening) {
  Directory dir;
  dir.write("base.json",
            R"({"min_tier": "T0", "require": ["seccomp"], "hide": [], "devices": ["null"], "home": "private", "tmp": "private",
    "network": "none", "umask": "077",
    "env": {"client_deny": ["LD_*"]}, "syscalls": {"allow": ["io"], "deny": ["ioctl"]}})");
  dir.write("seccomp/more.json", R"({"name": "more", "why": "for the tests", "allow": [{"names": ["open"]}]})");
  const std::pair<const char*, const char*> cases[] = {{"/min_tier", "\"min_tier\": \"T1\""},
                                                       {"/require", "\"require\": [\"landlock\"]"},
                                                       {"/devices", "\"devices\": [\"null\", \"tty\"]"},
                                                       {"/home", "\"home\": \"workspace\""},
                                                       {"/tmp", "\"tmp\": \"workspace\""},
                                                       {"/network", "\"network\": \"loopback\""},
                                                       {"/umask", "\"umask\": \"075\""},
                                                       {"/env/client_deny", "\"env\": {\"client_deny\": []}"},
                                                       {"/syscalls/allow", "\"syscalls\": {\"allow\": [\"io\", \"more\"]}"},
                                                       {"/syscalls/deny", "\"syscalls\": {\"deny\": []}"},
                                                       {"/disable", "\"disable\": [\"cgroup\"]"},
                                                       {"/proc_shared_fallback", "\"proc_shared_fallback\": true"},
                                                       {"/audit/denials", "\"audit\": {\"denials\": false}"},
                                                       {"/audit/max_bytes", "\"audit\": {\"max_bytes\": 2097152}"},
                                                       {"/audit/keep_days", "\"audit\": {\"keep_days\": 1}"},
                                                       {"/audit/on_full", "\"audit\": {\"on_full\": \"stderr\"}"}};
  for (const auto& [field, text] : cases) {
    const auto found = dir.with(text);
    ASSERT_EQ(found.size(), 1U) << field;
    EXPECT_TRUE(found[0].starts_with("d.json:2 " + std::string(field) + ": gives more than base: ")) << found[0];
    EXPECT_EQ(dir.with(weaken(field) + text), Texts{}) << field;
  }
}

TEST(Merge, SayingMoreInTheLogIsTakenWithoutCeremony) {
  Directory dir;
  EXPECT_EQ(dir.with(R"("audit": {"max_bytes": 134217728, "keep_days": 365})"), Texts{});
  const Audit audit = dir.policy()->audit;
  EXPECT_TRUE(audit.denials);
  EXPECT_EQ(audit.max_bytes, 134217728U);
  EXPECT_EQ(audit.keep_days, 365U);
  EXPECT_EQ(audit.on_full, OnFull::stop);
}

TEST(Merge, ALogIsBoundedAndKept) {
  Directory dir;
  EXPECT_EQ(dir.with(R"("audit": {"keep_days": 0})"), Texts{"d.json:2 /audit/keep_days: 0 is not from 1 to 36500"});
  EXPECT_EQ(dir.with(R"("audit": {"max_bytes": 0})"), Texts{"d.json:2 /audit/max_bytes: 0 is not from 1048576 to 1099511627776"});
  EXPECT_EQ(dir.with(R"("audit": {"on_full": "drop"})"),
            Texts{"d.json:2 /audit/on_full: unknown value 'drop', must be one of: stop stderr"});
}

TEST(Merge, RemovingAHiddenPathWidens) {
  Directory dir;
  EXPECT_EQ(dir.with("\"hide\": []"),
            Texts{"d.json:2 /hide: gives more than base: [] instead of [\"/usr/lib/caisson\"]" + ask("/hide")});
}

TEST(Merge, ProtectedNamesAreAddedUp) {
  Directory dir;
  EXPECT_EQ(dir.with(R"("protect": [".git/hooks"])"), Texts{});
  EXPECT_EQ(dir.policy()->protect, Texts{".git/hooks"});
  dir.write("base.json", R"({"protect": [".vscode", ".bashrc"], "protect_home": true, "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.with(R"("protect": [".git/hooks", ".bashrc"])"), Texts{});
  EXPECT_EQ(dir.policy()->protect, (Texts{".vscode", ".bashrc", ".git/hooks"}));
  EXPECT_EQ(dir.with(R"("protect": [])"), Texts{}) << "which takes nothing away";
  EXPECT_EQ(dir.policy()->protect, (Texts{".vscode", ".bashrc"}));
  EXPECT_EQ(dir.with(R"("protect_home": false)").size(), 1U);
}

TEST(Merge, WhatIsProtectedIsANameOrTheEndOfAPath) {
  Directory dir;
  EXPECT_EQ(dir.with(R"("protect": ["/etc/x"])"),
            Texts{"d.json:2 /protect/0: name is absolute: '/etc/x'; it holds at any depth; meant 'etc/x'?"});
  for (const char* name : {"", ".", "..", "a/../b", "a//b", "a/", "./a"})
    EXPECT_EQ(dir.with("\"protect\": [\"" + std::string(name) + "\"]").size(), 1U) << name;
  EXPECT_EQ(dir.with("\"protect\": [\"a\\u0000b\"]"), Texts{"d.json:2 /protect/0: text holds a NUL byte: 'a\\x00b'"});
  EXPECT_EQ(dir.with("\"protect\": [\"" + std::string(256, 'a') + "\"]").size(), 1U);
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "\"n" : ", \"n") + std::to_string(i) + "\"";
  EXPECT_EQ(dir.with("\"protect\": [" + many + "]"), Texts{"d.json:2 /protect: has 65 elements, must have from 0 to 64"});
}

TEST(Merge, GrantsWiden) {
  Directory dir;
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/srv\"}]"),
            Texts{"d.json:2 /grants/0: grants '/srv', which base does not give" + ask("/grants/srv")});
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/usr/local\", \"access\": \"read-write\"}]"),
            Texts{"d.json:2 /grants/0: gives more of '/usr/local' than base's grant of '/usr'" + ask("/grants/usr/local")});
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/data\", \"execute\": true}]"),
            Texts{"d.json:2 /grants/0: gives more of '/data' than base's grant of '/data'" + ask("/grants/data")});
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/data\", \"source\": \"/etc\"}]"),
            Texts{"d.json:2 /grants/0: gives more of '/data' than base's grant of '/data'" + ask("/grants/data")});
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/usr2\"}]"),
            Texts{"d.json:2 /grants/0: grants '/usr2', which base does not give" + ask("/grants/usr2")});
  EXPECT_EQ(dir.with(weaken("/grants/srv") + "\"grants\": [{\"path\": \"/srv\"}]"), Texts{});
  EXPECT_EQ(dir.policy()->grants.size(), 3U);
}

TEST(Merge, GrantsNarrowAndReplaceByPath) {
  Directory dir;
  EXPECT_EQ(dir.with("\"grants\": [{\"path\": \"/data\", \"description\": \"now read-only\"}, {\"path\": \"/usr/share\"}]"),
            Texts{});
  const auto policy = dir.policy();
  ASSERT_EQ(policy->grants.size(), 3U);
  EXPECT_EQ(policy->grants[0].access, Access::read);
  EXPECT_EQ(policy->grants[0].description, "now read-only");
  EXPECT_FALSE(policy->grants[2].execute);
}

TEST(Merge, AReasonThatIsNotNeededIsAProblem) {
  Directory dir;
  EXPECT_EQ(dir.with(weaken("/limits/processes") + "\"limits\": {\"processes\": 5}"),
            Texts{"d.json:2 /weaken/0/field: weakens nothing: this file gives no more of '/limits/processes' than base"});
  EXPECT_EQ(dir.with(weaken("/limits/proceses") + "\"limits\": {\"processes\": 600}"),
            (Texts{"d.json:3 /limits/processes: gives more than base: 600 instead of 512" + ask("/limits/processes"),
                   "d.json:2 /weaken/0/field: weakens nothing: this file gives no more of '/limits/proceses' than base; meant "
                   "'/limits/processes'?"}));
}

TEST(Merge, AReasonNeedsWords) {
  Directory dir;
  EXPECT_EQ(dir.with("\"weaken\": [{\"field\": \"/tmp\", \"why\": \"x\"}]"),
            Texts{"d.json:2 /weaken/0/why: has 1 bytes, must have from 8 to 1000"});
  EXPECT_EQ(dir.with("\"weaken\": [{\"field\": \"/tmp\"}]"), Texts{"d.json:2 /weaken/0: field 'why' is missing"});
}

TEST(Merge, EvenBaseSaysWhyItSwitchesAMechanismOff) {
  Directory dir;
  dir.write("base.json", "{\"disable\": [\"cgroup\"],\n\"syscalls\": {\"allow\": [\"io\"]}}");
  EXPECT_EQ(dir.problems(), Texts{"base.json:1 /disable: gives more than base: [\"cgroup\"] instead of []" + ask("/disable")});
  dir.write("base.json",
            "{\"disable\": [\"cgroup\"], \"weaken\": [{\"field\": \"/disable\", \"why\": \"for a test\"}],\n\"syscalls\": "
            "{\"allow\": [\"io\"]}}");
  EXPECT_EQ(dir.problems(), Texts{});
  EXPECT_TRUE(dir.policy()->disable.contains(Mechanism::cgroup));
  EXPECT_EQ(dir.policy()->weaken.at("/disable"), "for a test");
}

TEST(Merge, RequiredAndDisabledContradict) {
  Directory dir;
  EXPECT_EQ(dir.with(weaken("/disable") + "\"disable\": [\"cgroup\"], \"require\": [\"cgroup\"]"),
            Texts{"d.json:3 /disable: 'cgroup' is also required: no session could start"});
}

TEST(Merge, MapsAreJoinedByKey) {
  Directory dir;
  dir.write("base.json",
            R"({"env": {"set": {"A": "1", "B": "2"}}, "links": {"/bin": "usr/bin"}, "syscalls": {"allow": ["io"]}})");
  EXPECT_EQ(dir.with("\"env\": {\"set\": {\"B\": \"3\", \"C\": \"4\"}}, \"links\": {\"/lib\": \"usr/lib\"}"), Texts{});
  EXPECT_EQ(dir.policy()->env.set, (std::map<std::string, std::string>{{"A", "1"}, {"B", "3"}, {"C", "4"}}));
  EXPECT_EQ(dir.policy()->links.size(), 2U);
}

TEST(Merge, ReasonsNameFields) {
  Directory dir;
  EXPECT_EQ(dir.with("\"why\": {\"/limits/execz\": \"because\"}"),
            Texts{"d.json:2 /why/~1limits~1execz: no such field: '/limits/execz'; meant '/limits/execs'?"});
}

}  // namespace
}  // namespace caisson::policy
