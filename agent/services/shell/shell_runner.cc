#include "agent/services/shell/shell_session.h"

#include "agent/http/lane.h"
#include "agent/services/shell/shell_script.h"
#include "launcher/common/base/sys.h"

namespace caisson::services {
namespace {

using std::chrono::milliseconds;

// The bytes of one read of a terminal. Others run between two reads, however fast a program floods.
constexpr std::size_t kConsoleTurnBytes = 32 * 1024;
constexpr std::size_t kConsoleFinalBytes = 1024 * 1024;
constexpr std::size_t kMaxFeed = 128 * 1024 * 1024;  // the escaped command of the largest body, with its lines
constexpr milliseconds kStartLimit{10'000};
constexpr milliseconds kFeedLimit{10'000};
constexpr std::size_t kMostQueuedCommands = 256;  // each change of the session saves all waiting commands
constexpr milliseconds kInterruptGrace{2'000};
constexpr milliseconds kKillLimit{5'000};

}  // namespace

asio::awaitable<bool> ShellSession::await_leaving(Pointer self, State state, bridge::Clock::time_point deadline) {
  while (self->state_ == state && !self->closed_)
    if (!co_await self->changed.wait_until(deadline)) break;
  co_return self->state_ != state && self->state_ != State::dead && !self->closed_;
}

asio::awaitable<bool> ShellSession::await_end(CommandPtr command, milliseconds limit) {
  const bridge::Clock::time_point deadline = bridge::Clock::now() + limit;
  while (!command->finished)
    if (!co_await command->changed.wait_until(deadline)) break;
  co_return command->finished;
}

// --- the terminal ---

task<void> ShellSession::read_loop(Pointer self, TerminalPtr terminal) {
  ReadEnd end = ReadEnd::blocked;
  while (end != ReadEnd::closed && terminal == self->terminal_) {
    const auto [error] = co_await terminal->from.async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    co_await await_viewers(self, terminal);
    if (terminal != self->terminal_) break;
    end = self->read_terminal(terminal, kConsoleTurnBytes);
    if (end == ReadEnd::more) co_await http::pause();
  }
  co_return Status{};
}

// Unread output fills the kernel's buffer, and then the program's next write waits.
asio::awaitable<void> ShellSession::await_viewers(Pointer self, TerminalPtr terminal) {
  while (terminal == self->terminal_ && !self->closed_) {
    const std::optional<bridge::Clock::time_point> until = self->held_by_viewers();
    if (!until) break;
    (void)co_await self->changed.wait_until(*until);
  }
}

task<void> ShellSession::watch_exit(Pointer self, TerminalPtr terminal) {
  while (!terminal->exec->exit) (void)co_await terminal->exec->changed.wait_until(bridge::no_deadline());
  if (terminal != self->terminal_) co_return Status{};
  (void)self->read_terminal(terminal, kConsoleFinalBytes);  // its end is known already
  if (terminal == self->terminal_) self->take_exit(*terminal->exec->exit);
  co_return Status{};
}

task<void> ShellSession::start_bash(Pointer self, bool read_rc) {
  BootstrapParams bootstrap{.nonce = sys::random_hex(16),
                            .cwd = self->cwd_,
                            .preserve_symlinks = self->preserve_symlinks_,
                            .read_rc = read_rc,
                            .for_person = self->for_person,
                            .user = self->config_.user};
  bridge::ExecRequest request;
  request.argv = shell_argv(self->for_person);
  request.cwd = self->config_.directory;
  request.env["TERM"] = self->for_person ? "xterm-256color" : "xterm";
  // Of the environment the audit log has names alone. Other workspaces are tenants.
  if (const auto own = self->config_.program_variables.find(self->program);
      own != self->config_.program_variables.end() && self->config_.workspace == "default")
    request.env.insert(own->second.begin(), own->second.end());
  request.pty = self->size_;
  request.keep = self->record_.keep() != nullptr;
  bridge::ExecRequest from_root = request;
  from_root.cwd = "/";
  CO_TRY_ASSIGN(bridge::ExecOutcome outcome, co_await self->launcher_.session_exec(self->handle, std::move(request)));
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome); refused != nullptr && refused->step == "chdir") {
    CO_TRY_ASSIGN(outcome, co_await self->launcher_.session_exec(self->handle, std::move(from_root)));
  }
  if (const auto* refused = std::get_if<bridge::ExecRefused>(&outcome))
    co_return std::unexpected(Error(refused->error).wrap("cannot start the shell"));
  if (self->closed_) co_return fail(Code::not_found, "the session was closed meanwhile");

  self->terminal_ = std::make_shared<Terminal>(self->launcher_.executor(), std::get<bridge::ExecStarted>(std::move(outcome)),
                                               self->budget_->share());
  self->terminal_->parser.expect(bootstrap.nonce);
  self->state_ = State::starting;
  self->save();
  spawn(self->launcher_.executor(), "terminal output", read_loop(self, self->terminal_));
  spawn(self->launcher_.executor(), "terminal end", watch_exit(self, self->terminal_));
  CO_TRY(Terminal::type(self->terminal_, bootstrap_lines(bootstrap), kMaxFeed));
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kStartLimit;
  if (co_await await_leaving(self, State::starting, deadline)) co_return Status{};
  CO_TRY(co_await kill_bash(self));
  co_return fail(Code::timeout, "the shell did not show its prompt");
}

void ShellSession::attach(Pointer self, std::optional<bridge::ExecStarted> started) {
  const asio::any_io_executor& executor = self->launcher_.executor();
  if (const TerminalPtr terminal = self->terminal_; terminal && started && started->pty) {
    terminal->attach(std::move(*started));
    terminal->resize(self->size_);
    spawn(executor, "terminal output", read_loop(self, terminal));
    spawn(executor, "terminal end", watch_exit(self, terminal));
  } else if (terminal) {
    self->take_exit({.exit_code = 137, .signal = "SIGKILL", .reason = "signal", .end = bridge::end_of("agent_restart")});
  }
  self->queue_runs_ = true;
  spawn(executor, "shell goes on", resume(std::move(self)));
}

// Continues the interrupted work: a bash that was being prepared begins anew; a line that was being typed or taken back is
// awaited.
task<void> ShellSession::resume(Pointer self) {
  if (self->state_ == State::starting) CO_TRY(co_await kill_bash(self));
  if (self->state_ == State::clearing && !self->feeding_) {
    const bridge::Clock::time_point deadline = bridge::deadline_after(2);
    if (!co_await await_leaving(self, State::clearing, deadline) && !self->closed_) CO_TRY(co_await clear_again(self));
  }
  if (const CommandPtr command = self->feeding_) CO_TRY(co_await await_feeding(self, command));
  if (const CommandPtr command = self->current_; command && command->params.hard_timeout)
    spawn(self->launcher_.executor(), "hard timeout", enforce_hard_timeout(self, command));
  if (const CommandPtr command = self->current_; command && command->ending) {  // the previous agent was about to
    const ShellStatus as = *std::exchange(command->ending, std::nullopt);
    spawn(self->launcher_.executor(), "command ends", end_command(self, command, as));
  }
  co_return co_await run_queue(self);
}

// Another Ctrl-C: the first may have come before the prompt was there.
task<void> ShellSession::clear_again(Pointer self) {
  self->state_ = State::prompt;
  co_return co_await clear_line(self);
}

task<void> ShellSession::await_feeding(Pointer self, CommandPtr command) {
  const bridge::Clock::time_point deadline =
      bridge::Clock::now() +
      (self->typing_ ? milliseconds(2000) : kFeedLimit + milliseconds(command->params.command.size() / 100));
  if (self->state_ == State::feeding) (void)co_await await_leaving(self, State::feeding, deadline);
  if (command->started || command->finished || self->closed_) co_return Status{};
  bool unseen = true;  // it may have run
  if (self->state_ != State::dead && self->typing_) {
    self->terminal_->parser.expect_older();
    self->state_ = State::clearing;
    CO_TRY(Terminal::type(self->terminal_, "\x03", kMaxFeed));
    const bridge::Clock::time_point cleared = bridge::deadline_after(2);
    if (co_await await_leaving(self, State::clearing, cleared)) unseen = !self->cleared_older_;
  } else if (self->state_ == State::dead) {
    unseen = false;
  }
  self->feeding_ = nullptr;
  if (command->finished || self->closed_) co_return Status{};
  if (unseen) {
    command->failure = "the agent ended while the command was typed: it may have run in part";
    command->end = bridge::end_of("agent_restart");
    command->status = ShellStatus::terminated;
    self->finish(command);
    if (self->state_ != State::prompt) CO_TRY(co_await kill_bash(self));
    co_return Status{};
  }
  self->queue_.push_front(command);
  self->save();
  co_return Status{};
}

task<void> ShellSession::ensure_shell(Pointer self) {
  while (self->bash_starts_ && !self->closed_) (void)co_await self->changed.wait_until(bridge::no_deadline());
  if (self->closed_) co_return fail(Code::not_found, "the session is closed");
  if (self->state_ != State::dead) co_return Status{};
  self->bash_starts_ = true;
  auto started = co_await start_bash(self, true);
  // A ~/.bashrc that waits, exits or starts another shell must not make the session useless.
  if (!started && !self->closed_) started = co_await start_bash(self, false);
  self->bash_starts_ = false;
  self->changed.notify_all();
  co_return started;
}

task<void> ShellSession::kill_bash(Pointer self) {
  const TerminalPtr terminal = self->terminal_;
  if (!terminal) co_return Status{};
  // The answer does not matter: a bash that is gone cannot be killed, and one that stays is abandoned below.
  (void)co_await self->launcher_.exec_signal(terminal->exec, "SIGKILL");
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kKillLimit;
  while (terminal == self->terminal_)
    if (!co_await self->changed.wait_until(deadline)) break;
  if (terminal == self->terminal_)
    self->take_exit({.exit_code = 137, .signal = "SIGKILL", .reason = "signal", .end = bridge::end_of("signal")});
  co_return Status{};
}

// --- the queue ---

Result<ShellSession::CommandPtr> ShellSession::enqueue(Pointer self, ShellExecParams params) {
  self->touch();
  if (self->queue_.size() >= kMostQueuedCommands)
    return fail(Code::limit, std::to_string(kMostQueuedCommands) + " commands wait in this session already");
  TRY_ASSIGN(http::Budget::Share text_share, self->budget_->share_of(params.command.size()));
  auto command = std::make_shared<ShellCommand>(self->launcher_.executor(), std::move(params), self->budget_,
                                                self->config_.stream_cap_bytes);
  command->text_share = std::move(text_share);
  self->keep_command(*command);
  self->queue_.push_back(command);
  self->save();
  if (!std::exchange(self->queue_runs_, true)) {
    self->changed.notify_all();
    const asio::any_io_executor executor = self->launcher_.executor();
    spawn(executor, "shell queue", run_queue(std::move(self)));
  }
  return command;
}

task<void> ShellSession::run_queue(Pointer self) {
  while (!self->queue_.empty() && !self->closed_) {
    if (self->current_) {  // a line that a person typed runs
      const CommandPtr typed = self->current_;
      (void)co_await await_end(typed, milliseconds(60'000));
      continue;
    }
    const CommandPtr command = self->queue_.front();
    auto ran = co_await run_one(self, command);
    if (!ran && !command->finished) {
      command->failure = ran.error().text();
      std::erase(self->queue_, command);
      self->finish(command);
    }
  }
  self->queue_runs_ = false;
  co_return Status{};
}

task<void> ShellSession::run_one(Pointer self, CommandPtr command) {
  // A second try, because bash may end between two commands.
  for (int attempt = 0; attempt < 2 && !command->finished; ++attempt) {
    CO_TRY(co_await ensure_shell(self));
    if (self->line_dirty_) CO_TRY(co_await clear_line(self));
    if (command->finished || self->current_) co_return Status{};  // the command was ended meanwhile, or a person was faster
    if (self->state_ != State::prompt) continue;
    FeedParams feed{.nonce = sys::random_hex(16),
                    .command = command->params.command,
                    .exec_dir = command->params.exec_dir,
                    .strict = command->params.strict,
                    .preserve_symlinks = command->params.preserve_symlinks};
    std::erase(self->queue_, command);
    self->feeding_ = command;
    self->state_ = State::feeding;
    self->terminal_->parser.expect(feed.nonce);
    self->typing_ = true;
    self->save();  // before the first byte: a later agent that finds this waits for the line, or takes it back
    if (!self->for_person) self->terminal_->restore_modes();
    const milliseconds limit = kFeedLimit + milliseconds(command->params.command.size() / 100);
    auto typed = Terminal::type(self->terminal_, feed_lines(feed), kMaxFeed);
    self->typing_ = !self->terminal_ || !self->terminal_->all_typed();
    self->save();
    const bridge::Clock::time_point deadline = bridge::Clock::now() + limit;
    if (typed) (void)co_await await_leaving(self, State::feeding, deadline);
    if (command->started || command->finished) break;
    self->feeding_ = nullptr;
    if (self->closed_) co_return fail(Code::not_found, "the session is closed");
    if (self->state_ != State::dead) {  // it may have run unseen: never run it twice
      CO_TRY(co_await kill_bash(self));
      break;
    }
    self->queue_.push_front(command);
    self->save();
  }
  if (!command->started && !command->finished) co_return fail(Code::io, "the shell does not take the command");
  if (command->params.hard_timeout && !command->finished)
    spawn(self->launcher_.executor(), "hard timeout", enforce_hard_timeout(self, command));
  while (!command->finished) (void)co_await command->changed.wait_until(bridge::no_deadline());
  co_return Status{};
}

// Discards what a person typed and did not run, including an unfinished quotation: Ctrl-C makes bash start a new line.
task<void> ShellSession::clear_line(Pointer self) {
  if (self->state_ != State::prompt) co_return Status{};
  self->state_ = State::clearing;
  self->save();
  CO_TRY(Terminal::type(self->terminal_, "\x03", kMaxFeed));
  const bridge::Clock::time_point deadline = bridge::deadline_after(2);
  if (!co_await await_leaving(self, State::clearing, deadline)) CO_TRY(co_await kill_bash(self));
  co_return Status{};
}

task<void> ShellSession::enforce_hard_timeout(Pointer self, CommandPtr command) {
  const bridge::Clock::time_point unheld =
      command->begun + (bridge::deadline_after(*command->params.hard_timeout) - bridge::Clock::now()) - command->stood_before;
  while (!command->finished) {
    if (self->held_since_) {
      (void)co_await self->changed.wait_until(bridge::no_deadline());
      continue;
    }
    const bridge::Clock::time_point deadline = unheld + self->stood_still_;
    if (bridge::Clock::now() >= deadline) break;
    (void)co_await command->changed.wait_until(deadline);
  }
  if (command->finished) co_return Status{};
  co_return co_await end_command(self, command, ShellStatus::hard_timeout);
}

task<void> ShellSession::end_command(Pointer self, CommandPtr command, ShellStatus as) {
  if (command->finished || command->ending) {
    (void)co_await await_end(command, kKillLimit);
    co_return Status{};
  }
  command->ending = as;
  if (as == ShellStatus::terminated) command->end = bridge::end_of("ended_by_client");
  self->save_command(*command);
  self->changed.notify_all();
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kFeedLimit;
  while (command == self->feeding_)  // a moment later it runs, and can be interrupted
    if (!co_await self->changed.wait_until(deadline)) break;
  if (command->finished) co_return Status{};
  if (command != self->current_) {
    std::erase(self->queue_, command);
    command->status = as;
    self->finish(command);
    co_return Status{};
  }
  for (const bool quit : {false, true}) {
    if (self->terminal_ && command == self->current_) Terminal::interrupt(self->terminal_, quit, !self->for_person);
    if (co_await await_end(command, kInterruptGrace)) co_return Status{};
  }
  co_return co_await kill_bash(self);
}

task<void> ShellSession::type(Pointer self, std::string input) {
  self->touch();
  if (!self->current_ && !self->feeding_) CO_TRY(co_await ensure_shell(self));
  if (!self->terminal_) co_return fail(Code::io, "the shell has ended");
  if (self->state_ == State::prompt) {
    self->line_dirty_ = true;
    constexpr std::size_t kMostTyped = 4096;
    if (self->typed_.size() + input.size() <= kMostTyped) self->typed_ += input;
    self->save();
  }
  co_return Terminal::type(self->terminal_, std::move(input), kMaxWaitingInput);
}

}  // namespace caisson::services
