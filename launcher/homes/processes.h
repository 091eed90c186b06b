// The processes of sessions, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/common/base/result.h"

namespace caisson::homes {

struct Seen {
  pid_t parent = 0;
  char state = '?';
  unsigned long start = 0;
};
using Table = std::map<pid_t, Seen>;

[[nodiscard]] Result<Table> read_table();
// A process's or a thread's directory in /proc; its state is the leader's alone. Nothing where it has ended.
[[nodiscard]] std::optional<Seen> look_at(const std::string& directory);
// The roots and all below them, parents first.
[[nodiscard]] std::vector<pid_t> members(const Table& table, const std::vector<pid_t>& roots);

}  // namespace caisson::homes
