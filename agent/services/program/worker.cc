#include "agent/services/program/worker.h"

#include <unistd.h>

#include <climits>
#include <csignal>

#include "agent/http/lane.h"

namespace caisson::services {
namespace {

// One turn of the output. All others have theirs between two, however fast a program floods.
constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kBodyBytes = 1024 * 1024;  // of a body, in one read: no pipe holds more
constexpr std::size_t kTailBytes = 8 * 1024;
constexpr std::size_t kUncounted = 2 * kPieceBytes;  // small frames come and go, however full it is
constexpr std::chrono::milliseconds kRoomPoll{100};
// A program that has exited may have left output in its pipe; one that has closed a pipe may be about to exit.
constexpr double kLastOutputSeconds = 1, kExitSeconds = 2;

// What a person needs of the tail: its last line.
std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::size_t line = text.find_last_of("\r\n");
  return quote(line == std::string_view::npos ? text : text.substr(line + 1));
}

}  // namespace

// However a caller leaves, the reply that is still to come is nobody's.
struct Worker::Abandon {
  Worker& worker;
  Pending& pending;
  std::int64_t id;
  ~Abandon() {
    if (pending.reply || !worker.alive()) return;
    pending.abandoned = true;
    worker.cancel(id);
  }
};

Worker::Worker(bridge::LauncherClient& launcher, std::string name, WorkerOptions options,
               std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started)
    : launcher_(launcher),
      name_(std::move(name)),
      options_(std::move(options)),
      session_(std::move(session)),
      exec_(std::move(started.handle)),
      pid_(started.pid),
      stdin_(make_descriptor(launcher.executor(), std::move(started.stdin_pipe))),
      stdout_(make_descriptor(launcher.executor(), std::move(started.stdout_pipe))),
      stderr_(make_descriptor(launcher.executor(), std::move(started.stderr_pipe))),
      decoder_(options_.limits),
      from_(options_.budget ? options_.budget->share() : http::Budget::Share()),
      to_(options_.budget ? options_.budget->share() : http::Budget::Share()),
      room_(launcher.executor()),
      unheld_(launcher.executor()) {}

task<Worker::Pointer> Worker::start(bridge::LauncherClient& launcher, std::string domain, std::string label,
                                    std::string workspace, bridge::ExecRequest request, WorkerOptions options) {
  (void)std::signal(SIGPIPE, SIG_IGN);  // a program that closes its stdin must not end the agent
  request.pty.reset();
  request.with_stdin = true;
  request.keep = options.keep;
  const std::string name = domain + " worker";
  CO_TRY_ASSIGN(auto session, co_await launcher.session_create(std::move(domain), std::move(label), std::move(workspace),
                                                               options.isolated, options.memory_bytes, options.keep));
  auto outcome = co_await launcher.session_exec(session, std::move(request));
  std::optional<Error> refused;
  if (!outcome) refused = std::move(outcome).error();
  else if (const auto* refusal = std::get_if<bridge::ExecRefused>(&*outcome)) refused = refusal->error;
  else if (session->ended) refused = Error(Code::io, "its session has ended: " + session->end_reason);
  if (refused) {
    (void)co_await launcher.session_destroy(session, "the worker did not start");  // the first error is the one to report
    co_return std::unexpected(std::move(*refused).wrap("start the " + name));
  }
  const Pointer self(new Worker(launcher, name, std::move(options), session, std::move(std::get<bridge::ExecStarted>(*outcome))));
  run(self);
  co_return self;
}

Worker::Pointer Worker::adopt(bridge::LauncherClient& launcher, std::string domain,
                              std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started, WorkerOptions options,
                              std::string mark) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  Pointer self(new Worker(launcher, domain + " worker", std::move(options), std::move(session), std::move(started)));
  self->mark_ = std::move(mark);
  run(self);
  return self;
}

void Worker::run(const Pointer& self) {
  const std::weak_ptr<Worker> weak = self;
  self->session_->on_end = [weak] {
    const Pointer worker = weak.lock();
    if (worker)
      worker->end(Error(Code::io, worker->name_ + ": its session ended: " + worker->session_->end_reason), worker->session_->end);
  };
  const asio::any_io_executor& executor = self->launcher_.executor();
  spawn(executor, self->name_ + " output", read_output(self));
  spawn(executor, self->name_ + " errors", read_errors(self));
  spawn(executor, self->name_ + " end", await_end(self));
}

// --- requests ---

bool Worker::has_room(std::size_t bytes) const {
  // A request larger than the bound may go when nothing else waits: one at a time, it is bounded by its sender.
  return pending_.size() < options_.most_calls && (outbox_.empty() || outbox_bytes_ + bytes <= options_.most_waiting_bytes);
}

task<void> Worker::await_room(Pointer self, std::size_t bytes, bridge::Clock::time_point deadline) {
  while (self->alive() && !self->has_room(bytes))
    if (!co_await self->room_.wait_until(deadline))
      co_return fail(Code::limit, self->name_ + " is busy: " + std::to_string(self->pending_.size()) + " calls are under way");
  if (!self->alive()) co_return std::unexpected(*self->end_error_);
  co_return Status{};
}

task<frames::Frame> Worker::call(Pointer self, json::Value head, std::string body, bridge::Clock::time_point deadline) {
  CO_TRY(co_await await_room(self, body.size(), deadline));
  const std::int64_t id = self->next_id_++;
  head["id"] = id;
  CO_TRY_ASSIGN(std::string text, frames::encode_head(std::move(head), body.size()));
  if (!self->hold_requests(text.size() + body.size())) co_return fail(Code::limit, "the workspace has no room for a request");
  auto pending = std::make_shared<Pending>(self->launcher_.executor());
  self->pending_[id] = pending;
  const Abandon abandon{*self, *pending, id};
  self->push_and_flush(self, std::move(text), std::move(body));
  while (!pending->reply && self->alive())
    if (!co_await pending->changed.wait_until(deadline)) break;
  if (pending->reply) co_return std::move(*pending->reply);
  if (!self->alive()) co_return std::unexpected(*self->end_error_);
  co_return fail(Code::timeout, self->name_ + " does not answer");
}

Status Worker::tell(Pointer self, json::Value head, std::string body) {
  if (!self->alive()) return std::unexpected(*self->end_error_);
  if (!self->outbox_.empty() && self->outbox_bytes_ + body.size() > self->options_.most_waiting_bytes)
    return fail(Code::limit, self->name_ + " does not read its input");
  TRY_ASSIGN(std::string text, frames::encode_head(std::move(head), body.size()));
  if (!self->hold_requests(text.size() + body.size())) return fail(Code::limit, "the workspace has no room for a request");
  self->push_and_flush(self, std::move(text), std::move(body));
  return {};
}

bool Worker::hold_requests(std::size_t more) {
  const std::size_t bytes = outbox_bytes_ + more;
  return to_.resize(bytes > kUncounted ? bytes : 0) == http::Room::granted;
}

// Of a pipe the kernel takes PIPE_BUF bytes whole or not at all, pipe(7).
void Worker::push(std::string head, std::string body) {
  outbox_bytes_ += head.size() + body.size();
  if (head.size() + body.size() <= PIPE_BUF) head.append(std::exchange(body, {}));
  else note_input(false);
  outbox_.push_back(std::move(head));
  if (!body.empty()) outbox_.push_back(std::move(body));
}

void Worker::note_input(bool whole) {
  if (std::exchange(input_whole_, whole) != whole) record_.advance({whole ? 0U : 1U, 0});
}

void Worker::push_and_flush(const Pointer& self, std::string head, std::string body) {
  push(std::move(head), std::move(body));
  if (writing_ || input_broken_ || !flush()) return;
  writing_ = true;
  spawn(launcher_.executor(), name_ + " input", write_input(self));
}

// Writes what the kernel takes now. True: something is left.
bool Worker::flush() {
  while (!outbox_.empty() && stdin_.is_open()) {
    const std::string& front = outbox_.front();
    const ssize_t n = ::write(stdin_.native_handle(), front.data() + front_done_, front.size() - front_done_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      room_.notify_all();
      return true;
    }
    if (n < 0) {  // closed by the program: await_end() learns why and ends what is pending
      input_broken_ = true;
      exec_->changed.notify_all();
      return false;
    }
    front_done_ += static_cast<std::size_t>(n);
    outbox_bytes_ -= static_cast<std::size_t>(n);
    if (to_.bytes() > outbox_bytes_) (void)hold_requests(0);
    if (front_done_ < front.size()) continue;
    outbox_.pop_front();
    front_done_ = 0;
  }
  note_input(true);
  room_.notify_all();
  return false;
}

task<void> Worker::write_input(Pointer self) {
  while (self->alive() && !self->input_broken_ && self->flush()) {
    const auto [error] = co_await self->stdin_.async_wait(Descriptor::wait_write, as_values);
    if (error) break;
  }
  self->writing_ = false;
  co_return Status{};
}

// Called while a coroutine's frame is destroyed, so it starts nothing: a note that cannot be written now is left out.
void Worker::cancel(std::int64_t id) {
  json::Value head = json::Value::object();
  head["cancel"] = id;
  auto note = frames::encode_head(std::move(head), 0);
  if (!note || !stdin_.is_open() || input_broken_) return;
  if (!outbox_.empty()) push(std::move(*note), "");                         // write_input() is at it
  else (void)!::write(stdin_.native_handle(), note->data(), note->size());  // less than PIPE_BUF: whole or not at all
}

// --- what the program sends ---

void Worker::hold_output(bool held) {
  held_ = held;
  if (!held) unheld_.notify_all();
}

task<void> Worker::read_output(Pointer self) {
  while (self->alive() && !self->output_over_) {
    while (self->held_ && self->alive()) (void)co_await self->unheld_.wait_until(bridge::no_deadline());
    if (!self->alive()) break;
    const auto [error] = co_await self->stdout_.async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    if (self->held_) continue;
    Result<ReadEnd> turn = self->read_turn();
    if (self->turns_without_room_ > self->options_.most_turns_without_room) turn = fail(Code::limit, "no room for its output");
    if (!turn) {
      const bool flood = turn.error().code == Code::limit;
      self->end(Error(Code::io, self->name_ + " broke its protocol: " + turn.error().what),
                bridge::end_of(flood ? "output" : "init_protocol"));
      spawn(self->launcher_.executor(), self->name_ + " session", destroy(self, "the worker broke its protocol"));
    } else if (self->turns_without_room_ > 0) {
      co_await sleep_for(kRoomPoll);
    } else if (*turn == ReadEnd::more) {
      co_await http::pause();
    }
  }
  co_return Status{};
}

bool Worker::hold_frame(std::size_t more) {
  const std::size_t bytes = decoder_.held(more);
  return from_.resize(bytes > kUncounted ? bytes : 0) == http::Room::granted;
}

Result<ReadEnd> Worker::read_turn() {
  // What is surely of one body goes where it belongs, without being copied.
  const bool large = decoder_.body_wanted() >= kPieceBytes;
  if (!hold_frame(large ? std::min(kBodyBytes, decoder_.body_wanted()) : kPieceBytes)) {
    ++turns_without_room_;
    return ReadEnd::more;
  }
  turns_without_room_ = 0;
  Status taken;
  const auto keep = [this, &taken](std::string_view bytes) {
    if (taken) taken = take_bytes(bytes);
  };
  const ReadEnd read = large ? read_body() : read_available(stdout_, kPieceBytes, keep);
  if (large && decoder_.body_wanted() == 0) taken = take_bytes("");
  if (read == ReadEnd::closed) {
    output_over_ = true;
    exec_->changed.notify_all();
  }
  (void)hold_frame(0);
  TRY(std::move(taken));
  return read;
}

ReadEnd Worker::read_body() {
  const auto read = [this](char* to, std::size_t size) {
    ssize_t n = -1;
    do n = ::read(stdout_.native_handle(), to, size);
    while (n < 0 && errno == EINTR);
    return n;
  };
  const std::ptrdiff_t n = decoder_.read_body(kBodyBytes, read);
  if (n > 0) return ReadEnd::more;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? ReadEnd::blocked : ReadEnd::closed;
}

bool Worker::skip_to_mark(std::string_view& bytes) {
  if (mark_.empty()) return true;
  before_mark_.append(bytes);
  if (const std::size_t at = before_mark_.find(mark_); at != std::string::npos) {
    bytes.remove_prefix(bytes.size() - (before_mark_.size() - at - mark_.size()));
    mark_.clear();
    before_mark_ = {};
    return true;
  }
  before_mark_.erase(0, before_mark_.size() - std::min(before_mark_.size(), mark_.size() - 1));
  return false;
}

Status Worker::take_bytes(std::string_view bytes) {
  if (!skip_to_mark(bytes)) return {};
  do {
    TRY_ASSIGN(auto frame, decoder_.take(bytes));
    if (!frame) continue;
    (void)hold_frame(0);  // whoever takes it counts it from here on
    TRY(take(std::move(*frame)));
  } while (!bytes.empty() && alive());
  return {};
}

Status Worker::take(frames::Frame frame) {
  if (!frame.head.contains("id")) {
    if (alive() && options_.on_event) options_.on_event(std::move(frame));
    return {};
  }
  TRY_ASSIGN(const auto id, json::get_int(frame.head, "id"));
  const auto it = pending_.find(id.value_or(0));
  if (it == pending_.end()) return fail(Code::protocol, "a reply to no request");
  const std::shared_ptr<Pending> pending = std::move(it->second);
  pending_.erase(it);
  room_.notify_all();
  if (pending->abandoned) return {};
  pending->reply = std::move(frame);
  pending->changed.notify_all();
  return {};
}

void Worker::take_errors() {
  const auto keep = [this](std::string_view bytes) {
    stderr_tail_.append(bytes);
    if (stderr_tail_.size() > kTailBytes) stderr_tail_.erase(0, stderr_tail_.size() - kTailBytes);
  };
  if (read_available(stderr_, kPieceBytes, keep) == ReadEnd::closed) close_quietly(stderr_);
}

task<void> Worker::read_errors(Pointer self) {
  while (self->alive() && self->stderr_.is_open()) {
    const auto [error] = co_await self->stderr_.async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    self->take_errors();
  }
  co_return Status{};
}

// --- its end ---

Error Worker::exit_error() const {
  std::string what = name_;
  if (!exec_->exit) what += " closed its pipes";
  else if (exec_->exit->reason == "oom") what += " was killed by the kernel: the session's memory limit was reached";
  else if (!exec_->exit->signal.empty()) what += " was ended by " + exec_->exit->signal;
  else what += " ended with exit code " + std::to_string(exec_->exit->exit_code);
  if (!stderr_tail_.empty()) what += ": " + last_line(stderr_tail_);
  return Error(Code::io, std::move(what));
}

task<void> Worker::await_end(Pointer self) {
  const std::shared_ptr<bridge::ExecHandle> exec = self->exec_;
  while (self->alive() && !exec->exit && !self->output_over_ && !self->input_broken_)
    (void)co_await exec->changed.wait_until(bridge::no_deadline());
  // Replies that were written before the end are still delivered, and the end of a pipe is mostly the end of the program.
  const bridge::Clock::time_point deadline = bridge::deadline_after(exec->exit ? kLastOutputSeconds : kExitSeconds);
  while (self->alive() && !(exec->exit && self->output_over_))
    if (!co_await exec->changed.wait_until(deadline)) break;
  if (!self->alive()) co_return Status{};
  self->take_errors();
  self->end(self->exit_error(), exec->exit ? exec->exit->end : bridge::end_of("closed_its_pipes"));
  co_return co_await destroy(self, "the worker ended");
}

void Worker::end(Error why, bridge::End reason) {
  if (end_error_) return;
  why_ended_ = std::move(reason);
  end_error_ = std::move(why);
  for (auto& [id, pending] : pending_) pending->changed.notify_all();
  pending_.clear();
  outbox_.clear();
  record_.erase();
  to_.release();
  outbox_bytes_ = front_done_ = 0;
  for (Descriptor* descriptor : {&stdin_, &stdout_, &stderr_}) close_quietly(*descriptor);
  room_.notify_all();
  unheld_.notify_all();
  exec_->changed.notify_all();
  if (const auto told = std::exchange(options_.on_end, nullptr)) told(*end_error_);
}

task<void> Worker::destroy(Pointer self, std::string reason) {
  co_return co_await self->launcher_.session_destroy(self->session_, std::move(reason));
}

task<void> Worker::close(Pointer self, std::string reason) {
  self->options_.on_end = nullptr;
  self->end(Error(Code::io, self->name_ + " was closed: " + reason), bridge::end_of(reason));
  co_return co_await destroy(self, std::move(reason));
}

}  // namespace caisson::services
