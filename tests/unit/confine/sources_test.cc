// What a policy's grants and hidden paths lead to.
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "launcher/common/confine/plan.h"
#include "launcher/common/policy/policy.h"

namespace caisson::confine {
namespace {

TEST(Sources, SymlinkIsRefused) {
  policy::Policy p;
  p.grants = {{"/x", "/proc/self/root", policy::Access::read, false, true, false, ""}};
  EXPECT_FALSE(resolve_sources(p));
}

// A directory of the tenant's, with something hidden in it.
class Hidden : public testing::Test {
 protected:
  Hidden() {
    char name[] = "/tmp/caisson-plan-XXXXXX";
    top_ = ::mkdtemp(name);
    (void)::chmod(top_.c_str(), 0755);
    std::filesystem::create_directories(top_ + "/data/a");
    policy_.grants = {{"/srv/data", top_ + "/data", policy::Access::read_write, false, true, false, ""}};
    policy_.hide = {"/srv/data/a/hidden"};
  }
  ~Hidden() override { std::filesystem::remove_all(top_); }
  [[nodiscard]] std::string path() const { return top_ + "/data/a/hidden"; }

  policy::Policy policy_;
  std::string top_;
};

TEST_F(Hidden, WhateverIsThereIsSeen) {
  EXPECT_FALSE(resolve_sources(policy_)->at("hide /srv/data/a/hidden").present);
  std::filesystem::create_symlink("/nowhere", path());
  EXPECT_TRUE(resolve_sources(policy_)->at("hide /srv/data/a/hidden").present);
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_TRUE(resolve_sources(policy_)->at("hide /srv/data/a/hidden").present);
}

TEST_F(Hidden, WhereItCannotBeLookedAtTheGrantIsLeftOutOrTheDomainIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be stopped by the modes of another user's directory";
  std::filesystem::create_directory(path());
  ASSERT_EQ(::chmod((top_ + "/data/a").c_str(), 0), 0);
  Closed closed, nothing;
  ::setfsuid(1);
  const auto refused = resolve_sources(policy_);
  const auto roots = resolve_sources(policy_, &nothing);
  ::setfsuid(0);
  for (const auto* one : {&refused, &roots}) {
    ASSERT_FALSE(*one);
    EXPECT_EQ(one->error().sys, EACCES);
    EXPECT_TRUE(one->error().what.starts_with("hide '/srv/data/a/hidden': ")) << one->error().what;
  }
  ASSERT_EQ(::chown((top_ + "/data").c_str(), 1, 1), 0);
  ::setfsuid(1);
  EXPECT_TRUE(resolve_sources(policy_, &closed));
  ::setfsuid(0);
  ASSERT_TRUE(closed.contains("/srv/data"));
  EXPECT_TRUE(closed["/srv/data"].contains("EACCES")) << closed["/srv/data"];
}

}  // namespace
}  // namespace caisson::confine
