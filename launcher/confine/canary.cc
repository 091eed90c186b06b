#include "launcher/confine/canary.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <nlohmann/json.hpp>

#include "launcher/base/result.h"

namespace caisson::confine {
namespace {

using init::Probe;

constexpr const char* kNames[init::kProbeCount] = {
    "read_ungranted", "write_read_only",  "write_root",       "write_proc",   "proc_sys",     "read_init",    "kill_launcher",
    "parent_is_init", "connect_launcher", "connect_metadata", "socket_vsock", "socket_mptcp", "unshare_user", "keyctl",
    "io_uring",       "personality",      "tiocsti",          "unknown_call", "i386_call",    "x32_call",     "set_uid_0",
    "chroot",         "raise_limit",      "no_new_privs",     "descriptors"};

// What a plan claims of a probe. Signals are negative: -SIGSYS.
struct Claim {
  Mechanism mechanism;
  std::vector<int> accepted;      // errno, or -signal
  std::optional<int> value = {};  // instead: it succeeds, with this value
};

// Which wall answers depends on the tier: the mount namespace has nothing there, Landlock refuses what is there.
std::optional<Claim> path_claim(const Plan& plan, int by_mount) {
  if (plan.mount_ns) return Claim{Mechanism::mount_ns, {by_mount}};
  if (plan.landlock_fs != 0) return Claim{Mechanism::landlock, {EACCES}};
  return std::nullopt;
}

std::optional<Claim> seccomp_claim(const Plan& plan) {
  if (!plan.enforces(Mechanism::seccomp)) return std::nullopt;
  return Claim{Mechanism::seccomp, {EPERM, ENOSYS}};  // known and refused, or in no set
}

std::optional<Claim> network_claim(const Plan& plan, int by_namespace) {
  if (plan.inet) return Claim{Mechanism::net_ns, {by_namespace}};
  return seccomp_claim(plan);
}

std::optional<Claim> foreign_call_claim(const Plan& plan) {
  if (!plan.enforces(Mechanism::seccomp)) return std::nullopt;
#if defined(__x86_64__)
  return Claim{Mechanism::seccomp, {-SIGSYS}};
#else
  return std::nullopt;
#endif
}

// What shows nothing in a session with a copy of the system: it may write to /usr, its uid is 0 in a namespace where that is
// nobody, and /proc/1 is its own by name (the probe has the memory of its parent, which it may read in any case; other programs
// may not).
constexpr Probe kOfSystem[] = {Probe::write_read_only, Probe::read_init, Probe::set_uid_0};

// nullopt: this plan claims nothing that the probe could show.
std::optional<Claim> claim(const Plan& plan, Probe probe) {
  if (!plan.system.empty() && std::ranges::find(kOfSystem, probe) != std::end(kOfSystem)) return std::nullopt;
  switch (probe) {
    case Probe::read_ungranted:
      return path_claim(plan, ENOENT);
    case Probe::write_read_only:
    case Probe::write_root:
      return path_claim(plan, EROFS);
    case Probe::write_proc:
      if (plan.landlock_fs == 0 || plan.proc == Proc::none) return std::nullopt;
      return Claim{Mechanism::landlock, {EACCES}};
    case Probe::proc_sys:
      return Claim{Mechanism::proc, {EACCES, EROFS, ENOENT, EPERM}};
    case Probe::read_init:
      if (!plan.pid_ns) return std::nullopt;
      return Claim{Mechanism::proc, {EACCES, ENOENT}};
    case Probe::kill_launcher:
      if (plan.pid_ns) return Claim{Mechanism::pid_ns, {ESRCH}};
      if (plan.landlock_scoped != 0) return Claim{Mechanism::landlock, {EPERM}};
      // The one mapped uid of a launcher that is not root is its own.
      if (plan.change_uid && !plan.user_ns) return Claim{Mechanism::uid, {EPERM}};
      return std::nullopt;
    case Probe::parent_is_init:
      if (!plan.pid_ns) return std::nullopt;
      return Claim{Mechanism::pid_ns, {}, 1};
    case Probe::connect_launcher:
      return network_claim(plan, ECONNREFUSED);
    case Probe::connect_metadata:
      return network_claim(plan, ENETUNREACH);
    case Probe::socket_vsock:
    case Probe::socket_mptcp:
    case Probe::unshare_user:
    case Probe::keyctl:
    case Probe::io_uring:
    case Probe::personality:
      return seccomp_claim(plan);
    case Probe::tiocsti:
      if (!plan.enforces(Mechanism::seccomp)) return std::nullopt;
      return Claim{Mechanism::seccomp, {EPERM}};
    case Probe::unknown_call:
      if (!plan.enforces(Mechanism::seccomp)) return std::nullopt;
      return Claim{Mechanism::seccomp, {ENOSYS}};
    case Probe::i386_call:
    case Probe::x32_call:
      return foreign_call_claim(plan);
    case Probe::set_uid_0:
      return Claim{plan.user_ns ? Mechanism::user_ns : Mechanism::capabilities, {EPERM, EINVAL}};  // EINVAL: 0 is not mapped
    case Probe::chroot:
      return Claim{Mechanism::capabilities, {EPERM, ENOSYS}};
    case Probe::raise_limit:
      return Claim{Mechanism::rlimits, {EPERM}};
    case Probe::no_new_privs:
      return Claim{Mechanism::no_new_privs, {}, 1};
    case Probe::descriptors:
      return Claim{Mechanism::fds, {}, 0};
  }
  return std::nullopt;
}

bool holds(const Claim& claim, const ProbeResult& result) {
  if (claim.value) return result.error == 0 && result.signal == 0 && result.value == *claim.value;
  const int answer = result.signal != 0 ? -result.signal : result.error;
  return answer != 0 && std::ranges::find(claim.accepted, answer) != claim.accepted.end();
}

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace

ProbeResults without_system(ProbeResults results) {
  for (const Probe probe : kOfSystem) results[static_cast<std::size_t>(probe)].error = kNotAsked;
  return results;
}

const char* probe_name(Probe probe) { return kNames[static_cast<std::size_t>(probe)]; }

std::string probe_answer(const ProbeResult& result) {
  if (result.signal != 0) return signal_text(result.signal);
  return result.error != 0 ? std::string(errno_name(result.error)) : std::to_string(result.value);
}

std::optional<std::string> canary_fault(const Plan& plan, const ProbeResults& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto c = claim(plan, static_cast<Probe>(i));
    if (!c || results[i].error == kNotAsked || holds(*c, results[i])) continue;
    std::string wanted;
    if (c->value) wanted = std::to_string(*c->value);
    for (const int answer : c->accepted)
      wanted += (wanted.empty() ? "" : " or ") + (answer < 0 ? signal_text(-answer) : std::string(errno_name(answer)));
    return std::string("canary ") + kNames[i] + ": " + probe_answer(results[i]) + ", where " +
           std::string(mechanism_name(c->mechanism)) + " is to give " + wanted;
  }
  return std::nullopt;
}

nlohmann::json canary_json(const Plan& plan, const ProbeResults& results) {
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const auto c = claim(plan, static_cast<Probe>(i)); c && results[i].error != kNotAsked)
      out.push_back({{"probe", kNames[i]}, {"mechanism", mechanism_name(c->mechanism)}, {"answer", probe_answer(results[i])}});
  return out;
}

}  // namespace caisson::confine
