// Programs of ours that do what PID 1 shall not do itself, each for one question: asked, waited for, gone.
#pragma once

#include <string>
#include <vector>

#include "launcher/base/task.h"
#include "launcher/confine/features.h"

namespace caisson::confine {

struct Question {
  const char* program;                 // beside our own executable
  std::vector<std::string> arguments;  // without its name
  std::string request;                 // what it reads on descriptor 0
  int fd3 = -1;                        // its descriptor 3; -1: /dev/null
  std::size_t most;                    // bytes that it may answer on descriptor 1
  int deadline_ms;                     // it is killed then
};

// The answer is taken only when the program has ended, and ended with status 0: half of one is none. Errors: timeout, io for
// another end, which is also that of one that has more to say: its answer does not grow.
[[nodiscard]] Task<Result<std::string>> ask(Loop& loop, Question question);
// What caisson-probe finds. Errors: that it gave no whole answer; nothing is known then, and nothing can be started.
[[nodiscard]] Task<Result<Features>> ask_features(Loop& loop);

}  // namespace caisson::confine
