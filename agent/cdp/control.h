// The line to the agent: commands on stdin, events on stdout, one JSON object a line (README.md). The agent decides; what it
// sends is checked like any other input. An agent that does not read loses what it could ask for again (`status`), and stops
// nothing here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/cdp/policies.h"
#include "launcher/common/base/loop.h"

namespace caisson::cdp {

enum class Do { hold, release, restart, status, end };

struct Command {
  Do what = Do::status;
  Wishes wishes;  // of a restart
};

// Errors: invalid_argument, naming the member.
[[nodiscard]] Result<Command> read_command(std::string_view line);

class Control {
 public:
  static constexpr std::size_t kMaxLineBytes = 4u * 1024 * 1024;  // two lists of patterns
  static constexpr std::size_t kMaxUntoldBytes = 256 * 1024;

  Control(Loop& loop, int in, int out) : loop_(loop), in_(in), out_(out) {}
  ~Control();
  // Calls `command` for each line, and `closed` when stdin has ended or a line is longer than the limit.
  [[nodiscard]] Status listen(std::function<void(Result<Command>)> command, std::function<void()> closed);
  // One line. Dropped while more than kMaxUntoldBytes wait.
  void tell(const json::Value& event);

 private:
  void read();
  void write();
  void stop_reading();

  Loop& loop_;
  const int in_, out_;  // stdin and stdout, which nobody closes
  std::function<void(Result<Command>)> command_;
  std::function<void()> closed_;
  std::string line_, untold_;
  bool listening_ = false, waiting_ = false;
};

}  // namespace caisson::cdp
