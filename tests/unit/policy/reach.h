// What a session of a policy reaches, by a model of what the mounts come to.
#pragma once

#include <string>

#include "launcher/common/policy/in_force.h"
#include "launcher/common/policy/text_checks.h"

namespace caisson::policy {

// What a session has at a path, and where that is from.
struct Reach {
  bool read = false, write = false, execute = false;
  std::string source;
};

// Whether a path has a protected name in it, or lies below one.
inline bool named(const Policy& policy, std::string path) {
  for (; !path.empty(); path.erase(path.rfind('/')))
    for (const std::string& name : policy.protect)
      if (path.ends_with("/" + name)) return true;
  return false;
}

// As compiler/planner.cc and common/build/mount.cc have it: grants, home and /tmp by the longest path, and over them what is
// hidden.
inline Reach reach(const Policy& policy, const std::string& path) {
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

}  // namespace caisson::policy
