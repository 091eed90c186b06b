#include "launcher/policy/terms.h"

#include <array>
#include <utility>

namespace caisson {
namespace {

constexpr std::array<std::pair<Tier, std::string_view>, 4> kTiers{
    {{Tier::t1, "T1"}, {Tier::t0, "T0"}, {Tier::t2, "T2"}, {Tier::t3, "T3"}}};

// In enum order.
constexpr std::array<std::string_view, kMechanismCount> kMechanisms{
    "user_ns", "mount_ns", "pid_ns",       "ipc_ns",       "uts_ns",   "net_ns",  "cgroup_ns", "proc", "cgroup",      "io",
    "rlimits", "uid",      "capabilities", "no_new_privs", "landlock", "seccomp", "fds",       "env",  "denial_audit"};

}  // namespace

std::string_view tier_name(Tier tier) {
  for (const auto& [value, name] : kTiers)
    if (value == tier) return name;
  return "?";
}

std::optional<Tier> tier_from(std::string_view text) {
  for (const auto& [value, name] : kTiers)
    if (name == text) return value;
  return std::nullopt;
}

std::string_view mechanism_name(Mechanism m) { return kMechanisms[static_cast<std::size_t>(m)]; }

std::optional<Mechanism> mechanism_from(std::string_view text) {
  for (std::size_t i = 0; i < kMechanisms.size(); ++i)
    if (kMechanisms[i] == text) return static_cast<Mechanism>(i);
  return std::nullopt;
}

}  // namespace caisson
