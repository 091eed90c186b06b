// What the launcher answers to each operation. Every request comes from a client that may be hostile: types, sizes, states
// and ownership are checked here, whatever the agent has checked before.
#include <algorithm>
#include <iterator>

#include "launcher/session/manager.h"
#include "launcher/session/requests.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxLabel = 256, kMaxTasks = 256;
constexpr std::size_t kMaxList = ipc::kMaxMessage - 4096;  // bytes of the entries in one answer
constexpr std::int64_t kReloadUs = 1'000'000;
constexpr std::int64_t kMaxTop = 50;
constexpr std::int64_t kLeftUs = 60'000'000;  // an agent starts within ten seconds of the one before, or something is wrong
constexpr std::int64_t kMaxTimeoutMs = 7LL * 24 * 3600 * 1000;

}  // namespace

ipc::Connection* Manager::connection(std::uint64_t number) {
  const auto it = clients_.find(number);
  return it == clients_.end() ? nullptr : it->second.connection.get();
}

std::uint64_t Manager::serve(Fd socket, Role role, std::function<void(const std::string&)> closed) {
  ipc::Connection::Handler handler{
      .request = [this](ipc::Connection& c, ipc::Connection::Request r) { on_request(c, std::move(r)); },
      .violation = [this](ipc::Connection& c, const std::string& why) { on_closed(c.number(), why); },
      .closed = [this](ipc::Connection& c) { on_closed(c.number(), ""); }};
  auto connection = std::make_unique<ipc::Connection>(std::move(socket), loop_, std::move(handler));
  const std::uint64_t number = connection->number();
  if (role == Role::agent) took_up_ = false;
  ipc::Connection* raw = connection.get();
  clients_.emplace(number, Client{std::move(connection), role, std::move(closed)});
  if (!raw->start()) on_closed(number, "");
  return number;
}

void Manager::on_closed(std::uint64_t number, const std::string& violation) {
  auto node = clients_.extract(number);
  if (node.empty()) return;
  node.mapped().connection->drop();
  record_dropped(node.mapped().refusals);
  const bool agent = node.mapped().role == Role::agent;
  for (auto& [id, entry] : entries_)
    if (entry->owner == number && !(agent && leave_behind(*entry))) entry->session->end("client_gone");
  if (agent) loop_.cancel(left_), left_ = loop_.after(kLeftUs, [this] { end_left(); });
  // The connection's own function is on the stack.
  loop_.after(0, [client = std::make_shared<Client>(std::move(node.mapped())), violation] {
    client->connection.reset();
    client->closed(violation);
  });
}

// In the launcher's log, and in that of the session that was meant.
void Manager::on_refused(const ipc::Connection& c, const json::Value& body, const Error& error) {
  const std::uint64_t number = c.number();
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  Refusals& refusals = client->second.refusals;
  if (refusals.take(sys::monotonic_us())) {
    const json::Value refused{{"op", body.value("op", "")}, {"what", error.text().substr(0, Refusals::kMaxText)}};
    if (const auto entry = find(c, body); entry && (*entry)->log)
      (void)(*entry)->log->append(audit::Event::request_refused, refused);
    return record(audit::Event::request_refused, refused);
  }
  if (refusals.dropped() > 1) return;
  loop_.after(Refusals::kReportUs, [this, number] {
    if (const auto still = clients_.find(number); still != clients_.end()) record_dropped(still->second.refusals);
  });
}

void Manager::record_dropped(Refusals& refusals) {
  if (const std::uint64_t count = refusals.take_dropped(); count > 0)
    record(audit::Event::request_refused, {{"dropped", count}, {"what", "refused like those before, too often to record each"}});
}

Result<Manager::Entry*> Manager::find(const ipc::Connection& connection, const json::Value& body,
                                      std::initializer_list<std::string_view> fields) {
  if (fields.size() != 0) TRY(only(body, fields));
  TRY_ASSIGN(const std::string id, need_string(body, "session"));
  const auto it = entries_.find(id);
  const bool visible = it != entries_.end() && it->second->owner != 0 &&
                       (it->second->owner == connection.number() || clients_.at(connection.number()).role == Role::operator_);
  // Another client's session is answered as one that does not exist: ids tell nothing.
  if (!visible || it->second->session->state() == State::ended) return fail(Code::not_found, "no such session " + quote(id));
  return it->second.get();
}

void Manager::on_request(ipc::Connection& c, ipc::Connection::Request request) {
  using ipc::Op;
  static constexpr std::pair<Op, Answer Manager::*> kAnswers[] = {
      {Op::hello, &Manager::answer_hello},
      {Op::session_create, &Manager::answer_create},
      {Op::session_exec, &Manager::answer_exec},
      {Op::exec_signal, &Manager::answer_signal},
      {Op::session_adopt, &Manager::answer_adopt},
      {Op::exec_adopt, &Manager::answer_exec_adopt},
      {Op::exec_release, &Manager::answer_exec_release},
      {Op::session_stat, &Manager::answer_stat},
      {Op::session_report, &Manager::answer_report},
      {Op::attest, &Manager::answer_attest},
      {Op::audit_list, &Manager::answer_audit_list},
      {Op::audit_open, &Manager::answer_audit_open},
      {Op::session_list, &Manager::answer_list},
      {Op::session_destroy, &Manager::answer_destroy},
      {Op::workspace_create, &Manager::answer_workspace_create},
      {Op::workspace_list, &Manager::answer_workspace_list},
      {Op::workspace_destroy, &Manager::answer_workspace_destroy},
      {Op::workspace_pause, &Manager::answer_workspace_pace},
      {Op::workspace_resume, &Manager::answer_workspace_pace},
      {Op::policy, &Manager::answer_policy},
      {Op::policy_reload, &Manager::answer_reload},
      {Op::agent_restart, &Manager::answer_agent_restart},
  };
  static_assert(std::ranges::equal(kAnswers, ipc::kOps, {}, &std::pair<Op, Answer Manager::*>::first,
                                   &ipc::OpRow::op));  // so an op is an index of both
  answered(c, request, (this->*kAnswers[static_cast<std::size_t>(request.op)].second)(c, request));
}

void Manager::answered(ipc::Connection& c, const ipc::Connection::Request& request, Result<json::Value> done) {
  if (!done) {
    on_refused(c, request.body, done.error());
    c.reply_error(request.id, done.error(), "request");
  } else if (!done->is_null()) {
    c.reply(request.id, std::move(*done));
  }
}

Task<Status> Manager::answer_when(std::uint64_t number, ipc::Connection::Request request, Task<Result<json::Value>> done) {
  auto answer = co_await std::move(done);
  if (ipc::Connection* c = connection(number)) answered(*c, request, std::move(answer));
  co_return Status();
}

Result<json::Value> Manager::answer_hello(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"protocol", "keep"}));
  TRY_ASSIGN(const auto keep, json::get_int(request.body, "keep"));
  TRY_ASSIGN(const auto protocol, json::get_int(request.body, "protocol"));
  if (protocol != ipc::kProtocolVersion)
    return fail(Code::protocol, "this launcher speaks protocol " + std::to_string(ipc::kProtocolVersion));
  std::vector<Fd> fds;
  if (keep && clients_.at(c.number()).role == Role::agent) {
    TRY_ASSIGN(fds.emplace_back(), keep_file(*keep));
  }
  c.opened();
  json::Value names = json::Value::array();
  for (const auto& [name, domain] : domains_) names.push_back(name);
  const std::string home = domains_.empty() ? "/home/gem" : domains_.begin()->second.policy->home_path;
  c.reply(request.id,
          {{"protocol", ipc::kProtocolVersion},
           {"version", CAISSON_VERSION},
           {"tier", tier_name(features_.tier())},
           {"domains", names},
           {"refused_domains", refused_domains_},
           {"preset", settings_.preset},
           {"home", home},
           {"workspace", settings_.default_cwd.empty() ? home : settings_.default_cwd},
           {"max_sessions", settings_.max_sessions}},
          std::move(fds));
  return json::Value();
}

Result<json::Value> Manager::answer_create(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"domain", "label", "narrow", "workspace", "isolation", "keep"}));
  TRY_ASSIGN(const auto keep, json::get_bool(request.body, "keep"));
  TRY_ASSIGN(const std::string name, need_string(request.body, "domain"));
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
  if (const auto narrow = request.body.find("narrow"); narrow != request.body.end() && !narrow->is_null()) {
    TRY_ASSIGN(wanted.by, policy::parse_narrowing(*narrow));
    wanted.narrow = *narrow;
  }
  TRY_ASSIGN(Workspace * workspace, find_workspace(request.body));
  TRY(runs(*workspace));
  if (!workspace->full.is_null())
    return fail(Code::limit, "workspace " + quote(workspace->name) + ": " + std::string(workspace->full));
  if (shut_down_) return fail(Code::unavailable, "the launcher is ending");  // and makes nothing ready
  if (waiting_tasks() >= kMaxTasks) return fail(Code::limit, "too many sessions are being made: try again");
  begin(answer_when(c.number(), request, create_session(std::move(wanted), workspace)));
  return json::Value();  // answered by then
}

// What a session runs in, built for it or before it.
Task<Result<Manager::Entry*>> Manager::find_place(Created& wanted, Workspace& workspace) {
  CO_TRY_ASSIGN(const Domain* domain, co_await domain_in(workspace, wanted.domain));
  CO_TRY(still_wanted(wanted, workspace));
  wanted.canary = domain->canary;
  wanted.digest = domain->policy->digest;
  const bool narrows = !wanted.narrow.is_null();
  if (!wanted.alone && !narrows && !domain->prepared->plan->single_use) {
    Entry* entry = nullptr;
    if (&workspace == default_) entry = ready_entry(wanted.domain), refill_later(wanted.domain);
    if (entry != nullptr) co_return entry;
    co_return start(workspace, wanted.domain, domain->prepared, workspace.place);
  }
  const auto policy = domain->policy;  // the domain may be another's after the next wait
  confine::Workspace own;
  if (wanted.alone) {
    // No copy of the system, either: that is its workspace's, and one of its own would take memory and the launcher's time.
    wanted.by.home_private = wanted.by.tmp_private = wanted.by.system_none = true;
    CO_TRY_ASSIGN(own, co_await make_place(workspace.place.outer_uid, workspace.place.outer_gid, 0));
  }
  CO_TRY_ASSIGN(auto narrowed, policy::narrow(policy, wanted.by));
  wanted.digest = narrowed->digest;
  if (narrowed->system_packages != policy->system_packages) wanted.canary = confine::without_system(wanted.canary);
  const Turns::Turn turn = co_await workspace.turns.take();
  CO_TRY_ASSIGN(const Domain single,
                co_await prepare_domain(workspace, std::move(narrowed), &wanted.canary, wanted.alone ? &own : nullptr));
  CO_TRY(still_wanted(wanted, workspace));
  co_return start(workspace, wanted.domain, single.prepared, wanted.alone ? own : workspace.place);
}

// What may have come about while its domain was made ready.
Status Manager::still_wanted(const Created& wanted, const Workspace& workspace) {
  if (connection(wanted.client) == nullptr) return fail(Code::unavailable, "the client has gone");
  if (!workspace.ending.empty()) return fail(Code::not_found, "no such workspace " + quote(workspace.name, 80));
  return runs(workspace);
}

Task<Result<json::Value>> Manager::create_session(Created wanted, Workspace* workspace) {
  const InUse use(*this, *workspace);
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
  if (Status assigned = assign(*entry); !assigned) {
    // Without a log there is no session: it ends unseen by the client, who gets the reason.
    entry->session->end("audit_failed");
    co_return std::unexpected(std::move(assigned).error().wrap("the session's audit log cannot be written"));
  }
  const auto life = static_cast<std::int64_t>(entry->session->policy().limits.session_seconds);
  entry->life = loop_.after(life * 1'000'000, [this, id, life] {
    if (const auto it = entries_.find(id); it != entries_.end())
      it->second->session->end("session_seconds", {{"allowed", life}, {"figure", life}});
  });
  if (entry->session->state() == State::idle) {
    entry->session->run();
    co_return entry->session->created();
  }
  entry->create_id = wanted.request;
  co_return json::Value();  // answered when it is built
}

Result<json::Value> Manager::answer_exec(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body, {"session", "argv", "cwd", "env", "stdin", "pty", "hard_timeout_ms", "keep"}));
  Session& session = *entry->session;
  if (session.state() != State::running) return fail(Code::not_found, "the session has ended");
  TRY(runs(*entry->workspace));
  TRY_ASSIGN(ExecRequest exec, exec_request(request.body, session.policy()));
  TRY_ASSIGN(const auto with_stdin, json::get_bool(request.body, "stdin"));
  TRY_ASSIGN(const auto timeout_ms, json::get_int(request.body, "hard_timeout_ms"));
  if (timeout_ms && (*timeout_ms < 1 || *timeout_ms > kMaxTimeoutMs))
    return fail(Code::invalid_argument, "'hard_timeout_ms' must be 1 to " + std::to_string(kMaxTimeoutMs));
  TRY_ASSIGN(const auto keep, json::get_bool(request.body, "keep"));
  const std::string label = session.next_label();
  auto started = session.exec(std::move(exec), with_stdin.value_or(true), timeout_ms.value_or(0) * 1000);
  const ExecRequest& asked = started ? (*started)->request : exec;
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
  (*started)->keep = keep.value_or(false) && room_to_keep(*entry);
  session.go(**started);
  entry->exec_ids[(*started)->request.id] = request.id;
  return json::Value();  // answered when it has started
}

Result<json::Value> Manager::answer_signal(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body, {"session", "exec", "signal"}));
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

Result<json::Value> Manager::answer_policy(ipc::Connection&, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"domain"}));
  TRY_ASSIGN(const auto name, json::get_string(request.body, "domain"));
  if (name) {
    const auto domain = domains_.find(*name);
    if (domain == domains_.end()) return fail(Code::not_found, "no policy domain " + quote(*name));
    json::Value policy = policy::to_json(*domain->second.policy);
    policy["digest"] = domain->second.policy->digest;
    return json::Value{{"policy", std::move(policy)}};
  }
  json::Value domains = json::Value::object();
  for (const auto& [key, d] : domains_)
    domains[key] = {{"digest", d.policy->digest}, {"description", d.policy->description}, {"ready", d.prepared != nullptr}};
  return json::Value{
      {"digest", policies_digest_}, {"preset", settings_.preset}, {"domains", domains}, {"refused", refused_domains_}};
}

// Every reload reads and tries all policies: a client that asks for nothing else must not keep the launcher from its work.
Result<json::Value> Manager::answer_reload(ipc::Connection& c, const ipc::Connection::Request& request) {
  const Role role = clients_.at(c.number()).role;
  TRY(only(request.body, {}));
  if (role == Role::agent && sys::monotonic_us() < next_reload_us_)
    return fail(Code::limit, "the policies were reloaded a moment ago");
  begin(answer_when(c.number(), request, reload_for(role)));
  return json::Value();  // answered when it is done
}

Task<Result<json::Value>> Manager::reload_for(Role role) {
  const std::int64_t now = sys::monotonic_us();
  const std::string before = policies_digest_;
  json::Value problems = json::Value::array();
  const Problems found = co_await load_again(role == Role::agent ? "agent" : "operator");
  for (const auto& p : found) problems.push_back(p.text());
  const std::int64_t end = sys::monotonic_us();
  next_reload_us_ = end + std::max(kReloadUs, 3 * (end - now));  // also where reading hangs, most of the time is the others'
  co_return json::Value{{"accepted", problems.empty()}, {"old", before}, {"new", policies_digest_}, {"problems", problems}};
}

Result<json::Value> Manager::answer_stat(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body, {"session"}));
  json::Value answer = stat(*entry);
  // For `caisson policy learn`. Processes of the host are no business of the agent.
  if (clients_.at(c.number()).role == Role::operator_) answer["pid"] = entry->session->pid();
  return answer;
}

Result<json::Value> Manager::answer_report(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(const Entry* entry, find(c, request.body, {"session"}));
  return json::Value{{"workspace", entry->workspace->name},
                     {"isolation", entry->request.value("isolation", "")},
                     {"report", entry->session->report()}};
}

Result<json::Value> Manager::answer_destroy(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY_ASSIGN(Entry * entry, find(c, request.body, {"session", "reason"}));
  TRY_ASSIGN(const auto reason, json::get_string(request.body, "reason"));
  entry->destroyers.emplace_back(c.number(), request.id);
  if (reason) entry->destroy_reason = reason->substr(0, kMaxLabel);
  entry->session->end("destroyed");
  return json::Value();  // answered when nothing is left
}

// In order of id, as many as surely fit into one message; `next` is there when more follow it. A row of `top`: pid as the session
// sees it, name, state, threads, bytes of memory, microseconds of processor time and of age.
Result<json::Value> Manager::answer_list(ipc::Connection& c, const ipc::Connection::Request& request) {
  TRY(only(request.body, {"after", "top"}));
  TRY_ASSIGN(const auto after, json::get_string(request.body, "after"));
  TRY_ASSIGN(const auto top, json::get_int(request.body, "top"));
  const bool all = clients_.at(c.number()).role == Role::operator_;
  json::Value answer{{"sessions", json::Value::array()}};
  std::size_t bytes = 0;
  std::string last;
  for (auto it = entries_.upper_bound(after.value_or("")); it != entries_.end(); ++it) {
    if (it->second->owner == 0 || (!all && it->second->owner != c.number())) continue;
    json::Value one = stat(*it->second);
    if (top && it->second->session->pid() != 0)
      for (const auto& p : processes().largest(it->second->session->pid(), std::clamp<std::int64_t>(*top, 0, kMaxTop)))
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

json::Value Manager::stat(const Entry& entry) const {
  const Session& s = *entry.session;
  static constexpr const char* kStates[] = {"building", "idle", "running", "ending", "ended"};
  json::Value j{{"session", s.id()},
                {"domain", entry.domain},
                {"workspace", entry.workspace->name},
                {"isolation", entry.request.value("isolation", "")},
                {"label", entry.label},
                {"created_at", entry.created_at},
                {"state", kStates[static_cast<int>(s.state())]},
                {"execs", s.execs().size()},
                {"total_execs", s.totals().execs},
                {"tier", tier_name(s.plan().tier)},
                {"network", s.policy().network == policy::Network::none ? "none" : "loopback"},
                {"limits",
                 {{"processes", s.policy().limits.processes},
                  {"memory_bytes", s.policy().limits.memory_bytes},
                  {"cpu_percent", s.policy().limits.cpu_percent},
                  {"execs", s.policy().limits.execs}}}};
  if (s.cgroup()) {
    const confine::CgroupStats c = s.cgroup()->stats();
    j["processes"] = c.pids_current;
    j["memory_bytes"] = c.memory_current;
    j["memory_peak_bytes"] = c.memory_peak;
    j["cpu_us"] = c.cpu_us;
    j["oom_kills"] = c.oom_kills;
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
