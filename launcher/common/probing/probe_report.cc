#include "launcher/common/probing/probe_report.h"

namespace caisson::confine {
namespace {

json::Value tried_json(const Tried& t) {
  if (t.ok()) return {{"works", true}};
  return {{"works", false}, {"errno", t.error > 0 ? errno_name(t.error) : "not tried"}, {"step", t.step}};
}

}  // namespace

json::Value report_of(const Features& f) {
  return {{"tier", tier_name(f.tier())},
          {"kernel", f.kernel},
          {"landlock_abi", f.landlock_abi},
          {"outer",
           {{"capabilities", f.capabilities},
            {"seccomp", f.outer_seccomp},
            {"no_new_privs", f.no_new_privs},
            {"uid_remapped", f.uid_remapped},
            {"proc_sys_writable", f.proc_sys_writable},
            {"lsm", f.lsm_label}}},
          {"works",
           {{"seccomp", tried_json(f.seccomp)},
            {"seccomp_listener", tried_json(f.notify)},
            {"user_ns", tried_json(f.user_ns)},
            {"mount_ns", tried_json(f.mount_ns)},
            {"net_ns", tried_json(f.net_ns)},
            {"ipc_ns", tried_json(f.ipc_ns)},
            {"uts_ns", tried_json(f.uts_ns)},
            {"cgroup_ns", tried_json(f.cgroup_ns)},
            {"proc", tried_json(f.proc_full)},
            {"proc_subset_pid", tried_json(f.proc_subset)},
            {"change_uid", tried_json(f.change_uid)},
            {"egress_tproxy", tried_json(f.egress_tproxy)},
            {"egress_ports", tried_json(f.egress_ports)},
            {"egress_connect", tried_json(f.egress_connect)}}}};
}

std::vector<std::string> missing_walls(const Features& f) {
  std::vector<std::string> out;
  auto because = [](const Tried& t) { return t.step + ": " + (t.error > 0 ? errno_name(t.error) : "not tried"); };
  if (!f.user_ns.ok())
    out.push_back("no user namespaces (" + because(f.user_ns) +
                  "): start the container with --security-opt seccomp=image/seccomp.json and at least "
                  "--cap-add=SETUID,SETGID,KILL; scripts/run does");
  else if (!f.mount_ns.ok())
    out.push_back("no private mounts (" + because(f.mount_ns) +
                  "): the seccomp profile image/seccomp.json and, on hosts with AppArmor, image/apparmor.profile allow them");
  else if (!f.pid_ns())
    out.push_back("no fresh /proc, so no PID namespaces (" + because(f.proc_full) +
                  "): run in a remapped user namespace with an unmasked /proc: podman --userns=auto --security-opt unmask=ALL, "
                  "Kubernetes hostUsers: false with procMount: Unmasked; or a kernel from 7.2 on");
  if (!f.change_uid.ok() && !f.user_ns.ok())
    out.push_back("one uid for everything (" + because(f.change_uid) +
                  "): start as root of the container with SETUID and SETGID");
  if (f.landlock_abi == 0)
    out.push_back("no Landlock: boot a kernel with CONFIG_SECURITY_LANDLOCK and landlock in the lsm= list (5.13 or newer)");
  if (f.proc_sys_writable && !f.uid_remapped)
    out.push_back(
        "/proc/sys is writable by root of this container and its uids are the host's: never use unmasked /proc without "
        "a remapped user namespace");
  return out;
}

}  // namespace caisson::confine
