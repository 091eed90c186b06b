// What a policy means in words, how two differ in them, and what a score is made of.
#include "launcher/compiler/summary.h"

#include <algorithm>

#include "launcher/compiler/explain.h"
#include "launcher/compiler/fields.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

std::string value(const Policy& p, const std::string& topic, const std::string& name) {
  for (const Fact& f : facts(p))
    if (f.topic == topic && f.name == name) return f.value;
  return "-";
}

TEST(Facts, EveryTopicIsThere) {
  std::set<std::string> topics;
  for (const Fact& f : facts(Policy{})) topics.insert(f.topic);
  EXPECT_EQ(topics, (std::set<std::string>{"reads", "writes", "runs", "reaches", "is reached", "uses", "is recorded", "starts"}));
}

TEST(Facts, ValuesAreInPlainWords) {
  Policy p;
  p.grants = {{.path = "/srv", .source = "/srv", .access = Access::read_write, .execute = true}};
  EXPECT_EQ(value(p, "writes", "/srv"), "all below");
  EXPECT_EQ(value(p, "runs", "/srv"), "programs below");
  EXPECT_EQ(value(p, "uses", "memory_bytes"), "2 GiB");
  EXPECT_EQ(value(p, "uses", "session_seconds"), "1 day");
  EXPECT_EQ(value(p, "uses", "cpu_seconds"), "1 h");
  EXPECT_EQ(value(p, "reaches", "network"), "loopback of its workspace only");
}

TEST(Facts, TwoPoliciesDifferInWhatTheyMean) {
  Policy a, b;
  b.network = Network::none;
  b.grants = {{.path = "/srv", .source = "/srv"}};
  b.limits.processes = 9;
  b.weaken["/grants/srv"] = "for a test";
  EXPECT_TRUE(differences(a, a).empty());
  std::vector<std::string> found;
  for (const Difference& d : differences(a, b))
    found.push_back(d.topic + " " + d.name + ": " + d.before + " > " + d.after + " " + d.why);
  EXPECT_EQ(found, (Texts{"reads /srv:  > all below for a test",
                          "reaches network: loopback of its workspace only > nothing: no internet sockets ",
                          "uses processes: 512 > 9 "}));
  EXPECT_EQ(differences(b, a)[0].after, "");
}

TEST(Score, EveryPointHasAFieldAndAReason) {
  Policy p;
  p.weaken["/x"] = "for a test";
  p.disable = {Mechanism::pid_ns};
  const auto taken = deductions(p);
  int sum = 0;
  for (const Deduction& d : taken) {
    sum += d.points;
    EXPECT_GT(d.points, 0);
    EXPECT_TRUE(d.field == "/weaken" || find_field(policy_fields(), d.field) != nullptr) << d.field;
    EXPECT_FALSE(d.reason.empty());
  }
  EXPECT_EQ(score(taken), std::max(0, 100 - sum));
}

TEST(Score, TakingAwayNeverLowersIt) {
  Policy p;
  p.require = {Mechanism::seccomp, Mechanism::landlock, Mechanism::capabilities, Mechanism::no_new_privs};
  p.env.client_deny = {"LD_*"};
  p.system_packages = true;
  int last = score(deductions(p));
  const auto better = [&](const char* what) {
    const int now = score(deductions(p));
    EXPECT_GT(now, last) << what;
    last = now;
  };
  p.system_packages = false, better("system_packages");
  p.network = Network::none, better("network");
  p.home = Scope::private_, better("home");
  p.tmp = Scope::private_, better("tmp");
  p.exec_writable = false, better("exec_writable");
  p.umask = 077, better("umask");
  for (const Tier tier : {Tier::t0, Tier::t2, Tier::t3}) p.min_tier = tier, better("tier");
  EXPECT_EQ(last, 100);
}

TEST(Score, IsInExplain) {
  const auto e = explain(Policy{});
  EXPECT_EQ(e["score"]["of"], 100);
  EXPECT_FALSE(e["score"]["deductions"].empty());
  EXPECT_FALSE(e["facts"].empty());
}

}  // namespace
}  // namespace caisson::policy
