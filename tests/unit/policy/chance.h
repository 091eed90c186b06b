// Random policies and narrowings of them, for tests of properties.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "launcher/common/policy/in_force.h"

namespace caisson::policy {

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
        .grants = {}, .limits = {}, .protect = names(3), .home_private = in(4), .tmp_private = in(4), .protect_home = in(4)};
    if (!in(5)) out.grants.emplace();
    for (std::size_t n = out.grants ? below(4) : 0; n > 0; --n) {
      Grant wanted = grant(path(false));
      if (!in(8)) wanted.source.clear();
      // Most of what is asked at random is refused: half of it is what is there.
      const Grant* outer = ruling_grant(policy.grants, wanted.path);
      if (outer != nullptr && !in(4)) {
        if (outer->access == Access::read) wanted.access = Access::read;
        wanted.execute = wanted.execute && outer->execute;
      }
      out.grants->push_back(wanted);
    }
    return out;
  }
};

}  // namespace caisson::policy
