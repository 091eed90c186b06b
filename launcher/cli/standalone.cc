#include "launcher/cli/standalone.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/step_error.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/probing/probe_features.h"
#include "launcher/compiler/effective.h"
#include "launcher/compiler/filter.h"
#include "launcher/compiler/planner.h"

namespace caisson::cli {
namespace {

constexpr uid_t kRunUid = 20000;  // outer uid as root: owns nothing

Result<std::shared_ptr<const policy::Policy>> read_policy(const std::string& policies, const policy::Choice& choice) {
  policy::LoadResult loaded = policy::load_directory(policies, choice);
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    return fail(Code::invalid_argument, text);
  }
  const auto it = loaded.policies.find(choice.only);
  if (it == loaded.policies.end()) return fail(Code::not_found, "no policy " + quote(choice.only) + " in " + policies);
  return it->second;
}

// Reads the step records to their end, which is the exec of the first process. Its status is read behind the filter, where
// nothing but that exec is left. Its namespaces and mounts are read after it: to change its ids closes a process to whoever has
// no CAP_SYS_PTRACE where it was forked, as in any container, until an exec makes its memory its own user namespace's, which is
// ours.
Status read_steps(Single& s) {
  TRY(sys::set_nonblocking(s.started.status.get(), false));
  confine::verify_prepare();  // while the child is at work
  confine::StepRecord record;
  Result<confine::Verified> verified = fail(Code::internal, "the session's child ended early");
  while (::read(s.started.status.get(), &record, sizeof record) == static_cast<ssize_t>(sizeof record)) {
    if (record.error != 0 && record.step == confine::Step::protect) TRY(s.protection.read(1));
    if (record.error != 0) return std::unexpected(confine::step_error(*s.plan, record));
    s.steps.push_back(record);
    // A child whose exec fails may be gone before it is looked at: then the record that follows says why.
    if (record.step == confine::Step::seccomp)
      verified = confine::verify_session(*s.plan, s.started.child_pid, s.steps, nlohmann::json::object());
  }
  if (!s.plan->protect.empty() && !confine::faults::blind()) TRY(s.protection.read(1));
  auto namespaces = confine::verify_namespaces(*s.plan, s.started.child_pid, s.protection);
  if (verified && !namespaces) verified = std::unexpected(std::move(namespaces).error());
  if (!verified && !confine::faults::blind()) return std::unexpected(std::move(verified).error());
  if (!verified) return {};
  s.verified = std::move(*verified);
  if (namespaces->is_object()) s.verified.facts.update(*namespaces);  // null where the plan has none
  return {};
}

}  // namespace

Single::~Single() {
  if (started.child_pid <= 0) return;
  // The first process ends with its socket at the latest; its PID namespace and everything in it end with it.
  (void)sys::pidfd_send_signal(started.child.get(), SIGKILL);
  sys::reap(started.child_pid);
}

Result<SingleSession> SingleSession::load(const std::string& policies, const policy::Choice& choice) {
  SingleSession out;
  out.policies = policies;
  out.choice = choice;
  out.init_path = sys::program_path("caisson-init");
  out.frozen = FrozenPolicies(policies, choice).load();
  if (out.frozen) {
    out.loaded = out.frozen->policy;
  } else {
    TRY_ASSIGN(out.loaded, read_policy(policies, choice));
  }
  out.policy = out.loaded;
  return out;
}

// The filter compiled when the policy was frozen, where it fits this plan; else a new one from the files.
Result<confine::Program> SingleSession::filter(const confine::Plan& plan, bool& was_kept) const {
  const auto enforced = confine::enforced_mechanisms(plan);
  const auto needs = filter_needs(*loaded, enforced);
  const bool kept = plan.ungoverned == confine::Ungoverned::nothing;  // what is kept is for kernels of today
  was_kept = kept && frozen && frozen->needs == needs;
  if (was_kept) return frozen->filter;
  std::shared_ptr<const policy::Policy> whole = loaded;
  if (frozen) {
    TRY_ASSIGN(whole, read_policy(policies, choice));
    if (whole->digest != loaded->digest)
      return fail(Code::unavailable, "the policies changed while the session was being made: try again");
  }
  auto sets = policy::effective_sets(*whole, enforced);
  if (!kept) sets.push_back(confine::stands_in(plan.ungoverned));
  TRY_ASSIGN(auto program, confine::compile_seccomp(sets));
  if (kept) FrozenPolicies(policies, choice).store({whole, needs, program});
  return program;
}

Result<std::unique_ptr<Single>> SingleSession::build(confine::Features features) const {
  // A cgroup of one command's own would have to be made in a tree that belongs to whoever called us.
  features.cgroup = {ENOTSUP, "cgroup v2"};
  features.cgroup_reason = "caisson run makes no cgroup";
  features.notify = {};  // nobody listens: there is no launcher
  // As the launcher does at its start: in a user namespace nobody can leave a group.
  if (::geteuid() == 0 && ::setgroups(0, nullptr) != 0 && errno != EPERM) return sys_error("setgroups");
  auto s = std::make_unique<Single>();
  TRY_ASSIGN(const confine::Sources sources, confine::resolve_sources(*policy));
  const confine::Place place{.init_path = init_path};
  TRY_ASSIGN(s->plan, confine::make_plan(policy, features, sources, place));
  TRY_ASSIGN(s->seccomp, filter(*s->plan, s->kept));
  TRY_ASSIGN(s->protection, confine::Protection::prepare(*s->plan));
  const uid_t uid = ::geteuid() == 0 ? kRunUid : ::geteuid();
  const gid_t gid = ::geteuid() == 0 ? kRunUid : ::getegid();
  TRY_ASSIGN(s->started,
             confine::start_standalone(*s->plan, s->seccomp, s->protection, init_path,
                                       "/tmp",  // covered in the child's mount namespace only, after every grant was opened
                                       uid, gid));
  TRY(read_steps(*s));
  return s;
}

Result<std::unique_ptr<Single>> SingleSession::build() const {
  auto first = build(confine::optimistic_features());
  if (first) return first;
  const confine::Features features = confine::probe_features();
  if (features.tier() == Tier::t3) return first;
  return build(features);
}

}  // namespace caisson::cli
