// Browser: Chromium as our child, from its start to the end of everything that it started. It is held by its pipes (descriptors 3
// and 4, --remote-debugging-pipe) and by PR_SET_PDEATHSIG; what it leaves behind becomes our child (PR_SET_CHILD_SUBREAPER) and
// is killed. Its stdout and stderr end in a ring of which the end is told, so that it can neither block on them nor fill
// anything.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/loop.h"
#include "launcher/common/base/result.h"

namespace caisson::cdp {

class Browser {
 public:
  static constexpr std::int64_t kCloseUs = 5'000'000;  // from being asked to close to SIGKILL
  static constexpr std::size_t kSaidBytes = 2048;

  struct Ended {
    ChildExit exit;
    std::string why;   // given to close() or kill(); "" when it ended by itself
    std::string said;  // the last that it wrote on stderr
  };
  Browser(Loop& loop, std::function<void(const Ended&)> ended) : loop_(loop), ended_(std::move(ended)) {}
  ~Browser();

  struct Pipes {
    Fd to_browser, from_browser;
  };
  // argv[0] is the program's path. `environment`: names with values, in the place of ours. Errors: those of pipe(2), fork(2) and
  // execve(2). Not while one runs.
  [[nodiscard]] Result<Pipes> start(const std::vector<std::string>& argv, const std::vector<std::string>& environment);
  // It was asked to close (`why`), or is about to end by itself (""); it is killed if it has not in kCloseUs. Again: nothing.
  void expect_end(const std::string& why);
  void kill(const std::string& why);
  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void read_said();
  void on_exit(const ChildExit& exit);

  Loop& loop_;
  const std::function<void(const Ended&)> ended_;
  pid_t pid_ = 0;
  Fd said_;
  std::string said_text_, why_;
  Loop::TimerId timer_ = 0;
};

// Removes what a killed browser left in its profile and would stop the next one: SingletonLock, SingletonSocket, SingletonCookie
// (chrome/browser/process_singleton_posix.cc). Makes the folder, mode 0700, if it is not there.
[[nodiscard]] Status prepare_profile(const std::string& profile);

}  // namespace caisson::cdp
