// Sessions for which caisson-connector connects: when a plan has one, what it says of it, and what its filter tells of.
#include "launcher/compiler/connected.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "launcher/common/confine/frozen_plan.h"
#include "launcher/compiler/filter.h"
#include "launcher/compiler/load.h"
#include "tests/unit/confine/bpf.h"
#include "tests/unit/confine/tiers.h"

namespace caisson::confine {
namespace {

constexpr std::uint32_t kEacces = SECCOMP_RET_ERRNO | EACCES, kTells = SECCOMP_RET_USER_NOTIF, kDone = SECCOMP_RET_ERRNO;

bool stated(const Plan& plan, std::string_view id) {
  return std::ranges::any_of(plan.residual, [id](const Residual& r) { return r.id == id; });
}

struct Out : Bench {
  explicit Out(Tier tier) {
    policy.network = policy::Network::allowlist;
    features = tier_features(tier);
    features->egress_connect = {0, ""};
  }
  std::string refused(Tier tier) {
    const auto made = plan(tier);
    return made ? "" : made.error().what;
  }
};

TEST(Connected, WithoutNamespacesTcpGoesOutByAConnector) {
  for (const Tier tier : {Tier::t1, Tier::t0}) {
    Out bench(tier);
    const auto plan = bench.plan(tier);
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_TRUE((*plan)->connected && !(*plan)->inet && stated(**plan, "tcp-only"));
    EXPECT_FALSE(stated(**plan, "ways-alike")) << "they are told apart without cgroups";
    bench.policy.network = policy::Network::loopback;
    EXPECT_FALSE((*bench.plan(tier))->connected || stated(**bench.plan(tier), "tcp-only"));
  }
  for (const Tier tier : {Tier::t2, Tier::t3})
    EXPECT_FALSE((*Out(tier).plan(tier))->connected) << "they have a door of their own";
}

TEST(Connected, WhatItNeedsAndIsNotThereIsNamed) {
  Out bench(Tier::t0);
  bench.features->egress_connect = {ENOSYS, "landlock_abi"};
  EXPECT_TRUE(bench.refused(Tier::t0).ends_with("unavailable(landlock_abi): ENOSYS")) << bench.refused(Tier::t0);
  bench.features->egress_connect = {};
  EXPECT_TRUE(bench.refused(Tier::t0).ends_with("unavailable(no launcher)")) << bench.refused(Tier::t0);
  for (const Mechanism wall : {Mechanism::seccomp, Mechanism::landlock}) {
    Out without(Tier::t0);
    without.policy.disable = {wall};
    const std::string why = without.refused(Tier::t0);
    EXPECT_TRUE(why.ends_with("connecting for it needs " + std::string(mechanism_name(wall)))) << why;
  }
}

TEST(Connected, ItsProcessesAreToldHowToResolveNames) {
  Out bench(Tier::t0);
  bench.policy.env.set["HTTP_PROXY"] = "the policy's own";
  PlanQuestion question{policy::frozen_mark(), *bench.features, {}};
  question.requests.push_back({std::make_shared<policy::Policy>(bench.policy), "", bench.sources, bench.place});
  policy::Writer writer;
  writer(question);
  Answer<Plan> answer;
  const std::string bytes = answer_plans(writer.bytes);
  policy::Reader reader(bytes);
  reader(answer);
  ASSERT_TRUE(reader.whole() && answer.answers.size() == 1 && answer.answers[0].value) << answer.answers[0].error;
  const auto& set = answer.answers[0].value->policy->env.set;
  EXPECT_EQ(set.at("https_proxy"), "http://127.0.0.1:312");
  EXPECT_EQ(set.at("RES_OPTIONS"), "use-vc ndots:1");
  EXPECT_EQ(set.at("HTTP_PROXY"), "the policy's own");
}

class ConnectedFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = policy::load_directory(CAISSON_SOURCE_DIR "/policies");
    ASSERT_TRUE(loaded.problems.empty());
    sets = loaded.policies.at("bash")->sets;
    std::erase_if(sets, [](const auto& set) { return set.name == "sockets-inet"; });  // whose namespace is missing
  }
  std::uint32_t answer(int nr, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0) const {
    auto with = sets;
    with.push_back(connected_calls());
    const auto program = compile_seccomp(with, Refusal::answer);
    EXPECT_TRUE(program);
    const seccomp_data data{.nr = nr, .arch = AUDIT_ARCH_X86_64, .args = {a, b, c, d}};
    return interpret(*program, data);
  }
  std::vector<policy::SyscallSet> sets;
};

TEST_F(ConnectedFilter, SocketsAreTheConnectorsOrRefused) {
  constexpr std::uint64_t kAbove = std::uint64_t{1} << 32;  // which the kernel does not read
  for (const std::uint64_t family : {AF_INET + 0UL, AF_INET6 + 0UL, kAbove | AF_INET}) {
    for (const std::uint64_t type : {SOCK_STREAM + 0UL, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK | 0UL, kAbove | SOCK_STREAM}) {
      EXPECT_EQ(answer(SYS_socket, family, type, 0), kTells);
      EXPECT_EQ(answer(SYS_socket, family, type, IPPROTO_TCP), kTells);
      EXPECT_EQ(answer(SYS_socket, family, type, 262), kEperm) << "MPTCP";
      EXPECT_EQ(answer(SYS_socket, family, type, IPPROTO_SCTP), kEperm);
    }
    EXPECT_EQ(answer(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP), kEacces);
    EXPECT_EQ(answer(SYS_socket, family, SOCK_RAW, IPPROTO_RAW), kEperm);
    EXPECT_EQ(answer(SYS_socket, family, SOCK_SEQPACKET, IPPROTO_SCTP), kEperm);
    EXPECT_EQ(answer(SYS_socket, family, SOCK_STREAM | 0x100, 0), kEperm) << "no type of the kernel's";
  }
  EXPECT_EQ(answer(SYS_socket, AF_UNIX, SOCK_STREAM, 0), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(SYS_socket, AF_VSOCK, SOCK_STREAM, 0), kEperm);
  EXPECT_EQ(answer(SYS_connect), kTells);
}

TEST_F(ConnectedFilter, WhatConnectsWithoutConnectIsRefused) {
  EXPECT_EQ(answer(SYS_sendto, 3, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL), kEperm);
  EXPECT_EQ(answer(SYS_sendmsg, 3, 0, MSG_FASTOPEN), kEperm);
  EXPECT_EQ(answer(SYS_sendmmsg, 3, 0, 0, MSG_FASTOPEN), kEperm);
  for (const int nr : {SYS_sendto, SYS_sendmsg}) EXPECT_EQ(answer(nr, 3, 0, MSG_NOSIGNAL), SECCOMP_RET_ALLOW);
}

TEST_F(ConnectedFilter, OptionsThatLeadElsewhereAreRefused) {
  constexpr std::pair<int, int> kRefused[] = {{IPPROTO_IP, IP_OPTIONS},
                                              {IPPROTO_IPV6, IPV6_RTHDR},
                                              {IPPROTO_IPV6, IPV6_HOPOPTS},
                                              {IPPROTO_IPV6, IPV6_DSTOPTS},
                                              {IPPROTO_IPV6, 55},
                                              {IPPROTO_IPV6, 3},
                                              {IPPROTO_IPV6, 4},
                                              {IPPROTO_IPV6, 5},
                                              {IPPROTO_IPV6, 6},
                                              {SOL_SOCKET, SO_BINDTODEVICE},
                                              {SOL_SOCKET, SO_BINDTOIFINDEX}};
  for (const auto& [level, option] : kRefused)
    EXPECT_EQ(answer(SYS_setsockopt, 3, static_cast<unsigned>(level), static_cast<unsigned>(option)), kEperm)
        << level << " " << option;
  EXPECT_EQ(answer(SYS_setsockopt, 3, IPPROTO_IPV6, IPV6_V6ONLY), kDone) << "without effect";
  EXPECT_EQ(answer(SYS_setsockopt, 3, IPPROTO_TCP, IP_OPTIONS), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer(SYS_setsockopt, 3, SOL_SOCKET, SO_KEEPALIVE), SECCOMP_RET_ALLOW);
}

TEST_F(ConnectedFilter, WhatAPolicyDeniesItDoesNotGiveBack) {
  for (policy::SyscallSet& set : sets)
    for (const char* call : {"connect", "socket"})
      if (std::erase_if(set.allow, [call](const auto& rule) { return rule.name == call; }) > 0) set.refuse.emplace_back(call);
  EXPECT_EQ(answer(SYS_connect), kEperm);
  EXPECT_EQ(answer(SYS_socket, AF_INET, SOCK_STREAM, 0), kEperm);
  sets.clear();
  EXPECT_EQ(answer(SYS_connect), SECCOMP_RET_ERRNO | ENOSYS);
}

}  // namespace
}  // namespace caisson::confine
