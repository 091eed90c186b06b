// Settings of caisson-launcher: flags, then environment, then defaults. Relative programs are looked for beside our own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "launcher/common/base/result.h"
#include "launcher/pid1/session/settings.h"

namespace caisson {

// The flag and the variable of each are in options.cc.
struct Options : session::Settings {
  std::string agent;    // --agent
  std::string api_key;  // SANDBOX_API_KEY; empty: one is generated
  bool key_generated = false;
  bool auth_off = false;                   // CAISSON_AUTH=none
  std::string bind = "0.0.0.0";            // --bind, CAISSON_BIND
  unsigned agent_uid = 990;                // CAISSON_AGENT_UID
  unsigned max_workspaces = 16;            // --max-workspaces, CAISSON_MAX_WORKSPACES; the default one counts
  unsigned workspace_idle_seconds = 3600;  // CAISSON_WORKSPACE_IDLE_SECONDS
  unsigned workspace_disk_mib = 512;       // CAISSON_WORKSPACE_DISK_MIB: largest home
  unsigned workspace_memory_mib = 4096;    // CAISSON_WORKSPACE_MEMORY_MIB
  unsigned workspace_processes = 1024;     // CAISSON_WORKSPACE_PROCESSES
  unsigned shutdown_seconds = 15;          // CAISSON_SHUTDOWN_SECONDS: what shutdown hooks have before the agent is killed
  // CAISSON_WORKSPACE_CPU_PERCENT; a quarter of the processors: beside a fork bomb that takes it all the others' commands were
  // seen to be slower by a tenth, and with a half of them twice as slow.
  unsigned workspace_cpu_percent = 25 * std::max(1U, std::thread::hardware_concurrency());
  bool help = false, version = false;
};

[[nodiscard]] Result<Options> parse_options(int argc, char** argv);
extern const char* const kUsage;

}  // namespace caisson
