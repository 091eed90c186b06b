#include "agent/session/bash_service.h"

#include <csignal>

#include "agent/session/counted.h"
#include "launcher/base/sys.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxCommand = 16 * 1024 * 1024;

Error refused_error(const bridge::ExecRefused& refused, const std::string& cwd) {
  if (refused.step == "chdir") {
    const std::string reason = refused.error.sys == ENOENT    ? "does not exist"
                               : refused.error.sys == ENOTDIR ? "is not a directory"
                                                              : "cannot be entered: " + refused.error.text();
    return Error(Code::not_found, "exec_dir " + reason + ": " + cwd);
  }
  return Error(refused.error).wrap("cannot start the command");
}

}  // namespace

std::string kill_signal_name(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (text.starts_with("SIG")) text.erase(0, 3);
  if (text == "TERM" || text == "15") return "SIGTERM";
  if (text == "KILL" || text == "9") return "SIGKILL";
  if (text == "INT" || text == "2") return "SIGINT";
  return "";
}

BashService::BashService(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher),
      config_(std::move(config)),
      budget_(std::make_shared<OutputBudget>(config_.total_cap_bytes)),
      life_(std::make_shared<Life>(launcher.executor())) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a command that closes its stdin must not end the agent
  spawn(launcher_.executor(), "bash sessions expire", expire_loop(this, life_));
}

BashService::~BashService() {
  life_->over = true;
  life_->changed.notify_all();
  for (const SessionPtr& session : table_.all()) {
    session->handle->on_end = nullptr;
    forget(session);
  }
}

void BashService::forget(const SessionPtr& session) {
  session->closed = true;
  if (table_.find(session->id) == session) table_.erase(session->id);
  for (const CommandPtr& command : session->commands)
    if (!command->running()) command->release();
}

task<void> BashService::make_room() {
  while (table_.size() + creating_ >= config_.max_bash_sessions) {
    const SessionPtr victim = table_.least_recent(false);
    if (!victim)
      co_return fail(Code::limit, "all " + std::to_string(config_.max_bash_sessions) +
                                      " bash sessions are running a command; close one first");
    CO_TRY(co_await close(victim, "evicted"));
  }
  co_return Status{};
}

task<BashService::SessionPtr> BashService::create(CreateParams params) {
  if (!params.session_id.empty() && !valid_session_id(params.session_id))
    co_return fail(Code::invalid_argument,
                   "session_id is longer than 128 bytes, has a slash or control characters, or is a dot name");
  const std::string id = params.session_id.empty() ? sys::random_hex(16) : params.session_id;
  if (SessionPtr existing = table_.find(id)) {
    CO_TRY(check_isolation(*existing->handle, params.isolated));
    existing->touch();
    if (params.exec_dir.empty() && params.snapshot_path.empty()) co_return existing;
    const std::string dir = absolute_dir(existing->working_dir, params.exec_dir);
    const std::string snapshot = params.snapshot_path.empty() ? existing->snapshot_path : params.snapshot_path;
    CO_TRY(co_await probe(existing, dir, snapshot));  // what cannot be used must not replace what can
    if (existing->closed) co_return fail(Code::not_found, "the session was closed meanwhile");
    existing->working_dir = dir;
    existing->snapshot_path = snapshot;
    co_return existing;
  }
  CO_TRY(co_await make_room());
  if (config_.workspace.empty()) config_.workspace = launcher_.greeting().workspace;
  auto session = std::make_shared<BashSession>();
  {
    const Counted<std::size_t> creating(creating_);
    const bool isolated = params.isolated.value_or(false);
    CO_TRY_ASSIGN(session->handle, co_await launcher_.session_create("bash", id, config_.tenant, isolated));
  }
  session->id = id;
  // WORKSPACE is a folder of the shared home.
  session->working_dir = absolute_dir(session->handle->isolated ? launcher_.greeting().home : config_.workspace, params.exec_dir);
  session->snapshot_path = params.snapshot_path;
  session->touch();
  session->created_ns = session->last_used_ns;
  if (SessionPtr winner = table_.find(id)) {  // two requests with one id at the same time
    CO_TRY(co_await launcher_.session_destroy(session->handle, "duplicate"));
    CO_TRY(check_isolation(*winner->handle, params.isolated));
    co_return winner;
  }
  table_.insert(session);
  const std::weak_ptr<BashSession> weak = session;
  session->handle->on_end = [this, weak] {
    if (const SessionPtr ended = weak.lock()) forget(ended);
  };
  if (params.exec_dir.empty() && params.snapshot_path.empty()) co_return session;
  auto probed = co_await probe(session, session->working_dir, session->snapshot_path);
  if (probed) co_return session;
  (void)co_await close(session, "bad exec_dir or snapshot_path");  // the first error is the one to report
  co_return std::unexpected(std::move(probed).error());
}

// Says at creation what would otherwise surprise at the first command.
task<void> BashService::probe(SessionPtr session, std::string dir, std::string snapshot) {
  const Counted<int> starting(session->starting);
  bridge::ExecRequest request;
  request.argv = {"bash", "-c", "[ -z \"$1\" ] || [ -r \"$1\" ]", "bash", snapshot};
  request.cwd = dir;
  request.with_stdin = false;
  request.hard_timeout_ms = 10'000;
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await launcher_.session_exec(session->handle, std::move(request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) co_return std::unexpected(refused_error(*refused, dir));
  const std::shared_ptr<bridge::ExecHandle> exec = std::get<bridge::ExecStarted>(outcome).handle;
  const bridge::Clock::time_point deadline = bridge::deadline_after(15);
  while (!exec->exit)
    if (!co_await exec->changed.wait_until(deadline)) co_return fail(Code::timeout, "the new session does not answer");
  if (exec->exit->exit_code != 0) co_return fail(Code::not_found, "snapshot_path cannot be read: " + snapshot);
  co_return Status{};
}

task<BashService::CommandPtr> BashService::start(SessionPtr session, BashExecParams params) {
  session->touch();
  if (params.command.size() > kMaxCommand) co_return fail(Code::limit, "the command is too large");
  CO_TRY_ASSIGN(BashLaunch launch, plan_bash(*session, params));
  const std::string cwd = launch.request.cwd;
  const Counted<int> starting(session->starting);
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await launcher_.session_exec(session->handle, std::move(launch.request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) co_return std::unexpected(refused_error(*refused, cwd));
  if (session->closed) co_return fail(Code::not_found, "the session was closed meanwhile");

  BashCommand::Setup setup{sys::random_hex(8), std::move(params.command), budget_, config_.stream_cap_bytes};
  auto command =
      std::make_shared<BashCommand>(launcher_.executor(), std::move(setup), std::get<bridge::ExecStarted>(std::move(outcome)));
  if (!launch.preamble.empty()) CO_TRY(BashCommand::write(command, std::move(launch.preamble), kMaxCommand));
  BashCommand::run(command);
  if (params.exec_dir && !params.exec_dir->empty()) session->working_dir = cwd;
  session->remember(command, config_.finished_commands);
  co_return command;
}

asio::awaitable<void> BashService::wait_end(CommandPtr command, bridge::Clock::time_point deadline) {
  while (command->running())
    if (!co_await command->changed.wait_until(deadline)) break;
}

asio::awaitable<void> BashService::wait_output(CommandPtr command, std::uint64_t out, std::uint64_t err,
                                               bridge::Clock::time_point deadline) {
  while (command->running() && command->out.end() <= out && command->err.end() <= err)
    if (!co_await command->changed.wait_until(deadline)) break;
}

task<void> BashService::kill(SessionPtr session, std::string signal) {
  session->touch();
  bool any = false;
  const std::deque<CommandPtr> commands = session->commands;
  for (const CommandPtr& command : commands) {
    if (!command->running()) continue;
    command->note_kill();
    auto sent = co_await launcher_.exec_signal(command->exec, signal);
    if (!sent && command->running() && sent.error().code != Code::not_found) co_return sent;
    any = true;
  }
  if (!any) co_return fail(Code::not_found, "no command is running in this session");
  co_return Status{};
}

task<void> BashService::close(SessionPtr session, std::string reason) {
  forget(session);
  // In a tier without PID namespaces the launcher ends the commands one by one, and their exits come as plain signals.
  for (const CommandPtr& command : session->commands)
    if (command->running()) command->note_kill();
  auto destroyed = co_await launcher_.session_destroy(session->handle, std::move(reason));
  for (const CommandPtr& command : session->commands) command->release();
  co_return destroyed;
}

task<void> BashService::expire_loop(BashService* self, std::shared_ptr<Life> life) {
  while (!life->over) {
    const bridge::Clock::time_point next = bridge::deadline_after(15);
    if (co_await life->changed.wait_until(next) || life->over) break;
    if (self->config_.idle_expiry.count() == 0) continue;
    for (const SessionPtr& session : self->table_.idle_since(bridge::Clock::now() - self->config_.idle_expiry)) {
      (void)co_await self->close(session, "idle");  // it has left the table; the launcher's own log has the failure
      if (life->over) break;
    }
  }
  co_return Status{};
}

}  // namespace caisson::session
