// The policy of `caisson run`, kept ready-made: reading, checking and merging twenty JSON files and compiling their filter
// takes longer than building the session. A frozen policy is used only while every file that it came from, and the program
// itself, has the same inode, size, owner, mode, mtime and ctime; anything else about the file that is not as it was
// written means that it is not used. It is then made anew: a cache can be slow, never wider.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "launcher/common/confine/seccomp.h"
#include "launcher/compiler/load.h"

namespace caisson::cli {

struct Frozen {
  std::shared_ptr<const policy::Policy> policy;  // whole, but the rules of its sets: those are in `filter`
  std::set<Mechanism> needs;                     // filter_needs() that `filter` was compiled for
  confine::Program filter;
};

// Which of the mechanisms that the policy's sets need are in force: what a filter depends on besides the policy.
[[nodiscard]] std::set<Mechanism> filter_needs(const policy::Policy& policy, const std::set<Mechanism>& enforced);

class FrozenPolicies {
 public:
  // CAISSON_CACHE_DIR, else /var/cache/caisson, of root alone: it decides what a session may do, and a session of anybody
  // else has that caller's own uid, so that one which was granted the place could write what the next would run under. It,
  // what is in it and every directory on the way must be root's and writable by nobody else.
  FrozenPolicies(std::string policies, const policy::Choice& choice);

  [[nodiscard]] std::optional<Frozen> load() const;
  // Best effort. Nothing is kept of files that changed within the last two seconds: a second change in the same clock
  // tick could not be told from the first.
  void store(const Frozen& frozen) const;

 private:
  std::string policies_, directory_, file_;
};

}  // namespace caisson::cli
