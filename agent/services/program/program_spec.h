// ProgramSpec: one row describes a program that lives in a session and serves requests: its command and session, how it becomes
// ready, how it ends, and every limit that holds for it. A new kind of program (a browser, a desktop, an IDE, an MCP server) is a
// new row, and a protocol where frames are not its language.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/bridge/launcher_types.h"
#include "agent/frames/frame.h"

namespace caisson::services {

class Program;

// The program is ready when it has written `text`, or when `ask` has returned without an error. With neither it is ready at once.
struct Readiness {
  using Ask = std::function<task<void>(std::shared_ptr<Program>, bridge::Clock::time_point deadline)>;
  std::string text;  // part of a line of its stdout or stderr
  Ask ask;           // a first exchange of frames, or poll_until()
};

// Tries again, every 50 ms, until `attempt` succeeds: connecting to the program's socket, for example.
[[nodiscard]] Readiness::Ask poll_until(std::function<task<void>()> attempt);

struct ProgramLimits {
  std::chrono::milliseconds ready_within{60'000};
  std::chrono::milliseconds stop_within{0};  // to end by itself when asked, before its session is ended; 0: it is not asked
  std::chrono::seconds idle{0};              // without a request; then it is ended. 0: it is not
  std::size_t tail_bytes = 8 * 1024;         // of its last words

  // A program that fails is started again when a request needs it: at once after the first failure, then after pauses that
  // double. A run of `settled_after` ends the row of failures.
  bool restarts = true;
  unsigned most_failures = 6;  // in a row; from then on requests are refused while the pause lasts
  std::chrono::milliseconds first_pause{100}, longest_pause{10'000};
  std::chrono::seconds settled_after{10};
  std::optional<int> blameless_exit;  // exit code of a program whose counterpart has ended: not counted as a failure

  // Of one that speaks frames (Worker).
  frames::Limits frames;                             // of what it sends
  std::size_t most_calls = 256;                      // under way, abandoned ones included
  std::size_t most_waiting_bytes = 4 * 1024 * 1024;  // of requests that it has not read
  std::size_t most_turns_without_room = 100;         // of 100 ms each, in which nothing is read; then the program is ended
};

struct ProgramSpec {
  std::string name;  // "file worker", for messages and the agent's log
  std::string domain, label, workspace;
  std::shared_ptr<bridge::SessionHandle> session;  // another program's, in which it runs; absent: it has one of its own
  bridge::ExecRequest command;                     // with command.tool, the agent's own program of that name
  bool isolated = false;                           // in a private session
  std::uint64_t memory_bytes = 0;                  // of the session; 0: as much as its policy allows
  bool keep = false;                               // session and program outlive the agent, for Supervisor::adopt()
  // A protocol reads its stdout. Otherwise stdout is read like stderr: searched for Readiness::text, and dropped but for its
  // tail.
  bool has_protocol = false;
  std::function<void(std::shared_ptr<Program>)> opened;  // it runs: put a protocol on it
  Readiness ready;
  std::string stop_signal;  // asks it to end; "": the end of its stdin does
  ProgramLimits limits;
};

}  // namespace caisson::services
