// /v1/bash: commands over pipes, a new process each. A failing tool is 200 with success:false; an unknown session or
// command is 404 in the envelope.
#include "agent/routes/bash_types.h"
#include "agent/routes/table.h"
#include "agent/services/common/text.h"
#include "agent/services/shell/bash_service.h"
#include "agent/services/workspace/workspace.h"
#include "launcher/common/base/sys.h"

namespace caisson::routes {
namespace {

using services::BashService;
using services::Command;

BashSessionInfo info_of(const services::BashSession& s) {
  BashSessionInfo info{.session_id = s.id,
                       .status = s.closed ? "closed" : "ready",
                       .working_dir = s.working_dir,
                       .created_at = sys::rfc3339(s.created_ns),
                       .last_used_at = sys::rfc3339(s.last_used_ns)};
  if (const auto current = s.current()) info.current_command = current->text;
  info.command_count = s.command_count;
  return info;
}

// New bytes of a stream as text. While the command runs, an incomplete code point at the end waits for its rest.
struct Piece {
  std::string text;
  std::int64_t next;
  std::uint64_t lost = 0;
};
Piece piece_from(const services::OutputBuffer& stream, std::int64_t offset, bool running) {
  const std::uint64_t from = offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
  const std::uint64_t start = std::min(std::max(from, stream.begin()), stream.end());
  std::string bytes = stream.read(start);
  if (running) bytes.resize(bytes.size() - services::incomplete_tail(bytes));
  Piece piece{services::to_utf8(bytes), static_cast<std::int64_t>(start + bytes.size())};
  if (stream.begin() > from) piece.lost = stream.begin() - from;
  return piece;
}

// The offsets at the end of a whole answer, for the next /output.
std::int64_t next_offset(const services::OutputBuffer& stream, bool running) {
  const std::uint64_t end = stream.end();
  const std::string tail = running && end > 0 ? stream.read(end - std::min<std::uint64_t>(end, 3)) : "";
  return static_cast<std::int64_t>(end - services::incomplete_tail(tail));
}

std::optional<std::string> hint_of(const Command& command, std::uint64_t out_lost, std::uint64_t err_lost) {
  std::string hint = command.hint;
  const auto add = [&hint](std::string_view name, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (!hint.empty()) hint += "; ";
    hint.append(name).append(": ").append(std::to_string(bytes)).append(" bytes before this output were dropped");
  };
  add("stdout", out_lost);
  add("stderr", err_lost);
  return hint.empty() ? std::nullopt : std::optional(hint);
}

// Bytes of both streams from these offsets on.
std::size_t kept_since(const Command& command, std::int64_t out, std::int64_t err) {
  const auto kept = [](const services::OutputBuffer& stream, std::int64_t offset) {
    const std::uint64_t from = std::max(stream.begin(), static_cast<std::uint64_t>(std::max<std::int64_t>(offset, 0)));
    return static_cast<std::size_t>(stream.end() - std::min(from, stream.end()));
  };
  return kept(command.out, out) + kept(command.err, err);
}

http::Response exec_response(const services::BashSession& s, const Command& command, std::size_t max_characters) {
  const bool running = command.running();
  BashExecResult result{.session_id = s.id,
                        .command_id = command.id,
                        .command = command.text,
                        .status = std::string(services::status_name(command.status))};
  result.stdout_text = services::whole_text(command.out, max_characters, running);
  result.stderr_text = services::whole_text(command.err, max_characters, running);
  if (command.exit_code) result.exit_code = *command.exit_code;
  result.end = command.end();
  result.offset = next_offset(command.out, running);
  result.stderr_offset = next_offset(command.err, running);
  return http::ok(encode(result), "Operation successful", hint_of(command, 0, 0));
}

task<http::Response> bash_exec(Call call, BashExecRequest body) {
  BashService& service = call.services.workspace->bash;
  BashService::SessionPtr s;
  if (body.session_id.value_or("").empty()) {
    BashService::CreateParams params{.implicit = true};
    CO_TRY_ASSIGN(s, co_await service.create(std::move(params)));
  } else {
    s = service.find(*body.session_id);
    if (!s) co_return http::session_not_found();
    s->implicit = false;
  }
  services::BashExecParams params{.command = std::move(body.command), .exec_dir = std::move(body.exec_dir)};
  if (body.env) params.env = std::move(*body.env);
  params.hard_timeout = body.hard_timeout;
  CO_TRY_ASSIGN(const BashService::CommandPtr command, co_await service.start(s, std::move(params)));
  if (!body.async_mode) {
    const auto deadline = body.timeout ? bridge::deadline_after(*body.timeout) : bridge::no_deadline();
    co_await BashService::wait_end(command, deadline);
  }
  CO_TRY_ASSIGN(const auto turn, co_await call.answer_of(kept_since(*command, 0, 0), true));
  const std::int64_t most = body.async_mode ? 0 : std::max<std::int64_t>(body.max_output_length, 0);
  co_return exec_response(*s, *command, static_cast<std::size_t>(most));
}

task<http::Response> bash_output(Call call, BashOutputRequest body) {
  const auto s = call.services.workspace->bash.find(body.session_id);
  if (!s) co_return http::session_not_found();
  s->touch();
  const auto command = body.command_id ? s->find(*body.command_id) : s->latest();
  if (!command && body.command_id) co_return http::error_response(404, "Command not found");
  BashOutputResult result;
  result.session_id = s->id;
  if (!command) co_return http::ok(encode(result));
  if (body.wait) {
    const auto out = static_cast<std::uint64_t>(std::max<std::int64_t>(body.offset, 0));
    const auto err = static_cast<std::uint64_t>(std::max<std::int64_t>(body.stderr_offset, 0));
    const auto deadline = bridge::deadline_after(std::min(body.wait_timeout, 3600.0));
    co_await BashService::wait_output(command, out, err, deadline);
    s->touch();
  }
  CO_TRY_ASSIGN(const auto turn, co_await call.answer_of(kept_since(*command, body.offset, body.stderr_offset), false));
  const bool running = command->running();
  Piece out = piece_from(command->out, body.offset, running);
  Piece err = piece_from(command->err, body.stderr_offset, running);
  result.stdout_text = std::move(out.text);
  result.stderr_text = std::move(err.text);
  result.offset = out.next;
  result.stderr_offset = err.next;
  BashCommandInfo info{command->id, command->text, std::string(services::status_name(command->status)), {}, command->end()};
  if (command->exit_code) info.exit_code = *command->exit_code;
  result.command = std::move(info);
  co_return http::ok(encode(result), "Operation successful", hint_of(*command, out.lost, err.lost));
}

task<http::Response> bash_write(Call call, BashWriteRequest body) {
  const auto s = call.services.workspace->bash.find(body.session_id);
  if (!s) co_return http::session_not_found();
  s->touch();
  const auto command = body.command_id ? s->find(*body.command_id) : s->current();
  if (!command && body.command_id) co_return http::error_response(404, "Command not found");
  if (!command) co_return http::fail("no command is running in this session");
  CO_TRY(Command::write(command, std::move(body.input), services::kMaxWaitingInput));
  co_return http::ok(nullptr);
}

task<http::Response> bash_kill(Call call, BashKillRequest body) {
  const auto s = call.services.workspace->bash.find(body.session_id);
  if (!s) co_return http::session_not_found();
  const std::string signal = services::kill_signal_name(body.signal);
  if (signal.empty()) co_return http::fail("signal must be SIGTERM, SIGKILL or SIGINT, not " + quote(body.signal));
  CO_TRY(co_await call.services.workspace->bash.kill(s, signal));
  co_return http::ok(nullptr, "Sent " + signal);
}

task<http::Response> bash_sessions(Call call) {
  std::vector<BashSessionInfo> list;
  for (const auto& s : call.services.workspace->bash.sessions()) list.push_back(info_of(*s));
  co_return http::ok(encode(list));
}

task<http::Response> bash_create_session(Call call, BashSessionCreateRequest body) {
  BashService::CreateParams params{.session_id = body.session_id.value_or(""),
                                   .exec_dir = body.exec_dir.value_or(""),
                                   .snapshot_path = body.snapshot_path.value_or(""),
                                   .isolated = isolated(body.isolation)};
  CO_TRY_ASSIGN(const auto s, co_await call.services.workspace->bash.create(std::move(params)));
  co_return http::ok(encode(info_of(*s)));
}

task<http::Response> bash_close_session(Call call) {
  const auto s = call.services.workspace->bash.find(std::string(call.request.param("session_id")));
  if (!s) co_return http::session_not_found();
  CO_TRY(co_await call.services.workspace->bash.close(s, "closed by the client"));
  co_return http::ok(nullptr, "Session closed");
}

using http::Method;

constexpr Route kBash[] = {
    {Method::post, "/v1/bash/exec", "exec", Scope::bash, kNone, Unknown::ignore, "Run a command",
     bind<bash_exec, BashExecResult>()},
    {Method::post, "/v1/bash/output", "output", Scope::bash, kNone, Unknown::ignore, "Read output from byte offsets",
     bind<bash_output, BashOutputResult>()},
    {Method::post, "/v1/bash/write", "write", Scope::bash, kNone, Unknown::ignore, "Write to a command's stdin",
     bind<bash_write>()},
    {Method::post, "/v1/bash/kill", "kill", Scope::bash, kNone, Unknown::ignore, "Send a signal to running commands",
     bind<bash_kill>()},
    {Method::get, "/v1/bash/sessions", "sessions", Scope::bash, kNone, Unknown::ignore, "List the sessions",
     bind<bash_sessions, std::vector<BashSessionInfo>>()},
    {Method::post, "/v1/bash/sessions/create", "create_session", Scope::bash, kNone, Unknown::ignore, "Create a session",
     bind<bash_create_session, BashSessionInfo>()},
    {Method::post, "/v1/bash/sessions/{session_id}/close", "close_session", Scope::bash, kNone, Unknown::ignore,
     "Close a session and end its commands", bind<bash_close_session>()},
};

}  // namespace

Area bash_routes() { return kBash; }

}  // namespace caisson::routes
