// BashCommand: one `bash -c` of a bash session from its start to its end: status, exit code, both output streams and its
// stdin. Its coroutines hold it by shared_ptr, so it lives on when the client that started it is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/bridge/launcher_types.h"
#include "agent/session/fd_stream.h"
#include "agent/session/output_buffer.h"

namespace caisson::session {

enum class CommandStatus { pending, running, completed, timed_out, killed };
[[nodiscard]] std::string_view status_name(CommandStatus status);

class BashCommand {
 public:
  struct Setup {
    std::string id;
    std::string text;  // as the client gave it
    std::shared_ptr<OutputBudget> budget;
    std::size_t stream_cap_bytes;
  };
  BashCommand(asio::any_io_executor executor, Setup setup, bridge::ExecStarted started);

  // Starts the coroutines that collect output and wait for the end.
  static void run(std::shared_ptr<BashCommand> self);

  // Queues input for the program; "\x04" alone closes its stdin (as Ctrl-D does).
  static Status write(std::shared_ptr<BashCommand> self, std::string input, std::size_t most_waiting);
  // Remembers that a client asked for the end, so that it is reported as killed.
  void note_kill() { kill_asked_ = true; }
  // Takes what is in the pipes now.
  void take_output();
  // Closes every descriptor: the session is gone.
  void release();

  [[nodiscard]] bool running() const { return status == CommandStatus::running; }

  const std::string id;
  const std::string text;
  CommandStatus status = CommandStatus::running;
  std::optional<int> exit_code;  // only when completed
  std::string hint;              // why it ended, when the status does not say it
  OutputBuffer out, err;
  bridge::Notifier changed;  // output came, or the status changed
  const std::shared_ptr<bridge::ExecHandle> exec;

 private:
  struct Stream {
    Descriptor from;
    OutputBuffer& buffer;
    bool closed = false;
  };
  static task<void> collect(std::shared_ptr<BashCommand> self, Stream& stream);
  static task<void> await_end(std::shared_ptr<BashCommand> self);
  static task<void> feed(std::shared_ptr<BashCommand> self);
  // True when something was read or the end was seen.
  bool drain(Stream& stream, std::size_t limit);
  void finish();

  asio::any_io_executor executor_;
  Stream stdout_, stderr_;
  WriteQueue stdin_;
  bool feeding_ = false;
  bool kill_asked_ = false;
};

}  // namespace caisson::session
