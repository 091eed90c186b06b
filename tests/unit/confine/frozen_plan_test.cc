// What the launcher asks caisson-policies to plan and narrow, and what it answers: the same when it comes back, and nothing worse
// than an error whatever the bytes are.
#include "launcher/common/confine/frozen_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "launcher/compiler/canonical.h"
#include "launcher/compiler/planner.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  policy::Writer writer;
  writer(value);
  return writer.bytes;
}

// A plan with something in every list.
Plan full() {
  Bench bench;
  bench.policy.system_packages = true;
  bench.policy.grants.push_back({.path = "/data", .source = "/srv/data", .access = policy::Access::read_write});
  bench.sources["/srv/data"] = {true, true, 7, 8};
  bench.policy.hide = {"/data/x", "/data/y/z"};
  bench.policy.devices = {"null"};
  bench.policy.protect = {".git/config"};
  bench.policy.links["/l"] = "usr";
  bench.policy.audit.paths = true;
  bench.policy.limits.io_read_bytes_per_second = 1 << 20;
  bench.place.disks = {"8:0"};
  bench.place.closed["/data/closed"] = "ELOOP";
  Features& all = bench.features.emplace(tier_features(Tier::t3));
  all.cgroup = all.io = {0, ""};
  Plan plan = **bench.plan(Tier::t3);
  plan.home_options = "size=1";
  plan.tools = "/caisson";
  plan.absent = {"/absent"};
  plan.ungoverned = Ungoverned::ioctl;
  plan.single_use = true;
  plan.canonical = "{}";
  return plan;
}

PlanQuestion question() {
  Bench bench;
  bench.policy.env.set["HOME"] = bench.policy.home_path;
  PlanQuestion out{policy::frozen_mark(), tier_features(Tier::t3), {}};
  out.features.cgroup_reason = "why";
  out.requests.push_back({std::make_shared<policy::Policy>(bench.policy), "", bench.sources, bench.place});
  return out;
}

Answer<Plan> answered(const PlanQuestion& asked) {
  Answer<Plan> out;
  const std::string bytes = answer_plans(bytes_of(asked));
  policy::Reader reader(bytes);
  reader(out);
  EXPECT_TRUE(reader.whole());
  EXPECT_EQ(out.mark, policy::frozen_mark());
  return out;
}

TEST(FrozenPlan, EveryMemberComesBack) {
  const Plan before = full();
  const std::string bytes = bytes_of(before);
  Plan after;
  policy::Reader reader(bytes);
  reader(after);
  ASSERT_TRUE(reader.whole());
  EXPECT_EQ(bytes_of(after), bytes);
  EXPECT_EQ(after.policy->hide, before.policy->hide);
  EXPECT_EQ(after.binds.size(), before.binds.size());
  EXPECT_EQ(after.limits.back().second.rlim_max, before.limits.back().second.rlim_max);
  EXPECT_EQ(after.claims.size(), before.claims.size());
  EXPECT_EQ(after.system.request, before.system.request);
  EXPECT_EQ(after.mechanisms[static_cast<int>(Mechanism::io)].state, MechanismState::enforced);
}

TEST(FrozenPlan, EveryTruncationIsRefusedAndEveryFlippedByteSurvived) {
  const std::string whole = bytes_of(full());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Plan plan;
    policy::Reader reader(std::string_view(whole).substr(0, size));
    reader(plan);
    ASSERT_FALSE(reader.whole()) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      Plan plan;
      policy::Reader reader(changed);
      reader(plan);
      if (reader.whole()) {
        EXPECT_EQ(bytes_of(plan).empty(), false);
      }
    }
}

TEST(FrozenPlan, WhatIsNoRequestIsAnsweredWithNothing) {
  std::mt19937 random(1);
  const std::string good = bytes_of(question());
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 300, '\0');
    if (round % 2 == 0) bytes = good;
    for (int i = 0; i < 8 && !bytes.empty(); ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    for (const std::string& answer : {answer_plans(bytes), answer_narrowing(bytes)}) EXPECT_FALSE(answer.empty());
  }
  Answer<Plan> none;
  const std::string bytes = answer_plans("x");
  policy::Reader reader(bytes);
  reader(none);
  EXPECT_TRUE(reader.whole() && none.answers.empty());
}

TEST(FrozenPlan, APlanHasThePolicyInForceWithItsDigest) {
  const auto plan = answered(question()).answers.at(0).value;
  ASSERT_TRUE(plan);
  const std::string digest = policy::digest_of(*plan->policy);
  EXPECT_EQ(plan->policy->digest, digest);
  EXPECT_EQ(plan->canonical, json::dump(policy::to_json(*plan->policy)));
}

TEST(FrozenPlan, APolicyThatIsNotWhatItsDigestSaysIsRefused) {
  PlanQuestion asked = question();
  auto policy = std::make_shared<policy::Policy>(*asked.requests[0].policy);
  policy->digest = policy::digest_of(*policy);
  asked.requests[0].policy = policy;
  EXPECT_TRUE(answered(asked).answers.at(0).value);
  policy->limits.processes = 8;
  const auto answer = answered(asked).answers.at(0);
  EXPECT_FALSE(answer.value);
  EXPECT_EQ(answer.error, "policy 'test' is not what its digest says");
}

TEST(FrozenPlan, WhereNothingCanBeMountedTheHomeIsWhereItLies) {
  PlanQuestion asked = question();
  asked.features = tier_features(Tier::t0);
  asked.requests[0].home = "/dev/shm/x/home";
  const auto plan = answered(asked).answers.at(0).value;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->policy->home_path, "/dev/shm/x/home");
  EXPECT_EQ(plan->policy->env.set.at("HOME"), "/dev/shm/x/home");
  EXPECT_EQ(plan->policy->env.set.at("TMPDIR"), "/dev/shm/x/home/.tmp");
  EXPECT_EQ(plan->policy->env.set.at("GIT_CONFIG_NOSYSTEM"), "1");
}

TEST(FrozenPlan, AnErrorIsOfItsRequestAlone) {
  PlanQuestion asked = question();
  asked.requests.push_back(asked.requests[0]);
  auto policy = std::make_shared<policy::Policy>(*asked.requests[0].policy);
  policy->require = {Mechanism::cgroup};
  asked.requests[0].policy = policy;
  const auto answers = answered(asked).answers;
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].code, Code::unavailable);
  EXPECT_TRUE(answers[0].error.starts_with("policy 'test' requires cgroup, which is not available")) << answers[0].error;
  EXPECT_TRUE(answers[1].value);
}

TEST(FrozenPlan, ARequestNarrowsAPolicyOrIsToldWhyNot) {
  const auto narrowed = [](const std::string& asked, bool alone) {
    Bench bench;
    Answer<policy::Policy> out;
    const std::string bytes = answer_narrowing(
        bytes_of(NarrowQuestion{policy::frozen_mark(), std::make_shared<policy::Policy>(bench.policy), asked, alone}));
    policy::Reader reader(bytes);
    reader(out);
    EXPECT_TRUE(reader.whole());
    return out.answers.at(0);
  };
  EXPECT_EQ(narrowed(R"({"limits": {"processes": 3}})", false).value->limits.processes, 3U);
  EXPECT_EQ(narrowed("{}", true).value->home, policy::Scope::private_);
  EXPECT_EQ(narrowed("[]", false).error, "narrow must be an object");
  EXPECT_EQ(narrowed(R"({"limits": {"processes": 100000}})", false).code, Code::invalid_argument);
  EXPECT_EQ(narrowed(R"({"grants": [{"path": "/etc"}]})", false).code, Code::permission_denied);
  EXPECT_EQ(narrowed("{", false).code, Code::invalid_argument);
}

}  // namespace
}  // namespace caisson::confine
