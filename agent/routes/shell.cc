// /v1/shell: commands in a terminal whose state persists. A failing tool is 200 with success:false; an unknown session is
// 404 in the envelope. On an explicit Accept: text/event-stream exec and view answer with events instead:
//   event: output   data: {"data": "<text as the terminal gets it>"}     any number of times
//   event: status   data: {"status": "running"}                          view only, first
//   event: done     data: the JSON of the ordinary answer's `data`       last
#include "agent/http/json_text.h"
#include "agent/routes/shell_results.h"
#include "agent/routes/shell_ws.h"
#include "agent/routes/table.h"
#include "agent/services/common/counted.h"
#include "agent/services/common/text.h"
#include "agent/services/workspace/workspace.h"

namespace caisson::routes {
namespace {

using services::OutputBuffer;
using services::ShellService;
using services::ShellSession;
using services::ShellStatus;

constexpr std::int64_t kDefaultWaitSeconds = 30;
constexpr std::size_t kEventBytes = 32 * 1024;

http::Event event_of(std::string name, const json::Value& data) { return {.event = std::move(name), .data = json::dump(data)}; }

// Sends the bytes of `buffer` from `at` on. An incomplete code point at the end waits for its rest, unless `all`.
task<void> send_new(http::EventStream& stream, const OutputBuffer& buffer, std::uint64_t& at, bool all) {
  while (true) {
    std::string bytes = buffer.read(at, kEventBytes);
    const std::uint64_t start = std::max(at, buffer.begin());
    if (!all) bytes.resize(bytes.size() - services::incomplete_tail(bytes));
    if (bytes.empty()) co_return Status{};
    at = start + bytes.size();
    CO_TRY(co_await stream.send(event_of("output", {{"data", services::to_utf8(bytes)}})));
  }
}

std::size_t kept_of(const OutputBuffer& buffer) { return static_cast<std::size_t>(buffer.end() - buffer.begin()); }

task<http::Response> stream_exec(Call call, ShellService::SessionPtr s, ShellService::CommandPtr command,
                                 bridge::Clock::time_point deadline, double quiet, bool truncate) {
  const services::Counted<int> attached(s->attached);
  CO_TRY_ASSIGN(http::EventStream stream, co_await call.event_stream());
  std::uint64_t at = 0;
  ShellStatus outcome = ShellStatus::running;
  while (true) {
    CO_TRY(co_await send_new(stream, command->output, at, command->finished));
    const auto silent =
        command->last_change + std::chrono::duration_cast<bridge::Clock::duration>(std::chrono::duration<double>(quiet));
    const auto next = quiet > 0 ? std::min(deadline, silent) : deadline;
    if (command->finished) outcome = command->status;
    else if (bridge::Clock::now() >= next) outcome = next == deadline ? ShellStatus::running : ShellStatus::no_change_timeout;
    else {
      (void)co_await command->changed.wait_until(next);
      continue;
    }
    break;
  }
  CO_TRY_ASSIGN(auto turn, co_await call.work(kept_of(command->output)));
  http::Event done{.event = "done"};
  done.data = co_await http::json_text(encode(command_result(*s, *command, outcome, truncate)));
  turn = {};  // a slow client must not hold the turn
  CO_TRY(co_await stream.send(std::move(done)));
  co_return http::already_sent();
}

task<http::Response> shell_exec(Call call, ShellExecRequest body) {
  ShellService& service = call.services.workspace->shell;
  ShellService::SessionPtr s;
  if (body.id.value_or("").empty()) {
    ShellService::CreateParams params{.implicit = true};
    CO_TRY_ASSIGN(s, co_await service.create(std::move(params)));
  } else {
    s = service.find(*body.id);
    if (!s) co_return http::session_not_found();
  }
  if (body.command.contains('\0')) co_return http::fail("the command contains a NUL byte");
  services::ShellExecParams params{.command = std::move(body.command),
                                   .exec_dir = body.exec_dir.value_or(""),
                                   .strict = body.strict.value_or(false),
                                   .preserve_symlinks = body.preserve_symlinks.value_or(false),
                                   .hard_timeout = body.hard_timeout};
  const double quiet = body.no_change_timeout ? static_cast<double>(*body.no_change_timeout) : s->no_change_timeout;
  const auto deadline = body.timeout ? bridge::deadline_after(*body.timeout) : bridge::no_deadline();
  CO_TRY_ASSIGN(const ShellService::CommandPtr command, ShellSession::enqueue(s, std::move(params)));
  if (call.request.accepts_event_stream()) co_return co_await stream_exec(call, s, command, deadline, quiet, body.truncate);
  ShellStatus outcome = ShellStatus::running;
  if (!body.async_mode) outcome = co_await ShellService::wait(command, deadline, quiet);
  s->touch();
  CO_TRY_ASSIGN(const auto turn, co_await call.answer_of(kept_of(command->output), true));
  json::Value data = encode(command_result(*s, *command, outcome, body.truncate));
  if (const std::string why = exec_failure(*command); command->finished && !why.empty())
    co_return http::fail(why, std::move(data));
  co_return http::ok(std::move(data), "Operation successful",
                     outcome == ShellStatus::no_change_timeout
                         ? std::optional<std::string>("the command still runs: /v1/shell/write, /wait and /kill reach it")
                         : std::nullopt);
}

task<http::Response> stream_view(Call call, ShellService::SessionPtr s) {
  const services::Counted<int> attached(s->attached);
  CO_TRY_ASSIGN(http::EventStream stream, co_await call.event_stream());
  std::uint64_t at = s->screen().begin();
  CO_TRY(co_await stream.send(event_of("status", {{"status", latest_status(*s)}})));
  while (true) {
    const bool over = s->closed() || !s->current();
    CO_TRY(co_await send_new(stream, s->screen(), at, over));
    if (over) break;
    (void)co_await s->changed.wait_until(bridge::no_deadline());
  }
  CO_TRY_ASSIGN(auto turn, co_await call.work(kept_of(s->screen())));
  http::Event done{.event = "done"};
  done.data = co_await http::json_text(encode(view_result(*s)));
  turn = {};  // a slow client must not hold the turn
  CO_TRY(co_await stream.send(std::move(done)));
  co_return http::already_sent();
}

task<http::Response> shell_view(Call call, ShellViewRequest body) {
  const auto s = call.services.workspace->shell.find(body.id);
  if (!s) co_return http::session_not_found();
  s->touch();
  if (call.request.accepts_event_stream()) co_return co_await stream_view(call, s);
  CO_TRY_ASSIGN(const auto turn, co_await call.answer_of(kept_of(s->screen()), false));
  co_return http::ok(encode(view_result(*s)));
}

task<http::Response> shell_wait(Call call, ShellWaitRequest body) {
  const auto s = call.services.workspace->shell.find(body.id);
  if (!s) co_return http::session_not_found();
  s->touch();
  const std::int64_t seconds = body.seconds.value_or(body.max_wait_seconds.value_or(kDefaultWaitSeconds));
  const std::int64_t most = std::min(seconds, body.max_wait_seconds.value_or(seconds));
  const auto deadline = bridge::deadline_after(static_cast<double>(most));
  ShellStatus status = ShellStatus::completed;
  const auto pending = s->newest();
  if (pending) status = co_await ShellService::wait(pending, deadline, 0);
  ShellWaitResult result{std::string(services::status_name(status))};
  if (pending) result.end = pending->end_if_over();
  co_return http::ok(encode(result));
}

task<http::Response> shell_write(Call call, ShellWriteToProcessRequest body) {
  const auto s = call.services.workspace->shell.find(body.id);
  if (!s) co_return http::session_not_found();
  std::string input = std::move(body.input);
  if (body.press_enter) input += '\r';  // the byte of the Enter key, which the terminal turns into a newline
  CO_TRY(co_await ShellSession::type(s, std::move(input)));
  ShellWriteResult result{latest_status(*s)};
  co_return http::ok(encode(result));
}

task<http::Response> shell_kill(Call call, ShellKillProcessRequest body) {
  const auto s = call.services.workspace->shell.find(body.id);
  if (!s) co_return http::session_not_found();
  s->touch();
  ShellKillResult result;
  const auto newest = s->newest();
  const auto command = s->current() || !newest || newest->finished ? s->current() : newest;
  if (command) {
    CO_TRY(co_await ShellSession::end_command(s, command, ShellStatus::terminated));
    result.status = services::status_name(command->status);
    result.end = command->end_if_over();
  } else {
    result.status = latest_status(*s);
    if (newest && newest->exit_code) result.exit_code = result.returncode = *newest->exit_code;
    if (newest) result.end = newest->end_if_over();
  }
  co_return http::ok(encode(result));
}

task<http::Response> shell_create_session(Call call, ShellCreateSessionRequest body) {
  ShellService::CreateParams params{.id = body.id.value_or(""),
                                    .exec_dir = body.exec_dir.value_or(""),
                                    .preserve_symlinks = body.preserve_symlinks.value_or(false),
                                    .isolated = isolated(body.isolation)};
  CO_TRY_ASSIGN(const auto s, co_await call.services.workspace->shell.create(std::move(params)));
  if (body.no_change_timeout) s->no_change_timeout = static_cast<double>(*body.no_change_timeout), s->save();
  ShellCreateSessionResponse result{s->id, s->cwd()};
  co_return http::ok(encode(result));
}

task<http::Response> shell_update_session(Call call, ShellUpdateSessionRequest body) {
  const auto s = call.services.workspace->shell.find(body.id);
  if (!s) co_return http::session_not_found();
  s->touch();
  if (body.no_change_timeout) s->no_change_timeout = static_cast<double>(*body.no_change_timeout), s->save();
  co_return http::ok(nullptr, "Session updated");
}

task<http::Response> shell_terminal_url(Call call) {
  ShellService::CreateParams params{.implicit = true, .for_person = true};
  CO_TRY_ASSIGN(const auto s, co_await call.services.workspace->shell.create(std::move(params)));
  const std::string scheme(call.request.header("x-forwarded-proto") == "https" ? "https" : "http");
  const std::string host(call.request.header("x-forwarded-host").value_or(call.request.header("host").value_or("localhost")));
  json::Value url = scheme + "://" + host + "/terminal?session_id=" + s->id;
  co_return http::ok(std::move(url));
}

task<http::Response> shell_stats(Call call) {
  const ShellService& service = call.services.workspace->shell;
  const auto recently = bridge::Clock::now() - std::chrono::minutes(5);
  ShellSessionStats stats;
  for (const auto& s : service.sessions()) {
    ++stats.total_sessions;
    if (s->busy() || s->last_used >= recently) ++stats.active_sessions;
  }
  stats.idle_sessions = stats.total_sessions - stats.active_sessions;
  stats.max_sessions = static_cast<std::int64_t>(service.config().max_shell_sessions);
  stats.session_timeout = service.config().idle_expiry.count();
  stats.usage_ratio = static_cast<double>(stats.total_sessions) / static_cast<double>(stats.max_sessions);
  co_return http::ok(encode(stats));
}

task<http::Response> shell_sessions(Call call) {
  ActiveShellSessionsResult result;
  for (const auto& s : call.services.workspace->shell.sessions()) result.sessions[s->id] = session_info(*s);
  co_return http::ok(encode(result));
}

task<http::Response> shell_delete_all(Call call) {
  const auto sessions = call.services.workspace->shell.sessions();
  for (const auto& s : sessions)
    if (!s->closed()) CO_TRY(co_await call.services.workspace->shell.close(s, "closed by the client"));
  co_return http::ok(nullptr, "Closed " + std::to_string(sessions.size()) + " sessions");
}

task<http::Response> shell_delete(Call call) {
  const auto s = call.services.workspace->shell.find(std::string(call.request.param("session_id")));
  if (!s) co_return http::session_not_found();
  CO_TRY(co_await call.services.workspace->shell.close(s, "closed by the client"));
  co_return http::ok(nullptr, "Session closed");
}

using http::Method;

constexpr Route kShell[] = {
    {Method::post, "/v1/shell/exec", "exec_command_v1_shell_exec_post", Scope::shell, kEventStream, Unknown::ignore,
     "Run a command in a session", bind<shell_exec, ShellCommandResult>()},
    {Method::post, "/v1/shell/view", "view_shell_v1_shell_view_post", Scope::shell, kEventStream, Unknown::ignore,
     "See what the terminal shows", bind<shell_view, ShellViewResult>()},
    {Method::post, "/v1/shell/wait", "wait_for_process", Scope::shell, kNone, Unknown::ignore, "Wait until the commands are over",
     bind<shell_wait, ShellWaitResult>()},
    {Method::post, "/v1/shell/write", "write_to_process", Scope::shell, kNone, Unknown::ignore, "Type into the terminal",
     bind<shell_write, ShellWriteResult>()},
    {Method::post, "/v1/shell/kill", "kill_shell_process", Scope::shell, kNone, Unknown::ignore, "End the running command",
     bind<shell_kill, ShellKillResult>()},
    {Method::post, "/v1/shell/sessions/create", "create_shell_session", Scope::shell, kNone, Unknown::ignore, "Create a session",
     bind<shell_create_session, ShellCreateSessionResponse>()},
    {Method::post, "/v1/shell/sessions/update", "update_shell_session", Scope::shell, kNone, Unknown::ignore,
     "Change a session's settings", bind<shell_update_session>()},
    {Method::get, "/v1/shell/terminal-url", "get_terminal_url", Scope::shell, kMakes, Unknown::ignore,
     "Create a session for a person and say where its terminal is", bind<shell_terminal_url, std::string>()},
    {Method::get, "/v1/shell/sessions/stats", "get_shell_session_stats", Scope::shell, kNone, Unknown::ignore,
     "Count the sessions", bind<shell_stats, ShellSessionStats>()},
    {Method::get, "/v1/shell/sessions", "list_shell_sessions", Scope::shell, kNone, Unknown::ignore, "List the sessions",
     bind<shell_sessions, ActiveShellSessionsResult>()},
    {Method::del, "/v1/shell/sessions", "cleanup_all_sessions", Scope::shell, kNone, Unknown::ignore, "Close all sessions",
     bind<shell_delete_all>()},
    {Method::del, "/v1/shell/sessions/{session_id}", "cleanup_shell_session", Scope::shell, kNone, Unknown::ignore,
     "Close a session", bind<shell_delete>()},
    {Method::get, "/v1/shell/ws", "shell_ws", Scope::shell, kHidden | kWatch, Unknown::ignore, "A terminal over a WebSocket",
     bind_websocket<shell_ws>()},
};

}  // namespace

Area shell_routes() { return kShell; }

}  // namespace caisson::routes
