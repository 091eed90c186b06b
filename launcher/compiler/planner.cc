#include "launcher/compiler/planner.h"

#include <algorithm>

#include "launcher/common/confine/fork_refusal.h"
#include "launcher/common/egress/trust.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"
#include "launcher/common/policy/in_force.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/compiler/claims.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/egress.h"
#include "launcher/compiler/landlock.h"
#include "launcher/compiler/narrow.h"
#include "launcher/compiler/residual.h"
#include "launcher/compiler/secrets.h"
#include "launcher/compiler/system_plan.h"

namespace caisson::confine {
namespace {

using policy::Access;
using policy::Grant;
using policy::Policy;
using policy::Scope;

std::string view_text(const Plan& plan) {
  std::map<std::string, std::string> places{{"/proc", "l"}, {"/dev", "l"}, {"/dev/pts", "w"}, {"/dev/shm", "w"}};
  for (const auto& path : {std::string("/tmp"), plan.policy->home_path}) places[path] = plan.policy->exec_writable ? "wx" : "w";
  for (const Bind& b : plan.binds) places[b.target] = std::string(b.read_only ? "" : "w") + (b.execute ? "x" : "");
  for (const auto& [path, content] : plan.files) places[path] = "";
  for (const std::string& path : plan.hide) places[path] = "h";
  std::string out(1, '\0');
  const auto put = [&out](const std::string& text) { out.append(text).append(1, '\0'); };
  for (const auto& [path, letters] : places) put(letters), put(path);
  for (const auto& [path, target] : plan.links) put("="), put(path), put(target);
  return out;
}

// A place of its own at the top: no grant of any policy lies above it, in which it could not be made.
constexpr const char* kTools = "/caisson";
class Planner {
 public:
  Planner(std::shared_ptr<const Policy> policy, const Features& features, const Sources& sources, const Place& place)
      : policy_(*policy), features_(features), sources_(sources), place_(place) {
    plan_.policy = std::move(policy);
  }

  Result<Plan> run() {
    plan_.tier = features_.tier();
    plan_.nested = policy::nests(policy_);
    namespaces();
    std::ranges::move(residual_of_nesting(plan_, place_), std::back_inserter(plan_.residual));
    credentials();
    connections();
    TRY(demands());
    TRY(paths());
    landlock();
    limits();
    plan_.claims = claims_of(plan_);
    if (plan_.observe) plan_.view = view_text(plan_);
    return std::move(plan_);
  }

 private:
  MechanismPlan& state(Mechanism m) { return plan_.mechanisms[static_cast<std::size_t>(m)]; }

  void residual(const char* id, std::string what) { plan_.residual.push_back({id, std::move(what)}); }

  // Decides one mechanism: the policy may have disabled it by name, the host may not offer it.
  bool decide(Mechanism m, bool works, const std::string& why_not) {
    if (policy_.disable.contains(m)) {
      const auto why = policy_.weaken.find("/disable");
      state(m) = {MechanismState::disabled_by_policy, why != policy_.weaken.end() ? why->second : "disable[] in the policy"};
      return false;
    }
    state(m) = {works ? MechanismState::enforced : MechanismState::unavailable, works ? "" : why_not};
    return works;
  }
  static std::string because(const Tried& t) {
    return t.error > 0 ? t.step + fork_refusal(t.error) + ": " + errno_name(t.error) : "needs a user namespace";
  }

  void namespaces() {
    const bool user = decide(Mechanism::user_ns, features_.user_ns.ok() && features_.mount_ns.ok(),
                             because(features_.user_ns.ok() ? features_.mount_ns : features_.user_ns));
    plan_.user_ns = user;
    plan_.mount_ns = decide(Mechanism::mount_ns, user && features_.mount_ns.ok(), because(features_.mount_ns));
    plan_.net_ns = decide(Mechanism::net_ns, user && features_.net_ns.ok(), because(features_.net_ns));
    plan_.ipc_ns = decide(Mechanism::ipc_ns, user && features_.ipc_ns.ok(), because(features_.ipc_ns));
    plan_.uts_ns = decide(Mechanism::uts_ns, user && features_.uts_ns.ok(), because(features_.uts_ns));
    plan_.cgroup_ns = decide(Mechanism::cgroup_ns, user && features_.cgroup_ns.ok(), because(features_.cgroup_ns));
    // A PID namespace under the container's old /proc would lie about every pid: both or none.
    plan_.pid_ns =
        decide(Mechanism::pid_ns, plan_.mount_ns && features_.pid_ns(), "no fresh /proc: " + because(features_.proc_full));
    const bool fresh = decide(Mechanism::proc, plan_.pid_ns, "no fresh /proc: " + because(features_.proc_full));
    if (fresh) plan_.proc = features_.proc_full.ok() ? Proc::full : Proc::subset;
    else plan_.proc = policy_.proc_shared_fallback ? Proc::shared : Proc::none;
    if (plan_.proc == Proc::shared)
      residual("proc-shared",
               "/proc is the container's: what it tells any user of other processes can be read (names, command lines, mounts)");
    if (plan_.proc != Proc::none)
      residual("machine-facts",
               "facts of the machine that /proc tells any user can be read: processor, memory, load, disks, boot id and the "
               "kernel's command line");
    if (!plan_.mount_ns) std::ranges::move(residual_without_mounts(policy_, made()), std::back_inserter(plan_.residual));
    if (features_.proc_sys_writable && !features_.uid_remapped)
      residual(
          "proc-sys-writable",
          "root of this container is the host's root and can write to /proc/sys: control of the launcher is control of the host");
    std::ranges::move(residual_of_shared_namespaces(plan_), std::back_inserter(plan_.residual));

    plan_.inet = plan_.net_ns && policy_.network != policy::Network::none;
    if (policy::goes_out(policy_) && place_.own_net)
      residual("no-way-out", "the session has a network namespace of its own: what `egress` allows cannot be reached from it");
    if (policy::goes_out(policy_) && !place_.own_net && plan_.net_ns && !features_.cgroup.ok())
      residual(
          "ways-alike",
          "without cgroup v2 sessions that go out are not told apart: their records name no session, and while the domains with "
          "a way out differ in network, egress, egress_ask, egress_limits, upstream or secrets, all of their connections are "
          "refused");
    named_ports();
    if (plan_.inet && !place_.own_net)
      residual("loopback-shared",
               "the sessions of a workspace share one loopback network: each can use the servers of the others");
    if (!plan_.net_ns) {
      state(Mechanism::net_ns).reason += features_.egress_connect.ok()
                                             ? "; where the policy goes out caisson-connector makes TCP "
                                               "connections, all other inet sockets are refused by seccomp"
                                             : "; inet sockets are refused by seccomp";
    }
    plan_.cgroup = decide(Mechanism::cgroup, features_.cgroup.ok(), features_.cgroup_reason);
    if (!plan_.cgroup) {
      state(Mechanism::cgroup).reason += "; rlimits and a watchdog stand in";
      residual("watchdog-limits",
               "no cgroup: memory and process limits are enforced by a watchdog within a second, CPU share is not limited");
    }
    io();
  }

  // Only a policy that asks for it has something to enforce.
  void io() {
    if (!policy_.limits.io()) {
      state(Mechanism::io) = {MechanismState::disabled_by_policy, "the policy has no limits.io_*"};
      return;
    }
    const std::string why = !plan_.cgroup ? "no cgroup" : !features_.io.ok() ? features_.io.step : place_.no_disks;
    plan_.io = decide(Mechanism::io, plan_.cgroup && features_.io.ok() && !place_.disks.empty(), why);
    if (plan_.io) plan_.disks = place_.disks;
  }

  // Without the packet filter the door has listeners, and what meets none of them goes nowhere.
  void named_ports() {
    const bool filtered = features_.egress_tproxy.ok() || !features_.egress_ports.ok();
    if (policy::goes_out(policy_) && !place_.own_net && plan_.net_ns && !filtered)
      residual("named-ports", policy::named_ports(policy_.egress));
  }

  [[nodiscard]] bool made() const { return place_.processes != 0; }  // a workspace that somebody asked for

  // The sessions of a workspace have one uid and see each other: also where user namespaces can be made, but no mounts in them.
  [[nodiscard]] bool peers() const { return !plan_.pid_ns && (features_.user_ns.ok() || !plan_.change_uid || made()); }

  void credentials() {
    // With a user namespace the uid is the workspace's one mapped uid, and root's powers end at the namespace.
    plan_.change_uid = plan_.user_ns || features_.change_uid.ok();
    decide(Mechanism::uid, plan_.change_uid, because(features_.change_uid));
    if (!plan_.change_uid) {
      residual("one-uid",
               "one uid for launcher, agent and sessions: only Landlock domains stand between them; command lines and numbers of "
               "descriptors of the others can be seen, their priorities and processors changed");
      residual("bounding-set",
               "the capability bounding set is the container's: that nothing of it can be had rests on no_new_privs");
    } else if (peers()) {
      residual("peers-tunable",
               "no PID namespace, and one uid for the sessions of a workspace: each can change priorities and "
               "processors of the others' processes, and list numbers of their descriptors");
    }
    for (const Mechanism m :
         {Mechanism::capabilities, Mechanism::no_new_privs, Mechanism::rlimits, Mechanism::fds, Mechanism::env})
      decide(m, true, "");
    decide(Mechanism::seccomp, features_.seccomp.ok(), because(features_.seccomp));
    decide(Mechanism::landlock, features_.landlock_abi > 0, "the kernel has no Landlock");
    if (decide(Mechanism::denial_audit, features_.notify.ok(),
               features_.notify.error > 0 ? because(features_.notify) : "nobody listens: there is no launcher") &&
        !policy_.audit.denials)
      state(Mechanism::denial_audit) = {MechanismState::disabled_by_policy, "audit.denials is false in the policy"};
    plan_.observe = policy_.audit.paths && plan_.mount_ns && plan_.enforces(Mechanism::denial_audit);
    if (policy_.audit.paths && plan_.enforces(Mechanism::denial_audit))
      state(Mechanism::denial_audit).reason = plan_.observe ? "paths observed" : "paths are not observed: no mount namespace";
  }

  // Where nothing but the container's own network is there, what goes out does it by caisson-connector. Landlock is the wall that
  // this needs (common/build/ruleset.cc), the filter tells of what it is to do.
  void connections() {
    plan_.connected = policy::goes_out(policy_) && !place_.own_net && !plan_.user_ns && features_.egress_connect.ok() &&
                      plan_.enforces(Mechanism::seccomp) && plan_.enforces(Mechanism::landlock);
    if (plan_.connected)
      residual(
          "tcp-only",
          "no network namespace: what goes out is TCP alone, and there are no servers, not even on a loopback; programs that "
          "resolve names by UDP alone need the proxy variables; a connection's other end shows as one of 127.0.0.1");
  }

  [[nodiscard]] std::string no_way_out() const {
    if (plan_.net_ns) return because(features_.egress_ports.error > 0 ? features_.egress_ports : features_.egress_tproxy);
    const std::string& net = plan_.mechanisms[static_cast<std::size_t>(Mechanism::net_ns)].reason;
    if (plan_.user_ns) return net;
    for (const Mechanism m : {Mechanism::seccomp, Mechanism::landlock})
      if (!plan_.enforces(m)) return net + ", and connecting for it needs " + std::string(mechanism_name(m));
    const Tried& t = features_.egress_connect;
    return net + ", and connecting for it is unavailable(" +
           (t.error > 0 ? t.step + "): " + errno_name(t.error) : "no launcher)");
  }

  Status paths() {
    residual(
        "file-locks",
        "a file that can be read can be locked, also in read-only grants: a session can block others that wait for the lock");
    if (policy_.home == Scope::workspace && !place_.home_quota)
      residual("home-quota", "the home has no quota but its filesystem's");
    if (policy_.system_packages && (!plan_.pid_ns || place_.system.empty()))
      return fail(Code::unavailable,
                  "policy '" + policy_.domain + "' has system_packages, which need " +
                      (plan_.pid_ns ? "the workspace of a running launcher" : "a fresh /proc, tier T3 (see: caisson probe)"));
    if (!plan_.mount_ns) {
      // Granting the shared ones instead would be wider than what the policy or the request says.
      if (policy_.home != Scope::workspace || policy_.tmp != Scope::workspace)
        return fail(Code::unavailable,
                    "policy '" + policy_.domain +
                        "' gives a session a home or /tmp of its own, or to read, which needs a mount namespace, and there is "
                        "none here (see: caisson probe)");
      const auto conflicts = policy::landlock_conflicts(policy_);
      if (!conflicts.empty()) return fail(Code::invalid_argument, conflicts.front().text());
      // Nor can Landlock take away below a directory what it gave on it. Who switches the mounts off by name goes without.
      if (!policy_.protect.empty() && !policy_.disable.contains(Mechanism::mount_ns))
        return fail(Code::unavailable, "policy '" + policy_.domain +
                                           "' has 'protect', which needs a mount namespace, tier T2 or T3 " +
                                           "(see: caisson probe); this is " + std::string(tier_name(plan_.tier)));
      if (!policy_.protect.empty())
        residual("protect-off", "the policy switches mount_ns off: what `protect` names can be written to as the grants permit");
    }
    plan_.closed = place_.closed;
    std::vector<Grant> grants = policy_.grants;
    if (sources_.contains(place_.tools)) {
      plan_.tools = plan_.mount_ns ? kTools : place_.tools;
      grants.push_back({.path = kTools, .source = place_.tools, .access = Access::read, .execute = true});
    }
    for (const Grant& grant : grants) {
      if (of_workspace(grant)) continue;
      const auto it = sources_.find(grant.source);
      if (it == sources_.end() || !it->second.present || shut(grant.path)) {
        plan_.absent.push_back(grant.path);
        continue;
      }
      plan_.binds.push_back({.target = grant.path,
                             .source = grant.source,
                             .read_only = grant.access == Access::read,
                             .execute = grant.execute,
                             .directory = it->second.directory,
                             .dev = it->second.dev,
                             .ino = it->second.ino});
    }
    if (!plan_.mount_ns) return {};

    if (policy_.home != Scope::private_) TRY(add_home());
    else plan_.directories.push_back(policy_.home_path);
    plan_.single_use = policy_.home == Scope::private_ || policy_.tmp == Scope::private_;
    if (policy_.tmp != Scope::private_ && !place_.stage.empty()) {
      plan_.binds.push_back({.target = "/tmp",
                             .source = place_.stage + "/tmp",
                             .read_only = policy_.tmp == Scope::read,
                             .execute = policy_.exec_writable,
                             .staged = true});
    } else {
      plan_.directories.push_back("/tmp");
    }
    plan_.private_tmp_options = tmp_options(policy_.limits);
    for (const char* dir : {"/dev", "/dev/pts", "/dev/shm", "/proc", "/run", "/var"}) plan_.directories.emplace_back(dir);
    for (const std::string& device : policy_.devices) {
      const std::string path = "/dev/" + device;
      plan_.binds.push_back({.target = path, .source = path, .read_only = false, .device = true, .directory = false});
    }
    plan_.files.assign(policy_.files.begin(), policy_.files.end());
    plan_.links.assign(policy_.links.begin(), policy_.links.end());
    for (const auto& [path, target] : {std::pair("/dev/fd", "/proc/self/fd"), std::pair("/dev/stdin", "/proc/self/fd/0"),
                                       std::pair("/dev/stdout", "/proc/self/fd/1"), std::pair("/dev/stderr", "/proc/self/fd/2"),
                                       std::pair("/dev/ptmx", "pts/ptmx")})
      plan_.links.emplace_back(path, target);
    // A mask covers the path of a grant that is left out: otherwise a grant around it would show what lies there.
    std::ranges::copy_if(policy_.hide, std::back_inserter(plan_.hide), [this](const std::string& path) { return !shut(path); });
    for (const auto& [path, why] : plan_.closed) plan_.hide.push_back(path);
    if (policy_.system_packages) TRY(plan_system(plan_, place_.system));
    hold();
    if (plan_.binds.size() > kMaxBinds)
      return fail(Code::invalid_argument, "policy '" + policy_.domain + "' needs more than " + std::to_string(kMaxBinds) +
                                              " mounts: grant less, or hide and grant less deep inside what is writable");
    // Parents before what lies below them, whoever of grants, home and devices they come from.
    std::ranges::sort(plan_.binds, {}, &Bind::target);
    for (Bind& b : plan_.binds)
      b.frozen = (policy_.home == Scope::read && policy::inside(b.target, policy_.home_path)) ||
                 (policy_.tmp == Scope::read && policy::inside(b.target, "/tmp"));
    plan_.protect = protect_notes(plan_);
    if (!plan_.protect.empty())
      residual("protect-new-names",
               "a session can make what `protect` names and did not exist when it began: the record of its end lists these");
    return {};
  }

  // Inside what is writable a directory above something hidden or granted could be moved, and that with it: the next session's
  // tree would find nothing at its path, or what was put there. So each of them becomes a mount point.
  void hold() {
    std::vector<std::string> paths = plan_.hide;
    for (const Bind& b : plan_.binds) paths.push_back(b.target);
    for (std::string_view path : paths)
      while (!(path = path.substr(0, path.rfind('/'))).empty()) {
        const Bind* around = governing(plan_, path);
        if (around == nullptr || around->read_only || around->target == path) break;
        if (plan_.binds.size() > kMaxBinds) return;  // refused, before each more makes the next dearer
        Bind held{.target = std::string(path), .read_only = false, .execute = around->execute, .staged = true, .held = true};
        held.source = around->source + held.target.substr(around->target.size());
        plan_.binds.push_back(std::move(held));
      }
    std::ranges::copy_if(plan_.hide, std::back_inserter(plan_.makeable), [this](const std::string& path) {
      const Bind* around = governing(plan_, path);
      const auto was = sources_.find("hide " + path);
      return around != nullptr && !around->read_only && (was == sources_.end() || !was->second.present);
    });
    for (const auto& [path, why] : plan_.closed) plan_.makeable.push_back(path);
  }

  [[nodiscard]] bool shut(const std::string& path) const {
    return std::ranges::any_of(plan_.closed, [&path](const auto& c) { return policy::inside(path, c.first); });
  }

  // `home:REST`: a directory of the workspace's own home, which is made where it is missing and stays writable where the home is
  // to be read. `workspace:NAME`: a directory in the workspace's memory that the sessions share whose policies name it.
  bool of_workspace(const Grant& grant) {
    const bool home = grant.source.starts_with(policy::kOfHome);
    if (!home && !grant.source.starts_with(policy::kOfWorkspace)) return false;
    if (home && policy_.home == Scope::workspace) return true;  // nothing is to be added to it
    if (!plan_.mount_ns || (home ? policy_.home == Scope::private_ : place_.stage.empty()))
      return plan_.absent.push_back(grant.path), true;
    plan_.binds.push_back({.target = grant.path,
                           .source = home ? grant.source : place_.stage + "/" + grant.source.substr(policy::kOfWorkspace.size()),
                           .read_only = grant.access == Access::read,
                           .execute = grant.execute,
                           .staged = true,
                           .held = home});
    return true;
  }

  Status add_home() {
    const auto it = sources_.find(place_.home_source);
    if (!place_.home_staged && (it == sources_.end() || !it->second.present || !it->second.directory))
      return fail(Code::unavailable, "the workspace's home " + quote(place_.home_source) + " is not a directory");
    Bind home{.target = policy_.home_path,
              .source = place_.home_source,
              .read_only = policy_.home == Scope::read,
              .execute = policy_.exec_writable,
              .staged = place_.home_staged};
    if (!home.staged) home.dev = it->second.dev, home.ino = it->second.ino;
    plan_.binds.push_back(std::move(home));
    return {};
  }

  void rule(std::string path, std::uint64_t access, bool required = true) {
    plan_.landlock.push_back({std::move(path), access, required});
  }

  void landlock() {
    const bool enforced = state(Mechanism::landlock).state == MechanismState::enforced;
    const int abi = enforced ? features_.landlock_abi : 0;
    plan_.landlock_scoped = landlock_scopes(abi);
    if (plan_.landlock_scoped == 0)
      residual("landlock-no-scopes", (enforced ? "Landlock ABI " + std::to_string(abi) + " has no scopes (needs 6, Linux 6.12): "
                                               : "without Landlock there are no scopes: ") +
                                         (peers() ? "a session can end and stop processes of others that have its uid; " : "") +
                                         "signals and abstract sockets are stopped by namespaces and uids alone");
    if (!enforced) return;
    plan_.landlock_fs = landlock_fs_rights(abi);
    state(Mechanism::landlock).reason = "ABI " + std::to_string(abi);
    if (!plan_.mount_ns && (plan_.landlock_fs & LANDLOCK_ACCESS_FS_IOCTL_DEV) == 0) {
      const bool cuts = (plan_.landlock_fs & LANDLOCK_ACCESS_FS_TRUNCATE) == 0;
      state(Mechanism::landlock).reason += cuts ? ", which does not govern truncation (needs 3, Linux 6.2)"
                                                : ", which does not govern ioctl of devices (needs 5, Linux 6.10)";
      if (plan_.enforces(Mechanism::seccomp)) {
        plan_.ungoverned = cuts ? Ungoverned::truncation : Ungoverned::ioctl;
        state(Mechanism::landlock).reason += ": seccomp refuses what would get past it, and openat2(2)";
      } else {
        residual(
            "landlock-no-truncate",
            "neither Landlock nor seccomp governs truncation and ioctl: files that the session's user may write by their modes "
            "can be emptied before Linux 6.2, and devices be opened for ioctl before Linux 6.10, granted or not");
      }
    }
    const std::uint64_t everything = landlock_read(abi, policy_.exec_writable) | landlock_write(abi);
    const std::uint64_t device = (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV |
                                  LANDLOCK_ACCESS_FS_TRUNCATE) &
                                 landlock_fs_rights(abi);
    if (plan_.mount_ns) {
      // Only what is granted is there at all; Landlock is the second wall, against writing. A rule on the root also covers
      // what is mounted later (/proc), because Landlock walks up through mount points, skipping the covered directory.
      rule("/", landlock_read(abi, true));
      rule("/dev", landlock_read(abi, false) | landlock_write(abi));
      // The maps of an own user namespace. What belongs to other processes or to the machine its owner and mode protect.
      if (plan_.nested && plan_.proc != Proc::none) rule("/proc", landlock_read(abi, true) | LANDLOCK_ACCESS_FS_WRITE_FILE);
      if (policy_.tmp != Scope::read) rule("/tmp", everything);
      if (policy_.home != Scope::read) rule(policy_.home_path, everything);
      for (const std::string& top : plan_.system.tops) rule(top, landlock_read(abi, true) | landlock_write(abi));
      for (const Bind& b : plan_.binds)
        if (!b.read_only && !b.device && (!b.staged || b.frozen) && b.target != policy_.home_path)
          rule(b.target, landlock_read(abi, b.execute) | landlock_write(abi), !b.frozen);
      return;
    }
    for (const Bind& b : plan_.binds) rule(b.source, landlock_read(abi, b.execute) | (b.read_only ? 0 : landlock_write(abi)));
    // Programs that no variable leads to the store look where the system's authorities are: nothing stands over these here.
    if (!policy::trust_of(policy_).empty()) rule(egress::kSystemStore, landlock_read(abi, false), false);
    for (const auto& [path, content] : policy_.files) rule(path, landlock_read(abi, false), false);
    for (const std::string& name : policy_.devices) rule("/dev/" + name, device, false);
    rule("/dev/ptmx", device, false);
    rule("/dev/pts", device | LANDLOCK_ACCESS_FS_READ_DIR, false);
    if (!made()) rule("/tmp", everything);  // which would be a way from one workspace to the other: these have theirs at home
    rule(place_.home_source, everything);
    if (plan_.proc == Proc::shared) rule("/proc", landlock_read(abi, false));
    plan_.binds.clear();  // nothing is mounted; the rules above are the grants
  }

  void limit(int resource, std::uint64_t value) { plan_.limits.push_back({resource, rlimit{value, value}}); }

  // RLIMIT_NPROC counts the tasks of a uid in a user namespace (before Linux 5.14: of a uid), whoever sets it: without one of
  // ours, those of the whole host, which the child adds to this. Where a uid is one session's (T0), the policy's own limit is
  // right. Else all sessions of a workspace share it, in T1 with the launcher. Where a cgroup counts each session this is a
  // backstop that must never come first. Where none does, it bounds what a fork bomb reaches before the watchdog looks: room for
  // the two tasks of every session that there can be (its first process and a shell), and for four sessions at their limit at
  // once. A made workspace has a limit of its own for the sum of its sessions.
  std::uint64_t processes() const {
    constexpr std::uint64_t kSessionTasks = 2 * 1024, kBusySessions = 4, kBackstop = 16384;
    const std::uint64_t own = policy_.limits.processes;
    if (place_.processes != 0) return place_.processes;
    if (!plan_.user_ns && !peers()) return own + (plan_.connected ? 1 : 0);
    return plan_.cgroup ? std::max(own, kBackstop) : kSessionTasks + kBusySessions * own;
  }

  void limits() {
    const policy::Limits& l = policy_.limits;
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_NOFILE, l.open_files);
    limit(RLIMIT_FSIZE, l.file_size_bytes);
    // SIGXCPU names the limit; a second later SIGKILL for who ignores it. With equal limits the kernel sends SIGKILL only.
    plan_.limits.push_back({RLIMIT_CPU, rlimit{l.cpu_seconds, l.cpu_seconds + 1}});
    limit(RLIMIT_MEMLOCK, 8U << 20);
    limit(RLIMIT_MSGQUEUE, 819200);
    limit(RLIMIT_SIGPENDING, 4096);
    limit(RLIMIT_NICE, 0);
    limit(RLIMIT_RTPRIO, 0);
    limit(RLIMIT_NPROC, processes());
  }

  Status demands() {
    if (plan_.tier < policy_.min_tier)
      return fail(Code::unavailable, "policy '" + policy_.domain + "' needs tier " + std::string(tier_name(policy_.min_tier)) +
                                         ", this container gives " + std::string(tier_name(plan_.tier)) +
                                         " (see: caisson probe)");
    if (plan_.nested && plan_.tier < Tier::t2)
      return fail(Code::unavailable, "policy '" + policy_.domain + "' has the set 'nested-sandbox', which needs user and mount " +
                                         "namespaces, tier T2 or T3 (see: caisson probe); this is " +
                                         std::string(tier_name(plan_.tier)));
    for (const Mechanism m : policy_.require)
      if (state(m).state != MechanismState::enforced)
        return fail(Code::unavailable, "policy '" + policy_.domain + "' requires " + std::string(mechanism_name(m)) +
                                           ", which is not available: " + state(m).reason);
    const bool door = plan_.net_ns && (features_.egress_tproxy.ok() || features_.egress_ports.ok());
    if (policy::goes_out(policy_) && !place_.own_net && !plan_.connected && !door)
      return fail(Code::unavailable,
                  "policy '" + policy_.domain + "' goes out (network), and there is no way out here: " + no_way_out());
    return {};
  }

  const Policy& policy_;
  const Features& features_;
  const Sources& sources_;
  const Place& place_;
  Plan plan_;
};

}  // namespace

Result<Plan> plan_of(std::shared_ptr<const Policy> policy, const Features& features, const Sources& sources, const Place& place) {
  return Planner(std::move(policy), features, sources, place).run();
}

Result<std::shared_ptr<const Plan>> make_plan(std::shared_ptr<const Policy> policy, const Features& features,
                                              const Sources& sources, const Place& place) {
  TRY_ASSIGN(Plan plan, plan_of(std::move(policy), features, sources, place));
  return std::make_shared<const Plan>(std::move(plan));
}

}  // namespace caisson::confine
