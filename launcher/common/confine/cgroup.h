// cgroup v2 limits of sessions and workspaces. CgroupRoot is the launcher's own delegated subtree; Cgroup is one session's leaf
// or one workspace's node above such leaves. cgroup
// v1 is not used: its hierarchies cannot be delegated safely.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"
#include "launcher/common/policy/policy.h"

namespace caisson::confine {

// Time in which at least one process waited for want of it ("some" of PSI); absent where the kernel does not measure it.
struct Pressure {
  std::optional<std::uint64_t> memory_us, cpu_us, io_us;
};

struct CgroupStats {
  std::uint64_t memory_peak = 0, memory_current = 0, pids_current = 0, cpu_us = 0;
  std::optional<std::uint64_t> pids_peak;         // Linux 6.1
  std::uint64_t oom_kills = 0, pids_refused = 0;  // limit events
  Pressure pressure;
};

// One leaf or node. The directory is removed by remove(), after kill().
class Cgroup {
 public:
  [[nodiscard]] int fd() const { return dir_.get(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] CgroupStats stats() const;
  // Whether the kernel has killed for want of memory here; with memory.oom.group that is the end of every member.
  [[nodiscard]] bool out_of_memory() const;
  [[nodiscard]] bool holds(pid_t pid) const;
  [[nodiscard]] std::string io_limits() const;  // io.max, a line for each disk
  // cgroup.kill (Linux 5.14): SIGKILL to every member, atomically against forks.
  [[nodiscard]] Status kill() const;
  [[nodiscard]] Status remove();  // EBUSY while members are left

 private:
  friend class CgroupRoot;
  Cgroup(Fd parent, Fd dir, std::string name) : parent_(std::move(parent)), dir_(std::move(dir)), name_(std::move(name)) {}
  Fd parent_, dir_;
  std::string name_;
};

class CgroupRoot {
 public:
  struct Found {
    int error = 0;       // errno; 0: usable
    std::string reason;  // why not
    std::string path;    // of the tree that the launcher may divide: its own cgroup
    bool io = false;     // its io controller is there, too
  };
  // Looks without changing anything.
  [[nodiscard]] static Found look();
  // What the names of sessions, and so of their leaves, begin with; those of workspaces' nodes.
  static constexpr std::string_view kSessionPrefix = "s-", kNodePrefix = "w-";
  // Moves the launcher into a leaf of its own, delegates memory, pids and cpu to caisson-sessions/, and removes there the empty
  // leaves and nodes of a launcher that was killed.
  [[nodiscard]] static Result<CgroupRoot> open(const std::string& path);
  // Makes a session's leaf, with the limits set and read back, below the workspace's node if there is one. disks: those of
  // limits.io_*, "8:0".
  [[nodiscard]] Result<Cgroup> make(const std::string& name, const policy::Limits& limits, const std::vector<std::string>& disks,
                                    const Cgroup* workspace) const;
  // Makes a workspace's node, whose limits hold for all leaves below it together.
  [[nodiscard]] Result<Cgroup> make_node(const std::string& name, const policy::Limits& limits) const;
  // Whether leaves can have limits of disks.
  [[nodiscard]] bool io() const { return io_; }

 private:
  CgroupRoot(Fd dir, bool io) : dir_(std::move(dir)), io_(io) {}
  // disks: of a leaf; nullptr: a node for leaves.
  [[nodiscard]] Result<Cgroup> make_in(int parent, const std::string& name, const policy::Limits& limits,
                                       const std::vector<std::string>* disks) const;
  Fd dir_;
  bool io_;
};

// The whole disks ("8:0", never a partition) under the filesystems of these paths, as io.max wants them. Error: unavailable, for
// one whose filesystem has no disk of its own (overlay, network, memory).
[[nodiscard]] Result<std::vector<std::string>> disks_of(const std::vector<std::string>& paths);

}  // namespace caisson::confine
