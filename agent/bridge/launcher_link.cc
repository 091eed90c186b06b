#include "agent/bridge/launcher_link.h"

#include <csignal>

#include "agent/metrics/registry.h"
#include "launcher/common/tables/fields.h"

namespace caisson::bridge {
namespace {

constexpr std::size_t kMaxOutbox = 1024;

int signal_number(std::string_view name) {
  struct Row {
    std::string_view name;
    int number;
  };
  constexpr Row kRows[] = {{"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT}, {"SIGILL", SIGILL},
                           {"SIGTRAP", SIGTRAP}, {"SIGABRT", SIGABRT}, {"SIGBUS", SIGBUS},   {"SIGFPE", SIGFPE},
                           {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1}, {"SIGSEGV", SIGSEGV}, {"SIGUSR2", SIGUSR2},
                           {"SIGPIPE", SIGPIPE}, {"SIGALRM", SIGALRM}, {"SIGTERM", SIGTERM}, {"SIGXCPU", SIGXCPU},
                           {"SIGXFSZ", SIGXFSZ}, {"SIGSYS", SIGSYS}};
  for (const Row& row : kRows)
    if (row.name == name) return row.number;
  return 0;
}

// A limit's name in the launcher's words, or "other": the list of a label's values stays closed.
std::string_view limit_label(std::string_view name) {
  constexpr std::string_view kLimits[] = {"memory_bytes",    "processes",       "disk_bytes",  "cpu_seconds", "file_size_bytes",
                                          "session_seconds", "hard_timeout_ms", "frame_bytes", "idle_seconds"};
  for (const std::string_view known : kLimits)
    if (known == name) return known;
  return "other";
}

}  // namespace

void count_end(metrics::Id id, const End& end) {
  metrics::Registry& counted = metrics::registry();
  counted.add(id, {end.reason});
  if (end.reason == "policy") counted.add(metrics::Id::refused_calls, {end.limit == "seccomp" ? "seccomp" : "session"});
  else if (end.limit) counted.add(metrics::Id::limits_reached, {limit_label(*end.limit)});
}

LauncherClient::Link::Link(asio::any_io_executor e, Fd fd, std::function<void(Error)> gone_)
    : executor(e), socket(e, fd.release()), on_gone(std::move(gone_)) {
  boost::system::error_code ignored;  // a blocking socket still works: every receive is MSG_DONTWAIT
  socket.non_blocking(true, ignored);
}

Status LauncherClient::Link::submit(json::Value body) {
  if (gone) return fail(Code::io, "the launcher is gone");
  if (outbox.empty()) {
    auto sent = ipc::send(socket.native_handle(), body);
    if (sent) return {};
    if (sent.error().sys != EAGAIN) return sent;
  }
  if (outbox.size() >= kMaxOutbox) return fail(Code::limit, "too many requests wait for the launcher");
  outbox.push_back(std::move(body));
  return {};
}

void LauncherClient::Link::give_up(Error error) {
  if (std::exchange(gone, true)) return;
  for (auto& [id, entry] : pending) entry->changed.notify_all();
  pending.clear();
  boost::system::error_code ignored;
  socket.close(ignored);
  if (on_gone) on_gone(std::move(error));
}

Status LauncherClient::Link::dispatch(ipc::Message message) {
  last_word = Clock::now();
  if (message.body.contains("event")) {
    const std::string event = json::text_of(message.body, "event");
    if (event == "exec_exit") return take_exec_exit(message.body);
    if (event == "session_end") return take_session_end(message.body);
    if (event == "workspace_end" && on_workspace_end) on_workspace_end(json::text_of(message.body, "workspace"));
    if (event == "policy_reload" && on_policy_reload) on_policy_reload();
    return {};  // an event of a newer launcher
  }
  TRY_ASSIGN(const auto id, json::get_int(message.body, "id"));
  if (!id) return fail(Code::protocol, "a reply without an id");
  return take_reply(*id, std::move(message));
}

Status LauncherClient::Link::take_reply(std::int64_t id, ipc::Message message) {
  const auto it = pending.find(id);
  if (it == pending.end()) return fail(Code::protocol, "a reply to no request");
  const std::shared_ptr<Pending> entry = std::move(it->second);
  pending.erase(it);
  TRY_ASSIGN(const auto ok, json::get_bool(message.body, "ok"));
  if (ok.value_or(false)) {
    // Handles are made here, not by the coroutine that asked: an event may be the very next message.
    if (entry->op == ipc::Op::session_exec || entry->op == ipc::Op::exec_adopt) {
      const bool keep = entry->keep || entry->op == ipc::Op::exec_adopt;
      entry->exec = make_exec(entry->session, json::text_of(message.body, "exec"), keep);
      entry->exec->hard_timeout_ms = entry->hard_timeout_ms;
      if (entry->abandoned) entry->exec->let_go("");
    } else if (entry->op == ipc::Op::session_create ||
               (entry->op == ipc::Op::session_adopt && message.body.contains("session"))) {
      entry->created = std::make_shared<SessionHandle>();
      entry->created->id = json::text_of(message.body, "session");
      entry->created->tools = json::text_of(message.body, "tools");
      entry->created->domain = entry->op == ipc::Op::session_create ? entry->domain : json::text_of(message.body, "domain");
      sessions[entry->created->id] = entry->created;
      if (entry->abandoned) {  // the caller has gone, and nothing else would destroy the session
        return post(ipc::Op::session_destroy, {{"session", entry->created->id}});
      }
    }
  }
  entry->reply = std::move(message);
  entry->changed.notify_all();
  return {};
}

Status LauncherClient::Link::post(ipc::Op op, json::Value body) {
  body["id"] = next_id;
  body["op"] = std::string(ipc::kOps[static_cast<std::size_t>(op)].name);
  auto entry = std::make_shared<Pending>(executor, op);
  entry->abandoned = true;
  pending[next_id++] = entry;
  TRY(submit(std::move(body)));
  if (!outbox.empty() && !std::exchange(writing, true)) spawn(executor, "launcher requests", write_loop(shared_from_this()));
  return {};
}

std::shared_ptr<ExecHandle> LauncherClient::Link::make_exec(const std::string& session, const std::string& id, bool keep) {
  auto exec = std::make_shared<ExecHandle>(executor);
  exec->session = session;
  exec->id = id;
  execs[{session, id}] = exec;
  if (!keep) return exec;
  exec->let_go = [link = weak_from_this(), session, id](const std::string& end) {
    const auto there = link.lock();
    if (!there || there->gone || !there->sessions.contains(session)) return;
    json::Value body = {{"session", session}, {"exec", id}};
    if (!end.empty()) body["end"] = end;
    (void)there->post(ipc::Op::exec_release, std::move(body));  // without a launcher there is nothing to release
  };
  return exec;
}

Status LauncherClient::Link::take_exec_exit(const json::Value& event) {
  const auto it = execs.find({json::text_of(event, "session"), json::text_of(event, "exec")});
  if (it == execs.end()) return {};  // an exec whose caller has given up
  const std::shared_ptr<ExecHandle> exec = it->second.lock();
  execs.erase(it);
  if (!exec) return {};
  ExecExit exit;
  exit.reason = json::text_of(event, "reason");
  exit.signal = json::text_of(event, "signal");
  TRY_ASSIGN(const auto code, json::get_int(event, "exit_code"));
  exit.end = exec_end(event, exec->hard_timeout_ms);
  // We know why we ended the session; the launcher knows only our word for it.
  if (exit.end.cause == "destroyed")
    if (const auto known = sessions.find(exec->session); known != sessions.end())
      if (const auto session = known->second.lock(); session && !session->end.reason.empty()) exit.end = session->end;
  exit.exit_code = code ? static_cast<int>(*code) : 128 + signal_number(exit.signal);
  count_end(metrics::Id::command_ends, exit.end);
  exec->exit = std::move(exit);
  exec->changed.notify_all();
  return {};
}

Status LauncherClient::Link::take_session_end(const json::Value& event) {
  const std::string id = json::text_of(event, "session");
  const std::string reason = json::text_of(event, "reason");
  const End end = session_end(event);
  // exec_exit events come first. If one is missing, its waiters must not wait for ever.
  for (auto it = execs.lower_bound({id, ""}); it != execs.end() && it->first.first == id; it = execs.erase(it)) {
    const std::shared_ptr<ExecHandle> exec = it->second.lock();
    if (!exec) continue;
    exec->exit = ExecExit{.exit_code = 128 + SIGKILL, .signal = "SIGKILL", .reason = "session_end", .end = end};
    exec->changed.notify_all();
  }
  const auto it = sessions.find(id);
  if (it == sessions.end()) return {};
  const std::shared_ptr<SessionHandle> session = it->second.lock();
  sessions.erase(it);
  if (!session || std::exchange(session->ended, true)) return {};
  session->end_reason = reason;
  session->end = end;
  count_end(metrics::Id::session_ends, end);
  if (on_session_end) on_session_end(*session);
  if (auto on_end = std::exchange(session->on_end, nullptr)) on_end();
  return {};
}

}  // namespace caisson::bridge
