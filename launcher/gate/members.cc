#include "launcher/gate/members.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/cgroup.h"

namespace caisson::gate {
namespace {

constexpr std::string_view kMount = "/sys/fs/cgroup", kOurs = "/caisson-launcher", kSessions = "/caisson-sessions";

// The name of the directory with this number, in `parent` or in a workspace's node there. cgroup ids are their inode numbers.
std::optional<std::string> name_of(int parent, std::uint64_t id, bool nodes) {
  auto again = sys::openat(parent, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(again ? ::fdopendir(again->release()) : nullptr, ::closedir);
  if (!dir) return std::nullopt;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(confine::CgroupRoot::kSessionPrefix) && entry->d_ino == id) return std::string(name);
    if (!nodes || !name.starts_with(confine::CgroupRoot::kNodePrefix)) continue;
    const auto node = sys::openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (auto found = node ? name_of(node->get(), id, false) : std::nullopt) return found;
  }
  return std::nullopt;
}

}  // namespace

Members::Members() {
  const std::string self = "\n" + sys::read_file("/proc/self/cgroup", 65536).value_or("");
  const std::size_t line = self.find("\n0::");
  if (line == std::string::npos) return;
  std::string path = self.substr(line + 4, self.find('\n', line + 1) - line - 4);
  if (!path.ends_with(kOurs)) return;
  path.resize(path.size() - kOurs.size());
  if (auto tree = sys::open(std::string(kMount).append(path).append(kSessions), O_RDONLY | O_DIRECTORY)) tree_ = std::move(*tree);
}

std::string Members::find(std::uint64_t cgroup) const {
  auto name = known() ? name_of(tree_.get(), cgroup, true) : std::nullopt;
  if (!name) return "";
  const std::size_t dot = name->find('.');
  if (dot == std::string::npos) return *name + ' ';
  (*name)[dot] = ' ';
  return *name;
}

}  // namespace caisson::gate
