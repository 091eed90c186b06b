// Command: one `bash -c` of a bash session from its start to its end: status, exit code, both output streams and its
// stdin. Its coroutines hold it by shared_ptr, so it lives on when the client that started it is gone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/bridge/launcher_types.h"
#include "agent/services/common/output_buffer.h"
#include "agent/services/program/fd_stream.h"

namespace caisson::bridge {
class LauncherClient;
}

namespace caisson::services {

enum class CommandStatus { pending, running, completed, timed_out, killed };
[[nodiscard]] std::string_view status_name(CommandStatus status);

class Command {
 public:
  struct Setup {
    std::string id;
    std::string text;  // as the client gave it
    std::shared_ptr<OutputBudget> budget;
    std::size_t stream_cap_bytes;
    http::Budget::Share text_share;  // of the text
  };
  Command(asio::any_io_executor executor, Setup setup, bridge::ExecStarted started);
  // A command of the previous agent, from its record and the bytes read last. attach() adds its pipes.
  Command(asio::any_io_executor executor, Setup setup, Keep::Left& left);

  ~Command();

  // Starts the coroutines that collect output and wait for the end.
  static void run(std::shared_ptr<Command> self);
  // Continues a command of the previous agent. Without its pipes, or if its input was lost, it ends.
  static void attach(std::shared_ptr<Command> self, std::optional<bridge::ExecStarted> started);
  // Takes over the pipes of a command of the previous agent from the launcher, and attaches it.
  [[nodiscard]] static task<void> take_up(bridge::LauncherClient& launcher, const bridge::LeftSession& left,
                                          std::shared_ptr<Command> self);
  // From now on it outlives the agent. number: its position among the commands of its session.
  void keep(std::int64_t number);

  // Queues input for the program; "\x04" alone closes its stdin (as Ctrl-D does).
  static Status write(std::shared_ptr<Command> self, std::string input, std::size_t most_waiting);
  // Remembers that a client asked for the end, so that it is reported as killed.
  void note_kill();
  // Reads the pipes until they are empty.
  void take_output();
  // Closes every descriptor: the session is gone.
  void release();

  [[nodiscard]] bool running() const { return status == CommandStatus::running; }
  // Why it is over; nullopt while it runs.
  [[nodiscard]] std::optional<bridge::End> end() const {
    return running() || !exec->exit ? std::nullopt : std::optional(exec->exit->end);
  }

  const std::string id;
  const std::string text;
  const http::Budget::Share text_share;
  CommandStatus status = CommandStatus::running;
  std::optional<int> exit_code;  // only when completed
  std::string hint;              // the cause of its end, if the status does not say it
  Keep::Record record;           // what follows is in it
  OutputBuffer out, err;
  bridge::Notifier changed;  // output came, or the status changed
  std::shared_ptr<bridge::ExecHandle> exec;
  bool input_lost = false;  // unread input was lost with the previous agent, and it must not run without it

 private:
  struct Stream {
    Descriptor from;
    OutputBuffer& buffer;
    int number;
    bool closed = false;
  };
  static task<void> collect(std::shared_ptr<Command> self, Stream& stream);
  static task<void> await_end(std::shared_ptr<Command> self);
  static task<void> feed(std::shared_ptr<Command> self);
  // True: it read bytes or reached the end.
  bool drain(Stream& stream, std::size_t limit);
  void finish();
  void save();
  void take_in(Stream& stream, std::string_view bytes);
  void let_go();

  asio::any_io_executor executor_;
  Stream stdout_, stderr_;
  WriteQueue stdin_;
  bool feeding_ = false;
  bool kill_asked_ = false;
  bool input_waits_ = false;
  bool stdin_let_go_ = false, all_let_go_ = false;
  std::int64_t number_ = 0;
};

}  // namespace caisson::services
