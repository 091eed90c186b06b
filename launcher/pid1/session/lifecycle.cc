// What happens to a session while it lives, and what is put on record of it.
#include <signal.h>

#include <cstring>

#include "launcher/common/attest/base64url.h"
#include "launcher/pid1/session/sessions.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMostNames = 512;  // more than there are calls: an auditor that makes names up fills nobody's memory

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

// What the next agent needs of a command: a copy of each end that this one is given.
void keep_ends(Entry& entry, const Exec& exec) {
  if (!exec.keep) return;
  static constexpr const char* kNames[] = {"stdin", "stdout", "stderr"};
  Kept kept;
  for (std::size_t i = 0; i < exec.ends.size(); ++i) {
    auto copy = copy_of(exec.ends[i]);
    if (!copy) return;  // none is free: it ends with its agent
    kept.ends.emplace(exec.pty ? "pty" : kNames[i + 3 - exec.ends.size()], std::move(*copy));
  }
  entry.kept.emplace(exec.label, std::move(kept));
}

}  // namespace

Status Sessions::on_listener(Session& session, const Fd& fd, const std::string& refusals) {
  return host_.denials->watch(session.id(), fd, refusals, session.plan().observe);
}

void Sessions::on_built(Session& session, Status status) {
  const auto it = entries_.find(session.id());
  if (it == entries_.end()) return;
  Entry& entry = *it->second;
  if (status) entry.start = session.start_record();
  // The paths below its mounts may have been moved: the next session gets a new tree. A session that is ended from outside tells
  // nothing about its tree: otherwise each client that leaves early would have the domain's tree made anew.
  if (!status && session.end_reason() == "build_failed") domains_.distrust(*entry.workspace, entry.domain);
  if (entry.owner == 0) {
    if (!status)
      host_.record(audit::Event::session_refused,
                   {{"session", session.id()}, {"domain", entry.domain}, {"what", status.error().text()}, {"ready", true}});
    return;
  }
  // Answered already: there is no log for it, perhaps not even a file, and it ends.
  if (entry.create_id == 0) return;
  if (status) status = runs(*entry.workspace);  // paused meanwhile: nobody has stopped this one
  if (status) status = entry.log->append_prepared(audit::Event::session_start, std::exchange(entry.start, {}));
  else (void)entry.log->append(audit::Event::session_refused, {{"what", status.error().text()}});
  const std::int64_t id = std::exchange(entry.create_id, 0);
  if (!status) {
    clients_.refuse(entry.owner, id, status.error(), "confine");
    return session.end("refused");
  }
  session.run();
  clients_.answer(entry.owner, id, session.created());
}

void Sessions::on_started(Session& session, Exec& exec, int pid) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = take_waiting(entry.exec_ids, exec);
  if (!entry.log->append(audit::Event::exec_start, {{"exec", exec.label}, {"pid", pid}})) session.end("audit_failed");
  keep_ends(entry, exec);
  clients_.answer(entry.owner, id, {{"exec", exec.label}, {"pid", pid}, {"stdio", exec.pty ? "pty" : "pipes"}},
                  std::move(exec.ends));
}

void Sessions::on_failed(Session& session, Exec& exec, const Error& error, const std::string& step) {
  Entry& entry = *entries_.at(session.id());
  const std::int64_t id = take_waiting(entry.exec_ids, exec);
  (void)entry.log->append(audit::Event::exec_refused, {{"exec", exec.label}, {"step", step}, {"what", error.text()}});
  clients_.refuse(entry.owner, id, error, step);
}

void Sessions::on_exited(Session& session, Exec& exec, const init::Reply& reply) {
  Entry& entry = *entries_.at(session.id());
  const bool starved = exec.reason == "session_end" && (session.end_reason() == "memory" || session.end_reason() == "oom");
  const CommandEnd by_itself = reply.signaled != 0 ? CommandEnd("signal") : CommandEnd("exit");
  const CommandEnd end = starved ? CommandEnd("oom") : exec.reason.empty() ? by_itself : exec.reason;
  json::Value fields{
      {"exec", exec.label},
      {"reason", end.text},
      {"rusage", {{"user_us", reply.user_us}, {"sys_us", reply.system_us}, {"max_rss_bytes", reply.max_rss_bytes}}},
      {"wall_us", sys::monotonic_us() - exec.begin_us}};
  if (reply.signaled != 0) {
    const char* name = ::sigabbrev_np(reply.status);
    fields["signal"] = name != nullptr ? std::string("SIG") + name : "SIG" + std::to_string(reply.status);
    if (reply.status == SIGXCPU || reply.status == SIGXFSZ) {
      const policy::Limits& limits = session.policy().limits;
      fields["limit"] = (reply.status == SIGXCPU ? LimitHit("cpu_seconds") : LimitHit("file_size_bytes")).text;
      fields["allowed"] = reply.status == SIGXCPU ? limits.cpu_seconds : limits.file_size_bytes;
      (void)entry.log->append(audit::Event::limit_hit, {{"limit", fields["limit"]}, {"exec", exec.label}, {"by", "rlimit"}});
    }
  } else {
    fields["exit_code"] = reply.status & 255;
  }
  if (!entry.log->append(audit::Event::exec_exit, fields)) session.end("audit_failed");
  if (session.state() == State::ending)
    fields.update({{"session_reason", session.end_reason().text}, {"hit", session.end_hit()}});
  fields.update({{"event", "exec_exit"}, {"session", session.id()}});
  if (const auto kept = entry.kept.find(exec.label); kept != entry.kept.end()) kept->second.exit = fields;
  if (ipc::Connection* client = clients_.find(entry.owner)) client->event(std::move(fields));
}

void Sessions::on_ended(Session& session) {
  const std::string id = session.id();
  host_.loop.cancel(entries_.at(id)->life);
  // What the auditor still has about it comes before its last record.
  session.look_for_new([this, id](json::Value found) {
    entries_.at(id)->auto_run = std::move(found);
    if (!host_.denials || !host_.denials->release(id, [this, id] { finish(id); })) finish(id);
  });
}

void Sessions::finish(const std::string& id) {
  Entry& entry = *entries_.at(id);
  const Session& session = *entry.session;
  if (entry.log) record_end(entry);
  if (ipc::Connection* client = clients_.find(entry.owner))
    client->event({{"event", "session_end"}, {"session", id}, {"reason", session.end_reason().text}, {"hit", session.end_hit()}});
  for (const auto& [number, request] : entry.destroyers) clients_.answer(number, request, json::Value::object());
  uids_.give_back(session.uid());
  // Not from inside the session's own function.
  host_.loop.after(0, [this, id] {
    const std::string workspace = entries_.at(id)->workspace->name;
    entries_.erase(id);
    settle_(workspace);
    if (shut_down_ && entries_.empty()) shut_down_();
  });
}

void Sessions::record_end(Entry& entry) {
  const Session& session = *entry.session;
  // The last record; a log that could not be written is the reason why the session ended and is in the index.
  const Totals& totals = session.totals();
  json::Value fields{{"reason", session.end_reason().text}, {"execs", totals.execs}, {"cpu_us", totals.cpu_us}};
  if (!session.end_hit().is_null()) fields["hit"] = session.end_hit();
  if (!entry.denials.is_null()) fields["denials"] = entry.denials;
  if (!session.end_detail().empty()) fields["what"] = session.end_detail();
  if (entry.unread) fields["memory_unread"] = true;
  if (!entry.auto_run.is_null()) fields["auto_run"] = entry.auto_run;
  if (!entry.destroy_reason.empty()) fields["asked_because"] = entry.destroy_reason;
  if (totals.cgroup) {
    const auto hit = [&](LimitHit limit, const char* figure, std::uint64_t value) {
      (void)entry.log->append(audit::Event::limit_hit, {{"limit", limit.text}, {figure, value}, {"by", "cgroup"}});
    };
    if (totals.cgroup->oom_kills > 0) hit(LimitHit("memory"), "memory_bytes", totals.cgroup->memory_peak);
    if (totals.cgroup->pids_refused > 0) hit(LimitHit("processes"), "forks_refused", totals.cgroup->pids_refused);
    fields.update(used(*totals.cgroup));
    if (totals.cgroup_left) fields["cgroup_left"] = true;
  }
  (void)entry.log->append(audit::Event::session_end, fields);
  const std::string file = session.id() + ".ndjson";
  json::Value root{{"session", session.id()},     {"workspace", entry.workspace->name}, {"file", file},
                   {"count", entry.log->count()}, {"head", entry.log->head()},          {"reason", session.end_reason().text}};
  if (const auto signature = host_.key->sign(audit::root_text(file, entry.log->count(), entry.log->head()))) {
    root["key"] = host_.key->id();
    root["signature"] = attest::base64url(*signature);
  }
  host_.record(audit::Event::session_end, std::move(root));
  logs_.wrote(entry.log->bytes());
}

void Sessions::on_denial(const std::string& id, audit::Event event, json::Value fields, bool closed) {
  const auto it = entries_.find(id);
  if (it == entries_.end() || !it->second->log) {  // one that nobody has been given yet
    fields["session"] = id;
    if (!closed) host_.record(event, std::move(fields));
    return;
  }
  Entry& entry = *it->second;
  // For operators: how many, by the name of the call.
  for (const json::Value& call : closed ? json::Value::array() : fields.value("calls", json::Value::array({fields}))) {
    const auto name = json::get_string(call, "syscall");
    const auto count = json::get_int(call, "count");
    if (name && count) denied_[denied_.size() < kMostNames ? name->value_or("path") : "other"] += count->value_or(1);
  }
  if (closed) entry.session->lose_denials("refused calls are no longer recorded: see denial_audit_closed in the session's log");
  if (event == audit::Event::session_end) entry.denials = std::move(fields);  // written with the last record
  else if (!entry.log->append(event, fields)) entry.session->end("audit_failed");
  // Nobody answers its calls that name files, and the kernel refuses them all.
  else if (closed && fields.value("reason", "") == "observer_died") entry.session->end("observer_died");
}

}  // namespace caisson::session
