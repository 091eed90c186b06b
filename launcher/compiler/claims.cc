#include "launcher/compiler/claims.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "launcher/common/policy/in_force.h"
#include "launcher/common/wire/probes.h"

namespace caisson::confine {
namespace {

using init::Probe;

// What shows nothing in a session with a copy of the system: it may write to /usr, its uid is 0 in a namespace where that is
// nobody, and /proc/1 is its own by name (the probe has the memory of its parent, which it may read in any case; other programs
// may not).
constexpr Probe kOfSystem[] = {Probe::write_read_only, Probe::read_init, Probe::set_uid_0};

// The first row of the probe whose condition holds: which wall
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
      {Probe::write_proc, rules && plan.proc != Proc::none && !plan.nested, {landlock, {EACCES}}},
      {Probe::proc_sys, true, {proc, {EACCES, EROFS, ENOENT, EPERM}}},
      {Probe::read_init, plan.pid_ns, {proc, {EACCES, ENOENT}}},
      {Probe::kill_launcher, plan.pid_ns, {pid_ns, {ESRCH}}},
      {Probe::kill_launcher, plan.landlock_scoped != 0, {landlock, {EPERM}}},
      // The one mapped uid of a launcher that is not root is its own.
      {Probe::kill_launcher, plan.change_uid && !plan.user_ns, {uid, {EPERM}}},
      {Probe::kill_builder, plan.pid_ns, {pid_ns, {ESRCH}}},
      {Probe::kill_builder, plan.landlock_scoped != 0, {landlock, {EPERM}}},
      {Probe::kill_builder, plan.change_uid && !plan.user_ns, {uid, {EPERM}}},
      {Probe::read_builder, plan.pid_ns, {pid_ns, {ENOENT}}},
      {Probe::read_builder, true, {rules ? landlock : uid, {EACCES, ENOENT, EPERM}}},
      {Probe::parent_is_init, plan.pid_ns, {pid_ns, {}, 1}},
      {Probe::connect_launcher, plan.inet, {net_ns, {ECONNREFUSED}}},
      // Of a process that lets nobody read its memory, as those of caisson-init are, the connector cannot see where to.
      {Probe::connect_launcher, plan.connected, {seccomp, {EACCES}}},
      {Probe::connect_launcher, filter, refused},
      // Where a policy goes out there is a door at that address, which accepts and then refuses.
      {Probe::connect_metadata, plan.inet && !policy::goes_out(*plan.policy), {net_ns, {ENETUNREACH}}},
      {Probe::connect_metadata, plan.connected, {seccomp, {EACCES}}},
      {Probe::connect_metadata, filter && !plan.inet, refused},
      {Probe::socket_vsock, filter, refused},
      {Probe::socket_mptcp, filter, refused},
      {Probe::unshare_user, filter && !plan.nested, refused},
      {Probe::nested, filter && plan.nested, {seccomp, {EPERM}}},
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

}  // namespace

std::vector<std::optional<Claim>> claims_of(const Plan& plan) {
  std::vector<std::optional<Claim>> out;
  for (std::size_t i = 0; i < init::kProbeCount; ++i) out.push_back(claim(plan, static_cast<Probe>(i)));
  return out;
}

}  // namespace caisson::confine
