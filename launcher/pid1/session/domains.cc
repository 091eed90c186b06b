#include "launcher/pid1/session/domains.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "launcher/common/base/hash.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/policy/text_checks.h"
#include "launcher/pid1/session/canary_session.h"
#include "launcher/pid1/session/policies.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kRefreshUs = 1'000'000;
constexpr std::size_t kMostClosed = 32;

bool same(const confine::Sources& a, const confine::Sources& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.present == y.second.present && x.second.dev == y.second.dev &&
           x.second.ino == y.second.ino;
  });
}

// What the operator mounted for the container is the default workspace's: the others are tenants, and would meet there. Its
// digest comes with the plan.
std::shared_ptr<const policy::Policy> without_volumes(std::shared_ptr<const policy::Policy> policy) {
  auto out = std::make_shared<policy::Policy>(*policy);
  const auto shared = [&](const policy::Grant& g) { return g.mounted && (out->weaken.erase("/grants" + g.path), true); };
  if (std::erase_if(out->grants, shared) == 0) return policy;
  out->digest.clear();
  return out;
}

// Where mounts are possible and no connector is needed, the policy in force equals the policy that was read: it is kept once.
// Else its variables differ: it has not the digest that it carries, and nothing could be planned by it again.
void put_plan(Domain& domain, std::shared_ptr<const confine::Plan> plan) {
  if (plan->mount_ns && !plan->connected) domain.policy = plan->policy;
  domain.plan = std::move(plan);
}

}  // namespace

json::Value digests(const policy::LoadResult& loaded) {
  json::Value out = json::Value::object();
  for (const auto& [name, p] : loaded.policies) out[name] = p->digest;
  return out;
}

std::string digest_of_all(const policy::LoadResult& loaded) { return sha256_hex(json::dump(digests(loaded))); }

Task<Domains::Problems> Domains::reload(std::string by) {
  if (std::exchange(reloading_, true))
    co_return Problems(1, policy::Problem{settings_.policy_dir, 0, "", "is being read for somebody else: try again", ""});
  const policy::LoadResult loaded = co_await read_policies(loop_, settings_);
  const std::string before = digest_;
  Problems found = co_await put_in_force(loaded);
  reloading_ = false;
  json::Value problems = json::Value::array();
  for (const auto& p : found) problems.push_back(p.text());
  host_.record(audit::Event::policy_reload, {{"accepted", found.empty()},
                                             {"by", by},
                                             {"preset", settings_.preset},
                                             {"old", before},
                                             {"new", digest_},
                                             {"policies", digests(loaded)},
                                             {"problems", problems}});
  co_return found;
}

Task<Domains::Problems> Domains::put_in_force(const policy::LoadResult& loaded) {
  if (!loaded.problems.empty()) co_return loaded.problems;
  Taken taken = co_await take(loaded);
  if (!taken.problems.empty()) co_return std::move(taken.problems);
  ++reloads_;
  digest_ = digest_of_all(loaded);
  domains_ = std::move(taken.domains);
  refused_domains_ = std::move(taken.refused);
  host_.egress->renew(lists());
  for (const auto& [name, why] : refused_domains_)
    sys::say("caisson-launcher: domain '" + name + "' starts no session here: " + why);
  co_return Problems();
}

// As egress/list/lists.h reads them: each list after its domain and its size.
std::string Domains::lists() const {
  std::string out;
  for (const auto& [name, domain] : domains_)
    if (const auto& list = domain.policy->egress; !list.empty()) out += name + '\n' + std::to_string(list.size()) + '\n' + list;
  return out;
}

bool Domains::in_use(const std::string& domain) const {
  const auto known = domains_.find(domain);
  const bool prepared = known != domains_.end() && known->second.prepared != nullptr;
  return prepared || domain == "bash" || domain == "shell";  // the API's own are ready before the first request
}

Task<Domains::Taken> Domains::take(const policy::LoadResult& loaded) {
  Taken out;
  const auto failed = [&](const std::string& name, const Error& error) {
    if (error.code == Code::unavailable) out.refused[name] = error.what;  // min_tier, require[]
    else out.problems.push_back({settings_.policy_dir + "/" + name + ".json", 0, "", error.text(), ""});
  };
  std::vector<confine::PlanRequest> requests;
  for (const auto& [name, read] : loaded.policies) {
    Domain domain;
    domain.policy = read;
    auto request = plan_request(*default_, domain, false);
    if (!request) {
      failed(name, request.error());
      continue;
    }
    requests.push_back(std::move(*request));
    out.domains.emplace(name, std::move(domain));
  }
  const auto plans = co_await confine::ask_plans(loop_, features_, std::move(requests));
  if (!plans) {
    out.problems.push_back({settings_.policy_dir, 0, "", plans.error().text(), ""});
    co_return out;
  }
  std::size_t at = 0;
  for (auto it = out.domains.begin(); it != out.domains.end();) {
    auto& [name, domain] = *it;
    const auto& plan = (*plans)[at++];
    Status done = plan ? Status() : std::unexpected(plan.error());
    if (plan) put_plan(domain, *plan);
    if (plan && in_use(name)) {
      const Turns::Turn turn = co_await default_->turns.take();
      auto prepared = co_await prepare_domain(*default_, domain);
      if (prepared) domain = std::move(*prepared);
      else done = std::unexpected(std::move(prepared).error());
    }
    if (!done) failed(name, done.error());
    it = done ? std::next(it) : out.domains.erase(it);
  }
  co_return out;
}

// A file that everybody may read outside and that no grant covers: only the walls that a session has stand before it.
std::string Domains::ungranted_file(const confine::Plan& plan) const {
  for (const std::string& path :
       {settings_.policy_dir + "/base.json", std::string("/var/lib/dpkg/status"), std::string("/sys")}) {
    const bool writable =
        std::ranges::any_of(plan.binds, [&](const auto& b) { return b.staged && policy::inside(path, b.target); });
    const bool granted = writable || policy::inside(path, "/tmp") || policy::inside(path, settings_.home) ||
                         std::ranges::any_of(plan.policy->grants, [&](const auto& g) { return policy::inside(path, g.source); });
    if (!granted && ::access(path.c_str(), R_OK) == 0) return path;
  }
  return plan.system.empty() ? "/root" : "/sys";
}

Task<Result<confine::ProbeResults>> Domains::ask_canary(const Workspace& workspace, const confine::Template& prepared) {
  init::Targets targets{};
  targets.launcher = ::getpid();
  targets.builder = workspace.place.builder;
  targets.port = settings_.port;
  const std::string outside = ungranted_file(*prepared.plan);
  if (outside.size() >= sizeof targets.outside) co_return fail(Code::invalid_argument, "path too long: " + quote(outside));
  std::memcpy(targets.outside, outside.c_str(), outside.size() + 1);
  CO_TRY_ASSIGN(const uid_t uid, uids_.take(workspace));
  const Listen listen = [&](const Fd& fd) { return host_.denials->watch("", fd, prepared.refusals, prepared.plan->observe); };
  auto results = co_await run_canary(loop_, builder_, prepared, workspace.place, uid, targets, listen);
  uids_.give_back(uid);
  if (!results) co_return std::unexpected(std::move(results).error().wrap("canary session"));
  // As first processes of a container we have numbers that a process inside has, too: that one was asked.
  for (const auto [probe, pid] : {std::pair(init::Probe::kill_launcher, targets.launcher),
                                  {init::Probe::kill_builder, targets.builder},
                                  {init::Probe::read_builder, targets.builder}})
    if (prepared.plan->pid_ns && pid <= static_cast<int>(init::kProbeCount) + 2)
      (*results)[static_cast<std::size_t>(probe)].error = confine::kNotAsked;
  // Fails closed: the domain is refused, and hello, probe and log say why.
  if (auto fault = confine::canary_fault(*prepared.plan, *results); fault && !confine::faults::blind())
    co_return fail(Code::unavailable, "policy '" + prepared.plan->policy->domain + "' is not enforced here: " + *fault);
  co_return *results;
}

Task<Result<Domain>> Domains::prepare_domain(const Workspace& workspace, Domain domain, const Narrowed* by) {
  while (!domain.prepared) {
    if (!domain.plan) CO_TRY(co_await plan_domain(workspace, domain, by));
    if (by == nullptr && policy::goes_out(*domain.plan->policy)) CO_TRY(co_await host_.egress->open(workspace, lists()));
    std::string culprit;
    auto prepared = co_await builder_.make_template(loop_, domain.plan,
                                                    by != nullptr && by->own != nullptr ? *by->own : workspace.place, &culprit);
    // What a session has put in the way costs that path alone. Whoever does it all the time gets tired or the error.
    if (prepared) domain.prepared = std::make_shared<const confine::Template>(std::move(*prepared));
    else if (culprit.empty() || domain.closed.size() >= kMostClosed ||
             !domain.closed.emplace(culprit, prepared.error().text()).second)
      co_return std::unexpected(std::move(prepared).error());
    else domain.plan = nullptr;
  }
  if (by == nullptr) {
    CO_TRY_ASSIGN(domain.canary, co_await ask_canary(workspace, *domain.prepared));
    domain.narrowings = std::make_shared<Narrowings>(domain.plan);
  }
  domain.checked_us = sys::monotonic_us();
  co_return domain;
}

Task<Status> Domains::plan_domain(const Workspace& workspace, Domain& domain, const Narrowed* by) {
  const bool made = &workspace != default_, alone = by != nullptr && by->own != nullptr;
  CO_TRY_ASSIGN(auto request, plan_request(workspace, domain, alone));
  if (by != nullptr) {
    CO_TRY_ASSIGN(domain.plan, co_await by->narrowings.plan(loop_, features_, std::move(request), by->asked));
  } else {
    std::vector<confine::PlanRequest> one;
    one.push_back(std::move(request));
    CO_TRY_ASSIGN(auto plans, co_await confine::ask_plans(loop_, features_, std::move(one)));
    if (!plans[0]) co_return std::unexpected(plans[0].error());
    put_plan(domain, *plans[0]);
  }
  // A policy that goes without one of these lets the sessions of two workspaces meet, or a private one's others.
  if (const auto wall = missing_wall(*domain.plan, alone); wall && (made || alone))
    co_return fail(Code::unavailable, "policy '" + domain.policy->domain +
                                          "' does not keep sessions apart here: " + std::string(mechanism_name(*wall)) +
                                          " is not enforced: " + domain.plan->mechanisms[static_cast<std::size_t>(*wall)].reason);
  co_return Status();
}

// alone: for a session with namespaces of its own.
Result<confine::PlanRequest> Domains::plan_request(const Workspace& workspace, Domain& domain, bool alone) const {
  confine::PlanRequest out{.policy = domain.policy, .home = {}, .sources = {}, .place = {}};
  TRY_ASSIGN(domain.sources, confine::resolve_sources(*domain.policy, &domain.closed));
  out.sources = domain.sources;
  const bool made = &workspace != default_;
  if (auto tools = confine::open_source(settings_.tools)) out.sources[settings_.tools] = *tools;
  confine::Place& place = out.place;
  place = {workspace.home_path, builder_.stage_dir, builder_.system_dir, settings_.init_path, {}, "",
           settings_.tools,     domain.closed};
  // With a mount namespace /tmp is in memory; so is a home that is not a directory.
  std::vector<std::string> on_disk;
  if (workspace.home_path.empty()) {
    place.home_source = builder_.home_dir;
    place.home_staged = true;
  } else {
    struct stat st{};
    if (::stat(workspace.home_path.c_str(), &st) != 0) return sys_error("home " + quote(workspace.home_path));
    out.sources[workspace.home_path] = {true, S_ISDIR(st.st_mode), st.st_dev, st.st_ino};
    on_disk.push_back(workspace.home_path);
  }
  if (!features_.mount_ns.ok()) on_disk.emplace_back("/tmp");
  if (auto disks = confine::disks_of(on_disk); disks) place.disks = std::move(*disks);
  else place.no_disks = disks.error().text();
  place.home_quota = made && workspace.enforced_by != "measured";
  if (made) place.processes = settings_.workspaces.limits.processes;
  place.own_net = alone;
  if (workspace.in_place) out.home = workspace.home_path;
  return out;
}

// What a grant's path names may have been replaced since: then new sessions get a new tree, the living keep theirs.
Result<bool> Domains::fresh(Domain& domain) {
  if (!domain.prepared) return false;
  if (sys::monotonic_us() - domain.checked_us < kRefreshUs) return true;
  confine::Closed closed;
  TRY_ASSIGN(const confine::Sources now, confine::resolve_sources(*domain.policy, &closed));
  // What no source shows may be mended by now.
  if (!same(now, domain.sources) || closed != domain.closed) return false;
  domain.checked_us = sys::monotonic_us();
  return true;
}

void Domains::distrust(Workspace& workspace, const std::string& name) {
  auto& made = table(workspace);
  if (const auto of = made.find(name); of != made.end()) of->second.sources.clear(), of->second.checked_us = 0;
}

Task<Result<Domain*>> Domains::domain_in(Workspace& workspace, const std::string& name) {
  auto& made = table(workspace);
  std::optional<Turns::Turn> turn;
  for (;;) {
    if (const auto refused = refused_domains_.find(name); refused != refused_domains_.end())
      co_return fail(Code::unavailable, refused->second);
    const auto known = domains_.find(name);
    if (known == domains_.end()) co_return fail(Code::not_found, "no policy domain " + quote(name));
    const auto there = made.find(name);
    if (there != made.end()) {
      CO_TRY_ASSIGN(const bool still, fresh(there->second));
      if (still) co_return &there->second;
    }
    // Another may make it meanwhile.
    if (!turn) {
      turn.emplace(co_await workspace.turns.take());
      continue;
    }
    const std::uint64_t reloads = reloads_;
    Domain wanted;
    wanted.policy = there != made.end()      ? there->second.policy
                    : &workspace == default_ ? known->second.policy
                                             : without_volumes(known->second.policy);
    CO_TRY_ASSIGN(Domain domain, co_await prepare_domain(workspace, std::move(wanted)));
    if (reloads != reloads_) continue;  // of a policy that is no more
    const Domain before = std::exchange(made[name], std::move(domain));
    if (before.prepared) replaced_(workspace, name);
    co_return &made[name];
  }
}

}  // namespace caisson::session
