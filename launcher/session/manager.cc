#include "launcher/session/manager.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "launcher/base/sys.h"
#include "launcher/session/canary_session.h"
#include "launcher/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kWatchdogUs = 500'000;
constexpr std::int64_t kRefreshUs = 1'000'000;
constexpr std::int64_t kLogRetryUs = 10'000'000;
constexpr std::int64_t kRefillDelayUs = 3'000;
constexpr uid_t kFirstUid = 21000, kLastUid = 29999;  // T0: one for each living session; never the workspace's
constexpr uid_t kWorkspaceUid = 20001;                // where the home belongs to root or is made by us

bool same(const confine::Sources& a, const confine::Sources& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.present == y.second.present && x.second.dev == y.second.dev &&
           x.second.ino == y.second.ino;
  });
}

// What a session used, for its last record. What the kernel does not measure is absent, not 0.
json::Value used(const confine::CgroupStats& stats) {
  json::Value fields{{"cpu_us", stats.cpu_us},  // also of those that init never waited for
                     {"memory_peak_bytes", stats.memory_peak},
                     {"oom_kills", stats.oom_kills},
                     {"forks_refused", stats.pids_refused}};
  if (stats.pids_peak) fields["processes_peak"] = *stats.pids_peak;
  const confine::Pressure& p = stats.pressure;
  for (const auto& [name, us] : {std::pair("memory_us", p.memory_us), std::pair("cpu_us", p.cpu_us), std::pair("io_us", p.io_us)})
    if (us) fields["pressure"][name] = *us;
  return fields;
}

}  // namespace

Result<std::unique_ptr<Manager>> Manager::create(Settings settings, Loop& loop) {
  std::unique_ptr<Manager> manager(new Manager(std::move(settings), loop));
  TRY(manager->prepare());
  Manager* self = manager.get();
  loop.before_reap([self] {
    for (auto& [id, entry] : self->entries_)
      if (const State s = entry->session->state(); s == State::building || s == State::ending) entry->session->poll_status();
  });
  if (!manager->cgroups_) loop.after(kWatchdogUs, [self] { self->watchdog(); });
  for (const auto& [name, domain] : manager->domains_) manager->refill_later(name);
  return manager;
}

Status Manager::prepare() {
  policy::LoadResult loaded = policy::load_directory(settings_.policy_dir);
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
                                                 {"policies", digests}}));
  start_auditor();
  if (features_.user_ns.ok() && features_.mount_ns.ok()) {
    confine::Plan plan;
    plan.policy = loaded.policies.begin()->second;
    plan.user_ns = true;
    plan.net_ns = features_.net_ns.ok();
    plan.private_tmp_options =
        "size=" + std::to_string(plan.policy->limits.tmp_bytes) + ",nr_inodes=" + std::to_string(plan.policy->limits.tmp_inodes);
    TRY_ASSIGN(workspace_, builder_.make_workspace(plan, workspace_.outer_uid, workspace_.outer_gid));
  }
  for (const auto& [name, p] : loaded.policies) {
    auto domain = prepare_domain(p);
    if (domain) domains_.emplace(name, std::move(*domain));
    else if (domain.error().code == Code::unavailable) refused_domains_[name] = domain.error().what;  // min_tier, require[]
    else return std::unexpected(std::move(domain).error().wrap("policy '" + name + "'"));
  }
  return {};
}

// A file that everybody may read outside and that no grant covers: only the walls that a session has stand before it.
std::string Manager::ungranted_file(const confine::Plan& plan) const {
  const auto below = [](const std::string& path, const std::string& top) { return (path + "/").starts_with(top + "/"); };
  for (const std::string& path : {settings_.policy_dir + "/base.json", std::string("/var/lib/dpkg/status")}) {
    const bool granted = below(path, "/tmp") || below(path, settings_.home) ||
                         std::ranges::any_of(plan.policy->grants, [&](const auto& g) { return below(path, g.source); });
    if (!granted && ::access(path.c_str(), R_OK) == 0) return path;
  }
  return "/root";
}

Result<confine::ProbeResults> Manager::ask_canary(const confine::Template& prepared) {
  init::Targets targets{};
  targets.launcher = ::getpid();
  targets.port = settings_.port;
  const std::string outside = ungranted_file(*prepared.plan);
  if (outside.size() >= sizeof targets.outside) return fail(Code::invalid_argument, "path too long: " + quote(outside));
  std::memcpy(targets.outside, outside.c_str(), outside.size() + 1);
  TRY_ASSIGN(const uid_t uid, take_uid());
  auto results = run_canary(builder_, prepared, workspace_, uid, targets,
                            [&](const Fd& listener) { return denials_->watch("", listener, prepared.refusals); });
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

Result<Manager::Domain> Manager::prepare_domain(std::shared_ptr<const policy::Policy> policy,
                                                const confine::ProbeResults* known) {
  Domain domain;
  TRY_ASSIGN(domain.sources, confine::resolve_sources(*policy));
  confine::Sources with_home = domain.sources;
  struct stat st{};
  if (::stat(settings_.home.c_str(), &st) != 0) return sys_error("home " + quote(settings_.home));
  with_home[settings_.home] = {true, S_ISDIR(st.st_mode), st.st_dev, st.st_ino};
  TRY_ASSIGN(auto plan,
             confine::make_plan(policy, features_, with_home, {settings_.home, builder_.stage_dir, settings_.init_path}));
  TRY_ASSIGN(confine::Template prepared, builder_.make_template(plan, workspace_));
  domain.prepared = std::make_shared<const confine::Template>(std::move(prepared));
  if (known != nullptr) {
    domain.canary = *known;
  } else {
    TRY_ASSIGN(domain.canary, ask_canary(*domain.prepared));
  }
  domain.policy = std::move(policy);
  domain.checked_us = sys::monotonic_us();
  return domain;
}

// What a grant's path names may have been replaced since: then new sessions get a new tree, the living keep theirs.
Status Manager::refresh(Domain& domain) {
  if (sys::monotonic_us() - domain.checked_us < kRefreshUs) return {};
  TRY_ASSIGN(const confine::Sources now, confine::resolve_sources(*domain.policy));
  domain.checked_us = sys::monotonic_us();
  if (same(now, domain.sources)) return {};
  TRY_ASSIGN(domain, prepare_domain(domain.policy));
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0 && entry->domain == domain.policy->domain) entry->session->end("grants_changed");
  return {};
}

std::vector<policy::Problem> Manager::reload() {
  policy::LoadResult loaded = policy::load_directory(settings_.policy_dir);
  json::Value digests = json::Value::object();
  std::map<std::string, Domain> fresh;
  std::map<std::string, std::string> refused;
  for (const auto& [name, p] : loaded.policies) {
    digests[name] = p->digest;
    auto domain = prepare_domain(p);
    if (domain) fresh.emplace(name, std::move(*domain));
    else if (domain.error().code == Code::unavailable) refused[name] = domain.error().what;
    else loaded.problems.push_back({settings_.policy_dir + "/" + name + ".json", 0, "", domain.error().text(), ""});
  }
  json::Value problems = json::Value::array();
  for (const auto& p : loaded.problems) problems.push_back(p.text());
  record(audit::Event::policy_reload, {{"accepted", loaded.problems.empty()}, {"policies", digests}, {"problems", problems}});
  if (!loaded.problems.empty()) return std::move(loaded.problems);
  domains_ = std::move(fresh);
  refused_domains_ = std::move(refused);
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0) entry->session->end("policy_reload");
  for (const auto& [name, domain] : domains_) refill_later(name);
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

Result<uid_t> Manager::take_uid() {
  if (features_.user_ns.ok() || !features_.change_uid.ok()) return workspace_.outer_uid;
  for (uid_t uid = kFirstUid; uid <= kLastUid; ++uid)
    if (uids_.insert(uid).second) return uid;
  return fail(Code::limit, "no free uid for a session");
}

Result<Manager::Entry*> Manager::start(const std::string& domain, std::shared_ptr<const confine::Template> prepared) {
  const auto given = std::ranges::count_if(entries_, [](const auto& e) { return e.second->owner != 0; });
  if (static_cast<std::size_t>(given) >= settings_.max_sessions)
    return fail(Code::limit, "more than " + std::to_string(settings_.max_sessions) + " sessions");
  const std::string id = "s-" + sys::random_hex(8);
  std::optional<confine::Cgroup> cgroup;
  if (cgroups_ && prepared->plan->cgroup) {
    TRY_ASSIGN(cgroup, cgroups_->make(id, prepared->plan->policy->limits));
  }
  TRY_ASSIGN(const uid_t uid, take_uid());
  Events events;
  events.listener = [this](Session& s, const Fd& fd, const std::string& refusals) {
    return denials_->watch(s.id(), fd, refusals);
  };
  events.built = [this](Session& s, Status status) { on_built(s, std::move(status)); };
  events.exec_started = [this](Session& s, Exec& e, int pid) { on_started(s, e, pid); };
  events.exec_failed = [this](Session& s, Exec& e, const Error& error, const std::string& step) { on_failed(s, e, error, step); };
  events.exec_exited = [this](Session& s, Exec& e, const init::Reply& reply) { on_exited(s, e, reply); };
  events.ended = [this](Session& s) { on_ended(s); };
  auto session = Session::start(id, std::move(prepared), builder_, workspace_, uid, std::move(cgroup), loop_, std::move(events));
  if (!session) {
    uids_.erase(uid);
    return std::unexpected(std::move(session).error());
  }
  auto entry = std::make_unique<Entry>();
  entry->session = std::move(*session);
  entry->domain = domain;
  return entries_.emplace(id, std::move(entry)).first->second.get();
}

Manager::Entry* Manager::ready_entry(const std::string& domain) {
  for (auto& [id, entry] : entries_)
    if (entry->owner == 0 && entry->domain == domain && entry->session->state() == State::idle) return entry.get();
  return nullptr;
}

void Manager::refill_later(const std::string& domain) {
  if (settings_.ready_sessions == 0 || shut_down_) return;
  refill_.insert(domain);
  if (refill_scheduled_) return;
  refill_scheduled_ = true;
  loop_.after(kRefillDelayUs, [this] {
    refill_scheduled_ = false;
    refill();
  });
}

// One session a turn, so that requests come in between.
void Manager::refill() {
  while (!refill_.empty() && !shut_down_) {
    const std::string name = *refill_.begin();
    const auto ready =
        std::ranges::count_if(entries_, [&name](const auto& e) { return e.second->owner == 0 && e.second->domain == name; });
    const auto domain = domains_.find(name);
    if (domain == domains_.end() || domain->second.prepared->plan->single_use ||
        static_cast<std::size_t>(ready) >= settings_.ready_sessions) {
      refill_.erase(name);
      continue;
    }
    // Nobody waits for it: a failure shows when somebody asks.
    if (!start(name, domain->second.prepared)) refill_.erase(name);
    else refill_later(name);
    return;
  }
}

Status Manager::assign(Entry& entry) {
  Session& session = *entry.session;
  TRY_ASSIGN(audit::Log log, audit::Log::create(settings_.audit_dir, session.id()));
  entry.log = std::make_unique<audit::Log>(std::move(log));
  entry.created_at = sys::rfc3339(sys::realtime_ns());
  if (Status written = entry.log->append(audit::Event::session_request, entry.request); !written) {
    // Not even one record: an empty file would only look like a log that somebody emptied.
    (void)::unlink((settings_.audit_dir + "/" + session.id() + ".ndjson").c_str());
    return written;
  }
  if (session.state() == State::idle) TRY(entry.log->append(audit::Event::session_start, {{"report", session.report()}}));
  return {};
}

void Manager::on_built(Session& session, Status status) {
  const auto it = entries_.find(session.id());
  if (it == entries_.end()) return;
  Entry& entry = *it->second;
  if (entry.owner == 0) {
    if (!status)
      record(audit::Event::session_refused,
             {{"session", session.id()}, {"domain", entry.domain}, {"what", status.error().text()}, {"ready", true}});
    return;
  }
  // Answered already: there is no log for it, perhaps not even a file, and it ends.
  if (entry.create_id == 0) return;
  if (status) status = entry.log->append(audit::Event::session_start, {{"report", session.report()}});
  else (void)entry.log->append(audit::Event::session_refused, {{"what", status.error().text()}});
  ipc::Connection* client = connection(entry.owner);
  const std::int64_t id = std::exchange(entry.create_id, 0);
  if (!status) {
    if (client != nullptr) client->reply_error(id, status.error(), "confine");
    session.end("refused");
    return;
  }
  session.run();
  if (client != nullptr) client->reply(id, {{"session", session.id()}, {"tier", tier_name(session.plan().tier)}});
}

void Manager::on_started(Session& session, Exec& exec, int pid) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = std::exchange(entry.exec_ids[exec.request.id], 0);
  if (!entry.log->append(audit::Event::exec_start, {{"exec", exec.label}, {"pid", pid}})) session.end("audit_failed");
  if (ipc::Connection* client = connection(entry.owner))
    client->reply(id, {{"exec", exec.label}, {"pid", pid}, {"stdio", exec.pty ? "pty" : "pipes"}}, std::move(exec.ends));
}

void Manager::on_failed(Session& session, Exec& exec, const Error& error, const std::string& step) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = std::exchange(entry.exec_ids[exec.request.id], 0);
  entry.exec_ids.erase(exec.request.id);
  (void)entry.log->append(audit::Event::exec_refused, {{"exec", exec.label}, {"step", step}, {"what", error.text()}});
  if (ipc::Connection* client = connection(entry.owner)) client->reply_error(id, error, step);
}

std::string Manager::exit_reason(const Session& session, const Exec& exec, const init::Reply& reply) const {
  const bool ending = exec.reason == "session_end";
  if (ending && (session.end_reason() == "memory" || session.end_reason() == "oom")) return "oom";
  if (!exec.reason.empty()) return exec.reason;
  return reply.signaled != 0 ? "signal" : "exit";
}

void Manager::on_exited(Session& session, Exec& exec, const init::Reply& reply) {
  Entry& entry = *entries_.at(session.id());
  entry.exec_ids.erase(exec.request.id);
  json::Value fields{
      {"exec", exec.label},
      {"reason", exit_reason(session, exec, reply)},
      {"rusage", {{"user_us", reply.user_us}, {"sys_us", reply.system_us}, {"max_rss_bytes", reply.max_rss_bytes}}},
      {"wall_us", sys::monotonic_us() - exec.begin_us}};
  if (reply.signaled != 0) {
    const char* name = ::sigabbrev_np(reply.status);
    fields["signal"] = name != nullptr ? std::string("SIG") + name : "SIG" + std::to_string(reply.status);
    if (reply.status == SIGXCPU || reply.status == SIGXFSZ) {
      fields["limit"] = reply.status == SIGXCPU ? "cpu_seconds" : "file_size_bytes";
      (void)entry.log->append(audit::Event::limit_hit, {{"limit", fields["limit"]}, {"exec", exec.label}, {"by", "rlimit"}});
    }
  } else {
    fields["exit_code"] = reply.status & 255;
  }
  if (!entry.log->append(audit::Event::exec_exit, fields)) session.end("audit_failed");
  fields["event"] = "exec_exit";
  fields["session"] = session.id();
  if (ipc::Connection* client = connection(entry.owner)) client->event(std::move(fields));
}

void Manager::on_ended(Session& session) {
  const std::string id = session.id();
  loop_.cancel(entries_.at(id)->life);
  // What the auditor still has about it comes before its last record.
  if (!denials_ || !denials_->release(id, [this, id] { finish(id); })) finish(id);
}

void Manager::finish(const std::string& id) {
  Entry& entry = *entries_.at(id);
  const Session& session = *entry.session;
  if (entry.log) {
    // The last record; a log that could not be written is the reason why the session ended and is in the index.
    const Totals& totals = session.totals();
    json::Value fields{{"reason", session.end_reason()}, {"execs", totals.execs}, {"cpu_us", totals.cpu_us}};
    if (!entry.denials.is_null()) fields["denials"] = entry.denials;
    if (!entry.destroy_reason.empty()) fields["asked_because"] = entry.destroy_reason;
    if (totals.cgroup) {
      if (totals.cgroup->oom_kills > 0)
        (void)entry.log->append(audit::Event::limit_hit,
                                {{"limit", "memory"}, {"memory_bytes", totals.cgroup->memory_peak}, {"by", "cgroup"}});
      if (totals.cgroup->pids_refused > 0)
        (void)entry.log->append(audit::Event::limit_hit,
                                {{"limit", "processes"}, {"forks_refused", totals.cgroup->pids_refused}, {"by", "cgroup"}});
      fields.update(used(*totals.cgroup));
      if (totals.cgroup_left) fields["cgroup_left"] = true;
    }
    (void)entry.log->append(audit::Event::session_end, fields);
    record(audit::Event::session_end, {{"session", id},
                                       {"file", id + ".ndjson"},
                                       {"count", entry.log->count()},
                                       {"head", entry.log->head()},
                                       {"reason", session.end_reason()}});
  }
  if (ipc::Connection* client = connection(entry.owner))
    client->event({{"event", "session_end"}, {"session", id}, {"reason", session.end_reason()}});
  for (const auto& [number, request] : entry.destroyers)
    if (ipc::Connection* client = connection(number)) client->reply(request, json::Value::object());
  if (session.uid() != workspace_.outer_uid) uids_.erase(session.uid());
  // Not from inside the session's own function.
  loop_.after(0, [this, id] {
    entries_.erase(id);
    if (shut_down_ && entries_.empty()) shut_down_();
  });
}

// One pass over /proc serves everybody for ten times as long as it took: however often a client asks, a tenth of the
// launcher's time goes to it.
const ProcessTree& Manager::processes() const {
  if (const std::int64_t begin = sys::monotonic_us(); begin > tree_until_us_) {
    tree_ = ProcessTree::read();
    const std::int64_t end = sys::monotonic_us();
    tree_until_us_ = end + 10 * (end - begin);
  }
  return tree_;
}

// Stands in for the cgroup: counts what a session really uses and ends it when it is over.
void Manager::watchdog() {
  loop_.after(kWatchdogUs, [this] { watchdog(); });
  if (std::ranges::none_of(entries_, [](const auto& e) { return e.second->session->state() == State::running; })) return;
  const ProcessTree& tree = processes();
  for (auto& [id, entry] : entries_) {
    Session& session = *entry->session;
    if (session.state() != State::running) continue;
    Usage usage = tree.usage(session.pid());
    const policy::Limits& limits = session.policy().limits;
    if (usage.memory_bytes > limits.memory_bytes) usage.memory_bytes = tree.proportional_bytes(session.pid());
    const char* limit = usage.memory_bytes > limits.memory_bytes ? "memory"
                        : usage.processes > limits.processes     ? "processes"
                                                                 : nullptr;
    if (limit == nullptr) continue;
    (void)entry->log->append(
        audit::Event::limit_hit,
        {{"limit", limit}, {"processes", usage.processes}, {"memory_bytes", usage.memory_bytes}, {"by", "watchdog"}});
    session.end(limit);
  }
}

void Manager::shut_down(std::function<void()> done) {
  shut_down_ = std::move(done);
  if (entries_.empty()) return shut_down_();
  std::vector<Session*> all;
  for (auto& [id, entry] : entries_) all.push_back(entry->session.get());
  for (Session* session : all) session->end("shutdown");
}

}  // namespace caisson::session
