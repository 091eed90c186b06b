// How the launcher starts the programs that serve it, and what they give up before they run.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::confine {

// For the child, before its exec: own POSIX session, no core files, `uid` (where change_uid; 0 without it: may stay root), no
// capability, no_new_privs, Landlock (-1: none), dies with the launcher. 0, or what the child exits with. Async-signal-safe.
[[nodiscard]] int give_up(uid_t uid, bool change_uid, int landlock);

// A program of ours, with our rights unless it gives them up: these descriptors and our standard error, no other; it dies with
// the launcher. Whoever has started it reaps it, or the loop does.
struct Helper {
  std::string file;                    // its name beside our own executable
  std::vector<std::string> argv = {};  // without the first word, which is `file`
  std::vector<std::string> env = {};
  int in = -1, out = -1, fd3 = -1;   // its descriptors 0, 1 and 3; -1: /dev/null
  std::function<int()> before = {};  // in the child: 0, or what it exits with. Async-signal-safe
};
// For its env: those of our own variables, of these names, that are set to something.
[[nodiscard]] std::vector<std::string> passed_on(std::string_view names);
struct Running {
  pid_t pid;
  Fd pidfd;
};
[[nodiscard]] Result<Running> start_helper(Helper helper);

}  // namespace caisson::confine
