// Who made a call: ids in both PID namespaces and the name that the process gave itself, from /proc/<tid>/status.
#pragma once

#include <string>
#include <string_view>

namespace caisson::auditor {

struct Caller {
  int tid = 0, pid = 0;                  // as the launcher sees them; pid 0: not known
  int session_tid = 0, session_pid = 0;  // as the session sees them; 0: not known
  std::string comm;                      // what the process calls itself: anything
};

// From the text of the file; what is not in it stays unknown.
[[nodiscard]] Caller parse_status(int tid, std::string_view status);
// proc: directory descriptor of /proc.
[[nodiscard]] Caller read_caller(int proc, int tid);

}  // namespace caisson::auditor
