#include "launcher/policy/terms.h"

#include <algorithm>
#include <array>

namespace caisson {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 4> kTiers{"T1", "T0", "T2", "T3"};
static_assert(static_cast<std::size_t>(Tier::t3) + 1 == kTiers.size());
constexpr std::array<std::string_view, kMechanismCount> kMechanisms{
    "user_ns", "mount_ns", "pid_ns",       "ipc_ns",       "uts_ns",   "net_ns",  "cgroup_ns", "proc", "cgroup",      "io",
    "rlimits", "uid",      "capabilities", "no_new_privs", "landlock", "seccomp", "fds",       "env",  "denial_audit"};

template <class Enum, class Names>
std::optional<Enum> from(const Names& names, std::string_view text) {
  const auto it = std::ranges::find(names, text);
  return it == names.end() ? std::nullopt : std::optional(static_cast<Enum>(it - names.begin()));
}

}  // namespace

std::string_view tier_name(Tier tier) { return kTiers[static_cast<std::size_t>(tier)]; }
std::optional<Tier> tier_from(std::string_view text) { return from<Tier>(kTiers, text); }
std::string_view mechanism_name(Mechanism m) { return kMechanisms[static_cast<std::size_t>(m)]; }
std::optional<Mechanism> mechanism_from(std::string_view text) { return from<Mechanism>(kMechanisms, text); }

}  // namespace caisson
