// Domains made ready: a policy's plan, template and canary, and when they have to be made anew.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "launcher/base/hash.h"
#include "launcher/base/sys.h"
#include "launcher/policy/text_checks.h"
#include "launcher/session/canary_session.h"
#include "launcher/session/manager.h"

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

}  // namespace

bool Manager::in_use(const std::string& domain) const {
  const auto known = domains_.find(domain);
  const bool prepared = known != domains_.end() && known->second.prepared != nullptr;
  return prepared || domain == "bash" || domain == "shell";  // the API's own are ready before the first request
}

Task<Manager::Taken> Manager::take(const policy::LoadResult& loaded) {
  Taken out;
  for (const auto& [name, read] : loaded.policies) {
    Domain domain;
    const auto p = domain.policy = in_place(*default_, read);
    Status done;
    if (in_use(name)) {
      const Turns::Turn turn = co_await default_->turns.take();
      auto prepared = co_await prepare_domain(*default_, p);
      if (prepared) domain = std::move(*prepared);
      else done = std::unexpected(std::move(prepared).error());
    } else if (auto plan = plan_domain(*default_, domain); !plan) {
      done = std::unexpected(std::move(plan).error());
    }
    if (done) out.domains.emplace(name, std::move(domain));
    else if (done.error().code == Code::unavailable) out.refused[name] = done.error().what;  // min_tier, require[]
    else out.problems.push_back({settings_.policy_dir + "/" + name + ".json", 0, "", done.error().text(), ""});
  }
  co_return out;
}

// A file that everybody may read outside and that no grant covers: only the walls that a session has stand before it.
std::string Manager::ungranted_file(const confine::Plan& plan) const {
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

Task<Result<confine::ProbeResults>> Manager::ask_canary(const Workspace& workspace, const confine::Template& prepared) {
  init::Targets targets{};
  targets.launcher = ::getpid();
  targets.port = settings_.port;
  const std::string outside = ungranted_file(*prepared.plan);
  if (outside.size() >= sizeof targets.outside) co_return fail(Code::invalid_argument, "path too long: " + quote(outside));
  std::memcpy(targets.outside, outside.c_str(), outside.size() + 1);
  CO_TRY_ASSIGN(const uid_t uid, take_uid(workspace));
  const Listen listen = [&](const Fd& fd) { return denials_->watch("", fd, prepared.filter.refusals, prepared.plan->observe); };
  auto results = co_await run_canary(loop_, builder_, prepared, workspace.place, uid, targets, listen);
  free_uid(uid);
  if (!results) co_return std::unexpected(std::move(results).error().wrap("canary session"));
  // As first process of a container we have a number that a process inside has, too: that one was asked.
  if (prepared.plan->pid_ns && targets.launcher <= static_cast<int>(init::kProbeCount) + 2)
    (*results)[static_cast<std::size_t>(init::Probe::kill_launcher)].error = confine::kNotAsked;
  // Fails closed: the domain is refused, and hello, probe and log say why.
  if (auto fault = confine::canary_fault(*prepared.plan, *results); fault && !confine::faults::blind())
    co_return fail(Code::unavailable, "policy '" + prepared.plan->policy->domain + "' is not enforced here: " + *fault);
  co_return *results;
}

Task<Result<Domain>> Manager::prepare_domain(const Workspace& workspace, std::shared_ptr<const policy::Policy> policy,
                                             const confine::ProbeResults* known, const confine::Workspace* own) {
  Domain domain;
  domain.policy = std::move(policy);
  while (!domain.prepared) {
    CO_TRY_ASSIGN(domain.sources, confine::resolve_sources(*domain.policy, &domain.closed));
    CO_TRY_ASSIGN(const auto plan, plan_domain(workspace, domain, own != nullptr));
    std::string culprit;
    auto prepared = co_await builder_.make_template(loop_, plan, own != nullptr ? *own : workspace.place, &culprit);
    // What a session has put in the way costs that path alone. Whoever does it all the time gets tired or the error.
    if (prepared) domain.prepared = std::make_shared<const confine::Template>(std::move(*prepared));
    else if (culprit.empty() || domain.closed.size() >= kMostClosed ||
             !domain.closed.emplace(culprit, prepared.error().text()).second)
      co_return std::unexpected(std::move(prepared).error());
  }
  if (known != nullptr) {
    domain.canary = *known;
  } else {
    CO_TRY_ASSIGN(domain.canary, co_await ask_canary(workspace, *domain.prepared));
  }
  domain.checked_us = sys::monotonic_us();
  co_return domain;
}

// alone: for a session with namespaces of its own.
Result<std::shared_ptr<const confine::Plan>> Manager::plan_domain(const Workspace& workspace, const Domain& domain, bool alone) {
  confine::Closed closed = domain.closed;
  TRY_ASSIGN(confine::Sources sources, confine::resolve_sources(*domain.policy, &closed));
  const bool made = &workspace != default_;
  if (auto tools = confine::open_source(settings_.tools)) sources[settings_.tools] = *tools;
  confine::Place place{workspace.home_path, builder_.stage_dir, builder_.system_dir, settings_.init_path, {}, "", "",
                       std::move(closed)};
  // With a mount namespace /tmp is memory, as a home is that is no directory.
  std::vector<std::string> on_disk;
  if (workspace.home_path.empty()) {
    place.home_source = builder_.home_dir;
    place.home_staged = true;
  } else {
    struct stat st{};
    if (::stat(workspace.home_path.c_str(), &st) != 0) return sys_error("home " + quote(workspace.home_path));
    sources[workspace.home_path] = {true, S_ISDIR(st.st_mode), st.st_dev, st.st_ino};
    on_disk.push_back(workspace.home_path);
  }
  if (!features_.mount_ns.ok()) on_disk.emplace_back("/tmp");
  if (auto disks = confine::disks_of(on_disk); disks) place.disks = std::move(*disks);
  else place.no_disks = disks.error().text();
  place.home_quota = made && workspace.enforced_by != "measured";
  if (made) place.processes = settings_.workspaces.limits.processes;
  place.own_net = alone;
  place.tools = settings_.tools;
  TRY_ASSIGN(auto plan, confine::make_plan(domain.policy, features_, sources, place));
  // A policy that goes without one of these lets the sessions of two workspaces meet, or a private one's others.
  if (const auto wall = missing_wall(*plan, alone); wall && (made || alone))
    return fail(Code::unavailable, "policy '" + domain.policy->domain +
                                       "' does not keep sessions apart here: " + std::string(mechanism_name(*wall)) +
                                       " is not enforced: " + plan->mechanisms[static_cast<std::size_t>(*wall)].reason);
  return plan;
}

// What a grant's path names may have been replaced since: then new sessions get a new tree, the living keep theirs.
Result<bool> Manager::fresh(Domain& domain) {
  if (!domain.prepared) return false;
  if (sys::monotonic_us() - domain.checked_us < kRefreshUs) return true;
  confine::Closed closed;
  TRY_ASSIGN(const confine::Sources now, confine::resolve_sources(*domain.policy, &closed));
  // What no source shows may be mended by now.
  if (!same(now, domain.sources) || closed != domain.closed) return false;
  domain.checked_us = sys::monotonic_us();
  return true;
}

// Where nothing can be mounted a workspace's home is not where the policy has it, and /tmp is not for its temporary files. What
// the operator mounted for the container is the default workspace's: the others are tenants, and would meet there.
std::shared_ptr<const policy::Policy> Manager::in_place(const Workspace& workspace,
                                                        std::shared_ptr<const policy::Policy> policy) {
  const bool tenant = &workspace != default_;
  if (!workspace.in_place && !tenant) return policy;
  auto moved = std::make_shared<policy::Policy>(*policy);
  const auto shared = [&](const policy::Grant& g) { return g.mounted && (moved->weaken.erase("/grants" + g.path), true); };
  if (tenant && std::erase_if(moved->grants, shared) != 0) moved->digest = sha256_hex(json::dump(policy::to_json(*moved)));
  if (!workspace.in_place) return moved;
  moved->home_path = workspace.home_path;
  for (auto& [name, value] : moved->env.set)
    for (auto at = value.find(policy->home_path); at != std::string::npos;
         at = value.find(policy->home_path, at + workspace.home_path.size()))
      value.replace(at, policy->home_path.size(), workspace.home_path);
  for (const char* name : {"TMPDIR", "TMP", "TEMP"}) moved->env.set[name] = workspace.home_path + "/.tmp";
  return moved;
}

Task<Result<Domain*>> Manager::domain_in(Workspace& workspace, const std::string& name) {
  auto& made = &workspace == default_ ? domains_ : workspace.domains;
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
    const auto policy = there != made.end() ? there->second.policy : in_place(workspace, known->second.policy);
    CO_TRY_ASSIGN(Domain domain, co_await prepare_domain(workspace, policy));
    if (reloads != reloads_) continue;  // of a policy that is no more
    const Domain before = std::exchange(made[name], std::move(domain));
    for (auto& [id, entry] : entries_)
      if (before.prepared && entry->owner == 0 && entry->workspace == &workspace && entry->domain == name)
        entry->session->end("grants_changed");
    co_return &made[name];
  }
}

}  // namespace caisson::session
