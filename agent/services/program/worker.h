// Worker: one program in one confined session of its own that serves requests over its stdin and stdout (agent/frames). A request
// carries an "id", its reply the same; a frame without one is an event. Requests may be answered in any order. What is larger
// than a frame is moved in parts, one call each: whoever asks for the next part when the last one is used is the back-pressure.
// The program runs among a client's own code and may be in its hands: whatever it says is untrusted and bounded, and
// when it dies, talks nonsense, floods or falls silent, every call ends with an error.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/bridge/launcher_client.h"
#include "agent/frames/frame.h"
#include "agent/services/common/output_buffer.h"
#include "agent/services/program/fd_stream.h"

namespace caisson::services {

struct WorkerOptions {
  frames::Limits limits;                             // of what it sends
  std::size_t most_calls = 256;                      // under way, those nobody waits for any more included
  std::size_t most_waiting_bytes = 4 * 1024 * 1024;  // of requests that it has not read
  std::shared_ptr<OutputBudget> budget;              // pays for frames on their way; absent: nobody else wants room
  std::size_t most_turns_without_room = 100;         // of 100 ms each, in which nothing is read; then the program is ended
  std::function<void(frames::Frame)> on_event;       // absent: events are dropped. Never after the end; holds no Pointer
  std::function<void(const Error&)> on_end;          // once, unless close() ended it
  bool isolated = false;                             // in a private session
  std::uint64_t memory_bytes = 0;                    // of the session; 0: as much as its policy allows
  bool keep = false;                                 // session and program outlive the agent, for adopt()
};

class Worker {
 public:
  using Pointer = std::shared_ptr<Worker>;

  // Makes the session and starts the program: with request.tool, the agent's own of that name. Errors: what the launcher says;
  // Code::not_found when there is no such program.
  [[nodiscard]] static task<Pointer> start(bridge::LauncherClient& launcher, std::string domain, std::string label,
                                           std::string workspace, bridge::ExecRequest request, WorkerOptions options);

  // Goes on with the program of a Worker that an agent before this one had, in the middle of whatever it said: all that comes
  // before the mark is dropped. The owner's first call has the program write that mark, and answer no older call behind it.
  [[nodiscard]] static Pointer adopt(bridge::LauncherClient& launcher, std::string domain,
                                     std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started,
                                     WorkerOptions options, std::string mark);
  // What is kept of it; gone when the Worker ends. A request that may be written in parts is noted in its ends, see torn().
  void keep_in(Keep::Record record) { record_ = std::move(record); }
  [[nodiscard]] Keep::Record& record() { return record_; }
  // The agent ended while it wrote a request: nobody knows how much of it the program has read, or will take for one.
  [[nodiscard]] static bool torn(const Keep::Left& left) { return left.ends.first != 0; }

  // The reply to {...head, id, bytes}. Waits for room first when the program reads or answers slowly. Errors: timeout (the
  // program is told {"cancel": id} and its late reply is dropped), limit (no room until the deadline, or head too large), and
  // end_error() when it is no more.
  [[nodiscard]] static task<frames::Frame> call(Pointer self, json::Value head, std::string body,
                                                bridge::Clock::time_point deadline);
  // A frame that has no answer. limit: the program does not read.
  [[nodiscard]] static Status tell(Pointer self, json::Value head, std::string body);
  // Ends the program with its session; every pending call fails. Returns when nothing of it is left.
  [[nodiscard]] static task<void> close(Pointer self, std::string reason);

  // While it is held nothing of the program's output is read, replies included: for an owner that cannot keep up with events.
  // What has been read (64 KiB at most) still comes.
  void hold_output(bool held);

  [[nodiscard]] bool alive() const { return !end_error_; }
  [[nodiscard]] const std::optional<Error>& end_error() const { return end_error_; }
  [[nodiscard]] const std::optional<bridge::End>& why_ended() const { return why_ended_; }  // once it is not alive
  [[nodiscard]] std::size_t calls() const { return pending_.size(); }
  [[nodiscard]] const std::string& stderr_tail() const { return stderr_tail_; }
  [[nodiscard]] const std::shared_ptr<bridge::SessionHandle>& session() const { return session_; }
  [[nodiscard]] const std::shared_ptr<bridge::ExecHandle>& exec() const { return exec_; }
  [[nodiscard]] std::int64_t pid() const { return pid_; }  // as seen inside the session

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

  Worker(bridge::LauncherClient& launcher, std::string name, WorkerOptions options,
         std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started);

  static void run(const Pointer& self);
  static task<void> read_output(Pointer self);
  static task<void> read_errors(Pointer self);
  static task<void> write_input(Pointer self);
  static task<void> await_end(Pointer self);
  static task<void> destroy(Pointer self, std::string reason);
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
  void take_errors();
  void push(std::string head, std::string body);
  void note_input(bool whole);
  // Drops what comes before the mark; true: it has come, and `bytes` begin behind it.
  [[nodiscard]] bool skip_to_mark(std::string_view& bytes);
  void push_and_flush(const Pointer& self, std::string head, std::string body);
  [[nodiscard]] bool flush();
  void cancel(std::int64_t id);
  [[nodiscard]] Error exit_error() const;
  // The end for whatever reason: fails what is pending and closes the pipes. The session is the caller's to destroy.
  void end(Error why, bridge::End reason);

  bridge::LauncherClient& launcher_;
  const std::string name_;  // "file worker", for messages
  WorkerOptions options_;
  const std::shared_ptr<bridge::SessionHandle> session_;
  const std::shared_ptr<bridge::ExecHandle> exec_;
  const std::int64_t pid_;
  Descriptor stdin_, stdout_, stderr_;
  Keep::Record record_;
  std::string mark_, before_mark_;  // to come before anything counts; the end of what came
  frames::Decoder decoder_;
  http::Budget::Share from_, to_;  // what is counted of the decoder, and of outbox_
  std::size_t turns_without_room_ = 0;
  std::string stderr_tail_;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending_;
  std::int64_t next_id_ = 1;
  std::deque<std::string> outbox_;
  std::size_t outbox_bytes_ = 0, front_done_ = 0;
  bool writing_ = false, input_whole_ = true;
  bool held_ = false;
  bool output_over_ = false, input_broken_ = false;  // the program has closed its end, or is gone
  bridge::Notifier room_, unheld_;
  std::optional<Error> end_error_;
  std::optional<bridge::End> why_ended_;
};

}  // namespace caisson::services
