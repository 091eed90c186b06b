// The API agent as a child of the launcher: own uid, no capability, Landlock, its seccomp program handed over, a socket. It
// is not trusted: when it breaks the protocol it is killed, when it ends it is started again with growing delays.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "launcher/base/loop.h"
#include "launcher/options.h"
#include "launcher/session/manager.h"

namespace caisson {

class AgentProcess {
 public:
  AgentProcess(const Options& options, session::Manager& manager, Loop& loop)
      : options_(options), manager_(manager), loop_(loop) {}
  // The first start; later ones follow by themselves. Errors: the program cannot be confined or executed.
  [[nodiscard]] Status start();
  // Another one from the program on disk; it takes up what this one serves. changed_only: if it is not the one that runs.
  void restart(bool changed_only = false);
  // SIGTERM, after six seconds SIGKILL; then `done`.
  void stop(std::function<void()> done);

 private:
  void exited(const ChildExit& exit);
  void restart_later();

  const Options& options_;
  session::Manager& manager_;
  Loop& loop_;
  pid_t pid_ = 0;
  Fd pidfd_;
  std::uint64_t client_ = 0;  // its connection
  std::int64_t started_us_ = 0;
  std::int64_t delay_us_ = 0;
  bool asked_ = false;     // its end is wanted, and the next one comes at once
  int short_lives_ = 0;    // agents in a row that ended while they took up, or soon after
  struct stat program_{};  // the program that runs
  std::function<void()> stopped_;
};

}  // namespace caisson
