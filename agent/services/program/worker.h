// Worker: the protocol of frames (agent/frames) over the stdin and stdout of a Program. A request carries an "id", its reply the
// same; a frame without one is an event. Requests may be answered in any order. Data larger than a frame moves in parts, one call
// each, so the caller's pace is the back-pressure. The program is untrusted: what it sends is bounded, and when it dies, breaks
// the protocol, floods or falls silent, every call ends with an error.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/frames/frame.h"
#include "agent/services/common/output_buffer.h"
#include "agent/services/program/program.h"

namespace caisson::services {

struct WorkerOptions {
  std::shared_ptr<OutputBudget> budget;         // pays for frames on their way; absent: room is not shared
  std::function<void(frames::Frame)> on_event;  // absent: events are dropped. Never after the end; holds no Pointer
  std::function<void(const Error&)> on_end;     // once, unless close() ended it
  // For an adopted program, which may be in the middle of a message: everything before the mark is dropped. The owner's first
  // call makes the program write the mark, and afterwards answer no older call.
  std::string mark;
};

class Worker {
 public:
  using Pointer = std::shared_ptr<Worker>;

  // Speaks with a program of a spec that says has_protocol. The limits are the spec's.
  [[nodiscard]] static Pointer over(Program::Pointer program, WorkerOptions options);
  // A program of its own: launched, ready, never started again. Errors: as launch() and make_ready().
  [[nodiscard]] static task<Pointer> start(bridge::LauncherClient& launcher, ProgramSpec spec, WorkerOptions options);
  // The previous agent ended while it wrote a request, so the program may have read a part of one.
  [[nodiscard]] static bool torn(const Keep::Left& left) { return left.ends.first != 0; }

  // The reply to {...head, id, bytes}. Waits for room first when the program reads or answers slowly. Errors: timeout (the
  // program is told {"cancel": id} and its late reply is dropped), limit (no room until the deadline, or head too large), and
  // end_error() when it is no more.
  [[nodiscard]] static task<frames::Frame> call(Pointer self, json::Value head, std::string body,
                                                bridge::Clock::time_point deadline);
  // Sends a frame that gets no answer. limit: the program does not read.
  [[nodiscard]] static Status tell(Pointer self, json::Value head, std::string body);
  // Ends the program with its session; every pending call fails. Returns when nothing of it is left.
  [[nodiscard]] static task<void> close(Pointer self, std::string reason);

  // While it is held, none of the program's output is read, replies included: for an owner that cannot keep up with events. Bytes
  // read already (at most 64 KiB) still arrive.
  void hold_output(bool held);

  [[nodiscard]] bool alive() const { return program_->alive(); }
  [[nodiscard]] const std::optional<Error>& end_error() const { return program_->end_error(); }
  [[nodiscard]] const std::optional<bridge::End>& why_ended() const { return program_->why_ended(); }  // once it is not alive
  [[nodiscard]] std::size_t calls() const { return pending_.size(); }
  [[nodiscard]] const Program::Pointer& program() const { return program_; }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  struct Pending {
    explicit Pending(asio::any_io_executor executor) : changed(std::move(executor)) {}
    std::optional<frames::Frame> reply;
    bool abandoned = false;
    bridge::Notifier changed;
  };
  struct Abandon;

  Worker(Program::Pointer program, WorkerOptions options);

  static task<void> read_output(Pointer self);
  static task<void> write_input(Pointer self);
  static task<void> await_room(Pointer self, std::size_t bytes, bridge::Clock::time_point deadline);

  [[nodiscard]] bool has_room(std::size_t bytes) const;
  // Counts the received part of an unfinished frame, plus `more` bytes. False when the budget has no room for them.
  [[nodiscard]] bool hold_frame(std::size_t more);
  // The same for requests that the worker has not read.
  [[nodiscard]] bool hold_requests(std::size_t more);
  [[nodiscard]] Result<ReadEnd> read_turn();
  [[nodiscard]] ReadEnd read_body();
  [[nodiscard]] Status take_bytes(std::string_view bytes);
  [[nodiscard]] Status take(frames::Frame frame);
  void push(std::string head, std::string body);
  void note_input(bool whole);
  // Drops what comes before the mark; true: it has come, and `bytes` begin behind it.
  [[nodiscard]] bool skip_to_mark(std::string_view& bytes);
  void push_and_flush(const Pointer& self, std::string head, std::string body);
  [[nodiscard]] bool flush();
  void cancel(std::int64_t id);
  // Fails what is pending and lets go of what is held.
  void ended(const Program& program);
  [[nodiscard]] const ProgramLimits& limits() const { return program_->spec().limits; }
  [[nodiscard]] const std::string& name() const { return program_->name(); }

  const Program::Pointer program_;
  WorkerOptions options_;
  std::string before_mark_;  // the end of what came before the mark
  frames::Decoder decoder_;
  http::Budget::Share from_, to_;  // what is counted of the decoder, and of outbox_
  std::size_t turns_without_room_ = 0;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending_;
  std::int64_t next_id_ = 1;
  std::deque<std::string> outbox_;
  std::size_t outbox_bytes_ = 0, front_done_ = 0;
  bool writing_ = false, input_whole_ = true;
  bool held_ = false;
  bridge::Notifier room_, unheld_;
};

}  // namespace caisson::services
