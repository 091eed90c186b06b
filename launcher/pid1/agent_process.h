// The API agent as a child of the launcher: own uid, no capability, Landlock, its seccomp program handed over, a socket. It
// is not trusted: when it breaks the protocol it is killed, when it ends it is started again with growing delays. Only the first
// one may refuse the settings.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "launcher/common/base/loop.h"
#include "launcher/pid1/options.h"
#include "launcher/pid1/session/operations.h"

namespace caisson {

class AgentProcess {
 public:
  AgentProcess(const Options& options, session::Operations& operations, Loop& loop)
      : options_(options), operations_(operations), loop_(loop) {}
  // The first start; later ones follow by themselves. Errors: the program cannot be confined or executed.
  [[nodiscard]] Status start();
  // Another one from the program on disk; it takes up what this one serves. changed_only: if it is not the one that runs.
  void restart(bool changed_only = false);
  // In place of a second one, when the first ends, before it serves, with the status of invalid_argument (base/result.h).
  void on_refusal(std::function<void()> refused) { refused_ = std::move(refused); }
  // SIGTERM; SIGKILL six seconds after the agent's own time for its clients; then `done`.
  void stop(std::function<void()> done);

 private:
  [[nodiscard]] std::string uid(unsigned uid) const;  // as caisson-seal takes it
  void start_courier();
  void exited(const ChildExit& exit);
  void restart_later();

  const Options& options_;
  session::Operations& operations_;
  Loop& loop_;
  pid_t pid_ = 0;
  Fd pidfd_;
  std::uint64_t client_ = 0;                                           // its connection
  std::int64_t started_us_ = 0, delay_us_ = 0, courier_delay_us_ = 0;  // no delay: it was never started again
  bool asked_ = false;                                                 // its end is wanted, and the next one comes at once
  int short_lives_ = 0;    // agents in a row that ended while they took up, or soon after
  struct stat program_{};  // the program that runs
  std::function<void()> stopped_, refused_;
  std::pair<Fd, Fd> courier_line_;  // the agent's end, and that of caisson-courier; without one: none
};

}  // namespace caisson
