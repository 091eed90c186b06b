#include "agent/bridge/launcher_client.h"

#include "agent/bridge/launcher_link.h"
#include "agent/metrics/launcher_names.h"
#include "agent/metrics/registry.h"
#include "agent/traces/traced.h"
#include "launcher/common/tables/fields.h"

namespace caisson::bridge {

Code code_from(std::string_view name) {
  for (const Code code : {Code::invalid_argument, Code::not_found, Code::permission_denied, Code::already_exists,
                          Code::unavailable, Code::limit, Code::timeout, Code::protocol, Code::io})
    if (code_name(code) == name) return code;
  return Code::io;
}

namespace {

using std::chrono::seconds;

int errno_from(std::string_view name) {
  for (int number = 1; number < 134; ++number)
    if (errno_name(number) == name) return number;
  return 0;
}

// The error of an {"ok": false} reply.
ExecRefused refusal(const json::Value& body) {
  const auto it = body.find("error");
  if (it == body.end() || !it->is_object()) return {"", Error(Code::io, "the launcher refused without a reason")};
  return {json::text_of(*it, "step"),
          Error(code_from(json::text_of(*it, "code")), json::text_of(*it, "what"), errno_from(json::text_of(*it, "errno")))};
}

std::unexpected<Error> counted(metrics::Id id, Error error, traces::ChildSpan& span) {
  span.done(code_name(error.code));
  metrics::registry().add(id, {code_name(error.code)});
  return std::unexpected(std::move(error));
}

// How long each step of a new session's confinement took.
void count_steps(const json::Value& created) {
  const auto steps = created.find("steps_us");
  if (steps == created.end() || !steps->is_object()) return;
  for (const auto& [name, us] : steps->items())
    if (us.is_number_unsigned())
      metrics::registry().observe(metrics::Id::session_steps, {metrics::step_label(name)},
                                  std::chrono::microseconds(us.get<std::uint32_t>()));
}

bool is_ok(const json::Value& body) { return body.value("ok", false); }

json::Value exec_body(const std::string& session, const ExecRequest& request) {
  json::Value body = {{"session", session}, {"argv", request.argv}};
  if (!request.cwd.empty()) body["cwd"] = request.cwd;
  for (const auto& [name, value] : request.env) body["env"][name] = value ? json::Value(*value) : json::Value(nullptr);
  if (request.pty) body["pty"] = {{"cols", request.pty->cols}, {"rows", request.pty->rows}};
  else body["stdin"] = request.with_stdin;
  if (request.keep) body["keep"] = true;
  if (request.hard_timeout_ms) body["hard_timeout_ms"] = *request.hard_timeout_ms;
  return body;
}

}  // namespace

LauncherClient::LauncherClient(asio::any_io_executor executor, Fd socket, std::function<void(Error)> on_gone)
    : executor_(executor), link_(std::make_shared<Link>(executor, std::move(socket), std::move(on_gone))) {
  spawn(executor_, "launcher replies", read_loop(link_));
}

LauncherClient::~LauncherClient() {
  link_->on_gone = nullptr;
  link_->on_workspace_end = nullptr;
  link_->on_policy_reload = nullptr;
  link_->on_session_end = nullptr;
  link_->give_up(Error(Code::io, "the client ends"));
}

task<void> LauncherClient::read_loop(std::shared_ptr<Link> link) {
  while (!link->gone) {
    auto received = ipc::receive(link->socket.native_handle(), ipc::Wait::no);
    if (received && *received) {
      if (auto taken = link->dispatch(std::move(**received)); !taken) link->give_up(std::move(taken).error());
    } else if (received) {
      const auto [error] = co_await link->socket.async_wait(asio::posix::stream_descriptor::wait_read, as_values);
      if (error && !link->gone) link->give_up(Error(Code::io, "wait for the launcher", error.value()));
    } else {
      link->give_up(std::move(received).error());
    }
  }
  co_return Status{};
}

task<void> LauncherClient::write_loop(std::shared_ptr<Link> link) {
  while (!link->gone && !link->outbox.empty()) {
    auto sent = ipc::send(link->socket.native_handle(), link->outbox.front());
    if (sent) {
      link->outbox.pop_front();
    } else if (sent.error().sys == EAGAIN) {
      const auto [error] = co_await link->socket.async_wait(asio::posix::stream_descriptor::wait_write, as_values);
      if (error && !link->gone) link->give_up(Error(Code::io, "wait for the launcher", error.value()));
    } else {
      link->give_up(std::move(sent).error());
    }
  }
  link->writing = false;
  co_return Status{};
}

task<std::shared_ptr<LauncherClient::Pending>> LauncherClient::call(ipc::Op op, json::Value body,
                                                                    std::chrono::milliseconds limit) {
  const std::shared_ptr<Link> link = link_;
  const std::int64_t id = link->next_id++;
  const std::string name(ipc::kOps[static_cast<std::size_t>(op)].name);
  body["id"] = id;
  body["op"] = name;
  auto entry = std::make_shared<Pending>(executor_, op);
  entry->session = json::text_of(body, "session");
  if (op == ipc::Op::session_create) entry->domain = json::text_of(body, "domain");
  entry->hard_timeout_ms = json::number_of(body, "hard_timeout_ms").value_or(0);
  entry->keep = op == ipc::Op::session_exec && json::flag_of(body, "keep");
  if (auto sent = link->submit(std::move(body)); !sent) co_return std::unexpected(std::move(sent).error().wrap(name));
  link->pending[id] = entry;
  if (!link->outbox.empty() && !std::exchange(link->writing, true)) spawn(executor_, "launcher requests", write_loop(link));

  // However this coroutine ends, the request is marked as abandoned; its reply is still read, and undone where necessary.
  struct Abandon {
    Pending& entry;
    ~Abandon() { entry.abandoned = true; }
  };
  const Abandon abandon{*entry};
  const Clock::time_point deadline = Clock::now() + limit;
  while (!entry->reply && !link->gone)
    if (!co_await entry->changed.wait_until(deadline)) break;
  if (entry->reply) co_return entry;
  if (link->gone) co_return fail(Code::io, name + ": the launcher is gone");
  co_return fail(Code::timeout, name + ": no answer from the launcher");
}

task<json::Value> LauncherClient::query(ipc::Op op, json::Value body, std::chrono::milliseconds limit) {
  CO_TRY_ASSIGN(const auto entry, co_await call(op, std::move(body), limit));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  co_return std::move(entry->reply->body);
}

task<Greeting> LauncherClient::hello(std::size_t keep_bytes) {
  json::Value body = {{"protocol", ipc::kProtocolVersion}};
  if (keep_bytes > 0) body["keep"] = keep_bytes;
  CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::hello, std::move(body), seconds(10)));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  if (entry->reply->fds.size() == 1) keep_ = std::move(entry->reply->fds[0]);
  const json::Value& reply = entry->reply->body;
  Greeting greeting;
  greeting.version = json::text_of(reply, "version");
  greeting.tier = json::text_of(reply, "tier");
  greeting.home = json::text_of(reply, "home");
  greeting.workspace = json::text_of(reply, "workspace");
  if (const auto it = reply.find("domains"); it != reply.end() && it->is_array())
    for (const json::Value& domain : *it)
      if (domain.is_string()) greeting.domains.push_back(domain.get<std::string>());
  CO_TRY_ASSIGN(const auto most, json::get_int(reply, "max_sessions"));
  greeting.max_sessions = most.value_or(0);
  greeting_ = greeting;
  co_return greeting;
}

task<std::shared_ptr<SessionHandle>> LauncherClient::session_create(std::string domain, std::string label, std::string workspace,
                                                                    bool isolated, std::uint64_t memory_bytes, bool keep) {
  traces::ChildSpan span(co_await asio::this_coro::executor, "session_create");
  span.about("caisson.domain", domain);
  json::Value body = {{"domain", std::move(domain)}, {"workspace", workspace}};
  if (!label.empty()) body["label"] = std::move(label);
  if (isolated) body["isolation"] = "private";
  if (keep) body["keep"] = true;
  if (memory_bytes != 0) body["narrow"] = {{"limits", {{"memory_bytes", memory_bytes}}}};
  const metrics::Stopwatch watch;
  auto answered = co_await call(ipc::Op::session_create, std::move(body), seconds(30));
  if (!answered) co_return counted(metrics::Id::session_refusals, std::move(answered).error(), span);
  const auto entry = std::move(*answered);
  if (!is_ok(entry->reply->body)) co_return counted(metrics::Id::session_refusals, refusal(entry->reply->body).error, span);
  span.session(entry->created->id);
  span.done();
  metrics::registry().observe(metrics::Id::session_create, {entry->domain}, watch.elapsed());
  count_steps(entry->reply->body);
  if (const auto it = entry->reply->body.find("report"); it != entry->reply->body.end()) entry->created->report = std::move(*it);
  entry->created->workspace = std::move(workspace);
  entry->created->isolated = isolated;
  co_return entry->created;
}

task<ExecOutcome> LauncherClient::session_exec(std::shared_ptr<SessionHandle> session, ExecRequest request) {
  const bool wants_pty = request.pty.has_value();
  const bool wants_stdin = request.with_stdin;
  if (request.tool) request.argv.at(0).insert(0, session->tools + "/");
  else if (variables_of) request.env.merge(co_await variables_of(session));
  json::Value body = exec_body(session->id, request);
  const metrics::Stopwatch watch;
  traces::ChildSpan span(co_await asio::this_coro::executor, "session_exec");
  span.about("caisson.domain", session->domain);
  span.session(session->id);
  auto answered = co_await call(ipc::Op::session_exec, std::move(body), seconds(30));
  if (!answered) co_return counted(metrics::Id::exec_refusals, std::move(answered).error(), span);
  const auto entry = std::move(*answered);
  if (!is_ok(entry->reply->body)) {
    ExecRefused refused = refusal(entry->reply->body);
    metrics::registry().add(metrics::Id::exec_refusals, {code_name(refused.error.code)});
    span.done(code_name(refused.error.code));
    co_return ExecOutcome(std::move(refused));
  }
  metrics::registry().observe(metrics::Id::exec_start, {session->domain}, watch.elapsed());
  span.done();
  std::vector<Fd>& fds = entry->reply->fds;
  const std::size_t expected = wants_pty ? 1 : wants_stdin ? 3 : 2;
  if (fds.size() != expected) co_return fail(Code::io, "session_exec: unexpected descriptors from the launcher");
  ExecStarted started;
  started.handle = entry->exec;
  CO_TRY_ASSIGN(const auto pid, json::get_int(entry->reply->body, "pid"));
  started.pid = pid.value_or(0);
  if (wants_pty) {
    started.pty = std::move(fds[0]);
  } else {
    std::size_t next = 0;
    if (wants_stdin) started.stdin_pipe = std::move(fds[next++]);
    started.stdout_pipe = std::move(fds[next]);
    started.stderr_pipe = std::move(fds[next + 1]);
  }
  ExecOutcome outcome = std::move(started);
  co_return outcome;
}

task<std::vector<LeftSession>> LauncherClient::session_adopt() {
  std::vector<LeftSession> out;
  for (;;) {
    json::Value body = json::Value::object();
    CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::session_adopt, std::move(body), seconds(10)));
    if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
    if (!entry->created) co_return out;
    const json::Value& reply = entry->reply->body;
    LeftSession& one = out.emplace_back();
    one.handle = entry->created;
    one.handle->workspace = json::text_of(reply, "workspace");
    one.handle->isolated = json::text_of(reply, "isolation") == "private";
    one.domain = json::text_of(reply, "domain");
    if (const auto it = reply.find("execs"); it != reply.end() && it->is_array())
      for (const json::Value& exec : *it)
        if (exec.is_string()) one.execs.push_back(exec.get<std::string>());
  }
}

task<ExecStarted> LauncherClient::exec_adopt(std::shared_ptr<SessionHandle> session, std::string exec) {
  json::Value body = {{"session", session->id}, {"exec", std::move(exec)}};
  CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::exec_adopt, std::move(body), seconds(10)));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  ExecStarted started;
  started.handle = entry->exec;
  const auto ends = entry->reply->body.find("ends");
  if (ends == entry->reply->body.end() || ends->size() != entry->reply->fds.size())
    co_return fail(Code::io, "exec_adopt: unexpected descriptors from the launcher");
  std::size_t at = 0;
  for (const json::Value& end : *ends) {
    Fd& fd = entry->reply->fds[at++];
    if (end == "stdin") started.stdin_pipe = std::move(fd);
    else if (end == "stdout") started.stdout_pipe = std::move(fd);
    else if (end == "stderr") started.stderr_pipe = std::move(fd);
    else if (end == "pty") started.pty = std::move(fd);
  }
  co_return started;
}

task<void> LauncherClient::exec_signal(std::shared_ptr<ExecHandle> exec, std::string signal) {
  json::Value body = {{"session", exec->session}, {"exec", exec->id}, {"signal", std::move(signal)}};
  CO_TRY(co_await query(ipc::Op::exec_signal, std::move(body), seconds(10)));
  co_return Status{};
}

task<json::Value> LauncherClient::session_stat(std::string session) {
  json::Value body = {{"session", std::move(session)}};
  co_return co_await query(ipc::Op::session_stat, std::move(body), seconds(10));
}

task<json::Value> LauncherClient::session_report(std::string session) {
  json::Value body = {{"session", std::move(session)}};
  co_return co_await query(ipc::Op::session_report, std::move(body), seconds(10));
}

task<json::Value> LauncherClient::attest(std::string session, std::string nonce) {
  json::Value body = json::Value::object();
  if (!session.empty()) body["session"] = std::move(session);
  if (!nonce.empty()) body["nonce"] = std::move(nonce);
  co_return co_await query(ipc::Op::attest, std::move(body), seconds(10));
}

task<json::Value> LauncherClient::policy(std::string domain) {
  json::Value body = json::Value::object();
  if (!domain.empty()) body["domain"] = std::move(domain);
  co_return co_await query(ipc::Op::policy, std::move(body), seconds(10));
}

task<json::Value> LauncherClient::policy_reload() {
  json::Value body = json::Value::object();
  co_return co_await query(ipc::Op::policy_reload, std::move(body), seconds(30));
}

task<json::Value> LauncherClient::session_list(std::string after, std::int64_t top) {
  json::Value body = {{"after", std::move(after)}};
  if (top > 0) body["top"] = top;
  co_return co_await query(ipc::Op::session_list, std::move(body), seconds(10));
}

task<json::Value> LauncherClient::audit_list(std::string before, std::int64_t limit) {
  json::Value body = {{"limit", limit}};
  if (!before.empty()) body["before"] = std::move(before);
  co_return co_await query(ipc::Op::audit_list, std::move(body), seconds(10));
}

task<AuditSegment> LauncherClient::audit_open(std::string session, std::int64_t segment) {
  json::Value body = {{"session", std::move(session)}, {"segment", segment}};
  CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::audit_open, std::move(body), seconds(10)));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  if (entry->reply->fds.size() != 1) co_return fail(Code::io, "audit_open: unexpected descriptors from the launcher");
  AuditSegment out{std::move(entry->reply->fds[0]), entry->reply->body.value("running", false)};
  co_return out;
}

std::size_t LauncherClient::pending() const { return link_->pending.size(); }

// Requests are numbered, so the first one is the oldest.
Clock::duration LauncherClient::silence() const {
  if (link_->pending.empty()) return Clock::duration::zero();
  return Clock::now() - std::max(link_->last_word, link_->pending.begin()->second->since);
}

std::vector<std::shared_ptr<SessionHandle>> LauncherClient::living() const {
  std::vector<std::shared_ptr<SessionHandle>> out;
  for (const auto& [id, known] : link_->sessions)
    if (auto session = known.lock(); session && !session->ended) out.push_back(std::move(session));
  return out;
}

task<void> LauncherClient::session_destroy(std::shared_ptr<SessionHandle> session, std::string reason) {
  session->on_end = nullptr;  // the caller knows
  if (std::exchange(session->ended, true)) co_return Status{};
  session->end = end_of(reason);
  count_end(metrics::Id::session_ends, session->end);
  json::Value body = {{"session", session->id}, {"reason", std::move(reason)}};
  CO_TRY(co_await query(ipc::Op::session_destroy, std::move(body), seconds(30)));
  co_return Status{};
}

task<json::Value> LauncherClient::workspace_create(json::Value request) {
  CO_TRY_ASSIGN(json::Value reply, co_await query(ipc::Op::workspace_create, std::move(request), seconds(30)));
  co_return std::move(reply["workspace"]);
}

task<std::map<std::string, std::int64_t>> LauncherClient::denied() {
  json::Value body = json::Value::object();
  CO_TRY_ASSIGN(const json::Value reply, co_await query(ipc::Op::workspace_list, std::move(body), seconds(10)));
  std::map<std::string, std::int64_t> out;
  if (const auto counts = reply.find("denied"); counts != reply.end() && counts->is_object())
    for (const auto& [call, count] : counts->items())
      if (count.is_number_integer()) out[call] = count.get<std::int64_t>();
  co_return out;
}

task<std::vector<json::Value>> LauncherClient::workspace_list() {
  json::Value body = json::Value::object();
  CO_TRY_ASSIGN(json::Value reply, co_await query(ipc::Op::workspace_list, std::move(body), seconds(10)));
  json::Value& list = reply["workspaces"];
  if (!list.is_array()) co_return fail(Code::io, "workspace_list: no list from the launcher");
  std::vector<json::Value> out(list.begin(), list.end());
  co_return out;
}

task<void> LauncherClient::workspace_destroy(std::string name, std::string reason) {
  json::Value body = {{"workspace", std::move(name)}, {"reason", std::move(reason)}};
  CO_TRY(co_await query(ipc::Op::workspace_destroy, std::move(body), seconds(30)));
  co_return Status{};
}

task<void> LauncherClient::workspace_pause(std::string name) {
  json::Value body = {{"workspace", std::move(name)}};
  CO_TRY(co_await query(ipc::Op::workspace_pause, std::move(body), seconds(30)));
  co_return Status{};
}

task<void> LauncherClient::workspace_resume(std::string name) {
  json::Value body = {{"workspace", std::move(name)}};
  CO_TRY(co_await query(ipc::Op::workspace_resume, std::move(body), seconds(30)));
  co_return Status{};
}

task<Fd> LauncherClient::workspace_connect(std::string workspace, std::uint16_t port) {
  json::Value body = {{"workspace", std::move(workspace)}, {"port", port}};
  CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::workspace_connect, std::move(body), seconds(30)));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  if (entry->reply->fds.size() != 1) co_return fail(Code::io, "workspace_connect: unexpected descriptors from the launcher");
  co_return std::move(entry->reply->fds[0]);
}

task<std::vector<Fd>> LauncherClient::workspace_listen(std::string workspace, std::uint16_t port) {
  json::Value body = {{"workspace", std::move(workspace)}, {"port", port}, {"listen", true}};
  CO_TRY_ASSIGN(const auto entry, co_await call(ipc::Op::workspace_connect, std::move(body), seconds(30)));
  if (!is_ok(entry->reply->body)) co_return std::unexpected(refusal(entry->reply->body).error);
  if (entry->reply->fds.empty()) co_return fail(Code::io, "workspace_connect: no descriptor from the launcher");
  co_return std::move(entry->reply->fds);
}

task<void> LauncherClient::session_note(std::string session, json::Value note) {
  json::Value body = {{"session", std::move(session)}, {"note", std::move(note)}};
  CO_TRY(co_await query(ipc::Op::session_note, std::move(body), seconds(10)));
  co_return Status{};
}

void LauncherClient::on_workspace_end(std::function<void(const std::string&)> told) { link_->on_workspace_end = std::move(told); }

void LauncherClient::on_policy_reload(std::function<void()> told) { link_->on_policy_reload = std::move(told); }
void LauncherClient::on_session_end(std::function<void(const SessionHandle&)> told) { link_->on_session_end = std::move(told); }

bool LauncherClient::fits(const std::string& session, const ExecRequest& request) {
  constexpr std::size_t kHead = 256;  // id and op, which call() adds
  return json::dump(exec_body(session, request)).size() + kHead <= ipc::kMaxMessage;
}

}  // namespace caisson::bridge
