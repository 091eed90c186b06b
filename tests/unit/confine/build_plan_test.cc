// The plan's bytes: what the launcher writes the builder reads, and nothing that is cut or changed in length.
#include "launcher/builder/plan_decoder.h"

#include <gtest/gtest.h>

#include "launcher/common/confine/build_rows.h"

namespace caisson::confine {
namespace {

Plan some_plan() {
  auto policy = std::make_shared<policy::Policy>();
  policy->home_path = "/home/gem";
  policy->hostname = "sandbox";
  policy->umask = 027;
  policy->home = policy::Scope::private_;
  Plan plan;
  plan.policy = policy;
  plan.user_ns = plan.mount_ns = plan.pid_ns = true;
  plan.proc = Proc::full;
  plan.binds = {{.target = "/usr", .source = "/usr", .execute = true, .dev = 7, .ino = 9},
                {.target = "/home/gem", .source = "/srv/home", .read_only = false, .staged = true}};
  plan.directories = {"/etc", "/dev", ""};
  plan.files = {{"/etc/hosts", "127.0.0.1 localhost\n"}};
  plan.links = {{"/bin", "usr/bin"}};
  plan.hide = {"/usr/secret"};
  plan.landlock = {{"/usr", 5, true}, {"/dev/null", 6, false}};
  plan.landlock_fs = 0x1fff;
  plan.limits = {{RLIMIT_NOFILE, {1024, RLIM_INFINITY}}};
  plan.private_tmp_options = "size=1048576";
  return plan;
}

std::string encoded(const Plan& plan, const Program& filter) {
  BuildRows rows(plan, filter);
  builder::Encoder encoder;
  builder::members(encoder, rows.plan);
  return encoder.bytes;
}

struct Decoded {
  explicit Decoded(const std::string& bytes) : arena(bytes.size() + 1) {
    builder::Decoder decoder(bytes.data(), bytes.size(), reinterpret_cast<char*>(arena.data()));
    builder::members(decoder, plan);
    ok = decoder.ok();
  }
  std::vector<std::uint64_t> arena;  // Decoder::kRoom times the bytes
  builder::BuildPlan plan;
  bool ok = false;
};

TEST(BuildPlan, ComesThroughWhole) {
  const Program filter{{1, 2, 3, 4}, {0x06, 0, 0, 0x7fff0000}};
  const std::string bytes = encoded(some_plan(), filter);
  const Decoded read(bytes);
  ASSERT_TRUE(read.ok);
  const builder::BuildPlan& p = read.plan;
  EXPECT_TRUE(p.user_ns && p.mount_ns && p.pid_ns && p.private_home && !p.private_tmp && !p.net_ns);
  EXPECT_EQ(p.proc, Proc::full);
  EXPECT_EQ(p.umask, 027U);
  EXPECT_STREQ(p.hostname, "sandbox");
  EXPECT_STREQ(p.home, "/home/gem");
  EXPECT_STREQ(p.tmp_options, "size=1048576");
  ASSERT_EQ(p.binds.size, 2U);
  EXPECT_STREQ(p.binds[0].target, "/usr");
  EXPECT_TRUE(p.binds[0].execute && p.binds[0].read_only && !p.binds[0].staged);
  EXPECT_EQ(p.binds[0].ino, 9U);
  EXPECT_STREQ(p.binds[1].source, "/srv/home");
  EXPECT_TRUE(p.binds[1].staged && !p.binds[1].read_only);
  ASSERT_EQ(p.directories.size, 3U);
  EXPECT_STREQ(p.directories[2], "");
  EXPECT_STREQ(p.files[0].content, "127.0.0.1 localhost\n");
  EXPECT_STREQ(p.links[0].content, "usr/bin");
  EXPECT_STREQ(p.hide[0], "/usr/secret");
  ASSERT_EQ(p.landlock.size, 2U);
  EXPECT_FALSE(p.landlock[1].required);
  EXPECT_EQ(p.limits[0].hard, RLIM_INFINITY);
  ASSERT_EQ(p.filter.size, 2U);
  EXPECT_EQ(p.filter[1].k, 0x7fff0000U);
}

TEST(BuildPlan, IsRefusedCutAtAnyByte) {
  const std::string bytes = encoded(some_plan(), {{1, 2, 3, 4}});
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(Decoded(bytes.substr(0, size)).ok) << size;
  EXPECT_FALSE(Decoded(bytes + '\0').ok);
}

// No length that it claims makes the decoder leave the bytes or its arena (the sanitizers look), whatever becomes of it.
TEST(BuildPlan, SurvivesEveryChangedByte) {
  const std::string bytes = encoded(some_plan(), {{1, 2, 3, 4}});
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const char value : {'\x00', '\x01', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = value;
      (void)Decoded(changed);
    }
}

}  // namespace
}  // namespace caisson::confine
