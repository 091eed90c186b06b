// What canary probes must give: each tier's plan accepts the answers of its own walls and no others.
#include "launcher/common/confine/canary.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "launcher/common/base/word.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

using init::Probe;

// As a session of the tier answers on x86-64.
ProbeResults answers(Tier tier) {
  ProbeResults r;
  const auto set = [&r](Probe probe, ProbeResult result) { r[static_cast<std::size_t>(probe)] = result; };
  for (auto& result : r) result = {EPERM, 0, 0};
  const bool mounts = tier >= Tier::t2;
  set(Probe::read_ungranted, {mounts ? ENOENT : EACCES, 0, 0});
  for (const Probe p : {Probe::write_read_only, Probe::write_root}) set(p, {mounts ? EROFS : EACCES, 0, 0});
  for (const Probe p : {Probe::write_proc, Probe::proc_sys, Probe::read_init}) set(p, {EACCES, 0, 0});
  set(Probe::read_builder, {tier == Tier::t3 ? ENOENT : EACCES, 0, 0});
  if (tier == Tier::t3)
    for (const Probe p : {Probe::kill_launcher, Probe::kill_builder}) set(p, {ESRCH, 0, 0});
  if (mounts) set(Probe::connect_launcher, {ECONNREFUSED, 0, 0});
  if (mounts) set(Probe::connect_metadata, {ENETUNREACH, 0, 0});
  set(Probe::unknown_call, {ENOSYS, 0, 0});
  for (const Probe p : {Probe::i386_call, Probe::x32_call}) set(p, {0, 0, SIGSYS});
  for (const Probe p : {Probe::parent_is_init, Probe::no_new_privs}) set(p, {0, 1, 0});
  set(Probe::descriptors, {0, 0, 0});
  return r;
}

struct Canary : testing::TestWithParam<Tier> {
  std::shared_ptr<const Plan> plan = *Bench().plan(GetParam());
  ProbeResults good = answers(GetParam());
};

TEST_P(Canary, AcceptsWhatTheTierGives) { EXPECT_EQ(canary_fault(*plan, good), std::nullopt); }

// The probe that succeeds, as it would unconfined, is noticed; unless the plan claims nothing of it.
TEST_P(Canary, NoticesEveryProbeThatSucceeds) {
  const auto claimed = canary_json(*plan, good);
  std::size_t noticed = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    ProbeResults one = good;
    one[i] = {0, 7, 0};
    if (const auto fault = canary_fault(*plan, one)) {
      ++noticed;
      EXPECT_NE(fault->find(word(init::kProbeNames, i)), std::string::npos) << *fault;
    }
  }
  EXPECT_EQ(noticed, claimed.size());
  EXPECT_GE(noticed, GetParam() == Tier::t3 ? init::kProbeCount - 1 : 20U);  // `nested` is claimed with its set alone
}

TEST_P(Canary, TakesNoErrnoOfABrokenProbeForAWall) {
  for (std::size_t i = 0; i < good.size(); ++i) {
    ProbeResults one = good;
    one[i] = {EFAULT, 0, 0};
    if (canary_fault(*plan, good) == std::nullopt && canary_json(*plan, good).size() == good.size())
      EXPECT_TRUE(canary_fault(*plan, one)) << word(init::kProbeNames, i);
  }
}

TEST_P(Canary, WhatWasNotAskedIsNotClaimed) {
  const std::size_t claimed = canary_json(*plan, good).size();
  good[static_cast<std::size_t>(Probe::no_new_privs)].error = kNotAsked;
  EXPECT_EQ(canary_fault(*plan, good), std::nullopt);
  EXPECT_EQ(canary_json(*plan, good).size(), claimed - 1);
}

INSTANTIATE_TEST_SUITE_P(Tiers, Canary, testing::Values(Tier::t0, Tier::t1, Tier::t2, Tier::t3),
                         [](const auto& tier) { return std::string(tier_name(tier.param)); });

TEST(CanaryClaims, SeccompThatIsOffIsClaimedNothingOf) {
  Bench bench;
  bench.policy.disable = {Mechanism::seccomp};
  const auto plan = *bench.plan(Tier::t3);
  for (const auto& row : canary_json(*plan, answers(Tier::t3))) EXPECT_NE(row["mechanism"], "seccomp");
}

}  // namespace
}  // namespace caisson::confine
