#include "agent/session/bash_command.h"

namespace caisson::session {
namespace {

// One turn of a stream. Other coroutines run between turns, however fast a program floods.
constexpr std::size_t kTurnBytes = 256 * 1024;
// All that the program itself wrote is in its pipes (64 KiB, at most 1 MiB each) when it has exited.
constexpr std::size_t kFinalBytes = 1024 * 1024;
// How long output of helpers that outlive the command (`> >(tee log)`) is waited for.
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

BashCommand::BashCommand(asio::any_io_executor executor, Setup setup, bridge::ExecStarted started)
    : id(std::move(setup.id)),
      text(std::move(setup.text)),
      out(setup.budget, setup.stream_cap_bytes),
      err(setup.budget, setup.stream_cap_bytes),
      changed(executor),
      exec(std::move(started.handle)),
      executor_(executor),
      stdout_{make_descriptor(executor, std::move(started.stdout_pipe)), out},
      stderr_{make_descriptor(executor, std::move(started.stderr_pipe)), err},
      stdin_(executor, std::move(started.stdin_pipe)) {}

void BashCommand::run(std::shared_ptr<BashCommand> self) {
  Stream& out_stream = self->stdout_;
  Stream& err_stream = self->stderr_;
  const asio::any_io_executor executor = self->executor_;
  spawn(executor, "bash stdout", collect(self, out_stream));
  spawn(executor, "bash stderr", collect(self, err_stream));
  spawn(executor, "bash end", await_end(std::move(self)));
}

bool BashCommand::drain(Stream& stream, std::size_t limit) {
  if (stream.closed) return false;
  const std::uint64_t before = stream.buffer.end();
  const auto keep = [&stream](std::string_view bytes) { stream.buffer.append(bytes); };
  if (read_available(stream.from, limit, keep) == ReadEnd::closed) {
    stream.closed = true;
    close_quietly(stream.from);
  }
  return stream.closed || stream.buffer.end() != before;
}

task<void> BashCommand::collect(std::shared_ptr<BashCommand> self, Stream& stream) {
  while (!stream.closed) {
    const auto [error] = co_await stream.from.async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    if (self->drain(stream, kTurnBytes)) self->changed.notify_all();
  }
  co_return Status{};
}

void BashCommand::take_output() {
  drain(stdout_, kFinalBytes);
  drain(stderr_, kFinalBytes);
}

task<void> BashCommand::await_end(std::shared_ptr<BashCommand> self) {
  while (!self->exec->exit) (void)co_await self->exec->changed.wait_until(bridge::no_deadline());
  self->take_output();
  // A background child may keep the pipes open for ever; its output goes on being collected after the command ended.
  const bridge::Clock::time_point deadline = bridge::Clock::now() + kGrace;
  while (!self->stdout_.closed || !self->stderr_.closed)
    if (!co_await self->changed.wait_until(deadline)) break;
  self->finish();
  co_return Status{};
}

void BashCommand::finish() {
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
  stdin_.close();
  changed.notify_all();
}

Status BashCommand::write(std::shared_ptr<BashCommand> self, std::string input, std::size_t most_waiting) {
  if (!self->running()) return fail(Code::io, "the command has ended");
  if (input == "\x04") {
    self->stdin_.close_when_empty();
    return {};
  }
  TRY(self->stdin_.push(input, most_waiting));
  if (!self->stdin_.empty() && !std::exchange(self->feeding_, true)) {
    const asio::any_io_executor executor = self->executor_;
    spawn(executor, "bash stdin", feed(std::move(self)));
  }
  return {};
}

task<void> BashCommand::feed(std::shared_ptr<BashCommand> self) {
  while (self->stdin_.flush()) {
    const auto [error] = co_await self->stdin_.descriptor().async_wait(Descriptor::wait_write, as_values);
    if (error) break;
  }
  self->feeding_ = false;
  co_return Status{};
}

void BashCommand::release() {
  stdin_.close();
  for (Stream* stream : {&stdout_, &stderr_}) {
    stream->closed = true;
    close_quietly(stream->from);
  }
  changed.notify_all();
}

}  // namespace caisson::session
