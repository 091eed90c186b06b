#include "launcher/session/manager.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/hash.h"
#include "launcher/base/sys.h"
#include "launcher/session/policies.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kSweepUs = 3'600'000'000, kSweepMoreUs = 1'000'000;
constexpr std::uint64_t kLauncherSegment = 16ULL << 20;
constexpr uid_t kWorkspaceUid = 20001;  // where the home belongs to root or is made by us

}  // namespace

Result<std::unique_ptr<Manager>> Manager::create(Settings settings, Loop& loop) {
  std::unique_ptr<Manager> manager(new Manager(std::move(settings), loop));
  TRY(manager->prepare());
  Manager* self = manager.get();
  loop.before_reap([self] {
    for (auto& [id, entry] : self->entries_)
      if (const State s = entry->session->state(); s == State::building || s == State::ending) entry->session->poll_status();
  });
  if (!manager->cgroups_) self->watchdog();
  self->watch_covers();
  for (const auto& [name, domain] : manager->domains_)
    if (domain.prepared) manager->refill_later(name);
  manager->sweep();
  return manager;
}

Status Manager::prepare() {
  policy::LoadResult loaded = read_policies(settings_.policy_dir, settings_.preset);
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems, nothing is started:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    return fail(Code::invalid_argument, text);
  }
  const audit::Tail before = audit::tail_of(settings_.audit_dir + "/launcher.ndjson");
  TRY_ASSIGN(audit::Log log, audit::Log::create_rotated(settings_.audit_dir, "launcher", {kLauncherSegment, 0, true}));
  launcher_log_ = std::make_unique<audit::Log>(std::move(log));
  store_.emplace(settings_.audit_dir, settings_.audit_max_bytes);
  TRY_ASSIGN(key_, settings_.attest_key.empty() ? attest::Key::generate() : attest::Key::load(settings_.attest_key));
  TRY_ASSIGN(features_, confine::ask_features());
  if (features_.cgroup.ok()) {
    auto root = confine::CgroupRoot::open(confine::CgroupRoot::look().path);
    if (root) {
      cgroups_ = std::make_unique<confine::CgroupRoot>(std::move(*root));
      if (!cgroups_->io()) features_.io.error = ENOTSUP;
    } else {
      // Said like any other missing mechanism, in probe, plan and reports; a policy that requires cgroup refuses.
      features_.cgroup = {root.error().sys != 0 ? root.error().sys : ENOTSUP, "cgroup v2"};
      features_.cgroup_reason = root.error().text();
    }
  }
  TRY_ASSIGN(builder_, confine::Builder::open(settings_.init_path, settings_.run_dir));
  if (!settings_.homes.empty()) {
    TRY_ASSIGN(homes_, Homes::open(settings_.homes));
  }

  struct stat home{};
  if (::stat(settings_.home.c_str(), &home) != 0) return sys_error("the workspace's home " + quote(settings_.home));
  const bool root = ::geteuid() == 0;
  // The owner of the home is the user of the sessions, so that a mounted directory just works; never root.
  default_ = (workspaces_[kDefaultWorkspace] = std::make_unique<Workspace>()).get();
  default_->name = kDefaultWorkspace;
  default_->created_at = boot_time_;
  default_->home_path = settings_.home;
  default_->place.outer_uid = !root ? ::geteuid() : home.st_uid != 0 ? home.st_uid : kWorkspaceUid;
  default_->place.outer_gid = !root ? ::getegid() : home.st_gid != 0 ? home.st_gid : kWorkspaceUid;
  if (root && !features_.user_ns.ok() && features_.change_uid.ok()) {
    // T0: every session has its own uid; the workspace's group is what they share the home by.
    if (::chmod(settings_.home.c_str(), (home.st_mode & 07777) | 02070) != 0) return sys_error("open the home to its group");
  }
  json::Value digests = json::Value::object();
  for (const auto& [name, p] : loaded.policies) digests[name] = p->digest;
  TRY(launcher_log_->append(audit::Event::boot, {{"version", CAISSON_VERSION},
                                                 {"boot", boot_id_},
                                                 {"previous", {{"count", before.count}, {"head", before.head}}},
                                                 {"attestation_key", key_->jwk()},
                                                 {"features", confine::features_json(features_)},
                                                 {"why_not_higher", confine::why_not_higher(features_)},
                                                 {"preset", settings_.preset},
                                                 {"policies_digest", policies_digest_ = sha256_hex(json::dump(digests))},
                                                 {"policies", digests}}));
  start_auditor();
  if (features_.user_ns.ok() && features_.mount_ns.ok()) {
    tmp_limits_ = loaded.policies.begin()->second->limits;
    TRY_ASSIGN(default_->place, make_place(default_->place.outer_uid, default_->place.outer_gid, 0));
  }
  Taken taken = take(loaded);
  if (!taken.problems.empty()) return fail(Code::invalid_argument, taken.problems.front().text());
  domains_ = std::move(taken.domains);
  refuse(std::move(taken.refused));
  return {};
}

std::vector<policy::Problem> Manager::reload(const std::string& by) {
  policy::LoadResult loaded = read_policies(settings_.policy_dir, settings_.preset);
  json::Value digests = json::Value::object();
  for (const auto& [name, p] : loaded.policies) digests[name] = p->digest;
  Taken taken = take(loaded);
  if (loaded.problems.empty()) loaded.problems = std::move(taken.problems);
  json::Value problems = json::Value::array();
  for (const auto& p : loaded.problems) problems.push_back(p.text());
  const std::string before = policies_digest_;
  if (loaded.problems.empty()) policies_digest_ = sha256_hex(json::dump(digests));
  record(audit::Event::policy_reload, {{"accepted", loaded.problems.empty()},
                                       {"by", by},
                                       {"preset", settings_.preset},
                                       {"old", before},
                                       {"new", policies_digest_},
                                       {"policies", digests},
                                       {"problems", problems}});
  if (!loaded.problems.empty()) return std::move(loaded.problems);
  domains_ = std::move(taken.domains);
  refuse(std::move(taken.refused));
  for (auto& [name, workspace] : workspaces_) workspace->domains.clear();
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0) entry->session->end("policy_reload");
  for (auto& [number, client] : clients_) client.connection->event({{"event", "policy_reload"}});
  for (const auto& [name, domain] : domains_)
    if (domain.prepared) refill_later(name);
  return {};
}

void Manager::refuse(std::map<std::string, std::string> domains) {
  refused_domains_ = std::move(domains);
  for (const auto& [name, why] : refused_domains_)
    sys::say("caisson-launcher: domain '" + name + "' starts no session here: " + why);
}

void Manager::record(audit::Event event, json::Value fields) {
  // What the disk does not take goes to stderr, whatever the policies say: it is the index of what they wrote themselves.
  if (const Status done = launcher_log_->append(event, fields); !done)
    sys::say("caisson-launcher: audit log: " + done.error().text());
}

// At the start, every hour, and when a sixteenth of the room has been written since.
void Manager::sweep() {
  std::uint64_t days = 1;
  for (const auto& [name, domain] : domains_) days = std::max(days, domain.policy->audit.keep_days);
  const auto running = [this](const std::string& id) { return entries_.contains(id); };
  const auto deleted = [this](json::Value fields) { record(audit::Event::log_deleted, std::move(fields)); };
  const bool done = store_->sweep({sys::realtime_ns(), days, running, deleted});
  sweep_full_ = std::max<std::uint64_t>(settings_.audit_max_bytes / 16, 1);
  loop_.cancel(sweep_timer_);
  sweep_timer_ = loop_.after(done ? kSweepUs : kSweepMoreUs, [this] { sweep(); });
}

void Manager::shut_down(std::function<void()> done) {
  shut_down_ = [this, done = std::move(done)] {
    workspaces_.clear();
    done();
  };
  for (auto& [id, entry] : entries_) entry->session->end("shutdown");
  // Not from inside a signal or an exit: others of the same round may still need a workspace.
  loop_.after(0, [this] {
    if (entries_.empty()) shut_down_();
  });
}

}  // namespace caisson::session
