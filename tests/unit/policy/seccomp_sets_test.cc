// Seccomp sets: their problems, how several become one filter, and what a tier or a network takes out.
#include <algorithm>

#include "launcher/compiler/effective.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

Texts with_set(const std::string& rules, const std::string& name = "io") {
  Directory dir;
  dir.write("seccomp/io.json", "{\"name\": \"" + name + "\", \"why\": \"for the tests\",\n" + rules + "}");
  return dir.problems();
}

TEST(Sets, EachProblem) {
  EXPECT_EQ(with_set("\"allow\": []", "oi"), Texts{"seccomp/io.json:1 /name: must be the file's name: 'oi'; meant 'io'?"});
  EXPECT_EQ(with_set("\"alow\": []"), Texts{"seccomp/io.json:2 /alow: unknown field 'alow'; meant 'allow'?"});
  EXPECT_EQ(with_set("\"allow\": [{\"names\": [\"Read\"]}]"),
            Texts{"seccomp/io.json:2 /allow/0/names/0: not the name of a system call: 'Read'"});
  EXPECT_EQ(with_set("\"allow\": [{\"names\": [\"read\"]}, {\"names\": [\"read\"]}]"),
            Texts{"seccomp/io.json:2 /allow/1/names: already has a rule: 'read'"});
  EXPECT_EQ(with_set("\"allow\": [{\"names\": [\"read\"]}],\n\"refuse\": [{\"names\": [\"read\"], \"why\": \"for the tests\"}]"),
            Texts{"seccomp/io.json:3 /refuse/0/names: already has a rule: 'read'"});
  EXPECT_EQ(with_set("\"needs\": \"netns\""),
            Texts{"seccomp/io.json:2 /needs: unknown value 'netns', must be one of: user_ns mount_ns pid_ns ipc_ns "
                  "uts_ns net_ns cgroup_ns proc cgroup io rlimits uid capabilities no_new_privs landlock seccomp fds env "
                  "denial_audit; meant 'net_ns'?"});
}

TEST(Sets, Conditions) {
  const auto condition = [](const std::string& text, const std::string& key = "any_of") {
    return with_set("\"allow\": [{\"names\": [\"ioctl\"], \"" + key + "\": [[" + text + "]]}]");
  };
  const std::string at = "seccomp/io.json:2 /allow/0/any_of/0/0";
  EXPECT_EQ(condition(R"({"index": 1, "op": "masked_eq", "value": "0x5412", "mask": "0xffffffff"})"), Texts{});
  EXPECT_EQ(condition(R"({"index": 6, "op": "eq", "value": 1})"), Texts{at + "/index: 6 is not from 0 to 5"});
  EXPECT_EQ(condition(R"({"index": 1, "op": "equal", "value": 1})"),
            Texts{at + "/op: unknown value 'equal', must be one of: eq ne lt le gt ge masked_eq"});
  EXPECT_EQ(condition(R"({"index": 1, "op": "eq", "value": "0x"})"),
            Texts{at + "/value: must be a whole number or a string \"0x…\""});
  EXPECT_EQ(condition(R"({"index": 1, "op": "eq", "value": "0x1ffffffffffffffff"})"),
            Texts{at + "/value: must be a whole number or a string \"0x…\""});
  EXPECT_EQ(condition(R"({"index": 1, "op": "masked_eq", "value": 1})"), Texts{at + ": masked_eq needs 'mask'"});
  EXPECT_EQ(condition(R"({"index": 1, "op": "eq", "value": 1, "mask": 1})"), Texts{at + ": 'mask' goes with masked_eq only"});
  EXPECT_EQ(condition(R"({"index": 1, "op": "masked_eq", "value": 2, "mask": 1})"),
            Texts{at + ": value has bits that mask clears: it can never match"});
  EXPECT_EQ(condition(""), Texts{"seccomp/io.json:2 /allow/0/any_of/0: must be a list of 1 to 6 conditions"});
}

TEST(Sets, AnExactComparisonInARefusalCouldBePassed) {
  EXPECT_EQ(with_set(R"("allow": [{"names": ["ioctl"], "refuse_if": [[{"index": 1, "op": "eq", "value": 1, "mask": 1}]]}])"),
            Texts{"seccomp/io.json:2 /allow/0/refuse_if/0/0/op: unknown value 'eq', must be one of: masked_eq"});
}

TEST(Sets, ValuesAreHexOrDecimal) {
  Directory dir;
  dir.write("seccomp/io.json", R"({"name": "io", "why": "for the tests", "allow": [{"names": ["socket"], "why": "because",
    "any_of": [[{"index": 0, "op": "masked_eq", "value": 1, "mask": "0xFFFFffff"},
                {"index": 1, "op": "lt", "value": "0x10"}]]}]})");
  const SyscallRule rule = dir.policy()->sets.at(0).allow.at(0);
  ASSERT_EQ(rule.any_of.size(), 1U);
  ASSERT_EQ(rule.any_of[0].size(), 2U);
  EXPECT_EQ(rule.any_of[0][0].mask, 0xffffffffU);
  EXPECT_EQ(rule.any_of[0][1].value, 16U);
  EXPECT_EQ(rule.any_of[0][1].index, 1U);
  EXPECT_EQ(rule.why, "because");
}

struct TwoSets : testing::Test {
  TwoSets() {
    dir.write("base.json", R"({"syscalls": {"allow": ["io", "net", "refused"]}})");
    dir.write("seccomp/io.json", R"({"name": "io", "why": "for the tests", "allow": [{"names": ["read", "ptrace"]},
      {"names": ["socket"], "any_of": [[{"index": 0, "op": "masked_eq", "value": 1, "mask": 255}]]}]})");
    dir.write("seccomp/net.json", R"({"name": "net", "why": "for the tests", "needs": "net_ns", "allow": [{"names": ["bind"]},
      {"names": ["socket"], "any_of": [[{"index": 0, "op": "masked_eq", "value": 2, "mask": 255}]]}]})");
    dir.write("seccomp/refused.json",
              R"({"name": "refused", "why": "for the tests", "refuse": [{"names": ["ptrace", "bpf"], "why": "for the tests"}]})");
  }
  Directory dir;
};

TEST_F(TwoSets, AnAllowedCallIsNoLongerRefused) {
  const auto policy = dir.policy();
  EXPECT_EQ(policy->sets.at(2).refuse, std::vector<std::string>{"bpf"});
}

TEST_F(TwoSets, DenyTakesACallOutAndRefusesIt) {
  EXPECT_EQ(dir.with("\"syscalls\": {\"deny\": [\"read\"]}"), Texts{});
  const auto policy = dir.policy();
  EXPECT_EQ(std::ranges::count(policy->sets[0].allow, "read", &SyscallRule::name), 0);
  EXPECT_EQ(policy->sets[0].refuse, std::vector<std::string>{"read"});
  EXPECT_EQ(dir.with("\"syscalls\": {\"deny\": [\"raed\"]}"),
            Texts{"d.json:2 /syscalls/deny/0: no set allows 'raed'; meant 'read'?"});
}

TEST_F(TwoSets, ASetThatNeedsANamespaceIsRefusedWithoutIt) {
  const auto policy = dir.policy();
  EXPECT_EQ(effective_sets(*policy, {Mechanism::net_ns})[1].allow.size(), 2U);
  const auto sets = effective_sets(*policy, {});
  EXPECT_TRUE(sets[1].allow.empty());
  EXPECT_EQ(sets[1].refuse, std::vector<std::string>{"bind"});  // socket: AF_UNIX still allowed by "io"
  EXPECT_EQ(sets[0].allow.size(), 3U);
}

TEST_F(TwoSets, NetworkNoneTakesTheNetworkOutEverywhere) {
  EXPECT_EQ(dir.with("\"network\": \"none\""), Texts{});
  EXPECT_TRUE(effective_sets(*dir.policy(), {Mechanism::net_ns})[1].allow.empty());
}

TEST_F(TwoSets, OneRuleMustNotVoidAnother) {
  dir.write("seccomp/net.json", R"({"name": "net", "why": "for the tests", "allow": [{"names": ["socket"]}]})");
  EXPECT_EQ(dir.problems(),
            Texts{"base.json:1 /syscalls/allow: two sets have a rule for 'socket', and one of them would cancel the other's"});
}

}  // namespace
}  // namespace caisson::policy
