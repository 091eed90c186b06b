#include "agent/services/program/program.h"

#include <csignal>

#include "agent/http/lane.h"

namespace caisson::services {
namespace {

// One turn of a stream that is only searched. All others have theirs between two, however fast a program floods.
constexpr std::size_t kDrainBytes = 64 * 1024;
constexpr std::chrono::milliseconds kPollPause{50};
// A program that has exited may have left output in its pipe; one that has closed a pipe may be about to exit.
constexpr double kLastOutputSeconds = 1, kExitSeconds = 2;

// What a person needs of the tail: its last line.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::size_t line = text.find_last_of("\r\n");
  return quote(line == std::string_view::npos ? text : text.substr(line + 1));
}

task<void> poll(std::function<task<void>()> attempt, Program::Pointer program, bridge::Clock::time_point deadline) {
  while (true) {
    Status done = co_await attempt();
    if (done) co_return done;
    if (!program->alive() || bridge::Clock::now() >= deadline)
      co_return std::unexpected(std::move(done).error().wrap(program->name() + " was not ready"));
    co_await sleep_for(kPollPause);
  }
}

}  // namespace

Readiness::Ask poll_until(std::function<task<void>()> attempt) {
  return [attempt = std::move(attempt)](Program::Pointer program, bridge::Clock::time_point deadline) {
    return poll(attempt, std::move(program), deadline);
  };
}

Program::Program(bridge::LauncherClient& launcher, ProgramSpec spec, std::shared_ptr<bridge::SessionHandle> session,
                 bridge::ExecStarted started)
    : launcher_(launcher),
      spec_(std::move(spec)),
      session_(std::move(session)),
      exec_(std::move(started.handle)),
      pid_(started.pid),
      stdin_(make_descriptor(launcher.executor(), std::move(started.stdin_pipe))),
      stdout_(make_descriptor(launcher.executor(), std::move(started.stdout_pipe))),
      stderr_(make_descriptor(launcher.executor(), std::move(started.stderr_pipe))),
      changed_(launcher.executor()) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a program that closes its stdin must not end the agent
}

// --- start ---

task<Program::Pointer> Program::launch(bridge::LauncherClient& launcher, ProgramSpec spec) {
  spec.command.pty.reset();
  spec.command.with_stdin = true;
  spec.command.keep = spec.keep;
  std::shared_ptr<bridge::SessionHandle> session = spec.session;
  if (!session) {
    CO_TRY_ASSIGN(session, co_await launcher.session_create(spec.domain, spec.label, spec.workspace, spec.isolated,
                                                            spec.memory_bytes, spec.keep));
  }
  bridge::ExecRequest command = std::move(spec.command);
  auto outcome = co_await launcher.session_exec(session, std::move(command));
  std::optional<Error> refused;
  if (!outcome) refused = std::move(outcome).error();
  else if (const auto* refusal = std::get_if<bridge::ExecRefused>(&*outcome)) refused = refusal->error;
  else if (session->ended) refused = Error(Code::io, "its session has ended: " + session->end_reason);
  if (refused) {
    if (!spec.session)
      (void)co_await launcher.session_destroy(session, "the program did not start");  // the first error is the one to report
    co_return std::unexpected(std::move(*refused).wrap("start the " + spec.name));
  }
  const Pointer self(new Program(launcher, std::move(spec), session, std::move(std::get<bridge::ExecStarted>(*outcome))));
  run(self);
  co_return self;
}

Program::Pointer Program::adopt(bridge::LauncherClient& launcher, ProgramSpec spec,
                                std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started) {
  Pointer self(new Program(launcher, std::move(spec), std::move(session), std::move(started)));
  run(self);
  if (const auto opened = std::exchange(self->spec_.opened, nullptr)) opened(self);
  return self;
}

void Program::run(const Pointer& self) {
  const std::weak_ptr<Program> weak = self;
  // Of one that has joined another's session, the exec's end tells the same.
  if (!self->joined())
    self->session_->on_end = [weak] {
      if (const Pointer program = weak.lock())
        program->end(Error(Code::io, program->name() + ": its session ended: " + program->session_->end_reason),
                     program->session_->end);
    };
  const asio::any_io_executor& executor = self->executor();
  if (!self->spec_.has_protocol) spawn(executor, self->name() + " output", read(self, self->out_));
  spawn(executor, self->name() + " errors", read(self, self->err_));
  spawn(executor, self->name() + " end", await_end(self));
}

// What a spec's functions hold (files to be written, for example) is let go once they have been called.
task<void> Program::make_ready(Pointer self) {
  if (const auto opened = std::exchange(self->spec_.opened, nullptr)) opened(self);
  const Readiness::Ask ask = std::exchange(self->spec_.ready.ask, nullptr);
  self->text_seen_ = self->spec_.ready.text.empty();
  const bridge::Clock::time_point deadline = bridge::Clock::now() + self->spec_.limits.ready_within;
  if (ask || !self->text_seen_) spawn(self->executor(), self->name() + " start", limit_start(self, deadline));
  while (!self->text_seen_ && self->alive()) (void)co_await self->changed_.wait_until(bridge::no_deadline());
  Status found;
  if (ask && self->alive()) found = co_await ask(self, deadline);
  if (found && !self->alive()) found = std::unexpected(*self->end_error_);
  self->start_over_ = true;
  self->changed_.notify_all();
  if (!found) (void)co_await close(self, "it did not become ready");  // the first error is the one to report
  co_return found;
}

// Whatever waits for the program while it starts ends with it.
task<void> Program::limit_start(Pointer self, bridge::Clock::time_point deadline) {
  while (!self->start_over_ && self->alive())
    if (!co_await self->changed_.wait_until(deadline)) break;
  if (self->start_over_ || !self->alive()) co_return Status{};
  const std::string limit = std::to_string(self->spec_.limits.ready_within.count());
  self->end(self->with_last_line(Code::timeout, self->name() + " was not ready after " + limit + " ms"),
            bridge::end_of("not_ready"));
  co_return Status{};
}

// --- what it writes ---

bool Program::Search::found(std::string_view text, std::string_view bytes) {
  carry.append(bytes);
  const bool found = carry.contains(text);
  carry.erase(0, carry.size() - std::min(carry.size(), text.size() - 1));
  return found;
}

ReadEnd Program::take(Stream& stream) {
  const auto keep = [this, &stream](std::string_view bytes) {
    if (const std::string& text = spec_.ready.text; !text_seen_ && !text.empty() && stream.search.found(text, bytes)) {
      text_seen_ = true;
      changed_.notify_all();
    }
    const std::size_t most = spec_.limits.tail_bytes;
    tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), most)));
    if (tail_.size() > most) tail_.erase(0, tail_.size() - most);
  };
  const ReadEnd end = read_available(stream.from, kDrainBytes, keep);
  if (end == ReadEnd::closed) close_quietly(stream.from);
  return end;
}

task<void> Program::read(Pointer self, Stream& stream) {
  while (self->alive() && stream.from.is_open()) {
    const auto [error] = co_await stream.from.async_wait(Descriptor::wait_read, as_values);
    if (error || !self->alive()) break;
    if (self->take(stream) == ReadEnd::more) co_await http::pause();
  }
  if (&stream == &self->out_) self->note_output_over();
  co_return Status{};
}

void Program::note_output_over() {
  output_over_ = true;
  exec_->changed.notify_all();
}

void Program::note_input_broken() {
  input_broken_ = true;
  exec_->changed.notify_all();
}

// --- its end ---

Error Program::with_last_line(Code code, std::string what) const {
  if (!tail_.empty()) what += ": " + last_line(tail_);
  return Error(code, std::move(what));
}

Error Program::exit_error() const {
  std::string what = name();
  if (!exec_->exit) what += " closed its pipes";
  else if (exec_->exit->reason == "oom") what += " was killed by the kernel: the session's memory limit was reached";
  else if (!exec_->exit->signal.empty()) what += " was ended by " + exec_->exit->signal;
  else what += " ended with exit code " + std::to_string(exec_->exit->exit_code);
  return with_last_line(Code::io, std::move(what));
}

task<void> Program::await_end(Pointer self) {
  const std::shared_ptr<bridge::ExecHandle> exec = self->exec_;
  const bool pipes_count = self->spec_.has_protocol;  // a program that serves a socket may close its stdout and go on
  while (self->alive() && !exec->exit && !(pipes_count && (self->output_over_ || self->input_broken_)))
    (void)co_await exec->changed.wait_until(bridge::no_deadline());
  // Replies that were written before the end are still delivered, and the end of a pipe is mostly the end of the program.
  const bridge::Clock::time_point deadline = bridge::deadline_after(exec->exit ? kLastOutputSeconds : kExitSeconds);
  while (self->alive() && !(exec->exit && self->output_over_))
    if (!co_await exec->changed.wait_until(deadline)) break;
  if (!self->alive() || self->closed_) co_return Status{};  // close() tells of the end
  (void)self->take(self->err_);
  self->end(self->exit_error(), exec->exit ? exec->exit->end : bridge::end_of("closed_its_pipes"));
  co_return co_await destroy(self, "the program ended");
}

void Program::on_end(Told told) {
  if (alive()) told_.push_back(std::move(told));
  else told(*this);
}

void Program::end(Error why, bridge::End reason) {
  if (end_error_) return;
  why_ended_ = std::move(reason);
  end_error_ = std::move(why);
  record_.erase();
  for (Descriptor* descriptor : {&stdin_, &stdout_, &stderr_}) close_quietly(*descriptor);
  exec_->changed.notify_all();
  changed_.notify_all();
  const std::vector<Told> told = std::exchange(told_, {});
  for (const Told& one : told) one(*this);
}

void Program::fail(const Pointer& self, const Error& why, bridge::End reason) {
  self->end(Error(Code::io, self->name() + " broke its protocol: " + why.what), std::move(reason));
  spawn(self->executor(), self->name() + " session", destroy(self, "the program broke its protocol"));
}

task<void> Program::destroy(Pointer self, std::string reason) {
  if (self->joined()) {
    if (self->exec_->exit || self->session_->ended) co_return Status{};
    co_return co_await self->launcher_.exec_signal(self->exec_, "SIGKILL");
  }
  co_return co_await self->launcher_.session_destroy(self->session_, std::move(reason));
}

task<void> Program::ask_to_end(Pointer self) {
  const bridge::Clock::time_point deadline = bridge::Clock::now() + self->spec_.limits.stop_within;
  std::string signal = self->spec_.stop_signal;
  if (signal.empty()) close_quietly(self->stdin_);
  else CO_TRY(co_await self->launcher_.exec_signal(self->exec_, std::move(signal)));
  while (self->alive() && !self->exec_->exit)
    if (!co_await self->exec_->changed.wait_until(deadline)) break;
  co_return Status{};
}

task<void> Program::close(Pointer self, std::string reason) {
  self->closed_ = true;
  if (self->alive() && !self->exec_->exit && self->spec_.limits.stop_within.count() > 0)
    (void)co_await ask_to_end(self);  // the end of the session follows in any case
  self->end(Error(Code::io, self->name() + " was closed: " + reason), bridge::end_of(reason));
  co_return co_await destroy(self, std::move(reason));
}

}  // namespace caisson::services
