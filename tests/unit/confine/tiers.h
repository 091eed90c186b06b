// Tiers made up for tests of pure code: no root and no kernel is asked.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>

#include "launcher/compiler/planner.h"

namespace caisson::confine {

inline Features tier_features(Tier wanted) {
  Features f;
  f.landlock_abi = 7;
  f.seccomp = f.notify = {0, ""};
  f.cgroup = {ENOTSUP, "cgroup v2"};
  f.cgroup_reason = "cgroup v1 host";
  if (wanted != Tier::t1) f.change_uid = {0, ""};
  else f.change_uid = {EPERM, "setresuid"};
  f.user_ns = {EPERM, "unshare(NEWUSER)"};
  if (wanted >= Tier::t2) f.user_ns = f.mount_ns = f.net_ns = f.ipc_ns = f.uts_ns = f.cgroup_ns = {0, ""};
  if (wanted >= Tier::t2) f.egress_tproxy = {0, ""};
  if (wanted == Tier::t3) f.proc_full = {0, ""};
  else f.proc_full = f.proc_subset = {EPERM, "fsmount proc"};
  return f;
}

struct Bench {
  policy::Policy policy;
  Sources sources;
  Place place{"/srv/home", "/run/stage", "/run/system", "/usr/lib/caisson/caisson-init", {}, ""};
  std::optional<Features> features;  // instead of the tier's
  Bench() {
    policy.domain = "test";
    policy.grants = {{"/usr", "/usr", policy::Access::read, true, true, false, ""}};
    policy.files["/etc/passwd"] = "gem:x:1000:1000::/home/gem:/bin/bash\n";
    sources["/usr"] = {true, true, 1, 2};
    sources["/srv/home"] = {true, true, 1, 3};
  }
  Result<std::shared_ptr<const Plan>> plan(Tier t) {
    return make_plan(std::make_shared<policy::Policy>(policy), features.value_or(tier_features(t)), sources, place);
  }
};

}  // namespace caisson::confine
