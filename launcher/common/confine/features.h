// What this kernel and this outer container really permit, found by trying in short-lived children, never by reading
// flags or versions. Probed once at start; the plan decides from it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launcher/common/base/result.h"
#include "launcher/common/policy/mechanisms.h"

namespace caisson::confine {

// One thing tried. error is 0 when it worked; else the errno and the step that failed.
struct Tried {
  int error = -1;  // -1: not tried
  std::string step;
  [[nodiscard]] bool ok() const { return error == 0; }
};

struct Features {
  std::string kernel;    // uname -r
  int landlock_abi = 0;  // 0: none
  Tried seccomp;         // seccomp filter with no_new_privs
  Tried notify;          // and with a listener, to which it tells of refused calls
  Tried user_ns;         // unshare(NEWUSER), one-line map of an unprivileged uid, written by us
  Tried mount_ns;        // tmpfs, cloned tree, pivot_root inside it
  Tried net_ns, ipc_ns, uts_ns, cgroup_ns;
  Tried proc_full, proc_subset;  // fresh procfs in an own PID namespace; subset=pid
  Tried change_uid;              // setresuid to another uid
  // All connections of a network namespace meet a listener; those at some ports do; they are made for processes.
  Tried egress_tproxy, egress_ports, egress_connect;
  Tried cgroup;  // cgroup v2 subtree writable with memory and pids controllers
  std::string cgroup_reason;
  Tried io;                        // the io controller in that subtree
  bool proc_sys_writable = false;  // uid 0 could write /proc/sys/kernel/core_pattern: a known way out of a container
  bool uid_remapped = false;       // container root is not host root
  bool no_new_privs = false;
  int outer_seccomp = 0;     // Seccomp: of /proc/self/status
  std::string capabilities;  // CapEff, hex
  std::string lsm_label;     // AppArmor or SELinux label, or ""
  std::string outside;  // what statements say of the kernel and the outer container, but for the cgroup: a JSON object's text
  std::string report;   // features_json() but for the cgroup: a JSON object's text
  std::vector<std::string> missing;  // why_not_higher(), but for the cgroup

  [[nodiscard]] Tier tier() const;
  [[nodiscard]] bool mounts() const { return user_ns.ok() && mount_ns.ok(); }
  [[nodiscard]] bool pid_ns() const { return mount_ns.ok() && (proc_full.ok() || proc_subset.ok()); }
};

// Whether this process may divide its cgroup: only it can say so, to any other it is one more that is in it.
void ask_cgroup(Features& features);

[[nodiscard]] nlohmann::json features_json(const Features& features);
// For each wall that is missing: what is missing, why, and what raises it (one sentence each).
[[nodiscard]] std::vector<std::string> why_not_higher(const Features& features);

}  // namespace caisson::confine
