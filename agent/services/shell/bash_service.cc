#include "agent/services/shell/bash_service.h"

#include <algorithm>
#include <csignal>
#include <set>

#include "agent/services/common/counted.h"
#include "agent/services/common/directory.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

constexpr std::size_t kMaxCommand = 16 * 1024 * 1024;

Error command_refused(const bridge::ExecRefused& refused, const std::string& cwd) {
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
    : launcher_(launcher), config_(std::move(config)), budget_(budget_of(config_)), roster_(launcher.executor()) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a command that closes its stdin must not end the agent
  // How long after its last use an implicit session rests.
  const std::chrono::seconds pause{std::clamp<std::int64_t>(config_.implicit_idle.count(), 1, 15)};
  roster_.look_after("bash sessions expire", every(pause), [this](auto life) { return expire(this, std::move(life)); });
}

BashService::~BashService() {
  roster_.stop();
  for (const SessionPtr& session : table_.all()) {
    if (session->handle) session->handle->on_end = nullptr;
    forget(session);
  }
}

void BashService::forget(const SessionPtr& session) {
  session->closed = true;
  session->record.erase();
  if (table_.find(session->id) == session) table_.erase(session->id);
  for (const CommandPtr& command : session->commands)
    if (!command->running()) command->release();
}

task<BashService::SessionPtr> BashService::create(CreateParams params) {
  CO_TRY(check_session_id("session_id", params.session_id));
  const std::string id = params.session_id.empty() ? sys::random_hex(16) : params.session_id;
  if (SessionPtr existing = table_.find(id)) {
    existing->touch();
    existing->implicit = false;
    CO_TRY(co_await wake(existing));
    CO_TRY(check_isolation(*existing->handle, params.isolated));
    existing->save();
    if (params.exec_dir.empty() && params.snapshot_path.empty()) co_return existing;
    const std::string dir = absolute_dir(existing->working_dir, params.exec_dir);
    const std::string snapshot = params.snapshot_path.empty() ? existing->snapshot_path : params.snapshot_path;
    CO_TRY(co_await probe(existing, dir, snapshot));  // a directory that cannot be entered must not replace one that can
    if (existing->closed) co_return fail(Code::not_found, "the session was closed meanwhile");
    existing->working_dir = dir;
    existing->snapshot_path = snapshot;
    existing->save();
    co_return existing;
  }
  CO_TRY(co_await make_room(this, &table_,
                            {.most = config_.max_bash_sessions,
                             .full = "bash sessions are running a command; close one first",
                             .creating = &creating_}));
  if (config_.directory.empty()) config_.directory = launcher_.greeting().workspace;
  auto session = std::make_shared<BashSession>();
  {
    const Counted<std::size_t> creating(creating_);
    const bool isolated = params.isolated.value_or(false);
    CO_TRY_ASSIGN(session->handle, co_await launcher_.session_create("bash", id, config_.workspace, isolated, 0, true));
  }
  session->id = id;
  session->implicit = params.implicit;
  // WORKSPACE is a folder of the shared home.
  session->working_dir = absolute_dir(session->handle->isolated ? launcher_.greeting().home : config_.directory, params.exec_dir);
  session->snapshot_path = params.snapshot_path;
  session->touch();
  session->created_ns = session->last_used_ns;
  if (SessionPtr winner = table_.find(id)) {  // two requests with one id at the same time
    CO_TRY(co_await launcher_.session_destroy(session->handle, "duplicate"));
    CO_TRY(check_isolation(*winner->handle, params.isolated));
    co_return winner;
  }
  insert(session);
  session->save();
  if (params.exec_dir.empty() && params.snapshot_path.empty()) co_return session;
  auto probed = co_await probe(session, session->working_dir, session->snapshot_path);
  if (probed) co_return session;
  (void)co_await close(session, "bad exec_dir or snapshot_path");  // the first error is the one to report
  co_return std::unexpected(std::move(probed).error());
}

void BashService::insert(const SessionPtr& session) {
  table_.insert(session);
  hold(session, session->handle);
}

void BashService::hold(const SessionPtr& session, std::shared_ptr<bridge::SessionHandle> handle) {
  session->handle = std::move(handle);
  const std::weak_ptr<BashSession> weak = session;
  session->handle->on_end = [this, weak] {
    if (const SessionPtr ended = weak.lock()) forget(ended);
  };
}

std::vector<BashService::SessionPtr> BashService::sessions() const {
  std::vector<SessionPtr> out = table_.all();
  std::erase_if(out, [](const SessionPtr& session) { return session->handle == nullptr; });
  return out;
}

task<void> BashService::rest(BashService* self, std::shared_ptr<const Life> life, SessionPtr session) {
  const std::shared_ptr<bridge::SessionHandle> handle = session->handle;
  const bridge::Clock::time_point last_used = session->last_used;
  CO_TRY_ASSIGN(const json::Value now, co_await self->launcher_.session_stat(handle->id));
  const bool lives = json::number_of(now, "processes").value_or(2) > 1;  // besides the session's init
  if (life->over || lives || session->busy() || session->closed || session->last_used != last_used) co_return Status{};
  handle->on_end = nullptr;
  session->handle.reset();
  session->record.erase();
  for (const CommandPtr& command : session->commands) command->release();
  co_return co_await self->launcher_.session_destroy(handle, "idle");
}

task<void> BashService::wake(SessionPtr session) {
  if (session->handle) co_return Status{};
  const Counted<int> starting(session->starting);
  CO_TRY_ASSIGN(auto handle, co_await launcher_.session_create("bash", session->id, config_.workspace, false, 0, true));
  if (session->closed || session->handle) CO_TRY(co_await launcher_.session_destroy(handle, "duplicate"));
  if (session->closed) co_return fail(Code::not_found, "the session was closed meanwhile");
  if (!session->handle) hold(session, std::move(handle));
  co_return Status{};
}

bool BashService::restore(const std::shared_ptr<bridge::SessionHandle>& handle, Keep::Left session,
                          std::vector<Keep::Left> commands) {
  const std::string id = json::text_of(session.body, "id");
  if (!valid_session_id(id) || table_.find(id)) return false;
  auto restored = std::make_shared<BashSession>();
  restored->id = id;
  restored->handle = handle;
  restored->working_dir = json::text_of(session.body, "working_dir");
  restored->snapshot_path = json::text_of(session.body, "snapshot_path");
  restored->touch();
  restored->created_ns = json::number_of(session.body, "created_ns").value_or(restored->last_used_ns);
  restored->implicit = json::flag_of(session.body, "implicit");
  restored->command_count = json::number_of(session.body, "command_count").value_or(0);
  restored->record = std::move(session.record);
  std::ranges::sort(commands, {}, [](const Keep::Left& left) { return json::number_of(left.body, "number").value_or(0); });
  for (Keep::Left& left : commands) {
    Command::Setup setup{json::text_of(left.body, "id"), json::text_of(left.body, "text"), budget_, config_.stream_cap_bytes, {}};
    if (auto share = budget_->share_of(setup.text.size())) setup.text_share = std::move(*share);
    restored->commands.push_back(std::make_shared<Command>(launcher_.executor(), std::move(setup), left));
    restored->commands.back()->exec->session = handle->id;
  }
  insert(restored);
  return true;
}

task<void> BashService::attach(const bridge::LeftSession& left) {
  SessionPtr session;
  for (const SessionPtr& one : table_.all())
    if (one->handle == left.handle) session = one;
  if (!session) co_return Status{};
  std::set<std::string> known;
  const std::deque<CommandPtr> commands = session->commands;
  for (const CommandPtr& command : commands) {
    known.insert(command->exec->id);
    CO_TRY(co_await Command::take_up(launcher_, left, command));
  }
  // Started for a client that never got its id.
  for (const std::string& exec : left.execs) {
    if (known.contains(exec)) continue;
    std::string name = exec;
    auto adopted = co_await launcher_.exec_adopt(left.handle, std::move(name));
    if (!adopted) continue;
    (void)co_await launcher_.exec_signal(adopted->handle, "SIGKILL");
    adopted->handle->let_go("");
  }
  co_return Status{};
}

// Fails at creation instead of at the first command.
task<void> BashService::probe(SessionPtr session, std::string dir, std::string snapshot) {
  const Counted<int> starting(session->starting);
  bridge::ExecRequest request;
  request.argv = {"bash", "-c", "[ -z \"$1\" ] || [ -r \"$1\" ]", "bash", snapshot};
  request.cwd = dir;
  request.with_stdin = false;
  request.hard_timeout_ms = 10'000;
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await launcher_.session_exec(session->handle, std::move(request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) co_return std::unexpected(command_refused(*refused, dir));
  const std::shared_ptr<bridge::ExecHandle> exec = std::get<bridge::ExecStarted>(outcome).handle;
  const bridge::Clock::time_point deadline = bridge::deadline_after(15);
  while (!exec->exit)
    if (!co_await exec->changed.wait_until(deadline)) co_return fail(Code::timeout, "the new session does not answer");
  if (exec->exit->exit_code != 0) co_return fail(Code::not_found, "snapshot_path cannot be read: " + snapshot);
  co_return Status{};
}

Result<http::Budget::Share> BashService::room_for_text(std::size_t bytes) {
  while (true) {
    auto share = budget_->share_of(bytes);
    if (share) return share;
    SessionPtr of;
    CommandPtr longest;
    for (const SessionPtr& session : table_.all())
      for (const CommandPtr& command : session->commands) {
        if (command->running() || (longest && command->text.size() <= longest->text.size())) continue;
        of = session;
        longest = command;
      }
    if (!longest || longest->text.empty()) return share;
    std::erase(of->commands, longest);
  }
}

task<BashService::CommandPtr> BashService::start(SessionPtr session, BashExecParams params) {
  session->touch();
  if (params.command.size() > kMaxCommand) co_return fail(Code::limit, "the command is too large");
  // Counted twice: a command too large for a message also waits to be read from stdin.
  CO_TRY_ASSIGN(http::Budget::Share text_share, room_for_text(2 * params.command.size()));
  (void)text_share.resize(params.command.size());
  const Counted<int> starting(session->starting);
  CO_TRY(co_await wake(session));
  CO_TRY_ASSIGN(BashLaunch launch, plan_bash(*session, params));
  const std::string cwd = launch.request.cwd;
  if (session->record.keep() == nullptr) session->save();
  launch.request.keep = session->record.keep() != nullptr;
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await launcher_.session_exec(session->handle, std::move(launch.request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome)) co_return std::unexpected(command_refused(*refused, cwd));
  if (session->closed) co_return fail(Code::not_found, "the session was closed meanwhile");

  Command::Setup setup{sys::random_hex(8), std::move(params.command), budget_, config_.stream_cap_bytes, std::move(text_share)};
  auto command =
      std::make_shared<Command>(launcher_.executor(), std::move(setup), std::get<bridge::ExecStarted>(std::move(outcome)));
  if (session->record.keep() != nullptr) command->keep(session->command_count + 1);
  if (!launch.preamble.empty()) CO_TRY(Command::write(command, std::move(launch.preamble), kMaxCommand));
  Command::run(command);
  if (params.exec_dir && !params.exec_dir->empty()) session->working_dir = cwd;
  session->remember(command, config_.finished_commands);
  session->save();
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
  // In a tier without PID namespaces the launcher ends the commands one by one, and their exits are reported as plain signals.
  for (const CommandPtr& command : session->commands)
    if (command->running()) command->note_kill();
  if (!session->handle) co_return Status{};
  auto destroyed = co_await launcher_.session_destroy(session->handle, std::move(reason));
  for (const CommandPtr& command : session->commands) command->release();
  co_return destroyed;
}

task<void> BashService::expire(BashService* self, std::shared_ptr<const Life> life) {
  const bridge::Clock::time_point now = bridge::Clock::now();
  const std::chrono::seconds idle = self->config_.idle_expiry, implicit_idle = self->config_.implicit_idle;
  for (const SessionPtr& session : self->table_.all())
    if (session->busy()) session->last_used = now;  // its idle time begins at the end of its command
  if (idle.count() != 0) CO_TRY(co_await close_idle(self, life, self->table_.idle_since(now - idle)));
  if (life->over || implicit_idle.count() == 0) co_return Status{};
  for (const SessionPtr& session : self->table_.idle_since(bridge::Clock::now() - implicit_idle)) {
    if (!session->implicit || !session->handle) continue;
    (void)co_await rest(self, life, session);  // a failed end is tried again, or is in the launcher's log
    if (life->over) break;
  }
  co_return Status{};
}

}  // namespace caisson::services
