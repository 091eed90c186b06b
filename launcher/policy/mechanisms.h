// The vocabulary that policy and confinement share: tiers and mechanisms. Each list is closed.
#pragma once

#include <optional>
#include <string_view>

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
inline constexpr int kMechanismCount = static_cast<int>(Mechanism::denial_audit) + 1;

// The names in the order of the enumerators: in policy files, reports and audit records.
inline constexpr std::string_view kTierNames = "T1 T0 T2 T3";
inline constexpr std::string_view kMechanismNames =
    "user_ns mount_ns pid_ns ipc_ns uts_ns net_ns cgroup_ns proc cgroup io rlimits uid capabilities no_new_privs landlock "
    "seccomp fds env denial_audit";

[[nodiscard]] std::string_view tier_name(Tier tier);            // "T2"
[[nodiscard]] std::optional<Tier> tier_from(std::string_view);  // "T2" -> Tier::t2
[[nodiscard]] std::string_view mechanism_name(Mechanism m);     // "mount_ns"
[[nodiscard]] std::optional<Mechanism> mechanism_from(std::string_view);

}  // namespace caisson
