// What a fork that fails with EAGAIN says, for the messages of those that fork.
#pragma once

#include <cerrno>
#include <string>

namespace caisson::confine {

[[nodiscard]] inline std::string fork_refusal(int error) {
  if (error != EAGAIN) return {};
  return " (no further process: limits.processes, the container's pids.max, or "
         "ulimit -u, which counts the uid's on the whole host)";
}

}  // namespace caisson::confine
