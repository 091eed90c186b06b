// A program run for one request: its input is a descriptor, its output comes line by line, and it ends with the request.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/worker/paths.h"

namespace caisson::worker {

struct ChildRequest {
  std::vector<std::string> argv;
  const Fd* input = nullptr;                 // absent: /dev/null
  const Fd* directory = nullptr;             // its working directory; absent: ours
  double seconds = 120;                      // time limit; then it is killed
  std::size_t line_bytes = 4 * 1024 * 1024;  // a longer line ends the program
};
struct ChildEnd {
  int exit_code = 0;     // 128 + number when a signal ended it
  bool stopped = false;  // line() returned false, or a bound was reached
  std::string errors;    // the beginning of its stderr
};

// The directory of this program and of its helpers, with a slash at the end.
[[nodiscard]] std::string own_directory();

// line() returns false to end the program. Failure: it cannot be started, or its request was cancelled (ECANCELED).
[[nodiscard]] Done<ChildEnd> run_child(const ChildRequest& child, const Request& request,
                                       const std::function<bool(std::string_view)>& line);

}  // namespace caisson::worker
