// Policy: the frozen rules of one domain, after base.json, <domain>.json and (per session) the request's narrowing were
// merged and checked. A value: nothing changes it once made. load.h makes it, compiler/planner.h consumes it. rows.h has a row
// for each member; one without a row does not compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/common/policy/mechanisms.h"

namespace caisson::policy {

// Of each enumeration: its words in policy files, in the order of the enumerators. The narrower value comes first.
constexpr std::string_view words(std::same_as<bool> auto) { return "false true"; }
enum class Access { read, read_write };
constexpr std::string_view words(Access) { return "read read-write"; }

// What a list of grants, of a file or of a request, may have: grants, and bytes of each description and reason.
inline constexpr std::size_t kMaxGrants = 200, kMaxProtect = 64, kMaxDescription = 500, kMaxWhy = 1000;

// A path of the container that a session may see, at the same path unless `source` says otherwise. Longest path wins.
struct Grant {
  std::string path;    // where the session sees it: absolute, canonical, never "/"
  std::string source;  // where the launcher takes it from: absolute, canonical; defaults to path; or of the workspace: planner.cc
  Access access = Access::read;
  bool execute = false;  // files below may be executed (without it: noexec)
  bool required = true;  // false: absent source is reported, not an error
  bool mounted = false;  // by the operator, below CAISSON_MOUNTS: for the default workspace alone, and as the mount itself is
  std::string description;
};

// Whose the session's home and /tmp are: this session's alone (tmpfs), the workspace's to be read, the workspace's.
enum class Scope { private_, read, workspace };
constexpr std::string_view words(Scope) { return "private read workspace"; }

// none: internet sockets are refused by seccomp. loopback: a network namespace with only lo up; where none can be had, as none.
// The others have a way out by the door (egress/): to what a list names, to every public address with each connection on record,
// to every public address.
enum class Network { none, loopback, allowlist, monitor, open };
constexpr std::string_view words(Network) { return "none loopback allowlist monitor open"; }
constexpr bool goes_out(Network network) { return network >= Network::allowlist; }

// Faster than any disk: the value of an absent limit, so that every other value is smaller.
inline constexpr std::uint64_t kNoIoLimit = 1ULL << 50;

struct Limits {                                         // all hard; 0 is never "unlimited": absent limits do not exist
  std::uint64_t processes = 512;                        // tasks (threads count) of one session
  std::uint64_t memory_bytes = 2ULL << 30;              // cgroup memory.max; without cgroup: watchdog on the sum of PSS
  std::uint64_t cpu_percent = 200;                      // cgroup cpu.max; 100 = one core
  std::uint64_t open_files = 1024;                      // RLIMIT_NOFILE
  std::uint64_t file_size_bytes = 4ULL << 30;           // RLIMIT_FSIZE
  std::uint64_t cpu_seconds = 3600;                     // RLIMIT_CPU of each process
  std::uint64_t tmp_bytes = 512ULL << 20;               // size of private tmpfs mounts (/tmp, /dev/shm)
  std::uint64_t tmp_inodes = 65536;                     // nr_inodes of these
  std::uint64_t packages_bytes = 1ULL << 30;            // size of the tmpfs that system_packages installs into
  std::uint64_t session_seconds = 86400;                // wall-clock life of a session
  std::uint64_t execs = 64;                             // commands running at once in one session
  std::uint64_t io_read_bytes_per_second = kNoIoLimit;  // cgroup io.max of the disks that hold home and /tmp
  std::uint64_t io_write_bytes_per_second = kNoIoLimit;
  [[nodiscard]] bool io() const { return io_read_bytes_per_second != kNoIoLimit || io_write_bytes_per_second != kNoIoLimit; }
};

// What is recorded about a session, and for how long. Recording less is wider and needs a reason.
enum class OnFull { stop, stderr_ };  // what happens when the audit log cannot be written
constexpr std::string_view words(OnFull) { return "stop stderr"; }
struct Audit {
  bool denials = true;                    // every call that the kernel refused by rule is a record
  bool paths = false;                     // advisory records of paths that the walls refuse
  std::uint64_t max_bytes = 64ULL << 20;  // what one session's log takes on disk; the oldest segments go first
  std::uint64_t keep_days = 30;           // days after its end for which a session's log is kept
  OnFull on_full = OnFull::stop;
};

struct Environment {
  std::map<std::string, std::string> set;  // always given
  std::vector<std::string> client_deny;    // names ("LD_*": prefix) that a request may not set
};

struct Syscalls {
  std::vector<std::string> allow;  // names of sets: policies/seccomp/<name>.json
  std::vector<std::string> deny;   // removed from what the sets allow; already done in Policy::sets
};

// One seccomp set, resolved. How each rule is to be compiled: without conditions the call is allowed. `any_of`: allowed when
// one row matches (all ArgRules of a row), else EPERM. `refuse_if`: EPERM when one row matches, else allowed; a rule has one
// of both. "eq" to "ge" compare all 64 bits of the argument; "masked_eq" is the only op that is safe for int arguments,
// whose upper half the kernel ignores, and the only one that load_directory accepts in `refuse_if`.
struct ArgRule {
  unsigned index = 0;  // argument number, 0-5
  std::string op;      // "eq", "ne", "lt", "le", "gt", "ge", "masked_eq"
  std::uint64_t value = 0;
  std::uint64_t mask = ~0ULL;  // masked_eq: (arg & mask) == value
};
struct SyscallRule {
  std::string name;
  std::vector<std::vector<ArgRule>> any_of;     // empty: always allowed; else: any row, each row being ANDed
  std::vector<std::vector<ArgRule>> refuse_if;  // allowed except when a row matches
  std::string why;
};
// A call that the filter answers without carrying it out, whatever other sets say.
struct Pretence {
  std::string name;
  int error = 0;                           // the errno; 0: success; compiler/connected.h has one more
  std::vector<std::vector<ArgRule>> when;  // empty: always; else: where any row holds
};
struct SyscallSet {
  std::string name, why;
  std::optional<Mechanism> needs;  // applies only where this is enforced: see applies() in in_force.h
  std::vector<SyscallRule> allow;
  std::vector<std::string> refuse;  // known and refused: EPERM instead of the ENOSYS of unknown numbers
  std::map<std::string, std::string> refuse_why;
  std::vector<Pretence> pretend;
  std::string digest;  // sha256 (hex) of the set's canonical JSON
  std::string rules;   // the four above, frozen: all that the launcher has of them, and hands on to have a filter made
};

// The set that every policy with `system_packages` gets.
inline constexpr const char* kPackagesSet = "system-packages";

struct Policy {
  std::string domain;  // "bash"
  std::string preset;  // "finance", or empty
  std::string description;
  std::vector<std::string> layers;  // the files that it was made of, base.json first: "bash.json", "presets/finance.json"
  std::string digest;               // sha256 (hex) of to_json(policy): everything in force, narrowing included
  Tier min_tier = Tier::t1;
  std::set<Mechanism> require;                // a session does not start without these
  std::set<Mechanism> disable;                // named degradations, each with a reason in `weaken`
  std::map<std::string, std::string> weaken;  // field -> why, repeated in the audit log
  std::map<std::string, std::string> why;     // field -> why it has its value, for explain

  std::vector<Grant> grants;         // sorted by path
  std::vector<std::string> hide;     // inside grants, covered by something empty and unreadable (with a mount namespace)
  std::vector<std::string> protect;  // names, or ends of paths, that are read-only at any depth of what is granted for writing
  bool protect_home = false;         // and of the home
  std::map<std::string, std::string> files;  // small read-only files made by the launcher: path -> content
  std::map<std::string, std::string> links;  // symbolic links made by the launcher: path -> target
  std::vector<std::string> devices;          // names below /dev: null zero full random urandom tty
  Scope home = Scope::workspace, tmp = Scope::workspace;
  bool exec_writable = true;  // programs in home and /tmp may be executed
  // Sessions are root, without any capability, of a private copy of the system that all of their workspace share: system/main.cc.
  bool system_packages = false;
  std::string home_path = "/home/gem", hostname = "caisson";
  bool proc_shared_fallback = false;  // where no fresh /proc can be mounted: show the container's (true) or none (false)

  Network network = Network::loopback;
  // What sessions may reach outside, compiled by caisson-policies (egress/list/list.h): mode, rules and limits together. The
  // launcher compares the bytes and hands them on; door and dialer read them. Empty: no way out.
  std::string egress;
  // Open to clients without a credential. It is the agent's alone: no wall of a session is made of it.
  std::set<std::uint16_t> published_ports;
  std::vector<std::string> api;  // what sessions may ask the API for. The agent's alone, too
  Limits limits;
  Environment env;
  Syscalls syscalls;
  std::vector<SyscallSet> sets;  // resolved `syscalls.allow`, in order
  Audit audit;
  unsigned umask = 022;
};

using Words = std::vector<std::string>;
using Limited = std::map<std::string, std::uint64_t>;  // the name of a limit -> its smaller value

// The part of a policy that a request asks for; it can only be less.
struct Narrowing {
  std::optional<std::vector<Grant>> grants;  // exactly these; each must lie inside a grant, with no more access
  Limited limits;
  Words protect;  // these as well
  // The strictest value of a field; system_none: the container's own system instead of the copy.
  bool home_private = false, tmp_private = false, network_none = false, protect_home = false, system_none = false;
};

}  // namespace caisson::policy
