// Limits of the session services, read once at start from the environment. docs: agent/README.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "agent/services/common/output_buffer.h"

namespace caisson::services {

struct Config {
  std::size_t max_bash_sessions = 128;       // MAX_BASH_SESSIONS
  std::size_t max_shell_sessions = 128;      // MAX_SHELL_SESSIONS
  std::size_t max_jupyter_sessions = 32;     // MAX_JUPYTER_SESSIONS
  std::size_t max_implicit_kernels = 8;      // jupyter sessions made because a request named none, until somebody names them
  std::chrono::seconds jupyter_idle{1800};   // CAISSON_JUPYTER_IDLE_SECONDS; 0: they never expire
  std::size_t prepared_kernels = 1;          // CAISSON_KERNEL_POOL: kept ready in each workspace that has used one
  bool prepare_at_start = false;             // CAISSON_KERNEL_POOL is set: the default workspace's are ready before the first use
  std::string python_version;                // PYTHON_VERSION: the default kernel's name; "": Debian's
  std::size_t max_code_sessions = 64;        // MAX_CODE_SESSIONS: of one workspace, runs, REPLs and prepared ones together
  std::size_t warm_sessions = 2;             // CAISSON_WARM_SESSIONS: prepared of each kind that is in use; 0: none
  std::size_t max_implicit_sessions = 16;    // shell sessions made because a request named none, terminals included
  std::chrono::seconds idle_expiry{3600};    // CAISSON_SESSION_IDLE_SECONDS; 0: sessions never expire
  std::chrono::seconds implicit_idle{60};    // CAISSON_IMPLICIT_IDLE_SECONDS: bash sessions that exec made; 0: as all others
  std::size_t stream_cap_bytes = 8u << 20;   // CAISSON_OUTPUT_CAP_BYTES: kept of one command's stdout or stderr
  std::size_t total_cap_bytes = 256u << 20;  // CAISSON_OUTPUT_TOTAL_BYTES: kept of all commands of all workspaces together
  std::shared_ptr<OutputBudget> budget;      // the workspace's part of that, for all of its services; absent: each has its own
  std::size_t finished_commands = 32;        // a bash session remembers the output of that many
  std::string directory;                     // WORKSPACE: where commands begin; "": what the launcher says
  std::string workspace = "default";         // its name at the launcher
  std::string user = "gem";                  // USER: shown in prompts
};

[[nodiscard]] Config config_from_env();
[[nodiscard]] std::shared_ptr<OutputBudget> budget_of(const Config& config);

}  // namespace caisson::services
