// The processes of one session as the launcher's /proc shows them: the descendants of its first process. For sessions
// without a PID namespace or cgroup, where nothing in the kernel holds them together.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace caisson::session {

struct Process {
  std::uint64_t threads = 0, memory_bytes = 0, cpu_us = 0;
  std::int64_t age_us = 0;
  char state = '?';
  std::string name;        // what it calls itself
  mutable long inner = 0;  // its pid in its own PID namespace, once somebody has asked for it
};

struct Usage {
  std::uint64_t processes = 0;     // threads count
  std::uint64_t memory_bytes = 0;  // anonymous and shared memory that is resident; what several share counts for each
  std::uint64_t cpu_us = 0;        // of the processes that are alive
};

// One pass over /proc: parents and usage of everything that can be seen.
class ProcessTree {
 public:
  [[nodiscard]] static ProcessTree read();
  [[nodiscard]] std::vector<pid_t> descendants(pid_t root) const;  // without root
  [[nodiscard]] std::vector<pid_t> children(pid_t parent) const;
  // Of the whole machine: what no session has more of.
  [[nodiscard]] static std::uint64_t files_in_memory();
  [[nodiscard]] Usage usage(pid_t root) const;  // with root
  // The `most` of these that use most memory, the largest first, with their inner pids. Those are read once a pass, so that
  // asking often costs no more than the passes do.
  [[nodiscard]] std::vector<Process> largest(pid_t root, std::int64_t most) const;

 private:
  std::multimap<pid_t, pid_t> children_;
  std::map<pid_t, Process> processes_;
};

// What the kernel lists as the children of a process (CONFIG_PROC_CHILDREN; else by a pass over /proc): read in microseconds.
// A pass takes milliseconds, in which a chain of processes, each of which forks its successor and ends, is always elsewhere.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);

// SIGKILL to all that this uid has, by a child with it: the kernel walks its own list, no fork can slip between.
void kill_uid(uid_t uid);

// SIGKILL to every descendant of `root`, which inherits the orphans among them, until none is left, then to root. Bounded:
// gives up after `rounds` passes. uid != 0: the session has this uid for itself, so that one kill(-1) as that uid reaches all
// of it at once.
void kill_tree(pid_t root, uid_t uid, int rounds = 50);

}  // namespace caisson::session
