#include "launcher/session/manager.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/filesystem_ids.h"
#include "launcher/base/hash.h"
#include "launcher/base/sys.h"
#include "launcher/confine/query.h"
#include "launcher/session/policies.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kLauncherSegment = 16ULL << 20;

}  // namespace

Result<std::unique_ptr<Manager>> Manager::create(Settings settings, Loop& loop) {
  std::unique_ptr<Manager> manager(new Manager(std::move(settings), loop));
  Manager* self = manager.get();
  Task<Status> prepared = manager->prepare();
  TRY(loop.run([&prepared] { return prepared.done(); }));
  TRY(prepared.take());
  loop.before_reap(self, [self] {
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

void Manager::begin(Task<Status> task) {
  (void)waiting_tasks();
  if (!task.done()) tasks_.push_back(std::move(task));
}

// They end in their own functions, and go from here.
std::size_t Manager::waiting_tasks() {
  std::erase_if(tasks_, [](const auto& task) { return task.done(); });
  return tasks_.size();
}

Task<Status> Manager::prepare() {
  policy::LoadResult loaded = co_await read_policies(loop_, settings_);
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems, nothing is started:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    co_return fail(Code::invalid_argument, text);
  }
  const audit::Tail before =
      audit::tail_of(sys::open(settings_.audit_dir + "/launcher.ndjson", O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  CO_TRY_ASSIGN(audit::Log log, audit::Log::create_rotated(settings_.audit_dir, "launcher", {kLauncherSegment, 0, true}));
  launcher_log_ = std::make_unique<audit::Log>(std::move(log));
  CO_TRY_ASSIGN(key_, settings_.attest_key.empty() ? attest::Key::generate() : attest::Key::load(settings_.attest_key));
  CO_TRY_ASSIGN(features_, co_await confine::ask_features(loop_));
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
  CO_TRY_ASSIGN(builder_, confine::Builder::open(settings_.init_path, settings_.run_dir));
  CO_TRY_ASSIGN(homes_, Homes::open(settings_.homes, settings_.audit_dir));
  if (features_.tier() == Tier::t0)  // what a launcher before us has left
    homes_->run(loop_, {"sweep", boot_tag()}, [](const Result<json::Value>& done) {
      if (!done) sys::say("caisson-launcher: homes of earlier workspaces are left: " + done.error().text());
    });

  struct stat home{};
  if (::stat(settings_.home.c_str(), &home) != 0) co_return sys_error("the workspace's home " + quote(settings_.home));
  const bool root = ::geteuid() == 0 && features_.change_uid.ok();  // not one that has no capability
  // The owner of the home is the user of the sessions, so that a mounted directory just works; never root.
  default_ = (workspaces_[kDefaultWorkspace] = std::make_unique<Workspace>(loop_)).get();
  default_->name = kDefaultWorkspace;
  default_->created_at = boot_time_;
  default_->home_path = settings_.home;
  default_->in_place = settings_.home_in_memory && (features_.tier() == Tier::t0 || features_.tier() == Tier::t1);
  default_->place.outer_uid = !root ? ::geteuid() : home.st_uid != 0 ? home.st_uid : kWorkspaceUid;
  default_->place.outer_gid = !root ? ::getegid() : home.st_gid != 0 ? home.st_gid : kWorkspaceUid;
  if (root && !features_.user_ns.ok()) {
    // T0: every session has its own uid; the workspace's group is what they share the home by.
    const auto open_home = [&] { return ::chmod(settings_.home.c_str(), (home.st_mode & 07777) | 02070) == 0; };
    const bool opened = open_home() || [&] {
      const FilesystemIds as_owner(home.st_uid, home.st_gid);  // as a launcher without CAP_FOWNER can
      return open_home();
    }();
    if (!opened) co_return sys_error("open the home to its group");
  }
  json::Value digests = json::Value::object();
  for (const auto& [name, p] : loaded.policies) digests[name] = p->digest;
  json::Value boot{{"version", CAISSON_VERSION},
                   {"boot", boot_id_},
                   {"previous", {{"count", before.count}, {"head", before.head}}},
                   {"attestation_key", key_->jwk()},
                   {"features", confine::features_json(features_)},
                   {"why_not_higher", confine::why_not_higher(features_)},
                   {"preset", settings_.preset},
                   {"policies_digest", policies_digest_ = sha256_hex(json::dump(digests))},
                   {"policies", digests}};
  CO_TRY(launcher_log_->append(audit::Event::boot, boot));
  start_auditor();
  tmp_limits_ = loaded.policies.begin()->second->limits;
  CO_TRY_ASSIGN(default_->place, co_await make_place(default_->place.outer_uid, default_->place.outer_gid, 0));
  Taken taken = co_await take(loaded);
  if (!taken.problems.empty()) co_return fail(Code::invalid_argument, taken.problems.front().text());
  domains_ = std::move(taken.domains);
  refuse(std::move(taken.refused));
  co_return Status();
}

void Manager::reload(const std::string& by, std::function<void(const Problems&)> done) {
  begin(reload_and_tell(by, std::move(done)));
}

Task<Status> Manager::reload_and_tell(std::string by, std::function<void(const Problems&)> done) {
  const Problems problems = co_await load_again(std::move(by));
  done(problems);
  co_return Status();
}

Task<Manager::Problems> Manager::load_again(std::string by) {
  if (std::exchange(reloading_, true))
    co_return Problems(1, policy::Problem{settings_.policy_dir, 0, "", "is being read for somebody else: try again", ""});
  policy::LoadResult loaded = co_await read_policies(loop_, settings_);
  json::Value digests = json::Value::object();
  for (const auto& [name, p] : loaded.policies) digests[name] = p->digest;
  Taken taken = co_await take(loaded);
  reloading_ = false;
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
  if (!loaded.problems.empty()) co_return std::move(loaded.problems);
  ++reloads_;
  domains_ = std::move(taken.domains);
  refuse(std::move(taken.refused));
  for (auto& [name, workspace] : workspaces_) workspace->domains.clear();
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0) entry->session->end("policy_reload");
  for (auto& [number, client] : clients_) client.connection->event({{"event", "policy_reload"}});
  for (const auto& [name, domain] : domains_)
    if (domain.prepared) refill_later(name);
  co_return Problems();
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

void Manager::shut_down(std::function<void()> done) {
  shut_down_ = [this, done = std::move(done)] {
    tasks_.clear();
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
