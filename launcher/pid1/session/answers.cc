// What the launcher answers about sessions and their commands. Every request comes from a client that may be hostile: types,
// sizes, states and ownership are checked here, whatever the agent has checked before.
#include <algorithm>

#include "launcher/common/base/session_id.h"
#include "launcher/pid1/session/operations.h"
#include "launcher/pid1/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxLabel = 256;
constexpr std::size_t kMaxList = ipc::kMaxMessage - 4096;  // bytes of the entries in one answer
constexpr std::int64_t kMaxTop = 50;
constexpr std::int64_t kMaxTimeoutMs = 7LL * 24 * 3600 * 1000;

}  // namespace

Result<json::Value> Operations::answer_create(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto keep, json::get_bool(request.body, "keep"));
  TRY_ASSIGN(const std::string name, need_string(request.body, "domain"));
  if (name == kCredentialsDomain && clients_.role(c.number()) != Role::operator_)
    return fail(Code::permission_denied, "sessions of domain 'credentials' are for operators alone");
  TRY_ASSIGN(const auto label, json::get_string(request.body, "label"));
  if (label && label->size() > kMaxLabel)
    return fail(Code::invalid_argument, "'label' is over " + std::to_string(kMaxLabel) + " bytes");
  TRY_ASSIGN(const auto isolation, json::get_string(request.body, "isolation"));
  if (isolation && *isolation != "shared" && *isolation != "private")
    return fail(Code::invalid_argument, "'isolation' must be \"shared\" or \"private\"");
  Created wanted{.client = c.number(),
                 .request = request.id,
                 .domain = name,
                 .label = label.value_or(""),
                 .alone = isolation == "private",
                 .keep = keep.value_or(false)};
  if (const auto narrow = request.body.find("narrow"); narrow != request.body.end()) wanted.narrow = *narrow;
  TRY_ASSIGN(Workspace * workspace, workspaces_.find(request.body));
  TRY(runs(*workspace));
  if (!workspace->full.is_null())
    return fail(Code::limit, "workspace " + quote(workspace->name) + ": " + std::string(workspace->full));
  if (sessions_.ending()) return fail(Code::unavailable, "the launcher is ending");  // and makes nothing ready
  if (waiting_tasks() >= kMaxTasks) return fail(Code::limit, "too many sessions are being made: try again");
  begin(answer_when(c.number(), request, create_session(std::move(wanted), workspace)));
  return json::Value();  // answered by then
}

// What a session runs in, built for it or before it.
Task<Result<Entry*>> Operations::find_place(Created& wanted, Workspace& workspace) {
  CO_TRY_ASSIGN(const Domain* domain, co_await domains_.domain_in(workspace, wanted.domain));
  CO_TRY(still_wanted(wanted, workspace));
  wanted.canary = domain->canary;
  wanted.digest = domain->plan->policy->digest;
  const bool narrows = !wanted.narrow.is_null();
  if (!wanted.alone && !narrows && !domain->prepared->plan->single_use) {
    Entry* const ready = workspace.is_default() ? sessions_.ready_entry(wanted.domain) : nullptr;
    if (ready != nullptr) co_return ready;
    co_return sessions_.start(workspace, wanted.domain, domain->prepared, workspace.place);
  }
  // The domain may be another's after the next wait.
  const std::shared_ptr<Narrowings> narrowings = domain->narrowings;
  const confine::Closed closed = domain->closed;
  confine::Workspace own;
  if (wanted.alone) {
    CO_TRY_ASSIGN(own, co_await workspaces_.make_place(workspace.place.outer_uid, workspace.place.outer_gid, 0));
  }
  const Turns::Turn turn = co_await workspace.turns.take();
  const Domains::Narrowed by{*narrowings, narrows ? json::dump(wanted.narrow) : "{}", wanted.alone ? &own : nullptr};
  Domain single;
  CO_TRY_ASSIGN(single.policy, co_await narrowings->policy(loop_, by.asked, wanted.alone));
  // What its domain goes without, it goes without.
  std::ranges::copy_if(closed, std::inserter(single.closed, single.closed.end()), [&single](const auto& one) {
    const policy::Policy& p = *single.policy;
    return std::ranges::find(p.grants, one.first, &policy::Grant::path) != p.grants.end() ||
           std::ranges::find(p.hide, one.first) != p.hide.end();
  });
  CO_TRY_ASSIGN(single, co_await domains_.prepare_domain(workspace, std::move(single), &by));
  wanted.digest = single.plan->policy->digest;
  CO_TRY(still_wanted(wanted, workspace));
  co_return sessions_.start(workspace, wanted.domain, single.prepared, wanted.alone ? own : workspace.place);
}

// What may have come about while its domain was made ready.
Status Operations::still_wanted(const Created& wanted, const Workspace& workspace) {
  if (clients_.find(wanted.client) == nullptr) return fail(Code::unavailable, "the client has gone");
  if (!workspace.ending.empty()) return fail(Code::not_found, "no such workspace " + quote(workspace.name, 80));
  return runs(workspace);
}

Task<Result<json::Value>> Operations::create_session(Created wanted, Workspace* workspace) {
  const auto use = workspaces_.use(*workspace);
  CO_TRY_ASSIGN(Entry * entry, co_await find_place(wanted, *workspace));
  json::Value asked{{"domain", wanted.domain},
                    {"workspace", workspace->name},
                    {"isolation", wanted.alone ? "private" : "shared"},
                    {"label", wanted.label},
                    {"policy_digest", wanted.digest}};
  if (!settings_.preset.empty()) asked["preset"] = settings_.preset;
  if (!wanted.narrow.is_null()) asked["narrow"] = std::move(wanted.narrow);
  entry->owner = wanted.client;
  entry->keep = wanted.keep;
  entry->canary = wanted.canary;
  loop_.cancel(std::exchange(workspace->idle, 0));
  entry->label = std::move(wanted.label);
  asked["keep_days"] = entry->session->policy().audit.keep_days;  // the sweep of a later launcher reads it there
  entry->request = std::move(asked);
  const std::string id = entry->session->id();
  if (Status assigned = sessions_.assign(*entry); !assigned) {
    // No session runs without a log: this one ends before the client sees it, and the client gets the reason.
    entry->session->end("audit_failed");
    co_return std::unexpected(std::move(assigned).error().wrap("the session's audit log cannot be written"));
  }
  const auto life = static_cast<std::int64_t>(entry->session->policy().limits.session_seconds);
  entry->life = loop_.after(life * 1'000'000, [this, id, life] {
    if (const Entry* found = sessions_.find(id)) found->session->end("session_seconds", {{"allowed", life}, {"figure", life}});
  });
  if (entry->session->state() == State::idle) {
    entry->session->run();
    co_return entry->session->created();
  }
  entry->create_id = wanted.request;
  co_return json::Value();  // answered when it is built
}

Result<json::Value> Operations::answer_exec(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body));
  Session& session = *entry->session;
  if (session.state() != State::running) return fail(Code::not_found, "the session has ended");
  TRY(runs(*entry->workspace));
  TRY_ASSIGN(confine::ExecRequest exec, exec_request(request.body, session.policy()));
  TRY_ASSIGN(const auto with_stdin, json::get_bool(request.body, "stdin"));
  TRY_ASSIGN(const auto timeout_ms, json::get_int(request.body, "hard_timeout_ms"));
  if (timeout_ms && (*timeout_ms < 1 || *timeout_ms > kMaxTimeoutMs))
    return fail(Code::invalid_argument, "'hard_timeout_ms' must be 1 to " + std::to_string(kMaxTimeoutMs));
  TRY_ASSIGN(const auto keep, json::get_bool(request.body, "keep"));
  const std::string label = session.next_label();
  auto started = session.exec(std::move(exec), with_stdin.value_or(true), timeout_ms.value_or(0) * 1000);
  const confine::ExecRequest& asked = started ? (*started)->request : exec;
  json::Value names = json::Value::array();
  for (const std::string& pair : asked.env) names.push_back(pair.substr(0, pair.find('=')));
  // The intent is on record before the program runs: init makes the process meanwhile, and waits for our word.
  const Status logged = entry->log->append(audit::Event::exec_request, {{"exec", label},
                                                                        {"argv", audit::redacted_argv(request.body["argv"])},
                                                                        {"cwd", asked.cwd},
                                                                        {"env", std::move(names)},
                                                                        {"pty", asked.pty},
                                                                        {"hard_timeout_ms", timeout_ms.value_or(0)}});
  if (!logged) {
    session.end("audit_failed");
    return std::unexpected(Error(logged.error()).wrap("the session's audit log cannot be written"));
  }
  if (!started) {
    (void)entry->log->append(audit::Event::exec_refused, {{"step", "request"}, {"what", started.error().text()}});
    return std::unexpected(std::move(started).error());
  }
  (*started)->keep = keep.value_or(false) && sessions_.room_to_keep(*entry);
  session.go(**started);
  entry->exec_ids[(*started)->request.id] = request.id;
  return json::Value();  // answered when it has started
}

Result<json::Value> Operations::answer_signal(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body));
  TRY_ASSIGN(const std::string label, need_string(request.body, "exec"));
  TRY_ASSIGN(const std::string name, need_string(request.body, "signal"));
  TRY_ASSIGN(const int number, signal_number(name));
  const auto& execs = entry->session->execs();
  const auto it = std::ranges::find_if(execs, [&label](const auto& e) { return e.second.label == label; });
  if (it == execs.end()) return fail(Code::not_found, "no such command " + quote(label) + ", or it has ended");
  TRY(entry->log->append(audit::Event::exec_signal, {{"exec", label}, {"signal", name}}));
  TRY(entry->session->signal(it->first, number));
  return json::Value::object();
}

Result<json::Value> Operations::answer_note(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body));
  const json::Value& note = request.body["note"];
  if (!note.is_object() || json::dump(note).size() > ipc::kMaxNote)
    return fail(Code::invalid_argument, "'note' must be an object of at most " + std::to_string(ipc::kMaxNote) + " bytes");
  TRY(entry->log->append(audit::Event::note, {{"note", note}}));
  return json::Value::object();
}

Result<json::Value> Operations::answer_adopt(ipc::Connection& c, const ipc::Connection::Request&) {
  const Entry* entry = sessions_.adopt(c.number());
  if (entry == nullptr) return json::Value::object();
  json::Value execs = json::Value::array();
  for (const auto& [label, kept] : entry->kept) execs.push_back(label);
  json::Value answer = entry->session->created();
  answer.update({{"domain", entry->domain},
                 {"workspace", entry->workspace->name},
                 {"isolation", entry->request.value("isolation", "")},
                 {"execs", std::move(execs)}});
  return answer;
}

Result<json::Value> Operations::answer_exec_adopt(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body));
  TRY_ASSIGN(const std::string label, need_string(request.body, "exec"));
  const auto kept = entry->kept.find(label);
  if (kept == entry->kept.end() || entry->owner != c.number())
    return fail(Code::not_found, "nothing is held of command " + quote(label));
  json::Value ends = json::Value::array();
  std::vector<Fd> fds;
  for (const auto& [name, fd] : kept->second.ends) {
    TRY_ASSIGN(fds.emplace_back(), copy_of(fd));
    ends.push_back(name);
  }
  c.reply(request.id, {{"exec", label}, {"ends", std::move(ends)}}, std::move(fds));
  if (!kept->second.exit.is_null()) c.event(kept->second.exit);
  return json::Value();
}

Result<json::Value> Operations::answer_exec_release(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body));
  TRY_ASSIGN(const std::string label, need_string(request.body, "exec"));
  TRY_ASSIGN(const auto end, json::get_string(request.body, "end"));
  if (entry->owner != c.number()) return fail(Code::not_found, "no such session");
  if (!end) entry->kept.erase(label);
  else if (const auto kept = entry->kept.find(label); kept != entry->kept.end()) kept->second.ends.erase(*end);
  return json::Value::object();
}

Result<json::Value> Operations::answer_stat(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body));
  json::Value answer = stat(*entry);
  // For `caisson policy learn`. Processes of the host are no business of the agent.
  if (clients_.role(c.number()) == Role::operator_) answer["pid"] = entry->session->pid();
  return answer;
}

Result<json::Value> Operations::answer_report(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body));
  return json::Value{{"workspace", entry->workspace->name},
                     {"isolation", entry->request.value("isolation", "")},
                     {"report", entry->session->report()}};
}

Result<json::Value> Operations::answer_destroy(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body));
  TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
  entry->destroyers.emplace_back(c.number(), request.id);
  if (reason) entry->destroy_reason = reason->substr(0, kMaxLabel);
  entry->session->end("destroyed");
  return json::Value();  // answered when nothing is left
}

// In order of id, as many as surely fit into one message; `next` is there when more follow it. A row of `top`: pid as the session
// sees it, name, state, threads, bytes of memory, microseconds of processor time and of age.
Result<json::Value> Operations::answer_list(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const auto after, json::get_string(request.body, "after"));
  TRY_ASSIGN(const auto top, json::get_int(request.body, "top"));
  json::Value answer{{"sessions", json::Value::array()}};
  std::size_t bytes = 0;
  std::string last;
  for (auto it = sessions_.all().upper_bound(after.value_or("")); it != sessions_.all().end(); ++it) {
    if (!clients_.sees(c.number(), it->second->owner)) continue;
    json::Value one = stat(*it->second);
    if (top && it->second->session->pid() != 0)
      for (const auto& p : watchdog_.processes().largest(it->second->session->pid(), std::clamp<std::int64_t>(*top, 0, kMaxTop)))
        one["top"].push_back({p.inner, p.name, std::string(1, p.state), p.threads, p.memory_bytes, p.cpu_us, p.age_us});
    bytes += json::dump(one).size() + 1;
    if (bytes > kMaxList) {
      answer["next"] = last;
      break;
    }
    last = it->first;
    answer["sessions"].push_back(std::move(one));
  }
  return answer;
}

json::Value Operations::stat(const Entry& entry) {
  const Session& s = *entry.session;
  const policy::Limits& l = s.policy().limits;
  static constexpr const char* kStates[] = {"building", "idle", "running", "ending", "ended"};
  const bool alone = entry.request.value("isolation", "") == "private";  // its own namespaces have no way out
  const auto network = alone ? std::min(s.policy().network, policy::Network::loopback) : s.policy().network;
  json::Value j{
      {"session", s.id()},
      {"domain", entry.domain},
      {"workspace", entry.workspace->name},
      {"isolation", entry.request.value("isolation", "")},
      {"label", entry.label},
      {"created_at", entry.created_at},
      {"state", kStates[static_cast<int>(s.state())]},
      {"execs", s.execs().size()},
      {"total_execs", s.totals().execs},
      {"tier", tier_name(s.plan().tier)},
      {"network", word(words(policy::Network{}), static_cast<std::size_t>(network))},
      {"limits",
       {{"processes", l.processes}, {"memory_bytes", l.memory_bytes}, {"cpu_percent", l.cpu_percent}, {"execs", l.execs}}}};
  if (s.cgroup()) {
    const confine::CgroupStats c = s.cgroup()->stats();
    j["processes"] = c.pids_current;
    j["memory_bytes"] = c.memory_current;
    j["memory_peak_bytes"] = c.memory_peak;
    j["cpu_us"] = c.cpu_us;
    j["oom_kills"] = c.oom_kills;
  } else {
    // Below process 0 is everything that runs here, and nothing of a session that has no process yet.
    const Usage u = s.pid() != 0 ? watchdog_.processes().usage(s.pid()) : Usage{};
    j["processes"] = u.processes;
    j["memory_bytes"] = u.memory_bytes;
    j["cpu_us"] = u.cpu_us + static_cast<std::uint64_t>(s.totals().cpu_us);
  }
  return j;
}

}  // namespace caisson::session
