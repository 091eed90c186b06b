// The vocabulary that policy and confinement share: tiers and mechanisms. Each list is closed.
#pragma once

#include <string_view>

#include "launcher/common/base/word.h"

namespace caisson {

// What the outer container lets us build, weakest first (SECURITY.md explains each):
//   T1 one uid, no namespaces · T0 uid per session, no namespaces · T2 namespaces, shared /proc · T3 everything.
// T1 is weaker than T0 although its number is higher: compare with operator< on the enum, never by name.
enum class Tier { t1, t0, t2, t3 };

// One wall of a session. Ends as enforced, unavailable (with reason) or disabled by policy.
enum class Mechanism {
  user_ns,
  mount_ns,
  pid_ns,
  ipc_ns,
  uts_ns,
  net_ns,
  cgroup_ns,
  proc,
  cgroup,
  io,
  rlimits,
  uid,
  capabilities,
  no_new_privs,
  landlock,
  seccomp,
  fds,
  env,
  denial_audit,  // refused system calls are on record: no wall, but a policy may require it
};

// The names in the order of the enumerators: in policy files, reports and audit records.
constexpr std::string_view words(Tier) { return "T1 T0 T2 T3"; }
constexpr std::string_view words(Mechanism) {
  return "user_ns mount_ns pid_ns ipc_ns uts_ns net_ns cgroup_ns proc cgroup io rlimits uid capabilities no_new_privs landlock "
         "seccomp fds env denial_audit";
}
inline constexpr int kMechanismCount = static_cast<int>(count_words(words(Mechanism{})));
static_assert(static_cast<int>(Mechanism::denial_audit) + 1 == kMechanismCount && count_words(words(Tier::t3)) == 4);

constexpr std::string_view tier_name(Tier tier) { return word(words(tier), static_cast<std::size_t>(tier)); }   // "T2"
constexpr std::string_view mechanism_name(Mechanism m) { return word(words(m), static_cast<std::size_t>(m)); }  // "mount_ns"

}  // namespace caisson
