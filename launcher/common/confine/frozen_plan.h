// Plans, and what they are made of, as bytes (common/policy/frozen.h): between the launcher and caisson-policies. A member that
// is in no list here does not compile.
#pragma once

#include "launcher/common/confine/frozen_features.h"
#include "launcher/common/confine/query.h"

namespace caisson::policy {

template <class A>
void members(A& a, rlimit& l) {
  a(l.rlim_cur, l.rlim_max);
}

}  // namespace caisson::policy

namespace caisson::confine {

// All members of a type, in their order. What an archive returns comes back.
#define CAISSON_MEMBERS(Type, ...)         \
  template <class A>                       \
  auto members(A& archive, Type& object) { \
    auto& [__VA_ARGS__] = object;          \
    return archive(__VA_ARGS__);           \
  }
CAISSON_MEMBERS(Source, present, directory, dev, ino)
CAISSON_MEMBERS(Bind, target, source, read_only, execute, device, directory, staged, held, frozen, dev, ino)
CAISSON_MEMBERS(LandlockRule, path, access, required)
CAISSON_MEMBERS(MechanismPlan, state, reason)
CAISSON_MEMBERS(Residual, id, what)
CAISSON_MEMBERS(SystemCopy, directory, tops, copied, request)
CAISSON_MEMBERS(Claim, mechanism, accepted, value)
// subset.cc has a rule for each, in this order.
CAISSON_MEMBERS(Plan, policy, tier, user_ns, mount_ns, pid_ns, ipc_ns, uts_ns, net_ns, cgroup_ns, cgroup, io, connected, nested,
                disks, single_use, inet, change_uid, observe, ungoverned, proc, binds, directories, files, links, hide, makeable,
                tools, private_tmp_options, protect, system, home_options, landlock, landlock_fs, landlock_scoped, limits,
                mechanisms, absent, closed, residual, claims, view, canonical)
CAISSON_MEMBERS(Place, home_source, stage, system, init_path, disks, no_disks, tools, closed, home_staged, home_quota, own_net,
                processes)
CAISSON_MEMBERS(PlanRequest, policy, home, sources, place)

// caisson-policies --plan: Features, which have the launcher's own findings here, and the requests.
struct PlanQuestion {
  std::string mark;
  Features features;
  std::vector<PlanRequest> requests;
};
template <class A>
void members(A& a, PlanQuestion& q) {
  a(q.mark, q.features, q.features.cgroup, q.features.cgroup_reason, q.features.io, q.requests);
}
// caisson-policies --narrow. alone: for a session with namespaces of its own.
struct NarrowQuestion {
  std::string mark;
  std::shared_ptr<const policy::Policy> policy;
  std::string asked;  // as JSON
  bool alone = false;
};
CAISSON_MEMBERS(NarrowQuestion, mark, policy, asked, alone)

// One answer: the value, or the error that took its place.
template <class T>
struct Answered {
  Code code = Code::internal;
  std::string error;
  std::shared_ptr<const T> value;
};
template <class A, class T>
void members(A& a, Answered<T>& one) {
  a(one.code, one.error, one.value);
}
template <class T>
struct Answer {
  std::string mark;
  std::vector<Answered<T>> answers;
};
template <class A, class T>
void members(A& a, Answer<T>& answer) {
  a(answer.mark, answer.answers);
}

}  // namespace caisson::confine
