#include "agent/services/program/worker.h"

#include <unistd.h>

#include <climits>

#include "agent/http/lane.h"

namespace caisson::services {
namespace {

// One turn of the output. All others have theirs between two, however fast a program floods.
constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::size_t kBodyBytes = 1024 * 1024;      // of a body, in one read: no pipe holds more
constexpr std::size_t kUncounted = 2 * kPieceBytes;  // small frames come and go, however full it is
constexpr std::chrono::milliseconds kRoomPoll{100};

}  // namespace

// However a caller leaves, a reply that is still to come is dropped.
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

Worker::Worker(Program::Pointer program, WorkerOptions options)
    : program_(std::move(program)),
      options_(std::move(options)),
      decoder_(limits().frames),
      from_(options_.budget ? options_.budget->share() : http::Budget::Share()),
      to_(options_.budget ? options_.budget->share() : http::Budget::Share()),
      room_(program_->executor()),
      unheld_(program_->executor()) {}

Worker::Pointer Worker::over(Program::Pointer program, WorkerOptions options) {
  Pointer self(new Worker(std::move(program), std::move(options)));
  const std::weak_ptr<Worker> weak = self;
  self->program_->on_end([weak](const Program& ended) {
    if (const Pointer worker = weak.lock()) worker->ended(ended);
  });
  spawn(self->program_->executor(), self->name() + " output", read_output(self));
  return self;
}

task<Worker::Pointer> Worker::start(bridge::LauncherClient& launcher, ProgramSpec spec, WorkerOptions options) {
  spec.has_protocol = true;
  CO_TRY_ASSIGN(Program::Pointer program, co_await Program::launch(launcher, std::move(spec)));
  const Pointer self = over(program, std::move(options));
  CO_TRY(co_await Program::make_ready(std::move(program)));
  co_return self;
}

// --- requests ---

bool Worker::has_room(std::size_t bytes) const {
  // A request larger than the bound may go when nothing else waits: one at a time, it is bounded by its sender.
  return pending_.size() < limits().most_calls && (outbox_.empty() || outbox_bytes_ + bytes <= limits().most_waiting_bytes);
}

task<void> Worker::await_room(Pointer self, std::size_t bytes, bridge::Clock::time_point deadline) {
  while (self->alive() && !self->has_room(bytes))
    if (!co_await self->room_.wait_until(deadline))
      co_return fail(Code::limit, self->name() + " is busy: " + std::to_string(self->pending_.size()) + " calls are under way");
  if (!self->alive()) co_return std::unexpected(*self->end_error());
  co_return Status{};
}

task<frames::Frame> Worker::call(Pointer self, json::Value head, std::string body, bridge::Clock::time_point deadline) {
  CO_TRY(co_await await_room(self, body.size(), deadline));
  const std::int64_t id = self->next_id_++;
  head["id"] = id;
  CO_TRY_ASSIGN(std::string text, frames::encode_head(std::move(head), body.size()));
  if (!self->hold_requests(text.size() + body.size())) co_return fail(Code::limit, "the workspace has no room for a request");
  auto pending = std::make_shared<Pending>(self->program_->executor());
  self->pending_[id] = pending;
  const Abandon abandon{*self, *pending, id};
  self->push_and_flush(self, std::move(text), std::move(body));
  while (!pending->reply && self->alive())
    if (!co_await pending->changed.wait_until(deadline)) break;
  if (pending->reply) co_return std::move(*pending->reply);
  if (!self->alive()) co_return std::unexpected(*self->end_error());
  co_return fail(Code::timeout, self->name() + " does not answer");
}

Status Worker::tell(Pointer self, json::Value head, std::string body) {
  if (!self->alive()) return std::unexpected(*self->end_error());
  if (!self->outbox_.empty() && self->outbox_bytes_ + body.size() > self->limits().most_waiting_bytes)
    return fail(Code::limit, self->name() + " does not read its input");
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
  if (std::exchange(input_whole_, whole) != whole) program_->record().advance({whole ? 0U : 1U, 0});
}

void Worker::push_and_flush(const Pointer& self, std::string head, std::string body) {
  push(std::move(head), std::move(body));
  if (writing_ || program_->input_broken() || !flush()) return;
  writing_ = true;
  spawn(program_->executor(), name() + " input", write_input(self));
}

// Writes what the kernel takes now. True: something is left.
bool Worker::flush() {
  while (!outbox_.empty() && program_->input().is_open()) {
    const std::string& front = outbox_.front();
    const ssize_t n = ::write(program_->input().native_handle(), front.data() + front_done_, front.size() - front_done_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      room_.notify_all();
      return true;
    }
    if (n < 0) {  // closed by the program: await_end() learns why and ends what is pending
      program_->note_input_broken();
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
  while (self->alive() && !self->program_->input_broken() && self->flush()) {
    const auto [error] = co_await self->program_->input().async_wait(Descriptor::wait_write, as_values);
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
  if (!note || !program_->input().is_open() || program_->input_broken()) return;
  if (!outbox_.empty()) push(std::move(*note), "");                                    // write_input() is at it
  else (void)!::write(program_->input().native_handle(), note->data(), note->size());  // less than PIPE_BUF: whole or not at all
}

// --- what the program sends ---

void Worker::hold_output(bool held) {
  held_ = held;
  if (!held) unheld_.notify_all();
}

task<void> Worker::read_output(Pointer self) {
  while (self->alive() && !self->program_->output_over()) {
    while (self->held_ && self->alive()) (void)co_await self->unheld_.wait_until(bridge::no_deadline());
    if (!self->alive()) break;
    const auto [error] = co_await self->program_->output().async_wait(Descriptor::wait_read, as_values);
    if (error) break;
    if (self->held_) continue;
    Result<ReadEnd> turn = self->read_turn();
    if (self->turns_without_room_ > self->limits().most_turns_without_room) turn = fail(Code::limit, "no room for its output");
    if (!turn) {
      const bool flood = turn.error().code == Code::limit;
      Program::fail(self->program_, turn.error(), bridge::end_of(flood ? "output" : "init_protocol"));
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
  const ReadEnd read = large ? read_body() : read_available(program_->output(), kPieceBytes, keep);
  if (large && decoder_.body_wanted() == 0) taken = take_bytes("");
  if (read == ReadEnd::closed) {
    program_->note_output_over();
  }
  (void)hold_frame(0);
  TRY(std::move(taken));
  return read;
}

ReadEnd Worker::read_body() {
  const auto read = [this](char* to, std::size_t size) {
    ssize_t n = -1;
    do n = ::read(program_->output().native_handle(), to, size);
    while (n < 0 && errno == EINTR);
    return n;
  };
  const std::ptrdiff_t n = decoder_.read_body(kBodyBytes, read);
  if (n > 0) return ReadEnd::more;
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? ReadEnd::blocked : ReadEnd::closed;
}

bool Worker::skip_to_mark(std::string_view& bytes) {
  if (options_.mark.empty()) return true;
  before_mark_.append(bytes);
  if (const std::size_t at = before_mark_.find(options_.mark); at != std::string::npos) {
    bytes.remove_prefix(bytes.size() - (before_mark_.size() - at - options_.mark.size()));
    options_.mark.clear();
    before_mark_ = {};
    return true;
  }
  before_mark_.erase(0, before_mark_.size() - std::min(before_mark_.size(), options_.mark.size() - 1));
  return false;
}

Status Worker::take_bytes(std::string_view bytes) {
  if (!skip_to_mark(bytes)) return {};
  do {
    TRY_ASSIGN(auto frame, decoder_.take(bytes));
    if (!frame) continue;
    (void)hold_frame(0);  // its next owner counts it from here on
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

// --- its end ---

void Worker::ended(const Program& program) {
  for (auto& [id, pending] : pending_) pending->changed.notify_all();
  pending_.clear();
  outbox_.clear();
  to_.release();
  outbox_bytes_ = front_done_ = 0;
  room_.notify_all();
  unheld_.notify_all();
  const auto told = std::exchange(options_.on_end, nullptr);
  if (told && !program.closed()) told(*program.end_error());
}

task<void> Worker::close(Pointer self, std::string reason) {
  co_return co_await Program::close(self->program_, std::move(reason));
}

}  // namespace caisson::services
