#include "launcher/gate/members.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "launcher/common/base/sys.h"
#include "launcher/common/confine/cgroup.h"

namespace caisson::gate {
namespace {

constexpr std::size_t kMostPrograms = 8;
constexpr std::string_view kInit = "caisson-init";
constexpr std::string_view kMount = "/sys/fs/cgroup", kOurs = "/caisson-launcher", kSessions = "/caisson-sessions";

// The path of the directory of a session, in `parent` or in a workspace's node there. is_it: of a name and an inode number, which
// is the cgroup's id.
template <class IsIt>
std::optional<std::string> path_of(int parent, bool nodes, const IsIt& is_it) {
  auto again = sys::openat(parent, ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(again ? ::fdopendir(again->release()) : nullptr, ::closedir);
  if (!dir) return std::nullopt;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(confine::CgroupRoot::kSessionPrefix) && is_it(name, entry->d_ino)) return std::string(name);
    if (!nodes || !name.starts_with(confine::CgroupRoot::kNodePrefix)) continue;
    const auto node = sys::openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const auto found = node ? path_of(node->get(), false, is_it) : std::nullopt;
    if (found) return std::string(name) + '/' + *found;
  }
  return std::nullopt;
}

// SESSION, or SESSION.DOMAIN
bool is_of(std::string_view directory, std::string_view session) {
  return directory.starts_with(session) && (directory.size() == session.size() || directory[session.size()] == '.');
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
  const auto path =
      known() ? path_of(tree_.get(), true, [cgroup](std::string_view, std::uint64_t id) { return id == cgroup; }) : std::nullopt;
  if (!path) return "";
  std::string name = path->substr(path->find('/') + 1);
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return name + ' ';
  name[dot] = ' ';
  return name;
}

json::Value Members::programs(std::string_view session) const {
  json::Value out = json::Value::array();
  const auto path =
      known() ? path_of(tree_.get(), true, [session](std::string_view name, std::uint64_t) { return is_of(name, session); })
              : std::nullopt;
  const auto file = path ? sys::openat(tree_.get(), (*path + "/cgroup.procs").c_str(), O_RDONLY) : fail(Code::not_found, "");
  if (!file) return out;
  char numbers[1024];  // of the first some hundred
  const ssize_t size = ::read(file->get(), numbers, sizeof numbers);
  std::string_view left(numbers, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  for (std::size_t end; out.size() < kMostPrograms && (end = left.find('\n')) != std::string_view::npos;
       left.remove_prefix(end + 1)) {
    const auto comm = sys::read_file("/proc/" + std::string(left.substr(0, end)) + "/comm", 64);
    std::string name = comm ? comm->substr(0, comm->find('\n')) : "";
    for (char& c : name) c = c >= ' ' && c <= '~' ? c : '?';
    if (!name.empty() && name != kInit && std::ranges::none_of(out, [&name](const json::Value& other) { return other == name; }))
      out.push_back(name);
  }
  return out;
}

}  // namespace caisson::gate
