// The life of sessions: started, kept ready, given away, ended.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "launcher/attest/base64url.h"
#include "launcher/base/session_id.h"
#include "launcher/base/sys.h"
#include "launcher/session/manager.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kRefillDelayUs = 3'000;
constexpr uid_t kFirstSessionUid = 21000, kSessionUids = 9000;  // T0: one for each living session; never the workspace's

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

// The request that waits for this command, or 0: it was answered when the command was put on record, or could not be.
std::int64_t take_waiting(std::map<std::uint32_t, std::int64_t>& waiting, const Exec& exec) {
  const auto node = waiting.extract(exec.request.id);
  return node ? node.mapped() : 0;
}

}  // namespace

Result<uid_t> Manager::take_uid(const Workspace& workspace) {
  if (features_.user_ns.ok() || !features_.change_uid.ok() || &workspace != default_) return workspace.place.outer_uid;
  // Not from the first: what sessions of an earlier launcher have left is most likely none of these.
  static const auto offset = static_cast<uid_t>(std::stoul(boot_id_.substr(0, 6), nullptr, 16));
  if (given_uids_ < kSessionUids) return kFirstSessionUid + (offset + given_uids_++) % kSessionUids;
  if (free_uids_.empty()) return fail(Code::limit, "no free uid for a session");
  const uid_t uid = free_uids_.front();
  free_uids_.pop_front();
  return uid;
}

void Manager::free_uid(uid_t uid) {
  if (uid >= kFirstSessionUid && uid < kFirstSessionUid + kSessionUids) free_uids_.push_back(uid);
}

Result<Manager::Entry*> Manager::start(Workspace& workspace, const std::string& domain,
                                       std::shared_ptr<const confine::Template> prepared, const confine::Workspace& place) {
  if (shut_down_) return fail(Code::unavailable, "the launcher is ending");
  const auto given = std::ranges::count_if(entries_, [](const auto& e) { return e.second->owner != 0; });
  if (static_cast<std::size_t>(given) >= settings_.max_sessions)
    return fail(Code::limit, "more than " + std::to_string(settings_.max_sessions) + " sessions");
  // Sorts by time, which is all that the audit directory is ordered by.
  const auto second = static_cast<std::uint64_t>(sys::realtime_ns() / 1'000'000'000);
  const std::string id = session_id(second << 32 | std::stoul(sys::random_hex(4), nullptr, 16));
  std::optional<confine::Cgroup> cgroup;
  if (cgroups_ && prepared->plan->cgroup) {
    TRY_ASSIGN(cgroup, cgroups_->make(id, prepared->plan->policy->limits, prepared->plan->disks,
                                      workspace.cgroup ? &*workspace.cgroup : nullptr));
  }
  TRY_ASSIGN(const uid_t uid, take_uid(workspace));
  Events events;
  events.listener = [this](Session& s, const Fd& fd, const std::string& refusals) {
    return denials_->watch(s.id(), fd, refusals, s.plan().observe);
  };
  events.built = [this](Session& s, Status status) { on_built(s, std::move(status)); };
  events.exec_started = [this](Session& s, Exec& e, int pid) { on_started(s, e, pid); };
  events.exec_failed = [this](Session& s, Exec& e, const Error& error, const std::string& step) { on_failed(s, e, error, step); };
  events.exec_exited = [this](Session& s, Exec& e, const init::Reply& reply) { on_exited(s, e, reply); };
  events.ended = [this](Session& s) { on_ended(s); };
  auto session = Session::start(id, std::move(prepared), builder_, place, uid, std::move(cgroup), loop_, std::move(events));
  if (!session) {
    free_uid(uid);
    return std::unexpected(std::move(session).error());
  }
  auto entry = std::make_unique<Entry>();
  entry->session = std::move(*session);
  entry->domain = domain;
  entry->workspace = &workspace;
  return entries_.emplace(id, std::move(entry)).first->second.get();
}

Manager::Entry* Manager::ready_entry(const std::string& domain) {
  for (auto& [id, entry] : entries_)
    // Without PID namespaces others of its uid may have killed it a moment ago.
    if (entry->owner == 0 && entry->domain == domain && entry->session->state() == State::idle &&
        entry->session->check_covers() && (entry->session->plan().pid_ns || !sys::exiting(entry->session->pid())))
      return entry.get();
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
  while (!refill_.empty()) {
    const std::string name = *refill_.begin();
    const auto ready =
        std::ranges::count_if(entries_, [&name](const auto& e) { return e.second->owner == 0 && e.second->domain == name; });
    const auto domain = domains_.find(name);
    if (domain == domains_.end() || !domain->second.prepared || domain->second.prepared->plan->single_use ||
        !domain->second.prepared->plan->protect.empty() ||  // what is there is looked for when somebody comes
        static_cast<std::size_t>(ready) >= settings_.ready_sessions) {
      refill_.erase(name);
      continue;
    }
    // Nobody waits for it: a failure shows when somebody asks.
    if (!start(*default_, name, domain->second.prepared, default_->place)) refill_.erase(name);
    else refill_later(name);
    return;
  }
}

Status Manager::assign(Entry& entry) {
  Session& session = *entry.session;
  const policy::Audit& rules = session.policy().audit;
  const auto bounds = audit::bounded(rules.max_bytes, rules.on_full == policy::OnFull::stderr_);
  TRY_ASSIGN(audit::Log log, audit::Log::create(settings_.audit_dir, session.id(), bounds));
  entry.log = std::make_unique<audit::Log>(std::move(log));
  entry.created_at = sys::rfc3339(sys::realtime_ns());
  if (Status written = entry.log->append(audit::Event::session_request, entry.request); !written) {
    // Not even one record: an empty file would only look like a log that somebody emptied.
    (void)::unlink((settings_.audit_dir + "/" + session.id() + ".ndjson").c_str());
    entry.log.reset();
    return written;
  }
  const std::uint64_t number = session_number(session.id());
  logs_.insert(std::ranges::lower_bound(logs_, number), number);
  if (session.state() != State::idle) return {};
  return entry.log->append_prepared(audit::Event::session_start, std::exchange(entry.start, {}));
}

void Manager::on_built(Session& session, Status status) {
  const auto it = entries_.find(session.id());
  if (it == entries_.end()) return;
  Entry& entry = *it->second;
  if (status) entry.start = audit::Log::prepare({{"report", session.report()}});
  // What its tree is mounted on may have been moved, by somebody who can: the next session gets a new one.
  auto& made = entry.workspace == default_ ? domains_ : entry.workspace->domains;
  if (const auto of = made.find(entry.domain); !status && of != made.end()) of->second.sources.clear(), of->second.checked_us = 0;
  if (entry.owner == 0) {
    if (!status)
      record(audit::Event::session_refused,
             {{"session", session.id()}, {"domain", entry.domain}, {"what", status.error().text()}, {"ready", true}});
    return;
  }
  // Answered already: there is no log for it, perhaps not even a file, and it ends.
  if (entry.create_id == 0) return;
  if (status) status = runs(*entry.workspace);  // paused meanwhile: nobody has stopped this one
  if (status) status = entry.log->append_prepared(audit::Event::session_start, std::exchange(entry.start, {}));
  else (void)entry.log->append(audit::Event::session_refused, {{"what", status.error().text()}});
  ipc::Connection* client = connection(entry.owner);
  const std::int64_t id = std::exchange(entry.create_id, 0);
  if (!status) {
    if (client != nullptr) client->reply_error(id, status.error(), "confine");
    session.end("refused");
    return;
  }
  session.run();
  if (client != nullptr) client->reply(id, session.created());
}

void Manager::on_started(Session& session, Exec& exec, int pid) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = take_waiting(entry.exec_ids, exec);
  if (!entry.log->append(audit::Event::exec_start, {{"exec", exec.label}, {"pid", pid}})) session.end("audit_failed");
  keep_ends(entry, exec);
  if (ipc::Connection* client = connection(entry.owner); client != nullptr && id != 0)
    client->reply(id, {{"exec", exec.label}, {"pid", pid}, {"stdio", exec.pty ? "pty" : "pipes"}}, std::move(exec.ends));
}

void Manager::on_failed(Session& session, Exec& exec, const Error& error, const std::string& step) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = take_waiting(entry.exec_ids, exec);
  (void)entry.log->append(audit::Event::exec_refused, {{"exec", exec.label}, {"step", step}, {"what", error.text()}});
  if (ipc::Connection* client = connection(entry.owner); client != nullptr && id != 0) client->reply_error(id, error, step);
}

void Manager::on_exited(Session& session, Exec& exec, const init::Reply& reply) {
  Entry& entry = *entries_.at(session.id());
  const bool starved = exec.reason == "session_end" && (session.end_reason() == "memory" || session.end_reason() == "oom");
  const std::string by_itself = reply.signaled != 0 ? "signal" : "exit";
  json::Value fields{
      {"exec", exec.label},
      {"reason", starved               ? "oom"
                 : exec.reason.empty() ? by_itself
                                       : exec.reason},
      {"rusage", {{"user_us", reply.user_us}, {"sys_us", reply.system_us}, {"max_rss_bytes", reply.max_rss_bytes}}},
      {"wall_us", sys::monotonic_us() - exec.begin_us}};
  if (reply.signaled != 0) {
    const char* name = ::sigabbrev_np(reply.status);
    fields["signal"] = name != nullptr ? std::string("SIG") + name : "SIG" + std::to_string(reply.status);
    if (reply.status == SIGXCPU || reply.status == SIGXFSZ) {
      const policy::Limits& limits = session.policy().limits;
      fields["limit"] = reply.status == SIGXCPU ? "cpu_seconds" : "file_size_bytes";
      fields["allowed"] = reply.status == SIGXCPU ? limits.cpu_seconds : limits.file_size_bytes;
      (void)entry.log->append(audit::Event::limit_hit, {{"limit", fields["limit"]}, {"exec", exec.label}, {"by", "rlimit"}});
    }
  } else {
    fields["exit_code"] = reply.status & 255;
  }
  if (!entry.log->append(audit::Event::exec_exit, fields)) session.end("audit_failed");
  if (session.state() == State::ending) {
    fields["session_reason"] = session.end_reason();
    fields["hit"] = session.end_hit();
  }
  fields["event"] = "exec_exit";
  fields["session"] = session.id();
  if (const auto kept = entry.kept.find(exec.label); kept != entry.kept.end()) kept->second.exit = fields;
  if (ipc::Connection* client = connection(entry.owner)) client->event(std::move(fields));
}

void Manager::on_ended(Session& session) {
  const std::string id = session.id();
  loop_.cancel(entries_.at(id)->life);
  // What the auditor still has about it comes before its last record.
  session.look_for_new([this, id](json::Value found) {
    entries_.at(id)->auto_run = std::move(found);
    if (!denials_ || !denials_->release(id, [this, id] { finish(id); })) finish(id);
  });
}

void Manager::finish(const std::string& id) {
  Entry& entry = *entries_.at(id);
  const Session& session = *entry.session;
  if (entry.log) {
    // The last record; a log that could not be written is the reason why the session ended and is in the index.
    const Totals& totals = session.totals();
    json::Value fields{{"reason", session.end_reason()}, {"execs", totals.execs}, {"cpu_us", totals.cpu_us}};
    if (!session.end_hit().is_null()) fields["hit"] = session.end_hit();
    if (!entry.denials.is_null()) fields["denials"] = entry.denials;
    if (!session.end_detail().empty()) fields["what"] = session.end_detail();
    if (entry.unread) fields["memory_unread"] = true;
    if (!entry.auto_run.is_null()) fields["auto_run"] = entry.auto_run;
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
    json::Value root{{"session", id},
                     {"workspace", entry.workspace->name},
                     {"file", id + ".ndjson"},
                     {"count", entry.log->count()},
                     {"head", entry.log->head()},
                     {"reason", session.end_reason()}};
    if (const auto signature = key_->sign(audit::root_text(id + ".ndjson", entry.log->count(), entry.log->head()))) {
      root["key"] = key_->id();
      root["signature"] = attest::base64url(*signature);
    }
    record(audit::Event::session_end, std::move(root));
    if (sweep_full_ -= std::min(sweep_full_, entry.log->bytes()); sweep_full_ == 0) sweep();
  }
  if (ipc::Connection* client = connection(entry.owner))
    client->event({{"event", "session_end"}, {"session", id}, {"reason", session.end_reason()}, {"hit", session.end_hit()}});
  for (const auto& [number, request] : entry.destroyers)
    if (ipc::Connection* client = connection(number)) client->reply(request, json::Value::object());
  free_uid(session.uid());
  // Not from inside the session's own function.
  loop_.after(0, [this, id] {
    const std::string workspace = entries_.at(id)->workspace->name;
    entries_.erase(id);
    settle(workspace);
    if (shut_down_ && entries_.empty()) shut_down_();
  });
}

}  // namespace caisson::session
