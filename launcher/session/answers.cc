// What the launcher answers to each operation. Every request comes from a client that may be hostile: types, sizes, states
// and ownership are checked here, whatever the agent has checked before.
#include <algorithm>

#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxLabel = 256;
constexpr std::int64_t kMaxTimeoutMs = 7LL * 24 * 3600 * 1000;

}  // namespace

ipc::Connection* Manager::connection(std::uint64_t number) {
  const auto it = clients_.find(number);
  return it == clients_.end() ? nullptr : it->second.connection.get();
}

std::uint64_t Manager::serve(Fd socket, Role role, std::function<void(const std::string&)> closed) {
  ipc::Connection::Handler handler;
  handler.request = [this](ipc::Connection& c, ipc::Connection::Request r) { on_request(c, std::move(r)); };
  handler.violation = [this](ipc::Connection& c, const std::string& why) { on_closed(c.number(), why); };
  handler.closed = [this](ipc::Connection& c) { on_closed(c.number(), ""); };
  auto connection = std::make_unique<ipc::Connection>(std::move(socket), loop_, std::move(handler));
  const std::uint64_t number = connection->number();
  ipc::Connection* raw = connection.get();
  clients_.emplace(number, Client{std::move(connection), role, std::move(closed)});
  if (!raw->start()) on_closed(number, "");
  return number;
}

void Manager::on_closed(std::uint64_t number, const std::string& violation) {
  auto node = clients_.extract(number);
  if (node.empty()) return;
  for (auto& [id, entry] : entries_)
    if (entry->owner == number) entry->session->end("client_gone");
  // The connection's own function is on the stack.
  loop_.after(0, [client = std::make_shared<Client>(std::move(node.mapped())), violation] {
    client->connection.reset();
    client->closed(violation);
  });
}

Result<Manager::Entry*> Manager::find(const ipc::Connection& connection, const json::Value& body) {
  TRY_ASSIGN(const std::string id, need_string(body, "session"));
  const auto it = entries_.find(id);
  const bool visible = it != entries_.end() && it->second->owner != 0 &&
                       (it->second->owner == connection.number() || clients_.at(connection.number()).role == Role::operator_);
  // Another client's session is answered as one that does not exist: ids tell nothing.
  if (!visible || it->second->session->state() == State::ended) return fail(Code::not_found, "no such session " + quote(id));
  return it->second.get();
}

void Manager::on_request(ipc::Connection& c, ipc::Connection::Request request) {
  auto done = [&]() -> Result<json::Value> {
    switch (request.op) {
      case ipc::Op::hello:
        return answer_hello(c, request.body);
      case ipc::Op::session_create: {
        TRY(answer_create(c, request));
        return json::Value();  // answered when it is built
      }
      case ipc::Op::session_exec: {
        TRY(answer_exec(c, request));
        return json::Value();  // answered when it has started
      }
      case ipc::Op::attest:
        return answer_attest(c, request.body);
      case ipc::Op::session_list: {
        TRY(only(request.body, {}));
        json::Value list = json::Value::array();
        const bool all = clients_.at(c.number()).role == Role::operator_;
        for (const auto& [id, entry] : entries_)
          if (entry->owner != 0 && (all || entry->owner == c.number())) list.push_back(stat(*entry));
        return json::Value{{"sessions", std::move(list)}};
      }
      case ipc::Op::workspace_create:
        return answer_workspace_create(request.body);
      case ipc::Op::workspace_list: {
        TRY(only(request.body, {}));
        json::Value list = json::Value::array();
        for (const auto& [name, workspace] : workspaces_) list.push_back(workspace_json(*workspace));
        return json::Value{{"workspaces", std::move(list)}};
      }
      case ipc::Op::workspace_destroy:
        return answer_workspace_destroy(c, request);
      default:
        break;
    }
    TRY_ASSIGN(Entry * entry, find(c, request.body));
    switch (request.op) {
      case ipc::Op::exec_signal:
        return answer_signal(*entry, request.body);
      case ipc::Op::session_stat:
        TRY(only(request.body, {"session"}));
        return stat(*entry);
      case ipc::Op::session_report:
        TRY(only(request.body, {"session"}));
        return json::Value{{"workspace", entry->workspace->name}, {"report", entry->session->report()}};
      case ipc::Op::session_destroy: {
        TRY(only(request.body, {"session", "reason"}));
        TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
        entry->destroyers.emplace_back(c.number(), request.id);
        if (reason) entry->destroy_reason = reason->substr(0, kMaxLabel);
        entry->session->end("destroyed");
        return json::Value();  // answered when nothing is left
      }
      default:
        return fail(Code::internal, "op without an answer");
    }
  }();
  if (!done) {
    record(audit::Event::request_refused, {{"op", request.body.value("op", "")}, {"what", done.error().text()}});
    c.reply_error(request.id, done.error(), "request");
  } else if (!done->is_null()) {
    c.reply(request.id, std::move(*done));
  }
}

Result<json::Value> Manager::answer_hello(ipc::Connection& c, const json::Value& body) {
  TRY(only(body, {"protocol"}));
  TRY_ASSIGN(const auto protocol, json::get_int(body, "protocol"));
  if (protocol != ipc::kProtocolVersion)
    return fail(Code::protocol, "this launcher speaks protocol " + std::to_string(ipc::kProtocolVersion));
  c.opened();
  json::Value names = json::Value::array();
  for (const auto& [name, domain] : domains_) names.push_back(name);
  const std::string home = domains_.empty() ? "/home/gem" : domains_.begin()->second.policy->home_path;
  return json::Value{{"protocol", ipc::kProtocolVersion},
                     {"version", CAISSON_VERSION},
                     {"tier", tier_name(features_.tier())},
                     {"domains", names},
                     {"refused_domains", refused_domains_},
                     {"home", home},
                     {"workspace", settings_.default_cwd.empty() ? home : settings_.default_cwd},
                     {"max_sessions", settings_.max_sessions}};
}

Status Manager::answer_create(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"domain", "label", "narrow", "workspace", "isolation"}));
  TRY_ASSIGN(const std::string name, need_string(request.body, "domain"));
  TRY_ASSIGN(const auto label, json::get_string(request.body, "label"));
  if (label && label->size() > kMaxLabel)
    return fail(Code::invalid_argument, "'label' is over " + std::to_string(kMaxLabel) + " bytes");
  TRY_ASSIGN(const auto isolation, json::get_string(request.body, "isolation"));
  if (isolation && *isolation != "shared" && *isolation != "private")
    return fail(Code::invalid_argument, "'isolation' must be \"shared\" or \"private\"");
  const bool alone = isolation == "private";
  TRY_ASSIGN(Workspace * workspace, find_workspace(request.body));
  TRY_ASSIGN(Domain * domain, domain_in(*workspace, name));
  json::Value asked{
      {"domain", name}, {"workspace", workspace->name}, {"label", label.value_or("")}, {"policy_digest", domain->policy->digest}};

  Entry* entry = nullptr;
  const auto narrow = request.body.find("narrow");
  const bool narrows = narrow != request.body.end() && !narrow->is_null();
  if (alone || narrows || domain->prepared->plan->single_use) {
    policy::Narrowing by;
    if (narrows) {
      asked["narrow"] = *narrow;
      TRY_ASSIGN(by, policy::parse_narrowing(*narrow));
    }
    confine::Workspace own;
    if (alone) {
      asked["isolation"] = *isolation;
      by.home_private = by.tmp_private = true;
      if (features_.user_ns.ok() && features_.mount_ns.ok()) {
        TRY_ASSIGN(own, make_place(workspace->place.outer_uid, workspace->place.outer_gid, 0));
      }
    }
    TRY_ASSIGN(auto narrowed, policy::narrow(domain->policy, by));
    asked["policy_digest"] = narrowed->digest;
    TRY_ASSIGN(const Domain single, prepare_domain(*workspace, std::move(narrowed), &domain->canary, alone ? &own : nullptr));
    TRY_ASSIGN(entry, start(*workspace, name, single.prepared, alone ? own : workspace->place));
  } else {
    if (workspace == default_) entry = ready_entry(name), refill_later(name);
    if (entry == nullptr) {
      TRY_ASSIGN(entry, start(*workspace, name, domain->prepared, workspace->place));
    }
  }
  entry->owner = c.number();
  entry->canary = domain->canary;
  loop_.cancel(std::exchange(workspace->idle, 0));
  entry->label = asked["label"].get<std::string>();
  entry->request = std::move(asked);
  if (Status assigned = assign(*entry); !assigned) {
    // Without a log there is no session: it ends unseen by the client, who gets the reason.
    entry->session->end("audit_failed");
    return std::unexpected(std::move(assigned).error().wrap("the session's audit log cannot be written"));
  }
  const std::string id = entry->session->id();
  const auto life = static_cast<std::int64_t>(entry->session->policy().limits.session_seconds) * 1'000'000;
  entry->life = loop_.after(life, [this, id] {
    if (const auto it = entries_.find(id); it != entries_.end()) it->second->session->end("session_seconds");
  });
  if (entry->session->state() == State::idle) {
    entry->session->run();
    c.reply(request.id, {{"session", id}, {"tier", tier_name(entry->session->plan().tier)}});
  } else {
    entry->create_id = request.id;
  }
  return {};
}

Status Manager::answer_exec(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"session", "argv", "cwd", "env", "stdin", "pty", "hard_timeout_ms"}));
  TRY_ASSIGN(Entry * entry, find(c, request.body));
  Session& session = *entry->session;
  if (session.state() != State::running) return fail(Code::not_found, "the session has ended");
  TRY_ASSIGN(ExecRequest exec, exec_request(request.body, session.policy()));
  TRY_ASSIGN(const auto with_stdin, json::get_bool(request.body, "stdin"));
  TRY_ASSIGN(const auto timeout_ms, json::get_int(request.body, "hard_timeout_ms"));
  if (timeout_ms && (*timeout_ms < 1 || *timeout_ms > kMaxTimeoutMs))
    return fail(Code::invalid_argument, "'hard_timeout_ms' must be 1 to " + std::to_string(kMaxTimeoutMs));
  json::Value names = json::Value::array();
  for (const std::string& pair : exec.env) names.push_back(pair.substr(0, pair.find('=')));
  // The intent is on record before the process exists.
  if (const Status logged =
          entry->log->append(audit::Event::exec_request, {{"exec", "e-" + std::to_string(session.next_exec_id())},
                                                          {"argv", audit::redacted_argv(request.body["argv"])},
                                                          {"cwd", exec.cwd},
                                                          {"env", names},
                                                          {"pty", exec.pty},
                                                          {"hard_timeout_ms", timeout_ms.value_or(0)}});
      !logged) {
    session.end("audit_failed");
    return std::unexpected(Error(logged.error()).wrap("the session's audit log cannot be written"));
  }
  auto started = session.exec(std::move(exec), with_stdin.value_or(true), timeout_ms.value_or(0) * 1000);
  if (!started) {
    (void)entry->log->append(audit::Event::exec_refused, {{"step", "request"}, {"what", started.error().text()}});
    return std::unexpected(std::move(started).error());
  }
  entry->exec_ids[(*started)->request.id] = request.id;
  return {};
}

Result<json::Value> Manager::answer_signal(Entry& entry, const json::Value& body) {
  TRY(only(body, {"session", "exec", "signal"}));
  TRY_ASSIGN(const std::string label, need_string(body, "exec"));
  TRY_ASSIGN(const std::string name, need_string(body, "signal"));
  TRY_ASSIGN(const int number, signal_number(name));
  const auto& execs = entry.session->execs();
  const auto it = std::ranges::find_if(execs, [&label](const auto& e) { return e.second.label == label; });
  if (it == execs.end()) return fail(Code::not_found, "no such command " + quote(label) + ", or it has ended");
  TRY(entry.log->append(audit::Event::exec_signal, {{"exec", label}, {"signal", name}}));
  TRY(entry.session->signal(it->first, number));
  return json::Value::object();
}

json::Value Manager::stat(const Entry& entry) const {
  const Session& s = *entry.session;
  static constexpr const char* kStates[] = {"building", "idle", "running", "ending", "ended"};
  json::Value j{{"session", s.id()},         {"domain", entry.domain},          {"workspace", entry.workspace->name},
                {"label", entry.label},      {"created_at", entry.created_at},  {"state", kStates[static_cast<int>(s.state())]},
                {"execs", s.execs().size()}, {"total_execs", s.totals().execs}, {"tier", tier_name(s.plan().tier)}};
  if (s.cgroup()) {
    const confine::CgroupStats c = s.cgroup()->stats();
    j["processes"] = c.pids_current;
    j["memory_bytes"] = c.memory_current;
    j["memory_peak_bytes"] = c.memory_peak;
    j["cpu_us"] = c.cpu_us;
  } else {
    // Below process 0 is everything that runs here: not what a session that has no process yet is made of.
    const Usage u = s.pid() != 0 ? processes().usage(s.pid()) : Usage{};
    j["processes"] = u.processes;
    j["memory_bytes"] = u.memory_bytes;
    j["cpu_us"] = u.cpu_us + static_cast<std::uint64_t>(s.totals().cpu_us);
  }
  return j;
}

}  // namespace caisson::session
