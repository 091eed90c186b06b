// What the operator sets for sessions and workspaces, from the launcher's options (launcher/pid1/options.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launcher/common/policy/policy.h"

namespace caisson::session {

struct WorkspaceSettings {
  std::size_t most = 16;                  // the default one counts
  std::uint64_t disk_bytes = 512U << 20;  // of the home, unless less is asked for
  std::int64_t idle_seconds = 3600;       // without a session, unless another time is asked for
  policy::Limits limits;                  // of all sessions of one: memory_bytes, processes, cpu_percent
};

inline constexpr uid_t kWorkspaceUid = 20001;  // its sessions', where its home belongs to root or is made by us

struct Settings {
  std::string policy_dir = "/etc/caisson/policies", audit_dir = "/var/log/caisson/audit", run_dir = "/run/caisson";
  std::string home = "/home/gem";                             // what sessions see as their home
  bool home_in_memory = false;                                // another one than was asked for, which cannot be written
  std::vector<std::pair<std::string, std::string>> residual;  // of this container, beside that of the policies: id, what
  std::string init_path, tools;
  std::string homes;                // of persistent workspaces; empty: there are none
  std::string preset;               // of the policies; empty: none
  std::string mounts, mount_table;  // where the operator's are granted; all: compiler/volumes.h
  std::string default_cwd;          // where clients start, told in hello
  unsigned port = 8080;             // where the agent listens: what a canary tries to reach
  uid_t auditor_uid = 991,
        door_uid = 993;    // of caisson-auditor, caisson-egress (the dialer's is the next), where uids can be changed
  std::string attest_key;  // PEM file of the key that signs statements; empty: one is made at each start
  std::uint64_t audit_max_bytes = 1ULL << 30;  // of all audit logs; ended sessions' go first
  unsigned max_sessions = 1024;
  unsigned ready_sessions = 2;  // kept built per domain of the default workspace that is in use; 0: none
  WorkspaceSettings workspaces;
};

}  // namespace caisson::session
