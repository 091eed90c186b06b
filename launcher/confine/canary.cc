#include "launcher/confine/canary.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <nlohmann/json.hpp>

#include "launcher/base/result.h"
#include "launcher/base/word.h"
#include "launcher/confine/fork_refusal.h"

namespace caisson::confine {
namespace {

using init::Probe;

static_assert(count_words(init::kProbeNames) == init::kProbeCount);

// What a plan claims of a probe. Signals are negative: -SIGSYS.
struct Claim {
  Mechanism mechanism;
  std::vector<int> accepted;      // errno, or -signal
  std::optional<int> value = {};  // instead: it succeeds, with this value
};

// What shows nothing in a session with a copy of the system: it may write to /usr, its uid is 0 in a namespace where that is
// nobody, and /proc/1 is its own by name (the probe has the memory of its parent, which it may read in any case; other programs
// may not).
constexpr Probe kOfSystem[] = {Probe::write_read_only, Probe::read_init, Probe::set_uid_0};

// nullopt: this plan claims nothing that the probe could show. Else the first row of the probe whose condition holds: which wall
// answers depends on the tier. The mount namespace has nothing there, Landlock refuses what is there.
std::optional<Claim> claim(const Plan& plan, Probe probe) {
  if (!plan.system.empty() && std::ranges::find(kOfSystem, probe) != std::end(kOfSystem)) return std::nullopt;
  using enum Mechanism;
  const bool filter = plan.enforces(seccomp), rules = plan.landlock_fs != 0;
  const Claim refused{seccomp, {EPERM, ENOSYS}};      // known and refused, or in no set
  const Claim unwritable{landlock, {EACCES, EROFS}};  // a container's read-only root answers before Landlock is asked
  const struct {
    Probe probe;
    bool holds;
    Claim claim;
  } rows[] = {
      {Probe::read_ungranted, plan.mount_ns, {mount_ns, {ENOENT}}},
      {Probe::read_ungranted, rules, {landlock, {EACCES}}},
      {Probe::write_read_only, plan.mount_ns, {mount_ns, {EROFS}}},
      {Probe::write_read_only, rules, unwritable},
      {Probe::write_root, plan.mount_ns, {mount_ns, {EROFS}}},
      {Probe::write_root, rules, unwritable},
      {Probe::write_proc, rules && plan.proc != Proc::none, {landlock, {EACCES}}},
      {Probe::proc_sys, true, {proc, {EACCES, EROFS, ENOENT, EPERM}}},
      {Probe::read_init, plan.pid_ns, {proc, {EACCES, ENOENT}}},
      {Probe::kill_launcher, plan.pid_ns, {pid_ns, {ESRCH}}},
      {Probe::kill_launcher, plan.landlock_scoped != 0, {landlock, {EPERM}}},
      // The one mapped uid of a launcher that is not root is its own.
      {Probe::kill_launcher, plan.change_uid && !plan.user_ns, {uid, {EPERM}}},
      {Probe::parent_is_init, plan.pid_ns, {pid_ns, {}, 1}},
      {Probe::connect_launcher, plan.inet, {net_ns, {ECONNREFUSED}}},
      {Probe::connect_launcher, filter, refused},
      {Probe::connect_metadata, plan.inet, {net_ns, {ENETUNREACH}}},
      {Probe::connect_metadata, filter, refused},
      {Probe::socket_vsock, filter, refused},
      {Probe::socket_mptcp, filter, refused},
      {Probe::unshare_user, filter, refused},
      {Probe::keyctl, filter, refused},
      {Probe::io_uring, filter, refused},
      {Probe::personality, filter, refused},
      {Probe::tiocsti, filter, {seccomp, {EPERM}}},
      {Probe::unknown_call, filter, {seccomp, {ENOSYS}}},
#if defined(__x86_64__)
      {Probe::i386_call, filter, {seccomp, {-SIGSYS}}},
      {Probe::x32_call, filter, {seccomp, {-SIGSYS}}},
#endif
      {Probe::set_uid_0, true, {plan.user_ns ? user_ns : capabilities, {EPERM, EINVAL}}},  // EINVAL: 0 is not mapped
      {Probe::chroot, true, {capabilities, {EPERM, ENOSYS}}},
      {Probe::raise_limit, true, {rlimits, {EPERM}}},
      {Probe::no_new_privs, true, {no_new_privs, {}, 1}},
      {Probe::descriptors, true, {fds, {}, 0}},
  };
  for (const auto& row : rows)
    if (row.probe == probe && row.holds) return row.claim;
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
    return std::string("canary ").append(word(init::kProbeNames, i)) + ": " + probe_answer(results[i]) + ", where " +
           std::string(mechanism_name(c->mechanism)) + " is to give " + wanted + fork_refusal(results[i].error);
  }
  return std::nullopt;
}

nlohmann::json canary_json(const Plan& plan, const ProbeResults& results) {
  nlohmann::json out = nlohmann::json::array();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const auto c = claim(plan, static_cast<Probe>(i)); c && results[i].error != kNotAsked)
      out.push_back({{"probe", word(init::kProbeNames, i)},
                     {"mechanism", mechanism_name(c->mechanism)},
                     {"answer", probe_answer(results[i])}});
  return out;
}

}  // namespace caisson::confine
