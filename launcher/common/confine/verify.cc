#include "launcher/common/confine/verify.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/mount_facts.h"

namespace caisson::confine {
namespace {

using nlohmann::json;

bool zero(const std::string& hex) { return !hex.empty() && hex.find_first_not_of('0') == std::string::npos; }

std::unexpected<Error> broken(std::string_view fact, const std::string& value) {
  return fail(Code::internal, "verification failed: " + std::string(fact) + " is " + quote(value));
}

// All four ids of a Uid: or Gid: line are the same, and not 0 but where that `may_be_root`.
bool one_id(const std::string& line, bool may_be_root) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return std::sscanf(line.c_str(), "%u %u %u %u", &a, &b, &c, &d) == 4 && (a != 0 || may_be_root) && a == b && b == c && c == d;
}

// No supplementary group but the one of a Gid: line, as change_ids() in child.cc leaves them.
bool no_group_but(const std::string& gids, const std::string& groups) {
  unsigned gid = 0, group = 0, more = 0;
  const int listed = std::sscanf(groups.c_str(), "%u %u", &group, &more);
  return listed < 1 || (listed == 1 && std::sscanf(gids.c_str(), "%u", &gid) == 1 && group == gid);
}

struct NsRow {
  Mechanism mechanism;
  const char* name;
};
constexpr NsRow kNamespaces[] = {{Mechanism::user_ns, "user"},    {Mechanism::mount_ns, "mnt"}, {Mechanism::pid_ns, "pid"},
                                 {Mechanism::ipc_ns, "ipc"},      {Mechanism::uts_ns, "uts"},   {Mechanism::net_ns, "net"},
                                 {Mechanism::cgroup_ns, "cgroup"}};

// Our own namespace inodes do not change: read once.
const struct stat& own_namespace(std::size_t i) {
  static struct stat own[std::size(kNamespaces)];
  static bool known = false;
  if (!known) {
    for (std::size_t k = 0; k < std::size(kNamespaces); ++k)
      if (::stat((std::string("/proc/self/ns/") + kNamespaces[k].name).c_str(), &own[k]) != 0) own[k] = {};
    known = true;
  }
  return own[i];
}

Status check_namespaces(const Plan& plan, pid_t pid, json& facts) {
  for (std::size_t i = 0; i < std::size(kNamespaces); ++i) {
    const NsRow& row = kNamespaces[i];
    if (plan.mechanisms[static_cast<std::size_t>(row.mechanism)].state != MechanismState::enforced) continue;
    struct stat theirs{};
    const std::string path = "/proc/" + std::to_string(pid) + "/ns/" + row.name;
    if (::stat(path.c_str(), &theirs) != 0) return sys_error("stat " + path);
    if (theirs.st_ino == own_namespace(i).st_ino) return broken(std::string(row.name) + " namespace", "the launcher's own");
    facts["ns"][row.name] = theirs.st_ino;
  }
  return {};
}

// Else it would change the mounts of every other session of its policy.
Status check_mounts(pid_t pid, int prepared) {
  struct stat theirs{}, common{};
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
  if (prepared < 0) return {};
  if (::fstat(prepared, &common) != 0 || ::stat(path.c_str(), &theirs) != 0) return sys_error("stat " + path);
  if (theirs.st_ino == common.st_ino) return broken("mnt namespace", "that of all sessions of its policy");
  return {};
}

struct LimitRow {
  int resource;
  const char* name;
};
constexpr LimitRow kLimits[] = {{RLIMIT_CPU, "Max cpu time"},           {RLIMIT_FSIZE, "Max file size"},
                                {RLIMIT_CORE, "Max core file size"},    {RLIMIT_NPROC, "Max processes"},
                                {RLIMIT_NOFILE, "Max open files"},      {RLIMIT_MEMLOCK, "Max locked memory"},
                                {RLIMIT_MSGQUEUE, "Max msgqueue size"}, {RLIMIT_SIGPENDING, "Max pending signals"},
                                {RLIMIT_NICE, "Max nice priority"},     {RLIMIT_RTPRIO, "Max realtime priority"}};

// A canary cannot see them: whoever has no capability cannot raise any limit, however high. A limit outside may be lower still.
Status check_limits(const Plan& plan, pid_t pid, const std::vector<StepRecord>& steps) {
  TRY_ASSIGN(const std::string limits, sys::read_file("/proc/" + std::to_string(pid) + "/limits", 16384));
  const auto step = std::ranges::find(steps, Step::limits, &StepRecord::step);
  const rlim_t others = step != steps.end() && !plan.user_ns ? static_cast<rlim_t>(step->value) : 0;
  for (const auto& [resource, wanted] : plan.limits) {
    const rlim_t most = wanted.rlim_max + (resource == RLIMIT_NPROC ? others : 0);
    const auto row = std::ranges::find(kLimits, resource, &LimitRow::resource);
    if (row == std::end(kLimits)) return broken("a limit", "one without a name in /proc");
    const auto at = limits.find(std::string("\n") + row->name + "  ");
    char soft[32] = "", hard[32] = "";
    if (at == std::string::npos || std::sscanf(limits.c_str() + at + 1 + std::strlen(row->name), "%31s %31s", soft, hard) != 2)
      return broken(row->name, "not in /proc/<pid>/limits");
    // "unlimited" is no number.
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(hard, &end, 10);
    if ((*end != '\0' && wanted.rlim_max != RLIM_INFINITY) || (*end == '\0' && value > most)) return broken(row->name, hard);
  }
  return {};
}

}  // namespace

void verify_prepare() { (void)own_namespace(0); }

Result<json> verify_namespaces(const Plan& plan, pid_t pid, const Protection& protection, int prepared_mounts,
                               KnownMounts* known) {
  json facts;
  TRY(check_namespaces(plan, pid, facts));
  TRY(check_mounts(pid, prepared_mounts));
  if (!plan.mount_ns) return facts;
  TRY_ASSIGN(facts["mountinfo"], check_mount_tree(plan, pid, &protection, known));
  TRY_ASSIGN(std::string covers, check_covers(plan, pid, true, &protection));
  // Made in our own user namespace: whoever keeps us from looking is no part of the plan.
  if (covers.empty() && prepared_mounts >= 0) return broken("/proc/<pid>/root", "closed to the launcher");
  if (!covers.empty()) facts["covers"] = std::move(covers);
  if (!plan.protect.empty())
    facts["protected"] = protection.told.contains('k') ? std::to_string(protection.told.at('k').size()) + " read-only" : "none";
  return facts;
}

Result<Verified> verify_session(const Plan& plan, pid_t pid, const std::vector<StepRecord>& steps, json namespaces) {
  Verified out;
  out.facts = std::move(namespaces);
  std::copy(std::begin(plan.mechanisms), std::end(plan.mechanisms), out.mechanisms);
  TRY_ASSIGN(const std::string status, sys::read_file("/proc/" + std::to_string(pid) + "/status", 16384));
  for (const char* name : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    if (!zero(sys::status_field(status, name))) return broken(name, sys::status_field(status, name));
    out.facts[name] = sys::status_field(status, name);
  }
  const std::string bounding = sys::status_field(status, "CapBnd");
  out.facts["CapBnd"] = bounding;
  if (!zero(bounding)) {
    // Only where the launcher has no CAP_SETPCAP and no user namespace: then said, never hidden.
    if (plan.user_ns) return broken("CapBnd", bounding);
    out.mechanisms[static_cast<std::size_t>(Mechanism::capabilities)].reason =
        "all sets empty but the bounding set, which no_new_privs makes moot";
  }
  if (sys::status_field(status, "NoNewPrivs") != "1") return broken("NoNewPrivs", sys::status_field(status, "NoNewPrivs"));
  if (sys::status_field(status, "Seccomp") != "2") return broken("Seccomp", sys::status_field(status, "Seccomp"));
  if (!one_id(sys::status_field(status, "Uid"), !plan.change_uid && zero(bounding)) ||
      !one_id(sys::status_field(status, "Gid"), !plan.change_uid))
    return broken("Uid/Gid", sys::status_field(status, "Uid") + " / " + sys::status_field(status, "Gid"));
  if (plan.change_uid && !no_group_but(sys::status_field(status, "Gid"), sys::status_field(status, "Groups")))
    return broken("Groups", sys::status_field(status, "Groups"));
  for (const char* name : {"NoNewPrivs", "Seccomp", "Seccomp_filters", "Uid", "Gid"})
    out.facts[name] = sys::status_field(status, name);
  TRY(check_limits(plan, pid, steps));
  TRY_ASSIGN(std::string stdio, check_stdio(pid));
  if (!stdio.empty()) out.facts["stdio"] = std::move(stdio);
  for (const Step needed : {Step::fds, Step::limits, Step::credentials, Step::capabilities, Step::no_new_privs, Step::seccomp})
    if (std::ranges::none_of(steps, [needed](const StepRecord& r) { return r.step == needed && r.error == 0; }))
      return broken(kSteps[static_cast<std::size_t>(needed)].name, "not reported as done");
  if (plan.landlock_fs != 0 &&
      std::ranges::none_of(steps, [](const StepRecord& r) { return r.step == Step::landlock && r.error == 0; }))
    return broken("landlock", "not reported as done");
  return out;
}

namespace {

// Which fact shows a mechanism: a line of /proc/<pid>/status, what its mounts and streams are, or the cgroup that has the session
// in its cgroup.procs.
struct FactRow {
  Mechanism mechanism;
  const char* name;
};
constexpr FactRow kFacts[] = {{Mechanism::capabilities, "CapEff"},
                              {Mechanism::capabilities, "CapPrm"},
                              {Mechanism::capabilities, "CapInh"},
                              {Mechanism::capabilities, "CapBnd"},
                              {Mechanism::capabilities, "CapAmb"},
                              {Mechanism::no_new_privs, "NoNewPrivs"},
                              {Mechanism::seccomp, "Seccomp"},
                              {Mechanism::seccomp, "Seccomp_filters"},
                              {Mechanism::uid, "Uid"},
                              {Mechanism::uid, "Gid"},
                              {Mechanism::mount_ns, "mountinfo"},
                              {Mechanism::mount_ns, "covers"},
                              {Mechanism::mount_ns, "protected"},
                              {Mechanism::fds, "stdio"},
                              {Mechanism::cgroup, "cgroup"},
                              {Mechanism::io, "io.max"}};

json verified_by(const Plan& plan, Mechanism mechanism, const json& facts, const std::vector<StepRecord>& steps,
                 const json& canaries) {
  json out = json::array();
  std::set<Step> seen;
  for (const StepRecord& r : steps)
    if (const StepRow& row = kSteps[static_cast<std::size_t>(r.step)]; row.mechanism == mechanism && seen.insert(r.step).second)
      out.push_back({{"by", "step"}, {"what", row.name}, {"result", "done"}});
  for (const FactRow& row : kFacts)
    if (row.mechanism == mechanism && facts.contains(row.name))
      out.push_back({{"by", "proc"}, {"what", row.name}, {"result", facts[row.name]}});
  for (const NsRow& row : kNamespaces)
    if (row.mechanism == mechanism && facts.contains("ns") && facts["ns"].contains(row.name))
      out.push_back({{"by", "proc"},
                     {"what", std::string("ns/") + row.name},
                     {"result", std::to_string(facts["ns"][row.name].get<ino_t>())}});
  for (const json& canary : canaries)
    if (canary["mechanism"] == mechanism_name(mechanism))
      out.push_back({{"by", "canary"}, {"what", canary["probe"]}, {"result", canary["answer"]}});
  if (mechanism == Mechanism::env && plan.policy != nullptr)
    out.push_back({{"by", "construction"}, {"what", "execve with the policy's variables alone"}, {"result", "done"}});
  return out;
}

}  // namespace

json mechanisms_json(const Plan& plan, const Verified& verified, const std::vector<StepRecord>& steps,
                     const ProbeResults* canary) {
  static constexpr const char* kStates[] = {"enforced", "unavailable", "disabled_by_policy"};
  const json canaries = canary != nullptr ? canary_json(plan, *canary) : json();
  json out = json::array();
  for (int m = 0; m < kMechanismCount; ++m) {
    const auto mechanism = static_cast<Mechanism>(m);
    const MechanismPlan& state = verified.mechanisms[m];
    json row{{"name", mechanism_name(mechanism)}, {"state", kStates[static_cast<int>(state.state)]}};
    if (!state.reason.empty()) row["detail"] = state.reason;
    if (canary != nullptr && state.state == MechanismState::enforced)
      row["verified"] = verified_by(plan, mechanism, verified.facts, steps, canaries);
    out.push_back(std::move(row));
  }
  return out;
}

json report_json(const Plan& plan, const Verified& verified, const std::vector<StepRecord>& template_steps,
                 const std::vector<StepRecord>& steps, const ProbeResults* canary) {
  std::vector<StepRecord> all = template_steps;
  all.insert(all.end(), steps.begin(), steps.end());
  json report{{"schema", 1},
              {"domain", plan.policy->domain},
              {"policy_digest", plan.policy->digest},
              {"preset", plan.policy->preset},
              {"tier", tier_name(plan.tier)},
              {"tier_required", tier_name(plan.policy->min_tier)},
              {"proc", kProcNames[static_cast<int>(plan.proc)]},
              {"residual", residual_json(plan)},
              {"absent", plan.absent},
              {"weaken", plan.policy->weaken},
              {"facts", verified.facts},
              {"mechanisms", mechanisms_json(plan, verified, all, canary)},
              {"grants", json::array()}};
  if (!plan.closed.empty()) report["closed"] = plan.closed;
  // Granted as well, and read from the copy.
  if (!plan.system.empty()) report["copied"] = plan.system.copied;
  for (const Bind& b : plan.binds) {
    if (b.device || b.staged) continue;
    report["grants"].push_back({{"path", b.target},
                                {"access", b.read_only ? "read" : "read-write"},
                                {"execute", b.execute},
                                {"dev", b.dev},
                                {"ino", b.ino}});
  }
  report["prepared_us"] = timings_json(template_steps);
  report["timings_us"] = timings_json(steps);
  return report;
}

json timings_json(const std::vector<StepRecord>& steps) {
  json timings = json::object();
  for (const StepRecord& r : steps) {
    auto& slot = timings[kSteps[static_cast<std::size_t>(r.step)].name];
    slot = (slot.is_null() ? 0U : slot.get<unsigned>()) + r.us;
  }
  return timings;
}

}  // namespace caisson::confine
