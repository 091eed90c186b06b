#include "launcher/common/confine/features.h"

#include "launcher/common/base/json.h"

namespace caisson::confine {
Tier Features::tier() const {
  // A host name of one's own is a convenience, no wall: the tier does not hang on it.
  if (user_ns.ok() && mount_ns.ok() && net_ns.ok() && ipc_ns.ok()) return pid_ns() ? Tier::t3 : Tier::t2;
  return change_uid.ok() ? Tier::t0 : Tier::t1;
}

nlohmann::json features_json(const Features& f) {
  nlohmann::json out = json::parse(f.report).value_or(json::Value::object());
  out["works"]["io"] = f.io.ok() ? json::Value{{"works", true}}
                                 : json::Value{{"works", false}, {"errno", errno_name(f.io.error)}, {"step", f.io.step}};
  out["works"]["cgroup"] =
      f.cgroup.ok() ? json::Value{{"works", true}}
                    : json::Value{{"works", false}, {"errno", errno_name(f.cgroup.error)}, {"reason", f.cgroup_reason}};
  return out;
}

std::vector<std::string> why_not_higher(const Features& f) {
  std::vector<std::string> out = f.missing;
  if (!f.cgroup.ok()) out.push_back("no cgroup limits (" + f.cgroup_reason + "): rlimits and a watchdog stand in");
  return out;
}

}  // namespace caisson::confine
