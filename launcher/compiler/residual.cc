#include "launcher/compiler/residual.h"

#include "launcher/common/policy/in_force.h"

namespace caisson::confine {

std::vector<Residual> residual_without_mounts(const policy::Policy& policy, bool made) {
  std::vector<Residual> out{
      {"names-visible", "no mount namespace: names and metadata (stat) of files outside the grants can be seen"},
      {"metadata-changeable",
       "no mount namespace: mode, times and extended attributes of files that the session's user owns can be changed, "
       "outside the grants and in those for reading, too"},
      {"code-mappable", "no mount namespace: a file of a grant without execute can be mapped as code, though not executed"}};
  if (!policy.hide.empty())
    out.push_back({"hidden-readable",
                   "no mount namespace: what `hide` names is not covered, and can be read as the grant around it permits"});
  out.push_back(
      {"path-sockets", "no mount namespace: UNIX sockets outside the grants can be connected to where their modes permit"});
  if (made)
    out.push_back(
        {"terminals-shared", "no mount namespace: pseudo-terminals are the container's, without a part for each workspace"});
  else
    out.push_back({"tmp-shared",
                   "no mount namespace: /tmp and pseudo-terminals are the container's, without a quota; what others left in /tmp "
                   "can be used as its modes permit"});
  return out;
}

std::vector<Residual> residual_of_shared_namespaces(const Plan& plan) {
  std::string names;
  for (const Mechanism m : {Mechanism::user_ns, Mechanism::mount_ns, Mechanism::pid_ns, Mechanism::net_ns, Mechanism::ipc_ns,
                            Mechanism::uts_ns, Mechanism::cgroup_ns})
    if (!plan.enforces(m)) names += (names.empty() ? "" : ", ") + std::string(mechanism_name(m));
  if (names.empty()) return {};
  return {{"namespaces-shared",
           "sessions live in the container's own " + names + ": what these show (host name, ids, objects) is the container's"}};
}

std::vector<Residual> residual_of_nesting(const Plan& plan, const Place& place) {
  if (!plan.nested) return {};
  std::vector<Residual> out{
      {"nested-user-ns",
       "programs may make user, PID and network namespaces of their own, in which they have capabilities: what the kernel does "
       "for these without mounts, netlink, netfilter, raw sockets, bpf and keys can be reached"}};
  if (plan.proc != Proc::full || place.stage.empty())
    out.push_back({"nested-namespaces-unbounded",
                   "the number of namespaces that programs make is not limited: /proc/sys cannot be written here, or there is no "
                   "launcher; each takes kernel memory"});
  return out;
}

}  // namespace caisson::confine
