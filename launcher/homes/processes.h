// The processes of sessions, as /proc shows them.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "launcher/base/result.h"

namespace caisson::homes {

struct Seen {
  pid_t parent = 0;
  char state = '?';
  unsigned long start = 0;
};
using Table = std::map<pid_t, Seen>;

[[nodiscard]] Result<Table> read_table();
// The roots and all below them, parents first.
[[nodiscard]] std::vector<pid_t> members(const Table& table, const std::vector<pid_t>& roots);

}  // namespace caisson::homes
