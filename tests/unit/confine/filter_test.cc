// What the launcher asks caisson-policies for, and what it takes for an answer.
#include "launcher/compiler/filter.h"

#include <gtest/gtest.h>

#include "launcher/common/confine/query.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/frozen_write.h"
#include "launcher/compiler/load.h"

namespace caisson::confine {
namespace {

bool same(const Program& a, const Program& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](const sock_filter& x, const sock_filter& y) {
           return x.code == y.code && x.jt == y.jt && x.jf == y.jf && x.k == y.k;
         });
}

class AskedFilter : public testing::Test {
 protected:
  void SetUp() override {
    loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
    ASSERT_TRUE(loaded.problems.empty());
    auto back = policy::thaw(policy::freeze(loaded));
    ASSERT_TRUE(back);
    thawed = std::move(*back);
  }
  Plan plan_for(const std::string& domain) {
    Plan plan;
    plan.policy = thawed.policies.at(domain);
    return plan;
  }
  policy::LoadResult loaded, thawed;
};

TEST_F(AskedFilter, IsTheOneOfTheRules) {
  for (const auto& [domain, policy] : loaded.policies)
    for (const Refusal refusal : {Refusal::answer, Refusal::notify, Refusal::observe})
      for (const MechanismState net : {MechanismState::enforced, MechanismState::unavailable}) {
        Plan plan = plan_for(domain);
        plan.mechanisms[static_cast<int>(Mechanism::net_ns)].state = net;
        plan.mechanisms[static_cast<int>(Mechanism::denial_audit)].state =
            refusal == Refusal::answer ? MechanismState::unavailable : MechanismState::enforced;
        plan.observe = refusal == Refusal::observe;
        const auto answer = read_filter(answer_filter(filter_request(plan)));
        ASSERT_TRUE(answer) << answer.error().text();
        const auto sets = policy::effective_sets(*policy, enforced_mechanisms(plan));
        EXPECT_TRUE(same(answer->program, *compile_seccomp(sets, refusal))) << domain;
        EXPECT_EQ(answer->refusals, refusals(sets)) << domain;
      }
}

TEST_F(AskedFilter, StandsInForLandlockWhereThePlanSaysSo) {
  for (const Ungoverned what : {Ungoverned::ioctl, Ungoverned::truncation}) {
    Plan plan = plan_for("bash");
    plan.ungoverned = what;
    plan.mechanisms[static_cast<int>(Mechanism::denial_audit)].state = MechanismState::enforced;
    const auto answer = read_filter(answer_filter(filter_request(plan)));
    ASSERT_TRUE(answer) << answer.error().text();
    auto sets = policy::effective_sets(*loaded.policies.at("bash"), enforced_mechanisms(plan));
    sets.push_back(stands_in(what));
    EXPECT_TRUE(same(answer->program, *compile_seccomp(sets, Refusal::notify)));
    EXPECT_EQ(answer->refusals.contains("truncate seccomp/ungoverned: refused here"), what == Ungoverned::truncation);
  }
}

TEST_F(AskedFilter, WithoutRulesThereIsNone) {
  Plan plan;
  plan.policy = loaded.policies.at("bash");  // as it was read: its rules are no bytes yet
  const auto answer = read_filter(answer_filter(filter_request(plan)));
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().text().find("has no rules"), std::string::npos) << answer.error().text();
}

TEST_F(AskedFilter, EveryTruncationOfAQuestionOrAnAnswerIsRefused) {
  const std::string question = filter_request(plan_for("bash"));
  for (std::size_t size = 0; size < question.size(); size += 7)
    EXPECT_FALSE(read_filter(answer_filter(std::string_view(question).substr(0, size)))) << size;
  EXPECT_FALSE(read_filter(answer_filter(question + "x")));
  const std::string answer = answer_filter(question);
  for (std::size_t size = 0; size < answer.size(); ++size)
    EXPECT_FALSE(read_filter(std::string_view(answer).substr(0, size))) << size;
  EXPECT_FALSE(read_filter(answer + "x"));
}

TEST(Filter, OfNoWholeInstructionsIsNone) {
  const auto with = [](const std::string& program) {
    policy::Writer writer;
    writer(policy::frozen_mark(), std::string(), program, std::string());
    return read_filter(writer.bytes);
  };
  EXPECT_TRUE(with(std::string(sizeof(sock_filter), '\0')));
  EXPECT_FALSE(with(""));
  EXPECT_FALSE(with(std::string(sizeof(sock_filter) + 1, '\0')));
  EXPECT_FALSE(with(std::string((BPF_MAXINSNS + 1) * sizeof(sock_filter), '\0')));
}

}  // namespace
}  // namespace caisson::confine
