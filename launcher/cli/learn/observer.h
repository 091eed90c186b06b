// Turns finished system calls into Accesses: which path each call named, canonical and as the session sees it, and how it
// was used. Reads /proc/<tid> and the memory of threads that are stopped.
#pragma once

#include <map>

#include "launcher/cli/learn/accesses.h"
#include "launcher/cli/learn/tracer.h"

namespace caisson::cli::learn {

class Observer {
 public:
  [[nodiscard]] Tracer::Watch watch();
  [[nodiscard]] Accesses& accesses() { return seen_; }

 private:
  using Args = std::array<std::uint64_t, 6>;
  [[nodiscard]] std::vector<std::string> entry(pid_t tid, std::uint64_t number, const Args& args);
  void exit(const Call& call);
  void ending(pid_t tid);
  void sample(std::size_t threads);

  void take_path(const Call& call, int dir, const std::string& path, unsigned use, bool follow);
  void take_descriptor(pid_t tid, std::uint64_t fd, unsigned use);
  void take_address(const Call& call, const std::string& bytes);
  void note(const std::string& path, unsigned use, std::int64_t result, bool directory);

  Accesses seen_;
  std::set<pid_t> processes_;  // whose memory is summed
};

}  // namespace caisson::cli::learn
