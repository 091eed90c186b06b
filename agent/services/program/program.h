// Program: one run of a program in a confined session of its own, or in that of another program, from its start to its end. It
// starts, watches and ends the program; a protocol (Worker) speaks with it. The program runs among a client's own code and may be
// in its hands: whatever it writes is untrusted and bounded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"
#include "agent/services/program/fd_stream.h"
#include "agent/services/program/program_spec.h"

namespace caisson::services {

class Program {
 public:
  using Pointer = std::shared_ptr<Program>;

  // Makes the session, unless the spec names one, and starts the program. Errors: the launcher's; Code::not_found when there is
  // no such program.
  [[nodiscard]] static task<Pointer> launch(bridge::LauncherClient& launcher, ProgramSpec spec);
  // Puts the protocol on it and returns when it is ready. After an error it has ended, and its session too.
  [[nodiscard]] static task<void> make_ready(Pointer self);
  // Continues with a program that the previous agent started.
  [[nodiscard]] static Pointer adopt(bridge::LauncherClient& launcher, ProgramSpec spec,
                                     std::shared_ptr<bridge::SessionHandle> session, bridge::ExecStarted started);
  // Asks it to end, if the spec says so, then ends it with its session, or kills it where the session is another's. Returns when
  // nothing of it is left.
  [[nodiscard]] static task<void> close(Pointer self, std::string reason);

  // Called once at its end, in the order of registration; at once if it has ended. A callback holds no Pointer to it.
  using Told = std::function<void(const Program&)>;
  void on_end(Told told);

  // For the protocol: the program broke it (and is ended), closed its stdout, or closed its stdin.
  static void fail(const Pointer& self, const Error& why, bridge::End reason);
  void note_output_over();
  void note_input_broken();
  [[nodiscard]] bool input_broken() const { return input_broken_; }
  [[nodiscard]] bool output_over() const { return output_over_; }
  [[nodiscard]] Descriptor& input() { return stdin_; }
  [[nodiscard]] Descriptor& output() { return stdout_; }

  [[nodiscard]] bool alive() const { return !end_error_; }
  [[nodiscard]] bool closed() const { return closed_; }  // its end was asked for, by close()
  [[nodiscard]] const std::optional<Error>& end_error() const { return end_error_; }
  [[nodiscard]] const std::optional<bridge::End>& why_ended() const { return why_ended_; }  // once it is not alive
  [[nodiscard]] const std::string& tail() const { return tail_; }                           // its last words
  [[nodiscard]] const ProgramSpec& spec() const { return spec_; }
  [[nodiscard]] const std::string& name() const { return spec_.name; }
  [[nodiscard]] const asio::any_io_executor& executor() const { return launcher_.executor(); }
  [[nodiscard]] const std::shared_ptr<bridge::SessionHandle>& session() const { return session_; }
  [[nodiscard]] const std::shared_ptr<bridge::ExecHandle>& exec() const { return exec_; }
  [[nodiscard]] std::int64_t pid() const { return pid_; }  // as seen inside the session

  // What the next agent finds of it; erased at its end.
  void keep_in(Keep::Record record) { record_ = std::move(record); }
  [[nodiscard]] Keep::Record& record() { return record_; }

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

 private:
  // Finds the text of its readiness in one of its streams, in pieces of any size.
  struct Search {
    std::string carry;  // the end of what came, shorter than the text
    [[nodiscard]] bool found(std::string_view text, std::string_view bytes);
  };
  struct Stream {
    Descriptor& from;
    Search search = {};
  };
  Program(bridge::LauncherClient& launcher, ProgramSpec spec, std::shared_ptr<bridge::SessionHandle> session,
          bridge::ExecStarted started);

  static void run(const Pointer& self);
  static task<void> read(Pointer self, Stream& stream);
  static task<void> await_end(Pointer self);
  static task<void> limit_start(Pointer self, bridge::Clock::time_point deadline);
  static task<void> ask_to_end(Pointer self);
  static task<void> destroy(Pointer self, std::string reason);
  [[nodiscard]] ReadEnd take(Stream& stream);
  [[nodiscard]] Error exit_error() const;
  [[nodiscard]] Error with_last_line(Code code, std::string what) const;
  [[nodiscard]] bool joined() const { return spec_.session != nullptr; }
  // The end for whatever reason: closes the pipes and tells it. The session is the caller's to destroy.
  void end(Error why, bridge::End reason);

  bridge::LauncherClient& launcher_;
  ProgramSpec spec_;
  const std::shared_ptr<bridge::SessionHandle> session_;
  const std::shared_ptr<bridge::ExecHandle> exec_;  // `changed` also tells of the pipes' ends
  const std::int64_t pid_;
  Descriptor stdin_, stdout_, stderr_;
  Stream out_{stdout_}, err_{stderr_};
  Keep::Record record_;
  std::string tail_;
  bool text_seen_ = false, start_over_ = false;
  bool output_over_ = false, input_broken_ = false;  // the program has closed its end, or is gone
  bool closed_ = false;
  bridge::Notifier changed_;  // text_seen_, start_over_, or the end
  std::vector<Told> told_;
  std::optional<Error> end_error_;
  std::optional<bridge::End> why_ended_;
};

}  // namespace caisson::services
