// That a narrowed session reaches nothing that the whole policy's does not: random policies, narrowings and paths, by a model of
// what the mounts come to.
#include <random>

#include "launcher/policy/in_force.h"
#include "launcher/policy/text_checks.h"
#include "tests/unit/policy/directory.h"

namespace caisson::policy {
namespace {

// What a session has at a path, and where that is from.
struct Reach {
  bool read = false, write = false, execute = false;
  std::string source;
};

// Whether a path has a protected name in it, or lies below one.
bool named(const Policy& policy, std::string path) {
  for (; !path.empty(); path.erase(path.rfind('/')))
    for (const std::string& name : policy.protect)
      if (path.ends_with("/" + name)) return true;
  return false;
}

// As confine/plan.cc and confine/mount.cc have it: grants, home and /tmp by the longest path, and over them what is hidden.
Reach reach(const Policy& policy, const std::string& path) {
  for (const std::string& hidden : policy.hide)
    if (inside(path, hidden)) return {};
  const Grant* grant = ruling_grant(policy.grants, path);
  for (const auto& [own, scope] : {std::pair(policy.home_path, policy.home), std::pair(std::string("/tmp"), policy.tmp)})
    if (inside(path, own) && (grant == nullptr || grant->path.size() < own.size())) {
      if (scope == Scope::private_) return {};  // its own and new: there is nothing that anybody had before
      const bool closed = own == policy.home_path && policy.protect_home && named(policy, path);
      return {.read = true, .write = !closed, .execute = policy.exec_writable, .source = path};
    }
  if (grant == nullptr) return {};
  const std::string source = grant->source + path.substr(grant->path.size());
  return {.read = true,
          .write = grant->access == Access::read_write && !named(policy, path) && !named(policy, source),
          .execute = grant->execute,
          .source = source};
}

struct Chance {
  std::mt19937 random;
  std::size_t below(std::size_t n) { return random() % n; }
  bool in(std::size_t n) { return below(n) == 0; }
  std::string path(bool grantable) {
    while (true) {
      static const std::vector<std::string> tops{"/a", "/home", "/home/gem", "/tmp", "/ab"}, names{"/a", "/b", "/ab"};
      std::string out = tops[below(tops.size())];
      for (std::size_t depth = below(4); depth > 0; --depth) out += names[below(names.size())];
      if (!grantable || (out != "/tmp" && out != "/home/gem")) return out;
    }
  }
  Grant grant(const std::string& path) {
    return {.path = path,
            .source = in(4) ? "/elsewhere" + path : path,
            .access = in(2) ? Access::read : Access::read_write,
            .execute = in(2)};
  }
  std::vector<std::string> names(std::size_t most) {
    static const std::vector<std::string> all{"a", "b/ab", "ab", "x", "a/x"};
    std::vector<std::string> out;
    for (std::size_t n = below(most); n > 0; --n) out.push_back(all[below(all.size())]);
    return out;
  }
  Policy policy() {
    Policy out;
    out.domain = "d";
    out.exec_writable = in(2);
    for (std::size_t n = below(6); n > 0; --n)
      if (const std::string at = path(true); std::ranges::find(out.grants, at, &Grant::path) == out.grants.end())
        out.grants.push_back(grant(at));
    std::ranges::sort(out.grants, {}, &Grant::path);
    for (std::size_t n = below(4); n > 0; --n) out.hide.push_back(path(false));
    out.protect = names(3);
    out.protect_home = in(2);
    return out;
  }
  Narrowing narrowing(const Policy& policy) {
    Narrowing out{
        .grants_given = !in(5), .home_private = in(4), .tmp_private = in(4), .protect = names(3), .protect_home = in(4)};
    for (std::size_t n = out.grants_given ? below(4) : 0; n > 0; --n) {
      Grant wanted = grant(path(false));
      if (!in(8)) wanted.source.clear();
      // Most of what is asked at random is refused: half of it is what is there.
      const Grant* outer = ruling_grant(policy.grants, wanted.path);
      if (outer != nullptr && !in(4)) {
        if (outer->access == Access::read) wanted.access = Access::read;
        wanted.execute = wanted.execute && outer->execute;
      }
      out.grants.push_back(wanted);
    }
    return out;
  }
};

TEST(NarrowProperty, Flaw03ANarrowedSessionReachesNothingThatTheWholePolicyDoesNot) {
  Chance chance{std::mt19937(3)};
  std::size_t narrowed = 0, with_grants = 0, near_hidden = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto whole = std::make_shared<const Policy>(chance.policy());
    const Narrowing by = chance.narrowing(*whole);
    const auto less = narrow(whole, by);
    if (!less) {
      EXPECT_TRUE(by.grants_given) << less.error().text();
      continue;
    }
    ++narrowed;
    for (const std::string& name : whole->protect) EXPECT_NE(std::ranges::find((*less)->protect, name), (*less)->protect.end());
    for (const std::string& name : by.protect) EXPECT_NE(std::ranges::find((*less)->protect, name), (*less)->protect.end());
    EXPECT_GE((*less)->protect_home, whole->protect_home || by.protect_home);
    with_grants += by.grants.empty() ? 0 : 1;
    std::vector<std::string> paths;
    for (int i = 0; i < 20; ++i) paths.push_back(chance.path(false));
    for (const auto* grants : {&whole->grants, &(*less)->grants})
      for (const Grant& grant : *grants) paths.push_back(grant.path), paths.push_back(grant.path + "/x");
    for (const std::string& hidden : whole->hide) paths.push_back(hidden), paths.push_back(hidden + "/x"), ++near_hidden;
    for (const std::string& path : paths) {
      const Reach before = reach(*whole, path), after = reach(**less, path);
      const bool same = !after.read || after.source == before.source;
      ASSERT_TRUE(after.read <= before.read && after.write <= before.write && after.execute <= before.execute && same)
          << path << "\nwhole: " << json::dump(to_json(*whole)) << "\nnarrowed: " << json::dump(to_json(**less));
    }
  }
  EXPECT_GT(narrowed, 6000U);  // else it has shown little
  EXPECT_GT(with_grants, 300U);
  EXPECT_GT(near_hidden, 3000U);
}

}  // namespace
}  // namespace caisson::policy
