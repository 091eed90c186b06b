// Settings of caisson-launcher: flags, then environment, then defaults. Relative programs are looked for beside our own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "launcher/base/result.h"

namespace caisson {

struct Options {
  std::string policies = "/etc/caisson/policies";  // --policies, CAISSON_POLICY_DIR
  std::string audit = "/var/log/caisson/audit";    // --audit, CAISSON_AUDIT_DIR
  std::uint64_t audit_max_bytes = 1ULL << 30;      // --audit-max-bytes, CAISSON_AUDIT_MAX_BYTES
  std::string run = "/run/caisson";                // --run, CAISSON_RUN_DIR
  std::string home = "/home/gem";                  // --home, CAISSON_HOME: what sessions see as their home
  std::string preset;                              // --preset, CAISSON_PRESET: presets/<name>.json over every domain
  std::string agent, init, tools;                  // --agent, --init, --tools
  std::string workspaces;                          // --workspaces, CAISSON_WORKSPACES: of persistent ones; empty: none
  std::string attest_key;                          // --attest-key, CAISSON_ATTEST_KEY
  std::string workspace;                           // WORKSPACE: where clients start; default: the home
  std::string api_key;                             // SANDBOX_API_KEY; empty: one is generated
  bool key_generated = false;
  bool auth_off = false;                   // CAISSON_AUTH=none
  unsigned port = 8080;                    // --port, CAISSON_PORT
  std::string bind = "0.0.0.0";            // --bind, CAISSON_BIND
  unsigned agent_uid = 990;                // CAISSON_AGENT_UID
  unsigned ready_sessions = 2;             // CAISSON_READY_SESSIONS: sessions kept built per domain
  unsigned max_sessions = 1024;            // CAISSON_MAX_SESSIONS
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
