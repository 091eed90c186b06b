// The use of one workspace's sessions, in the launcher's figures: from cgroup v2 if there is one, otherwise from /proc and exit
// statuses. Only the names of processes come from a session itself; a process may call itself anything.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"

namespace caisson::services {

struct TotalUse {                       // of all living sessions; processor time also of sessions that ended between two samples
  std::optional<double> cpu_usage_pct;  // 100 is one core; since the previous sample
  std::int64_t cpu_usage_usec = 0, mem_current_bytes = 0;
  std::optional<std::int64_t> mem_max_bytes;  // the workspace's limit; absent: each session has a limit of its own
  std::optional<double> mem_usage_pct;
  std::optional<std::int64_t> oom_kill;    // absent without cgroup v2
  std::optional<std::int64_t> unmeasured;  // clients know this member, but it is not counted here: never set
};
struct DiskUse {
  std::string path;
  std::int64_t used_bytes = 0, total_bytes = 0, free_bytes = 0;
  double usage_pct = 0;
  std::optional<std::int64_t> inode_used, inode_total;
  std::optional<double> inode_usage_pct;
};
struct ProcessUse {
  std::int64_t pid = 0;  // as the session sees it
  std::string user, comm;
  std::int64_t rss_bytes = 0;  // anonymous and shared memory
  double rss_mib = 0;
  std::optional<double> cpu_pct, uptime_sec;
  std::optional<std::int64_t> threads;
  std::optional<std::string> state;
  std::optional<std::int64_t> unmeasured;  // as above
  std::string session_id;
};
struct SessionUse {
  std::string session_id, domain;
  std::int64_t processes = 0, memory_bytes = 0, cpu_usec = 0, process_limit = 0, memory_limit = 0;
};
struct Sample {
  std::int64_t captured_ns = 0;
  TotalUse total;
  std::vector<DiskUse> disk;
  std::vector<ProcessUse> processes;  // the largest ones, largest first
  std::vector<SessionUse> sessions;
  [[nodiscard]] std::size_t bytes() const;  // of memory, approximately
};

struct Looked {
  bool processes = true, disk = true;
};

class Meter {
 public:
  static constexpr std::size_t kMostRows = 50;

  Meter(bridge::LauncherClient& launcher, std::string workspace, std::string user)
      : launcher_(launcher), workspace_(std::move(workspace)), user_(std::move(user)) {}
  // Static, because the service may serve another workspace before the answers arrive.
  [[nodiscard]] static task<Sample> take(std::shared_ptr<Meter> self, Looked at);

 private:
  void add(const json::Value& session, std::int64_t now_us, Sample& sample);
  void add_processes(const json::Value& rows, const std::string& session, std::int64_t now_us, Sample& sample);
  void add_workspace(const json::Value& workspace, Looked at, Sample& sample) const;
  void finish(std::int64_t now_us, Sample& sample);

  bridge::LauncherClient& launcher_;
  const std::string workspace_, user_;
  std::map<std::string, std::int64_t> cpu_us_, next_cpu_us_;  // of each session, and of each process "session/pid"
  std::map<std::string, std::int64_t> process_us_, next_process_us_;
  std::int64_t before_us_ = 0, total_us_ = 0, ended_us_ = 0;
};

}  // namespace caisson::services
