#include "launcher/cli/learn/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/unit/policy/directory.h"

namespace caisson::cli::learn {
namespace {

using json::Value;
using policy::Directory;
using policy::Texts;

constexpr const char* kBase = R"({"syscalls": {"allow": ["io"]}})";
constexpr const char* kDomain = R"({"extends": "base", "network": "allowlist",
  "egress": [{"host": "known.test", "why": "a test needs it"}, {"host": "denied.test", "deny": true, "why": "a test needs it"}],
  "weaken": [{"field": "/network", "why": "a test needs it"}]})";

struct LearnNames : testing::Test {
  explicit LearnNames(const char* domain = kDomain) {
    dir.write("base.json", kBase);
    dir.write("d.json", domain);
    policy = dir.policy();
    names.emplace(*policy);
  }
  static Value record(const char* event, const std::string& host, int port, Value more = {}) {
    Value out = {{"event", event}, {"domain", "d"}, {"host", host}, {"port", port}, {"via", "transparent"}};
    if (!more.is_null()) out.update(more);
    return out;
  }
  void refused(const std::string& host, int port, const char* why = "not_listed") {
    names->take(record("egress_refused", host, port, {{"refusal", why}}));
  }
  void made(const std::string& host, int port, int rule = -1) {
    names->take(record("egress_connection", host, port, {{"rule", rule}}));
  }
  // The file, after it has passed the compiler's checks.
  Value file() {
    Value out = {{"description", "learnt"}, {"extends", "d"}};
    names->add_to(out, "a test");
    dir.write("learnt.json", json::dump(out, 2));
    EXPECT_EQ(dir.problems(), Texts{}) << json::dump(out, 2);
    return out;
  }
  bool says(const std::string& part) const {
    return std::ranges::any_of(names->notes(), [&part](const std::string& note) { return note.contains(part); });
  }
  Directory dir;
  std::shared_ptr<const policy::Policy> policy;
  std::optional<Names> names;
};

TEST_F(LearnNames, RefusedNamesBecomeRulesBesideThoseOfTheDomain) {
  refused("packages.test", 443);
  refused("packages.test", 443);
  refused("both.test", 80);
  refused("both.test", 443);
  refused("known.test", 8443, "port");
  const Value rules = file()["egress"];
  const Value expected = {{{"host", "known.test"}, {"why", "a test needs it"}},
                          {{"host", "both.test"}, {"why", "learnt, refused 2 times in a test"}},
                          {{"host", "known.test"}, {"ports", {8443}}, {"why", "learnt, refused once in a test"}},
                          {{"host", "packages.test"}, {"ports", {443}}, {"why", "learnt, refused 2 times in a test"}}};
  EXPECT_EQ(rules, expected);
  EXPECT_EQ(names->difference(), "+ egress both.test: 80, 443\n+ egress known.test: 8443\n+ egress packages.test: 443\n");
}

TEST_F(LearnNames, NoAddressNoDeniedNameAndNoAlarmIsProposed) {
  for (const char* host : {"10.0.0.1", "93.184.216.34", "169.254.169.254", "2a00::1"}) refused(host, 80, "address");
  for (const char* host : {"93.184.216.34", "2a00::1"}) refused(host, 80, "not_listed");
  refused("denied.test", 443, "rule");
  refused("denied.test", 443);  // of an older list
  refused("bait.test", 443, "canary");
  refused("inside.test", 443, "rebinding");
  refused("odd.test", 443, "sni");
  refused("seen.test", 443, "path");
  refused("known.test", 443);  // of an older list
  EXPECT_TRUE(names->empty());
  EXPECT_FALSE(file().contains("egress"));
  for (const char* part :
       {"10.0.0.1: an address", "denied.test: a rule denies it", "bait.test: an alarm", "inside.test: it leads",
        "odd.test: refused as sni", "seen.test: a rule permits it with other requests only"})
    EXPECT_TRUE(says(part)) << part;
}

TEST_F(LearnNames, WhatIsNoHostOrOfAnotherDomainIsPassedOver) {
  refused("UPPER.test", 443);
  refused("*.wide.test", 443);
  refused("", 443);
  refused("none.test", 0);
  refused("none.test", 70000);
  names->take(record("egress_refused", "other.test", 443, {{"refusal", "not_listed"}, {"domain", "bash"}}));
  names->take(record("egress_refused", "asked.test", 443, {{"refusal", "not_listed"}, {"via", "diagnose"}}));
  names->take(record("exec_start", "exec.test", 443));
  names->take(Value::array());
  names->take({{"event", 7}, {"host", Value::array()}});
  EXPECT_TRUE(names->empty());
}

TEST_F(LearnNames, TheyAreBounded) {
  for (int i = 0; i < 300; ++i) refused("n" + std::to_string(i) + ".test", 443);
  for (int port = 1; port < 100; ++port) refused("n0.test", port);
  const Value rules = file()["egress"];
  EXPECT_EQ(rules.size(), Names::kMost + 1);
  for (const Value& rule : rules)
    if (rule.contains("ports")) {
      EXPECT_LE(rule["ports"].size(), Names::kMostPorts);
    }
  EXPECT_TRUE(says("beyond what is kept"));
  EXPECT_TRUE(says("n0.test: it was asked for at more than 16 ports"));
}

struct LearnNamesOfMonitor : LearnNames {
  LearnNamesOfMonitor()
      : LearnNames(R"({"extends": "base", "network": "monitor", "weaken": [{"field": "/network", "why": "a test needs it"}]})") {}
};

TEST_F(LearnNamesOfMonitor, WhatWasReachedBecomesTheList) {
  made("packages.test", 443);
  made("93.184.216.34", 443);
  const Value learnt = file();
  EXPECT_EQ(learnt["network"], "allowlist");
  EXPECT_EQ(learnt["egress"].size(), 1U);
  EXPECT_EQ(learnt["egress"][0]["why"], "learnt, reached once in a test");
}

struct LearnNamesOfInspected : LearnNames {
  LearnNamesOfInspected()
      : LearnNames(R"({"extends": "base", "network": "allowlist", "weaken": [{"field": "/network", "why": "a test needs it"}],
          "egress": [{"host": "*.seen.test", "inspect": true, "paths": ["/api"], "why": "a test needs it"}]})") {}
};

TEST_F(LearnNamesOfInspected, WhatIsInspectedStaysSo) {
  refused("a.seen.test", 443, "path");
  refused("packages.test", 443);
  const Value rules = file()["egress"];
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0]["inspect"], true);
  EXPECT_EQ(rules[0]["paths"], Value::array({"/api"}));
}

}  // namespace
}  // namespace caisson::cli::learn
