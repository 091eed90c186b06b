// Frozen policies: the same when they come back, gone when anything that they came from is another.
#include "launcher/cli/frozen.h"

#include <unistd.h>

#include "launcher/common/base/json.h"
#include "launcher/compiler/canonical.h"
#include "launcher/compiler/filter.h"
#include "tests/unit/policy/directory.h"

namespace caisson::cli {
namespace {

struct FrozenPolicy : testing::Test {
  FrozenPolicy() : cache("/tmp/caisson-cache-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(cache);
    ::setenv("CAISSON_CACHE_DIR", cache.c_str(), 1);
    ::usleep(2'100'000);  // what has just changed is not kept
  }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "policies are kept for root alone";
  }
  ~FrozenPolicy() override { std::filesystem::remove_all(cache); }

  std::shared_ptr<const policy::Policy> loaded() {
    const auto result = policy::load_directory(directory.path(), {"d", ""});
    for (const auto& problem : result.problems) ADD_FAILURE() << problem.text();
    return result.policies.at("d");
  }
  FrozenPolicies frozen() { return {directory.path(), {"d", ""}}; }
  void store() {
    const auto policy = loaded();
    frozen().store({policy, {Mechanism::net_ns}, *confine::compile_seccomp(policy->sets)});
  }
  std::string file() {
    for (const auto& entry : std::filesystem::directory_iterator(cache)) return entry.path();
    return {};
  }

  policy::Directory directory;
  std::string cache;
};

TEST_F(FrozenPolicy, ComesBackAsItWas) {
  EXPECT_FALSE(frozen().load()) << "nothing there yet";
  store();
  const auto back = frozen().load();
  ASSERT_TRUE(back);
  const auto policy = loaded();
  EXPECT_EQ(json::dump(policy::to_json(*back->policy)), json::dump(policy::to_json(*policy)));
  EXPECT_EQ(back->policy->digest, policy->digest);
  EXPECT_EQ(back->policy->domain, "d");
  EXPECT_EQ(back->needs, std::set<Mechanism>{Mechanism::net_ns});
  const auto filter = *confine::compile_seccomp(policy->sets);
  ASSERT_EQ(back->filter.size(), filter.size());
  EXPECT_EQ(std::memcmp(back->filter.data(), filter.data(), filter.size() * sizeof(sock_filter)), 0);
  EXPECT_TRUE(back->policy->sets.front().allow.empty()) << "the rules are in the filter";
}

TEST_F(FrozenPolicy, AChangedFileIsSeenAtOnce) {
  store();
  bool kept = true;
  for (int i = 0; i < 20 && kept; ++i) {  // on a slow machine two seconds may pass after all
    directory.write("d.json", R"({"extends": "base", "hostname": "another)" + std::to_string(i) + R"("})");
    EXPECT_FALSE(frozen().load());
    store();
    kept = frozen().load().has_value();
  }
  EXPECT_FALSE(kept) << "two seconds have not passed: a second change might not be seen";
}

TEST_F(FrozenPolicy, ARemovedOrAddedFileIsSeen) {
  store();
  directory.write("seccomp/more.json", R"({"name": "more", "why": "for the tests", "allow": [{"names": ["close"]}]})");
  EXPECT_FALSE(frozen().load());
}

TEST_F(FrozenPolicy, ChangedRightsAreSeen) {
  store();
  ASSERT_EQ(::chmod((directory.path() + "/base.json").c_str(), 0666), 0);
  EXPECT_FALSE(frozen().load());
}

TEST_F(FrozenPolicy, WhatOthersCouldWriteIsNotUsed) {
  store();
  ASSERT_EQ(::chmod(file().c_str(), 0622), 0);
  EXPECT_FALSE(frozen().load());
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  ASSERT_TRUE(frozen().load());
  ASSERT_EQ(::chmod(cache.c_str(), 0777), 0);
  EXPECT_FALSE(frozen().load());
}

TEST_F(FrozenPolicy, Flaw05APlaceThatAnotherUidCouldRenameIsNotUsed) {
  store();
  const std::string outer = cache + "/outer", inner = outer + "/inner";
  std::filesystem::create_directories(inner);
  ::setenv("CAISSON_CACHE_DIR", inner.c_str(), 1);
  store();
  ASSERT_TRUE(frozen().load());
  ASSERT_EQ(::chmod(outer.c_str(), 0777), 0);
  EXPECT_FALSE(frozen().load());
  ASSERT_EQ(::chmod(outer.c_str(), 01777), 0);
  EXPECT_TRUE(frozen().load()) << "sticky";
  ASSERT_EQ(::chown(outer.c_str(), 20000, 20000), 0);
  EXPECT_FALSE(frozen().load());
  ASSERT_EQ(::chown(outer.c_str(), 0, 0), 0);
  ::setenv("CAISSON_CACHE_DIR", (cache + "/link/inner").c_str(), 1);
  std::filesystem::create_symlink(outer, cache + "/link");
  EXPECT_FALSE(frozen().load());
}

TEST_F(FrozenPolicy, Flaw05NobodyButRootHasACache) {
  store();
  ASSERT_EQ(::chown(cache.c_str(), 65534, 65534), 0);
  for (const auto& entry : std::filesystem::directory_iterator(cache)) ASSERT_EQ(::chown(entry.path().c_str(), 65534, 65534), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const bool believed = frozen().load().has_value();
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_FALSE(believed);
}

TEST_F(FrozenPolicy, ALinkIsNotFollowed) {
  store();
  const std::string name = file(), elsewhere = cache + "/elsewhere";
  std::filesystem::rename(name, elsewhere);
  std::filesystem::create_symlink(elsewhere, name);
  EXPECT_FALSE(frozen().load());
}

TEST_F(FrozenPolicy, EveryTornFileIsRefused) {
  store();
  const std::string name = file(), whole = policy::read_text(name);
  const auto put = [&name](const std::string& bytes) { std::ofstream(name, std::ios::trunc) << bytes; };
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    put(whole.substr(0, size));
    EXPECT_FALSE(frozen().load()) << size;
  }
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    EXPECT_FALSE(frozen().load()) << at;
  }
  put(whole);
  EXPECT_TRUE(frozen().load());
}

}  // namespace
}  // namespace caisson::cli
