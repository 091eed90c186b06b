#include "agent/services/program/command.h"

#include <algorithm>

#include "agent/bridge/launcher_client.h"
#include "agent/http/lane.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

// The bytes of one read of a stream. Others run between two reads, however fast a program floods.
constexpr std::size_t kTurnBytes = 64 * 1024;
// When the program has exited, the rest of its output is in its pipes (64 KiB, at most 1 MiB each).
constexpr std::size_t kFinalBytes = 1024 * 1024;
// How long to wait for output of helpers that outlive the command (`> >(tee log)`).
constexpr std::chrono::milliseconds kGrace{50};

}  // namespace

std::string_view status_name(CommandStatus status) {
  switch (status) {
    case CommandStatus::pending:
      return "pending";
    case CommandStatus::running:
      return "running";
    case CommandStatus::completed:
      return "completed";
    case CommandStatus::timed_out:
      return "timed_out";
    case CommandStatus::killed:
      return "killed";
  }
  return "killed";
}

Command::Command(asio::any_io_executor executor, Setup setup, bridge::ExecStarted started)
    : id(std::move(setup.id)),
      text(std::move(setup.text)),
      text_share(std::move(setup.text_share)),
      out(setup.budget, setup.stream_cap_bytes),
      err(setup.budget, setup.stream_cap_bytes),
      changed(executor),
      exec(std::move(started.handle)),
      executor_(executor),
      stdout_{make_descriptor(executor, std::move(started.stdout_pipe)), out, 0},
      stderr_{make_descriptor(executor, std::move(started.stderr_pipe)), err, 1},
      stdin_(executor, std::move(started.stdin_pipe), setup.budget->share()) {}

Command::Command(asio::any_io_executor executor, Setup setup, Keep::Left& left)
    : id(std::move(setup.id)),
      text(std::move(setup.text)),
      text_share(std::move(setup.text_share)),
      hint(json::text_of(left.body, "hint")),
      record(std::move(left.record)),
      out(setup.budget, setup.stream_cap_bytes),
      err(setup.budget, setup.stream_cap_bytes),
      changed(executor),
      exec(std::make_shared<bridge::ExecHandle>(executor)),
      executor_(executor),
      stdout_{Descriptor(executor), out, 0},
      stderr_{Descriptor(executor), err, 1},
      stdin_(executor, Fd(), setup.budget->share()),
      kill_asked_(json::flag_of(left.body, "kill_asked")),
      number_(json::number_of(left.body, "number").value_or(0)) {
  out.keep_in(record, 0, left.ends.first);
  err.keep_in(record, 1, left.ends.second);
  if (!left.landed.empty()) take_in(left.second ? stderr_ : stdout_, left.landed);
  exec->id = json::text_of(left.body, "exec");
  exec->hard_timeout_ms = json::number_of(left.body, "hard_timeout_ms").value_or(0);
  const std::string was = json::text_of(left.body, "status");
  for (const CommandStatus one : {CommandStatus::completed, CommandStatus::timed_out, CommandStatus::killed})
    if (status_name(one) == was) status = one;
  input_lost = running() && json::flag_of(left.body, "input_waits");
  if (running()) return;
  if (const auto code = json::number_of(left.body, "exit_code")) exit_code = static_cast<int>(*code);
  exec->exit = bridge::ExecExit{.exit_code = exit_code.value_or(0)};
  exec->exit->end = bridge::end_from(left.body.value("end", json::Value()));
}

Command::~Command() {
  if (!all_let_go_) exec->let_go("");
}

void Command::keep(std::int64_t number) {
  number_ = number;
  record = Keep::make("bash-command", {{"number", number}});
  out.keep_in(record, 0);
  err.keep_in(record, 1);
  save();
}

void Command::save() {
  if (record.keep() == nullptr) return;
  json::Value body{{"session", exec->session},
                   {"exec", exec->id},
                   {"id", id},
                   {"number", number_},
                   {"text", text},
                   {"status", std::string(status_name(status))},
                   {"hint", hint},
                   {"kill_asked", kill_asked_},
                   {"input_waits", input_waits_},
                   {"hard_timeout_ms", exec->hard_timeout_ms}};
  if (exit_code) body["exit_code"] = *exit_code;
  if (const auto why = end()) body["end"] = bridge::kept_end(*why);
  (void)record.write(body, {out.end(), err.end()});  // without room the previous body stays, and is corrected when it is read
}

void Command::note_kill() {
  if (std::exchange(kill_asked_, true)) return;
  save();
}

void Command::take_in(Stream& stream, std::string_view bytes) {
  stream.buffer.append(bytes);
  record.advance({out.end(), err.end()});
}

// The copies that the launcher holds for a later agent would keep pipes open that are closed here.
void Command::let_go() {
  if (!stdin_.open() && !std::exchange(stdin_let_go_, true)) exec->let_go("stdin");
  if (!running() && stdout_.closed && stderr_.closed && !std::exchange(all_let_go_, true)) exec->let_go("");
}

void Command::attach(std::shared_ptr<Command> self, std::optional<bridge::ExecStarted> started) {
  if (started) {
    started->handle->hard_timeout_ms = self->exec->hard_timeout_ms;
    if (self->exec->exit) started->handle->exit = self->exec->exit;
    self->exec = std::move(started->handle);
    self->stdout_.from = make_descriptor(self->executor_, std::move(started->stdout_pipe));
    self->stderr_.from = make_descriptor(self->executor_, std::move(started->stderr_pipe));
    self->stdin_ = WriteQueue(self->executor_, std::move(started->stdin_pipe), self->stdin_.take_share());
  }
  self->stdout_.closed = !self->stdout_.from.is_open();
  self->stderr_.closed = !self->stderr_.from.is_open();
  if (!self->running()) {
    Stream& out_stream = self->stdout_;
    Stream& err_stream = self->stderr_;
    if (!self->stdout_.closed) spawn(self->executor_, "bash stdout", collect(self, out_stream));
    if (!self->stderr_.closed) spawn(self->executor_, "bash stderr", collect(self, err_stream));
    return self->let_go();
  }
  if (!started) {
    self->exec->exit = bridge::ExecExit{.exit_code = 137, .signal = "SIGKILL", .reason = "session_end"};
    self->exec->exit->end = bridge::end_of("agent_restart");
  }
  run(std::move(self));
}

task<void> Command::take_up(bridge::LauncherClient& launcher, const bridge::LeftSession& left, std::shared_ptr<Command> self) {
  std::optional<bridge::ExecStarted> started;
  if (std::ranges::find(left.execs, self->exec->id) != left.execs.end()) {
    std::string exec = self->exec->id;
    if (auto adopted = co_await launcher.exec_adopt(left.handle, std::move(exec))) started = std::move(*adopted);
  }
  const std::shared_ptr<bridge::ExecHandle> handle = started ? started->handle : nullptr;
  attach(self, std::move(started));
  if (handle && self->input_lost) (void)co_await launcher.exec_signal(handle, "SIGKILL");  // it may just have ended
  co_return Status{};
}

void Command::run(std::shared_ptr<Command> self) {
  Stream& out_stream = self->stdout_;
  Stream& err_stream = self->stderr_;
  const asio::any_io_executor executor = self->executor_;
  spawn(executor, "bash stdout", collect(self, out_stream));
  spawn(executor, "bash stderr", collect(self, err_stream));
  spawn(executor, "bash end", await_end(std::move(self)));
}

bool Command::drain(Stream& stream, std::size_t limit) {
  if (stream.closed) return false;
  const std::uint64_t before = stream.buffer.end();
  const auto keep = [this, &stream](std::string_view bytes) { take_in(stream, bytes); };
  if (read_available(stream.from, limit, keep, &record, stream.number) == ReadEnd::closed) {
    stream.closed = true;
    close_quietly(stream.from);
    let_go();
  }
  return stream.closed || stream.buffer.end() != before;
}

task<void> Command::collect(std::shared_ptr<Command> self, Stream& stream) {
  while (!stream.closed) {
    const auto [error] = co_await stream.from.async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    const std::uint64_t before = stream.buffer.end();
    if (self->drain(stream, kTurnBytes)) self->changed.notify_all();
    if (stream.buffer.end() - before >= kTurnBytes) co_await http::pause();
  }
  co_return Status{};
}

void Command::take_output() {
  drain(stdout_, kFinalBytes);
  drain(stderr_, kFinalBytes);
}

task<void> Command::await_end(std::shared_ptr<Command> self) {
  while (!self->exec->exit) (void)co_await self->exec->changed.wait_until(bridge::no_deadline());
  self->take_output();
  // A background child may keep the pipes open for ever; its output is still collected after the command's end.
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kGrace;
  while (!self->stdout_.closed || !self->stderr_.closed)
    if (!co_await self->changed.wait_until(deadline)) break;
  self->finish();
  co_return Status{};
}

void Command::finish() {
  const bridge::ExecExit& exit = *exec->exit;
  const bool by_signal = !exit.signal.empty() || exit.exit_code > 128;
  if (exit.reason == "hard_timeout") {
    status = CommandStatus::timed_out;
  } else if (exit.reason == "session_end" || (kill_asked_ && by_signal)) {
    status = CommandStatus::killed;
  } else {
    status = CommandStatus::completed;
    exit_code = exit.exit_code;
    if (exit.reason == "oom") hint = "killed by the kernel: the session's memory limit was reached";
  }
  if (input_lost) {
    status = CommandStatus::killed;
    exit_code.reset();
    hint = "ended: its unread input was lost with the previous agent";
    exec->exit->end = bridge::end_of("agent_restart");
  }
  stdin_.close();
  input_waits_ = false;
  save();
  let_go();
  changed.notify_all();
}

Status Command::write(std::shared_ptr<Command> self, std::string input, std::size_t most_waiting) {
  if (!self->running()) return fail(Code::io, "the command has ended");
  if (input == "\x04") {
    self->stdin_.close_when_empty();
    self->let_go();
    return {};
  }
  TRY(self->stdin_.push(input, most_waiting));
  self->let_go();
  if (!self->stdin_.empty() && !std::exchange(self->feeding_, true)) {
    self->input_waits_ = true;
    self->save();
    const asio::any_io_executor executor = self->executor_;
    spawn(executor, "bash stdin", feed(std::move(self)));
  }
  return {};
}

task<void> Command::feed(std::shared_ptr<Command> self) {
  while (self->stdin_.flush()) {
    const auto [error] = co_await self->stdin_.descriptor().async_wait(Descriptor::wait_write, as_values);
    if (error) break;
  }
  self->feeding_ = false;
  self->let_go();
  if (std::exchange(self->input_waits_, false)) self->save();
  co_return Status{};
}

void Command::release() {
  stdin_.close();
  if (!std::exchange(all_let_go_, true)) exec->let_go("");
  for (Stream* stream : {&stdout_, &stderr_}) {
    stream->closed = true;
    close_quietly(stream->from);
  }
  changed.notify_all();
}

}  // namespace caisson::services
