// What the launcher answers to each operation. Every request comes from a client that may be hostile: types, sizes, states
// and ownership are checked here, whatever the agent has checked before.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "launcher/base/sys.h"
#include "launcher/policy/words.h"
#include "launcher/session/environment.h"
#include "launcher/session/manager.h"
#include "launcher/session/process_tree.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxLabel = 256;
constexpr std::int64_t kMaxLogsListed = 500, kMaxSegment = 1'000'000'000;
constexpr std::int64_t kMaxTimeoutMs = 7LL * 24 * 3600 * 1000;

Result<std::string> need_string(const json::Value& body, std::string_view key) {
  TRY_ASSIGN(auto value, json::get_string(body, key));
  if (!value) return fail(Code::invalid_argument, "'" + std::string(key) + "' is missing");
  return std::move(*value);
}

// Unknown members are refused: a misspelt narrowing must not be a wider session.
Status only(const json::Value& body, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : body.items())
    if (key != "id" && key != "op" && std::ranges::find(known, std::string_view(key)) == known.end())
      return fail(Code::invalid_argument, "unknown member " + quote(key));
  return {};
}

Result<std::vector<std::string>> string_list(const json::Value& body, const char* key) {
  const auto it = body.find(key);
  if (it == body.end() || !it->is_array() || it->empty())
    return fail(Code::invalid_argument, "'" + std::string(key) + "' must be a list of strings");
  std::vector<std::string> out;
  for (const auto& v : *it) {
    if (!v.is_string()) return fail(Code::invalid_argument, "'" + std::string(key) + "' must be a list of strings");
    out.push_back(v.get<std::string>());
  }
  return out;
}

Result<int> signal_number(const std::string& name) {
  if (name.starts_with("SIG"))
    for (int s = 1; s < NSIG; ++s)
      if (const char* known = ::sigabbrev_np(s); known != nullptr && name.substr(3) == known) return s;
  return fail(Code::invalid_argument, "unknown signal " + quote(name));
}

Result<std::map<std::string, std::optional<std::string>>> environment(const json::Value& body) {
  std::map<std::string, std::optional<std::string>> out;
  const auto it = body.find("env");
  if (it == body.end() || it->is_null()) return out;
  if (!it->is_object()) return fail(Code::invalid_argument, "'env' must be an object");
  for (const auto& [name, value] : it->items()) {
    if (!value.is_string() && !value.is_null())
      return fail(Code::invalid_argument, "env " + quote(name) + " must be a string or null");
    out[name] = value.is_null() ? std::nullopt : std::optional(value.get<std::string>());
  }
  return out;
}

Result<std::uint32_t> pty_side(const json::Value& pty, const char* key, std::int64_t fallback) {
  TRY_ASSIGN(const auto value, json::get_int(pty, key));
  if (value.value_or(fallback) < 1 || value.value_or(fallback) > 4096)
    return fail(Code::invalid_argument, "'pty." + std::string(key) + "' must be 1 to 4096");
  return static_cast<std::uint32_t>(value.value_or(fallback));
}

Result<ExecRequest> exec_request(const json::Value& body, const policy::Policy& policy) {
  ExecRequest request;
  TRY_ASSIGN(request.argv, string_list(body, "argv"));
  TRY_ASSIGN(const auto cwd, json::get_string(body, "cwd"));
  request.cwd = cwd.value_or(policy.home_path);
  if (request.cwd.empty() || request.cwd[0] != '/' || request.cwd.size() > policy::kMaxPath ||
      request.cwd.find('\0') != std::string::npos)
    return fail(Code::invalid_argument, "'cwd' must be an absolute path: " + quote(request.cwd));
  TRY_ASSIGN(const auto asked, environment(body));
  TRY_ASSIGN(request.env, make_environment(policy.env, asked));
  if (const auto pty = body.find("pty"); pty != body.end() && !pty->is_null()) {
    if (!pty->is_object()) return fail(Code::invalid_argument, "'pty' must be an object");
    request.pty = true;
    TRY_ASSIGN(request.cols, pty_side(*pty, "cols", 80));
    TRY_ASSIGN(request.rows, pty_side(*pty, "rows", 24));
  }
  return request;
}

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
      case ipc::Op::audit_list:
        return answer_audit_list(request.body);
      case ipc::Op::audit_open: {
        TRY(answer_audit_open(c, request));
        return json::Value();  // answered with the descriptor
      }
      case ipc::Op::session_list: {
        TRY(only(request.body, {}));
        json::Value list = json::Value::array();
        const bool all = clients_.at(c.number()).role == Role::operator_;
        for (const auto& [id, entry] : entries_)
          if (entry->owner != 0 && (all || entry->owner == c.number())) list.push_back(stat(*entry));
        return json::Value{{"sessions", std::move(list)}};
      }
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
        return json::Value{{"report", entry->session->report()}};
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
  TRY(only(request.body, {"domain", "label", "narrow"}));
  TRY_ASSIGN(const std::string name, need_string(request.body, "domain"));
  TRY_ASSIGN(const auto label, json::get_string(request.body, "label"));
  if (label && label->size() > kMaxLabel)
    return fail(Code::invalid_argument, "'label' is over " + std::to_string(kMaxLabel) + " bytes");
  if (const auto refused = refused_domains_.find(name); refused != refused_domains_.end())
    return fail(Code::unavailable, refused->second);
  const auto domain = domains_.find(name);
  if (domain == domains_.end()) return fail(Code::not_found, "no policy domain " + quote(name));
  TRY(refresh(domain->second));
  json::Value asked{{"domain", name}, {"label", label.value_or("")}, {"policy_digest", domain->second.policy->digest}};

  Entry* entry = nullptr;
  if (const auto narrow = request.body.find("narrow"); narrow != request.body.end() && !narrow->is_null()) {
    asked["narrow"] = *narrow;
    TRY_ASSIGN(const policy::Narrowing by, policy::parse_narrowing(*narrow));
    TRY_ASSIGN(auto narrowed, policy::narrow(domain->second.policy, by));
    asked["policy_digest"] = narrowed->digest;
    TRY_ASSIGN(const Domain single, prepare_domain(std::move(narrowed), &domain->second.canary));
    TRY_ASSIGN(entry, start(name, single.prepared));
  } else if (domain->second.prepared->plan->single_use) {
    TRY_ASSIGN(const Domain single, prepare_domain(domain->second.policy, &domain->second.canary));
    TRY_ASSIGN(entry, start(name, single.prepared));
  } else if ((entry = ready_entry(name)) != nullptr) {
    refill_later(name);
  } else {
    TRY_ASSIGN(entry, start(name, domain->second.prepared));
    refill_later(name);
  }
  entry->owner = c.number();
  entry->canary = domain->second.canary;
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

// Logs are not a client's own: who may ask for them may read those of all sessions, and of none but sessions.
Result<json::Value> Manager::answer_audit_list(const json::Value& body) const {
  TRY(only(body, {"before", "limit"}));
  TRY_ASSIGN(const auto before, json::get_string(body, "before"));
  TRY_ASSIGN(const auto limit, json::get_int(body, "limit"));
  const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(limit.value_or(100), 1, kMaxLogsListed));
  json::Value list = json::Value::array();
  for (const std::string& id : store_->list(before.value_or(""), most))
    list.push_back({{"session", id}, {"running", entries_.contains(id)}});
  return json::Value{{"sessions", std::move(list)}};
}

Status Manager::answer_audit_open(ipc::Connection& c, const ipc::Connection::Request& request) const {
  TRY(only(request.body, {"session", "segment"}));
  TRY_ASSIGN(const std::string id, need_string(request.body, "session"));
  TRY_ASSIGN(const auto segment, json::get_int(request.body, "segment"));
  if (segment && (*segment < 0 || *segment > kMaxSegment)) return fail(Code::invalid_argument, "'segment' is out of range");
  std::vector<Fd> fds;
  TRY_ASSIGN(fds.emplace_back(), store_->open_segment(id, static_cast<unsigned>(segment.value_or(0))));
  c.reply(request.id, {{"running", entries_.contains(id)}}, std::move(fds));
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
  json::Value j{{"session", s.id()},
                {"domain", entry.domain},
                {"label", entry.label},
                {"created_at", entry.created_at},
                {"state", kStates[static_cast<int>(s.state())]},
                {"execs", s.execs().size()},
                {"total_execs", s.totals().execs},
                {"tier", tier_name(s.plan().tier)}};
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
