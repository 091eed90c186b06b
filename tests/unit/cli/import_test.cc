// Others' files as policies: what comes out passes the checks of policies, and what is left out is told.
#include <algorithm>

#include "launcher/cli/policy_import.h"
#include "tests/unit/policy/directory.h"

namespace caisson::cli {
namespace {

using policy::Directory;
using policy::Texts;

json::Value parsed(const std::string& text) { return *json::parse(text); }
bool says(const Imported& imported, const std::string& part) {
  return std::ranges::any_of(imported.report, [&](const std::string& line) { return line.contains(part); });
}

// Also as the member of an OCI runtime's configuration that it is: the same comes of both.
Imported seccomp(const std::string& rules) {
  const std::string profile = R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [)" + rules + "]}";
  auto out = import_seccomp(parsed(profile), "team", {"ptrace"});
  const auto oci =
      import_seccomp(parsed(R"({"ociVersion": "1.2.0", "linux": {"seccomp": )" + profile + "}}"), "team", {"ptrace"});
  if (!out) ADD_FAILURE() << out.error().what;
  EXPECT_TRUE(oci && out && oci->document == out->document && oci->report == out->report);
  return out ? *out : Imported{};
}

// The set, as a policy directory takes it.
std::vector<policy::SyscallRule> rules_of(const Imported& imported) {
  Directory dir;
  dir.write("seccomp/team.json", json::dump(imported.document, 2));
  dir.write("base.json", R"({"syscalls": {"allow": ["team"]}})");
  EXPECT_EQ(dir.problems(), Texts{}) << json::dump(imported.document, 2);
  const auto policy = dir.policy();
  return policy->sets.empty() ? std::vector<policy::SyscallRule>{} : policy->sets[0].allow;
}

TEST(ImportSeccomp, NamesAndConditionsBecomeASet) {
  const auto imported = seccomp(R"({"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]},
    {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
    {"names": ["clone"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 0, "value": 2114060288, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]})");
  std::map<std::string, policy::SyscallRule> rules;
  for (const auto& rule : rules_of(imported)) rules[rule.name] = rule;
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_TRUE(rules["read"].any_of.empty());
  EXPECT_EQ(rules["personality"].any_of.size(), 2U);
  EXPECT_EQ(rules["clone"].any_of[0][0].mask, 2114060288U);
}

TEST(ImportSeccomp, NotEqualLooksAtWhatTheKernelLooksAt) {
  const auto imported =
      seccomp(R"({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}]})");
  const auto rules = rules_of(imported);
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_TRUE(rules[0].any_of.empty());
  EXPECT_EQ(rules[0].refuse_if[0][0].op, "masked_eq");
  EXPECT_EQ(rules[0].refuse_if[0][0].mask, 0xffffffffU);
}

TEST(ImportSeccomp, WhatASessionCannotHaveIsLeftOutAndTold) {
  const auto imported = seccomp(R"({"names": ["read"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "4.8"}},
    {"names": ["arm_sync"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["mips"]}},
    {"names": ["open"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["semop"], "action": "SCMP_ACT_LOG"},
    {"names": ["kcmp"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13},
    {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    {"names": ["ioctl"], "action": "SCMP_ACT_ALLOW",
     "args": [{"index": 1, "value": 1, "op": "SCMP_CMP_GE"}, {"index": 1, "value": 9, "op": "SCMP_CMP_LE"}]})");
  std::vector<std::string> allowed;
  for (const auto& rule : rules_of(imported)) allowed.push_back(rule.name);
  EXPECT_EQ(allowed, (Texts{"open", "read"}));
  for (const char* part : {"CAP_SYS_ADMIN", "minKernel", "SCMP_ACT_LOG", "EACCES of kcmp becomes EPERM", "conditions on ioctl"})
    EXPECT_TRUE(says(imported, part)) << part;
  EXPECT_EQ(imported.document["refuse"][0]["names"], parsed(R"(["kcmp", "semop"])"));
}

TEST(ImportSeccomp, RefusedWinsAndWhatIsWiderIsSaid) {
  const auto both =
      seccomp(R"({"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"}, {"names": ["write"], "action": "SCMP_ACT_KILL"})");
  EXPECT_EQ(rules_of(both).size(), 1U);
  EXPECT_TRUE(says(seccomp(R"({"names": ["ptrace"], "action": "SCMP_ACT_ALLOW"})"), "WIDER"));
}

TEST(ImportSeccomp, AProfileThatAllowsByDefaultIsRefused) {
  for (const char* action : {"SCMP_ACT_ALLOW", "SCMP_ACT_LOG", ""})
    EXPECT_FALSE(import_seccomp({{"defaultAction", action}, {"syscalls", json::Value::array()}}, "team", {})) << action;
  EXPECT_FALSE(import_seccomp(parsed("[]"), "team", {}));
  EXPECT_FALSE(import_seccomp(
      parsed(R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["../x"], "action": "SCMP_ACT_ALLOW"}]})"), "team",
      {}));
  EXPECT_FALSE(import_seccomp(parsed(R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []})"), "a/b", {}));
}

TEST(ImportSeccomp, MobysOwnProfilePasses) {
  const auto doc = json::parse(policy::read_text(CAISSON_SOURCE_DIR "/image/seccomp.json"), {.max_bytes = 1 << 20});
  ASSERT_TRUE(doc);
  const auto imported = import_seccomp(*doc, "team", {"ptrace", "keyctl"});
  ASSERT_TRUE(imported) << imported.error().what;
  EXPECT_GT(rules_of(*imported).size(), 250U);
}

struct ImportSrt : testing::Test {
  ImportSrt() {
    dir.write("base.json",
              R"({"grants": [{"path": "/usr", "execute": true}, {"path": "/etc/ssl/certs"}], "hide": ["/usr/lib/caisson"],
      "links": {"/bin": "usr/bin"}, "syscalls": {"allow": ["io"]}})");
    base = policy::load_directory(dir.path()).base;
  }
  Imported import(const std::string& settings) {
    auto out = import_srt(parsed(settings), *base);
    if (!out) ADD_FAILURE() << out.error().what;
    if (!out) return {};
    dir.write("d.json", json::dump(out->document, 2));
    EXPECT_EQ(dir.problems(), Texts{}) << json::dump(out->document, 2);
    return *out;
  }
  Directory dir;
  std::shared_ptr<const policy::Policy> base;
};

TEST_F(ImportSrt, PathsBecomeGrantsWithTheirReasons) {
  import(
      R"({"filesystem": {"allowWrite": ["/srv/out", "/srv/in", "."], "denyWrite": ["/srv/in", "/srv/out/fixed"],
    "allowRead": ["/opt/data"], "denyRead": ["/etc/ssl/certs", "/root"]}})");
  const auto p = dir.policy();
  std::map<std::string, policy::Access> access;
  for (const auto& g : p->grants) access[g.path] = g.access;
  EXPECT_EQ(access.at("/srv/out"), policy::Access::read_write);
  EXPECT_EQ(access.at("/srv/out/fixed"), policy::Access::read);
  EXPECT_EQ(access.at("/srv/in"), policy::Access::read);
  EXPECT_EQ(access.at("/opt/data"), policy::Access::read);
  EXPECT_EQ(p->hide, (Texts{"/usr/lib/caisson", "/etc/ssl/certs"}));
  EXPECT_TRUE(p->weaken.contains("/grants/srv/out"));
  EXPECT_FALSE(access.contains("/root"));
}

TEST_F(ImportSrt, WhatHasNoCounterpartIsTold) {
  const auto imported = import(
      R"({"filesystem": {"allowWrite": ["src/", "/tmp/x", "/srv/*.log", "/proc/x", "/bin"],
      "denyWrite": [".env"], "denyRead": ["~/.ssh"], "allowGitConfig": true}, "enableWeakerNestedSandbox": true,
      "network": {"deniedDomains": ["example.org"], "httpProxyPort": 3128}})");
  for (const char* part : {"allowWrite 'src/': relative", "'/tmp/x': home and /tmp", "patterns", "/proc and /dev",
                           "'/bin': base makes", "denyWrite '.env'", "denyRead '~/.ssh'", "allowGitConfig",
                           "network.deniedDomains: sessions reach nothing", "network.httpProxyPort", "enableWeakerNestedSandbox"})
    EXPECT_TRUE(says(imported, part)) << part;
  EXPECT_EQ(dir.policy()->network, policy::Network::none);
  EXPECT_FALSE(imported.document.contains("grants"));
}

TEST_F(ImportSrt, LocalBindingIsLoopback) {
  import(R"({"network": {"allowLocalBinding": true, "allowedDomains": []}})");
  EXPECT_EQ(dir.policy()->network, policy::Network::loopback);
}

TEST_F(ImportSrt, DomainsBecomeRules) {
  const auto imported = import(
      R"({"network": {"allowLocalBinding": true, "allowedDomains": ["API.Example.org.", "*.example.org", "api.example.org",
      "localhost", "10.0.0.1", "*", "exa mple.org"], "deniedDomains": ["upload.example.org", "10.0.0.2"]}})");
  EXPECT_EQ(imported.document["network"], "allowlist");
  const json::Value expected = {
      {{"host", "api.example.org"}, {"why", "allowedDomains of the imported settings"}},
      {{"host", "*.example.org"}, {"why", "allowedDomains of the imported settings"}},
      {{"host", "upload.example.org"}, {"why", "deniedDomains of the imported settings"}, {"deny", true}},
      {{"host", "10.0.0.2"}, {"why", "deniedDomains of the imported settings"}, {"deny", true}}};
  EXPECT_EQ(imported.document["egress"], expected);
  EXPECT_EQ(dir.policy()->network, policy::Network::allowlist);
  for (const char* part : {"'localhost': a session's loopback", "'10.0.0.1': is an address", "'*': is neither",
                           "'exa mple.org': is neither", "there at every port"})
    EXPECT_TRUE(says(imported, part)) << part;
}

TEST_F(ImportSrt, WrongTypesAreRefused) {
  for (const char* text : {"[]", R"({"filesystem": []})", R"({"filesystem": {"allowWrite": "x"}})",
                           R"({"network": {"allowLocalBinding": 1}})", R"({"filesystem": {"denyRead": [1]}})",
                           R"({"network": {"allowedDomains": "example.org"}})", R"({"network": {"deniedDomains": [1]}})"})
    EXPECT_FALSE(import_srt(parsed(text), *base)) << text;
}

}  // namespace
}  // namespace caisson::cli
