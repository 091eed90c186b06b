// Terminal: the PTY of one bash of a shell session: reader, bounded input queue, size and modes. A session has at most one at a
// time; the coroutines of an old one notice that it was replaced, and end.
#pragma once

#include <termios.h>

#include <memory>
#include <string>

#include "agent/bridge/launcher_types.h"
#include "agent/services/program/fd_stream.h"
#include "agent/services/shell/markers.h"

namespace caisson::services {

class Terminal {
 public:
  Terminal(asio::any_io_executor executor, bridge::ExecStarted started, http::Budget::Share input);
  // A terminal of the previous agent: without its descriptor until attach().
  Terminal(asio::any_io_executor executor, MarkerParser::Memory parser, const std::string& modes, http::Budget::Share input);
  void attach(bridge::ExecStarted started);

  // Queues bytes as if typed. limit: the program does not read them.
  static Status type(std::shared_ptr<Terminal> self, std::string bytes, std::size_t most_waiting);
  void resize(bridge::PtySize size);
  // Ctrl-C (or Ctrl-\) for the foreground program; with set_modes also when it runs the terminal in raw mode.
  static void interrupt(std::shared_ptr<Terminal> self, bool quit, bool set_modes);
  // Restores the initial line discipline. Best effort: where the agent's filter denies the ioctl, a program that left the
  // terminal in raw mode is not repaired.
  void restore_modes();
  void close();

  Descriptor from;
  MarkerParser parser;
  std::shared_ptr<bridge::ExecHandle> exec;
  [[nodiscard]] bool all_typed() const { return to_.empty(); }
  // Its initial modes, as bytes in hex.
  [[nodiscard]] std::string modes() const;

 private:
  static task<void> feed(std::shared_ptr<Terminal> self);

  asio::any_io_executor executor_;
  WriteQueue to_;
  bool feeding_ = false;
  bool modes_known_ = false;
  termios modes_{};
};

}  // namespace caisson::services
