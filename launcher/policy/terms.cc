#include "launcher/policy/terms.h"

#include <array>

namespace caisson {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 4> kTiers{"T1", "T0", "T2", "T3"};
static_assert(static_cast<std::size_t>(Tier::t3) + 1 == kTiers.size());
constexpr std::array<std::string_view, kMechanismCount> kMechanisms{
    "user_ns", "mount_ns", "pid_ns",       "ipc_ns",       "uts_ns",   "net_ns",  "cgroup_ns", "proc", "cgroup",      "io",
    "rlimits", "uid",      "capabilities", "no_new_privs", "landlock", "seccomp", "fds",       "env",  "denial_audit"};

}  // namespace

std::string_view tier_name(Tier tier) { return kTiers[static_cast<std::size_t>(tier)]; }
std::string_view mechanism_name(Mechanism m) { return kMechanisms[static_cast<std::size_t>(m)]; }

}  // namespace caisson
