#include "launcher/session/manager.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "launcher/base/hash.h"
#include "launcher/base/sys.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kLogRetryUs = 10'000'000;
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
  for (const auto& [name, domain] : manager->domains_)
    if (domain.prepared) manager->refill_later(name);
  return manager;
}

Status Manager::prepare() {
  policy::LoadResult loaded = policy::load_directory(settings_.policy_dir, {.only = "", .preset = settings_.preset});
  if (!loaded.problems.empty()) {
    std::string text = "the policies have problems, nothing is started:";
    for (const auto& p : loaded.problems) text += "\n  " + p.text();
    return fail(Code::invalid_argument, text);
  }
  TRY_ASSIGN(audit::Log log, audit::Log::create_rotated(settings_.audit_dir, "launcher"));
  launcher_log_ = std::make_unique<audit::Log>(std::move(log));
  TRY_ASSIGN(key_, settings_.attest_key.empty() ? attest::Key::generate() : attest::Key::load(settings_.attest_key));
  features_ = confine::probe_features();
  if (features_.cgroup.ok()) {
    auto root = confine::CgroupRoot::open(confine::CgroupRoot::look().path);
    if (root) cgroups_ = std::make_unique<confine::CgroupRoot>(std::move(*root));
    else {
      // Said like any other missing mechanism, in probe, plan and reports; a policy that requires cgroup refuses.
      features_.cgroup = {root.error().sys != 0 ? root.error().sys : ENOTSUP, "cgroup v2"};
      features_.cgroup_reason = root.error().text();
    }
  }
  TRY_ASSIGN(builder_, confine::Builder::open(settings_.init_path, settings_.run_dir));

  struct stat home{};
  if (::stat(settings_.home.c_str(), &home) != 0) return sys_error("the workspace's home " + quote(settings_.home));
  const bool root = ::geteuid() == 0;
  // The owner of the home is the user of the sessions, so that a mounted directory just works; never root.
  workspace_.outer_uid = !root ? ::geteuid() : home.st_uid != 0 ? home.st_uid : kWorkspaceUid;
  workspace_.outer_gid = !root ? ::getegid() : home.st_gid != 0 ? home.st_gid : kWorkspaceUid;
  if (root && !features_.user_ns.ok() && features_.change_uid.ok()) {
    // T0: every session has its own uid; the workspace's group is what they share the home by.
    if (::chmod(settings_.home.c_str(), (home.st_mode & 07777) | 02070) != 0) return sys_error("open the home to its group");
  }
  json::Value digests = json::Value::object();
  for (const auto& [name, p] : loaded.policies) digests[name] = p->digest;
  TRY(launcher_log_->append(audit::Event::boot, {{"version", CAISSON_VERSION},
                                                 {"boot", boot_id_},
                                                 {"attestation_key", key_->jwk()},
                                                 {"features", confine::features_json(features_)},
                                                 {"why_not_higher", confine::why_not_higher(features_)},
                                                 {"preset", settings_.preset},
                                                 {"policies_digest", policies_digest_ = sha256_hex(json::dump(digests))},
                                                 {"policies", digests}}));
  if (features_.user_ns.ok() && features_.mount_ns.ok()) {
    confine::Plan plan;
    plan.policy = loaded.policies.begin()->second;
    plan.user_ns = true;
    plan.net_ns = features_.net_ns.ok();
    plan.private_tmp_options =
        "size=" + std::to_string(plan.policy->limits.tmp_bytes) + ",nr_inodes=" + std::to_string(plan.policy->limits.tmp_inodes);
    TRY_ASSIGN(workspace_, builder_.make_workspace(plan, workspace_.outer_uid, workspace_.outer_gid));
  }
  Taken taken = take(loaded);
  if (!taken.problems.empty()) return fail(Code::invalid_argument, taken.problems.front().text());
  domains_ = std::move(taken.domains);
  refused_domains_ = std::move(taken.refused);
  return {};
}

std::vector<policy::Problem> Manager::reload(const std::string& by) {
  policy::LoadResult loaded = policy::load_directory(settings_.policy_dir, {.only = "", .preset = settings_.preset});
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
  refused_domains_ = std::move(taken.refused);
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0) entry->session->end("policy_reload");
  for (const auto& [name, domain] : domains_)
    if (domain.prepared) refill_later(name);
  return {};
}

void Manager::record(audit::Event event, json::Value fields) {
  // A launcher's log that cannot be written is said on stderr; sessions are refused by their own logs on the same disk.
  if (launcher_log_->poisoned() && sys::monotonic_us() - log_retry_us_ > kLogRetryUs) {
    log_retry_us_ = sys::monotonic_us();
    // The disk was full. There may be room again: a new log, whose first record says that one before it broke off.
    auto again = audit::Log::create_rotated(settings_.audit_dir, "launcher");
    if (again && again->append(audit::Event::boot, {{"version", CAISSON_VERSION}, {"after_write_error", true}}))
      *launcher_log_ = std::move(*again);
  }
  if (const Status done = launcher_log_->append(event, fields); !done)
    std::fprintf(stderr, "caisson-launcher: audit log: %s\n", done.error().text().c_str());
}

void Manager::shut_down(std::function<void()> done) {
  shut_down_ = std::move(done);
  if (entries_.empty()) return shut_down_();
  std::vector<Session*> all;
  for (auto& [id, entry] : entries_) all.push_back(entry->session.get());
  for (Session* session : all) session->end("shutdown");
}

}  // namespace caisson::session
