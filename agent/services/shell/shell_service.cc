#include "agent/services/shell/shell_service.h"

#include <algorithm>
#include <csignal>

#include "agent/services/common/counted.h"
#include "agent/services/common/directory.h"
#include "agent/services/shell/bash_session.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {

ShellService::ShellService(bridge::LauncherClient& launcher, Config config)
    : launcher_(launcher), config_(std::move(config)), budget_(budget_of(config_)), roster_(launcher.executor()) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  if (const std::chrono::seconds idle = config_.idle_expiry; idle.count() != 0)
    roster_.look_after("shell sessions expire", every(kExpiryPause), [this, idle](auto life) {
      return close_idle(this, std::move(life), table_.idle_since(bridge::Clock::now() - idle));
    });
}

ShellService::~ShellService() {
  roster_.stop();
  for (const SessionPtr& session : table_.all()) {
    session->handle->on_end = nullptr;
    forget(session, "the agent ends");
  }
}

void ShellService::forget(const SessionPtr& session, std::string reason) {
  if (table_.find(session->id) == session) table_.erase(session->id);
  session->shut(std::move(reason));
}

task<ShellService::SessionPtr> ShellService::create(CreateParams params) {
  CO_TRY(check_session_id("id", params.id));
  if (SessionPtr existing = table_.find(params.id)) {
    CO_TRY(check_isolation(*existing->handle, params.isolated));
    existing->touch();
    co_return existing;
  }
  const std::string id = params.id.empty() ? sys::random_hex(16) : params.id;
  CO_TRY(co_await make_room(this, &table_,
                            {.most = config_.max_shell_sessions,
                             .full = "shell sessions are running a command; close one first",
                             .creating = &creating_,
                             .most_implicit = params.implicit ? config_.max_implicit_sessions : 0}));
  if (config_.directory.empty()) config_.directory = launcher_.greeting().workspace;
  std::shared_ptr<bridge::SessionHandle> handle;
  {
    const Counted<std::size_t> creating(creating_);
    const bool isolated = params.isolated.value_or(false);
    CO_TRY_ASSIGN(handle, co_await launcher_.session_create("shell", id, config_.workspace, isolated, 0, true));
  }
  if (SessionPtr winner = table_.find(id)) {  // two requests with one id at the same time
    CO_TRY(co_await launcher_.session_destroy(handle, "duplicate"));
    CO_TRY(check_isolation(*winner->handle, params.isolated));
    co_return winner;
  }
  // WORKSPACE is a folder of the shared home.
  const std::string& home = handle->isolated ? launcher_.greeting().home : config_.directory;
  ShellSession::Setup setup{.id = id,
                            .implicit = params.implicit,
                            .for_person = params.for_person,
                            .cwd = absolute_dir(home, params.exec_dir),
                            .preserve_symlinks = params.preserve_symlinks,
                            .size = params.size,
                            .program = std::move(params.program)};
  auto session = std::make_shared<ShellSession>(launcher_, config_, budget_, std::move(setup), handle);
  insert(session);
  // The prompt shows the session's actual directory.
  const Counted<int> starting(session->starting);
  auto started = co_await ShellSession::ensure_shell(session);
  if (started) co_return session;
  (void)co_await close(session, "no shell");  // the first error is the one to report
  co_return std::unexpected(std::move(started).error());
}

void ShellService::insert(const SessionPtr& session) {
  table_.insert(session);
  const std::weak_ptr<ShellSession> weak = session;
  const std::weak_ptr<bridge::SessionHandle> weak_handle = session->handle;
  session->handle->on_end = [this, weak, weak_handle] {
    const auto ended = weak_handle.lock();
    if (const SessionPtr gone = weak.lock()) forget(gone, "the session ended: " + (ended ? ended->end_reason : ""));
  };
}

bool ShellService::restore(const std::shared_ptr<bridge::SessionHandle>& handle, ShellSession::LeftParts parts) {
  const json::Value& body = parts.session.body;
  const std::string id = json::text_of(body, "id");
  if (!valid_session_id(id) || table_.find(id)) return false;
  const auto size = [&](const char* key, int standard) {
    return static_cast<int>(std::clamp<std::int64_t>(json::number_of(body, key).value_or(standard), 1, 1000));
  };
  ShellSession::Setup setup{.id = id,
                            .implicit = json::flag_of(body, "implicit"),
                            .for_person = json::flag_of(body, "for_person"),
                            .cwd = json::text_of(body, "cwd"),
                            .preserve_symlinks = json::flag_of(body, "preserve_symlinks"),
                            .size = {size("cols", 120), size("rows", 40)},
                            .program = json::text_of(body, "program")};
  if (config_.directory.empty()) config_.directory = launcher_.greeting().workspace;
  auto session = std::make_shared<ShellSession>(launcher_, config_, budget_, std::move(setup), handle);
  session->restore(std::move(parts));
  insert(session);
  return true;
}

task<void> ShellService::attach(const bridge::LeftSession& left) {
  for (const SessionPtr& session : table_.all()) {
    if (session->handle != left.handle) continue;
    std::optional<bridge::ExecStarted> terminal;
    for (const std::string& exec : left.execs) {
      std::string name = exec;
      auto adopted = co_await launcher_.exec_adopt(left.handle, std::move(name));
      if (!adopted) continue;
      if (exec == session->left_exec()) {
        terminal = std::move(*adopted);
        continue;
      }
      (void)co_await launcher_.exec_signal(adopted->handle, "SIGKILL");  // a bash that no client knows
      adopted->handle->let_go("");
    }
    ShellSession::attach(session, std::move(terminal));
  }
  co_return Status{};
}

asio::awaitable<ShellStatus> ShellService::wait(CommandPtr command, bridge::Clock::time_point deadline,
                                                double no_change_timeout) {
  const auto quiet = std::chrono::microseconds(static_cast<std::int64_t>(std::min(no_change_timeout, 1e9) * 1e6));
  while (!command->finished) {
    const bridge::Clock::time_point now = bridge::Clock::now();
    const bridge::Clock::time_point silent = no_change_timeout > 0 ? command->last_change + quiet : bridge::no_deadline();
    if (now >= deadline) co_return ShellStatus::running;
    if (now >= silent) co_return ShellStatus::no_change_timeout;
    const bridge::Clock::time_point next = std::min(deadline, silent);
    (void)co_await command->changed.wait_until(next);
  }
  co_return command->status;
}

task<void> ShellService::close(SessionPtr session, std::string reason) {
  forget(session, "the session was closed");
  co_return co_await launcher_.session_destroy(session->handle, std::move(reason));
}

}  // namespace caisson::services
