// Features as bytes: what caisson-probe answers the launcher with (common/policy/frozen.h). Without the cgroup, of which only the
// launcher can tell whether it is its own (ask_cgroup).
#pragma once

#include "launcher/common/confine/features.h"
#include "launcher/common/policy/frozen.h"

namespace caisson::confine {

template <class A>
void members(A& a, Tried& t) {
  a(t.error, t.step);
}
template <class A>
void members(A& a, Features& f) {
  a(f.kernel, f.landlock_abi, f.seccomp, f.notify, f.user_ns, f.mount_ns, f.net_ns, f.ipc_ns, f.uts_ns, f.cgroup_ns, f.proc_full,
    f.proc_subset, f.change_uid, f.egress_tproxy, f.egress_ports, f.egress_connect, f.proc_sys_writable, f.uid_remapped,
    f.no_new_privs, f.outer_seccomp, f.capabilities, f.lsm_label, f.outside, f.report, f.missing);
}

}  // namespace caisson::confine
