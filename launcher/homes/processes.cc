#include "launcher/homes/processes.h"

#include <fcntl.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"

namespace caisson::homes {

std::optional<Seen> look_at(const std::string& directory) {
  const auto stat = sys::read_file(directory + "/stat", 4096);
  const auto close = stat ? stat->rfind(')') : std::string::npos;
  Seen one;
  if (close == std::string::npos ||
      std::sscanf(stat->c_str() + close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu",
                  &one.state, &one.parent, &one.start) != 3)
    return std::nullopt;
  return one;
}

Result<Table> read_table() {
  Table out;
  TRY_ASSIGN(Fd proc, sys::open("/proc", O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const sys::Directory dir, sys::read_directory(std::move(proc)));
  while (const char* entry = sys::next_name(dir.get())) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry));
    if (pid <= 0) continue;
    if (const auto one = look_at(std::string("/proc/") + entry)) out[pid] = *one;
  }
  return out;
}

std::vector<pid_t> members(const Table& table, const std::vector<pid_t>& roots) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, one] : table) children.emplace(one.parent, pid);
  std::vector<pid_t> out;
  for (const pid_t root : roots)
    if (table.contains(root)) out.push_back(root);
  for (std::size_t at = 0; at < out.size() && out.size() <= table.size(); ++at) {
    const auto [from, to] = children.equal_range(out[at]);
    for (auto it = from; it != to; ++it) out.push_back(it->second);
  }
  return out;
}

}  // namespace caisson::homes
