// Settings of caisson-launcher, which caisson-options reads for it (launcher/options).
#pragma once

#include <cstdint>
#include <string>

#include "launcher/common/base/result.h"
#include "launcher/pid1/session/settings.h"

namespace caisson {

// The flag and the variable of each are in launcher/options/parse.cc.
struct Options : session::Settings {
  std::string agent;               // --agent
  std::string api_key;             // SANDBOX_API_KEY; empty: one is generated
  bool auth_off = false;           // CAISSON_AUTH=none
  std::string bind = "0.0.0.0";    // --bind, CAISSON_BIND
  unsigned agent_uid = 990;        // CAISSON_AGENT_UID
  unsigned shutdown_seconds = 15;  // CAISSON_SHUTDOWN_SECONDS: what shutdown hooks have before the agent is killed
  std::string text;                // what is said instead of starting: --help, or what is wrong
  int status = 0;                  // and the exit status then
  std::string greeting;            // what is said once it serves
};

template <class A>
void members(A& a, Options& o) {
  session::WorkspaceSettings& w = o.workspaces;
  a(o.text, o.status, o.policy_dir, o.audit_dir, o.run_dir, o.home, o.home_in_memory, o.residual, o.init_path, o.tools, o.homes,
    o.preset, o.mounts, o.default_cwd, o.port, o.auditor_uid, o.door_uid, o.attest_key, o.audit_max_bytes, o.max_sessions,
    o.ready_sessions, w.most, w.disk_bytes, w.idle_seconds, w.limits.processes, w.limits.memory_bytes, w.limits.cpu_percent,
    o.agent, o.api_key, o.greeting, o.auth_off, o.bind, o.agent_uid, o.shutdown_seconds);
}

}  // namespace caisson
