// Plan: everything that a session's child will do, decided beforehand from Policy and Features by planner.h, in another program.
// The executor (child.cc, mount.cc) carries it out and decides nothing.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launcher/common/base/result.h"
#include "launcher/common/confine/features.h"
#include "launcher/common/policy/policy.h"
#include "launcher/common/wire/build_plan.h"

namespace caisson::confine {

// Identity of a grant's source, taken when it was opened with openat2 (no symlink, no magic link at any component).
struct Source {
  bool present = false;
  bool directory = false;
  dev_t dev = 0;
  ino_t ino = 0;
};
using Sources = std::map<std::string, Source>;  // by path

// Paths in a session that it goes without, with all below them, because of what sessions did there: path -> why.
using Closed = std::map<std::string, std::string>;

// Opens every source of the policy once. A required one that is missing, or one that is neither file, directory nor a
// listed device, is an error naming the grant; where others than root may have done it, its grant is `closed` instead, if that
// is wanted.
[[nodiscard]] Result<Sources> resolve_sources(const policy::Policy& policy, Closed* closed = nullptr);
// Whether others than root may change what is at `path`: by a directory on the way that they own or may write to.
[[nodiscard]] bool others_may_change(const std::string& path);
[[nodiscard]] Result<Source> open_source(const std::string& path);  // one of them

using builder::kMaxBinds;

struct Bind {
  std::string target, source;
  bool read_only = true, execute = false, device = false, directory = true;
  // staged: its identity only the child can know: the workspace's own tmpfs, or what is held. held: what is at the target
  // already, mounted there once more: nobody inside can move a mount point. frozen: home or /tmp to be read, and what is in them:
  // each session makes it read-only or not by itself.
  bool staged = false, held = false, frozen = false;
  dev_t dev = 0;
  ino_t ino = 0;
};

struct LandlockRule {
  std::string path;  // as the session sees it (mount namespace) or as the launcher does (T0, T1)
  std::uint64_t access = 0;
  bool required = true;
};

using builder::Proc;
inline constexpr const char* kProcNames[] = {"none", "shared", "fresh, subset=pid", "fresh"};

enum class MechanismState { enforced, unavailable, disabled_by_policy };
constexpr std::string_view words(MechanismState) { return "enforced unavailable disabled_by_policy"; }
struct MechanismPlan {
  MechanismState state = MechanismState::enforced;
  std::string reason;  // why unavailable or disabled; a detail when enforced
};

struct Residual {
  std::string id;    // "proc-shared"; what the escape program names where it gets through
  std::string what;  // in plain words
};

// What caisson-system is to make before (system_packages). Without a directory: nothing, the sessions install no packages.
struct SystemCopy {
  std::string directory;            // where it will be
  std::vector<std::string> tops;    // what sessions may write to: "/usr"
  std::vector<std::string> copied;  // paths below these
  std::string request;              // for caisson-system: system/main.cc
  [[nodiscard]] bool empty() const { return directory.empty(); }
};

// What this Landlock lets pass though nobody granted it, and no mount stops: the filter refuses it (compiler/filter.h).
enum class Ungoverned : unsigned char {
  nothing,
  ioctl,       // before ABI 5 (Linux 6.10): opening a device for ioctl(2) alone
  truncation,  // before ABI 3 (Linux 6.2): that, and cutting a file without write access
};
constexpr std::string_view words(Ungoverned) { return "nothing ioctl truncation"; }

// What a canary's probe must give in a session of a plan. Signals are negative: -SIGSYS.
struct Claim {
  Mechanism mechanism{};
  std::vector<int> accepted;      // errno, or -signal
  std::optional<int> value = {};  // instead: it succeeds, with this value
};

struct Plan {
  std::shared_ptr<const policy::Policy> policy;
  Tier tier = Tier::t1;
  bool user_ns = false, mount_ns = false, pid_ns = false, ipc_ns = false, uts_ns = false, net_ns = false, cgroup_ns = false;
  // connected: TCP goes out by caisson-connector. nested: programs make user namespaces of their own (set nested-sandbox).
  bool cgroup = false, io = false, connected = false, nested = false;
  std::vector<std::string> disks;  // with io: "8:0"
  bool single_use = false;         // private home or /tmp: the prepared tree serves one session only
  bool inet = false;               // inet sockets allowed (only ever inside an own network namespace)
  bool change_uid = false;
  bool observe = false;  // paths: calls that name files are told of, too
  Ungoverned ungoverned = Ungoverned::nothing;
  Proc proc = Proc::none;
  std::vector<Bind> binds;               // parents before children
  std::vector<std::string> directories;  // empty directories of the root
  std::vector<std::pair<std::string, std::string>> files, links;
  std::vector<std::string> hide;
  std::vector<std::string> makeable;  // of these, what was not there, where sessions may make it
  std::string tools;                  // where the session finds the agent's programs; "": there are none
  std::string private_tmp_options;
  std::string protect;  // protect_notes()
  SystemCopy system;
  std::string home_options;  // make_workspace: of the home's tmpfs, or ""
  std::vector<LandlockRule> landlock;
  std::uint64_t landlock_fs = 0, landlock_scoped = 0;
  std::vector<std::pair<int, rlimit>> limits;
  MechanismPlan mechanisms[kMechanismCount];
  std::vector<std::string> absent;  // grants that are not required and not there, or closed
  Closed closed;
  std::vector<Residual> residual;            // what is not stopped in this tier
  std::vector<std::optional<Claim>> claims;  // by probe (common/wire/probes.h): nullopt where it could show nothing
  std::string view;       // what the session sees, for the auditor, where it observes paths (common/wire/auditor_protocol.h)
  std::string canonical;  // the policy's JSON, which its digest is made of

  [[nodiscard]] bool enforces(Mechanism m) const {
    return mechanisms[static_cast<std::size_t>(m)].state == MechanismState::enforced;
  }
};

struct Place {                     // what the plan needs to know of where it runs
  std::string home_source;         // the workspace's home in the launcher's view
  std::string stage;               // directory where a workspace's tmpfs is mounted, or ""
  std::string system;              // directory where its copy of the system is, or "": there can be none
  std::string init_path;           // caisson-init, for its Landlock rule in T0 and T1
  std::vector<std::string> disks;  // of the home, for limits.io_*: "8:0"
  std::string no_disks;            // why there are none
  std::string tools;               // the agent's programs for use inside sessions: granted to every session, not in its policy
  Closed closed;                   // what the session goes without
  bool home_staged = false;        // the home is a tmpfs of the workspace's own mount namespace, mounted at home_source there
  bool home_quota = false;         // the kernel keeps a limit of the home
  bool own_net = false;            // the network namespace serves this session alone
  std::uint64_t processes = 0;     // of all sessions that have the workspace's uid; 0: no limit of their sum
};

// The grant that decides what a path is: the longest that it lies in. nullptr: none, or a private home or /tmp lies over it.
[[nodiscard]] const Bind* governing(const Plan& plan, std::string_view path);

// Notes for caisson-protect (protect/main.cc), from the plan's mounts and policy; "": it has nothing to do.
[[nodiscard]] std::string protect_notes(const Plan& plan);
// Of a tmpfs of a session's or workspace's own.
[[nodiscard]] std::string tmp_options(const policy::Limits& limits);
[[nodiscard]] nlohmann::json residual_json(const Plan& plan);  // [{"id", "what"}]
[[nodiscard]] std::set<Mechanism> enforced_mechanisms(const Plan& plan);

}  // namespace caisson::confine
