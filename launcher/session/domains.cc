// Domains made ready: a policy's plan, template and canary, and when they have to be made anew.
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "launcher/base/sys.h"
#include "launcher/policy/words.h"
#include "launcher/session/canary_session.h"
#include "launcher/session/manager.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kRefreshUs = 1'000'000;

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

Manager::Taken Manager::take(const policy::LoadResult& loaded) {
  Taken out;
  for (const auto& [name, p] : loaded.policies) {
    Domain domain;
    domain.policy = p;
    Status done;
    if (in_use(name)) {
      auto prepared = prepare_domain(*default_, p);
      if (prepared) domain = std::move(*prepared);
      else done = std::unexpected(std::move(prepared).error());
    } else if (auto plan = plan_domain(*default_, domain); !plan) {
      done = std::unexpected(std::move(plan).error());
    }
    if (done) out.domains.emplace(name, std::move(domain));
    else if (done.error().code == Code::unavailable) out.refused[name] = done.error().what;  // min_tier, require[]
    else out.problems.push_back({settings_.policy_dir + "/" + name + ".json", 0, "", done.error().text(), ""});
  }
  return out;
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

Result<confine::ProbeResults> Manager::ask_canary(const Workspace& workspace, const confine::Template& prepared) {
  init::Targets targets{};
  targets.launcher = ::getpid();
  targets.port = settings_.port;
  const std::string outside = ungranted_file(*prepared.plan);
  if (outside.size() >= sizeof targets.outside) return fail(Code::invalid_argument, "path too long: " + quote(outside));
  std::memcpy(targets.outside, outside.c_str(), outside.size() + 1);
  TRY_ASSIGN(const uid_t uid, take_uid(workspace));
  auto results = run_canary(builder_, prepared, workspace.place, uid, targets, [&](const Fd& fd) {
    return denials_->watch("", fd, prepared.filter.refusals, prepared.plan->observe);
  });
  uids_.erase(uid);
  if (!results) return std::unexpected(std::move(results).error().wrap("canary session"));
  // As first process of a container we have a number that a process inside has, too: that one was asked.
  if (prepared.plan->pid_ns && targets.launcher <= static_cast<int>(init::kProbeCount) + 2)
    (*results)[static_cast<std::size_t>(init::Probe::kill_launcher)].error = confine::kNotAsked;
  // Fails closed: the domain is refused, and hello, probe and log say why.
  if (auto fault = confine::canary_fault(*prepared.plan, *results); fault && !confine::faults::blind())
    return fail(Code::unavailable, "policy '" + prepared.plan->policy->domain + "' is not enforced here: " + *fault);
  return *results;
}

Result<Domain> Manager::prepare_domain(const Workspace& workspace, std::shared_ptr<const policy::Policy> policy,
                                       const confine::ProbeResults* known, const confine::Workspace* own) {
  Domain domain;
  TRY_ASSIGN(domain.sources, confine::resolve_sources(*policy));
  domain.policy = std::move(policy);
  TRY_ASSIGN(const auto plan, plan_domain(workspace, domain, own != nullptr));
  TRY_ASSIGN(confine::Template prepared, builder_.make_template(plan, own != nullptr ? *own : workspace.place));
  domain.prepared = std::make_shared<const confine::Template>(std::move(prepared));
  if (known != nullptr) {
    domain.canary = *known;
  } else {
    TRY_ASSIGN(domain.canary, ask_canary(workspace, *domain.prepared));
  }
  domain.checked_us = sys::monotonic_us();
  return domain;
}

// alone: for a session with namespaces of its own.
Result<std::shared_ptr<const confine::Plan>> Manager::plan_domain(const Workspace& workspace, const Domain& domain, bool alone) {
  TRY_ASSIGN(confine::Sources sources, confine::resolve_sources(*domain.policy));
  const bool made = &workspace != default_;
  if (auto tools = confine::open_source(settings_.tools)) sources[settings_.tools] = *tools;
  confine::Place place{workspace.home_path, builder_.stage_dir, builder_.system_dir, settings_.init_path, {}, ""};
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
  if (const auto wall = missing_wall(*plan); wall && (made || alone))
    return fail(Code::unavailable, "policy '" + domain.policy->domain +
                                       "' does not keep sessions apart here: " + std::string(mechanism_name(*wall)) +
                                       " is not enforced: " + plan->mechanisms[static_cast<std::size_t>(*wall)].reason);
  return plan;
}

// What a grant's path names may have been replaced since: then new sessions get a new tree, the living keep theirs.
Status Manager::refresh(const Workspace& workspace, Domain& domain) {
  if (!domain.prepared) {
    TRY_ASSIGN(domain, prepare_domain(workspace, domain.policy));
    return {};
  }
  if (sys::monotonic_us() - domain.checked_us < kRefreshUs) return {};
  TRY_ASSIGN(const confine::Sources now, confine::resolve_sources(*domain.policy));
  domain.checked_us = sys::monotonic_us();
  if (same(now, domain.sources)) return {};
  TRY_ASSIGN(domain, prepare_domain(workspace, domain.policy));
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0 && entry->workspace == &workspace && entry->domain == domain.policy->domain)
      entry->session->end("grants_changed");
  return {};
}

Result<Domain*> Manager::domain_in(Workspace& workspace, const std::string& name) {
  if (const auto refused = refused_domains_.find(name); refused != refused_domains_.end())
    return fail(Code::unavailable, refused->second);
  const auto known = domains_.find(name);
  if (known == domains_.end()) return fail(Code::not_found, "no policy domain " + quote(name));
  auto& made = &workspace == default_ ? domains_ : workspace.domains;
  if (const auto it = made.find(name); it != made.end()) {
    TRY(refresh(workspace, it->second));
    return &it->second;
  }
  TRY_ASSIGN(Domain domain, prepare_domain(workspace, known->second.policy));
  return &made.emplace(name, std::move(domain)).first->second;
}

}  // namespace caisson::session
