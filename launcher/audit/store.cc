#include "launcher/audit/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "launcher/base/sys.h"

namespace caisson::audit {
namespace {

constexpr std::int64_t kDayNs = 86'400LL * 1'000'000'000;
constexpr const char* kKeepDays = "user.caisson.keep_days";
constexpr std::size_t kIdSize = 18;  // "s-" and 16 digits

// A session's log, with all its segments, or one of the launcher's earlier ones.
struct Group {
  std::vector<std::string> files;  // names, the last segment last
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

// By session, or by name. The launcher's log that is being written is none.
std::map<std::string, Group> groups_of(const std::string& directory) {
  std::map<std::string, Group> out;
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> dir(::opendir(directory.c_str()), close);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string name = entry->d_name;
    const bool session = name.starts_with("s-") && name.size() > kIdSize;
    struct stat st{};
    if (!name.ends_with(".ndjson") || !(session || name.starts_with("launcher-")) ||
        ::fstatat(::dirfd(dir.get()), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    Group& group = out[session ? name.substr(0, kIdSize) : name];
    group.files.push_back(name);
    group.bytes += static_cast<std::uint64_t>(st.st_size);
    group.modified_ns = std::max(group.modified_ns, std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec);
  }
  for (auto& [name, group] : out) std::ranges::sort(group.files);
  return out;
}

}  // namespace

// A file system without user attributes only makes it keep longer.
void Store::add(const std::string& session, std::uint64_t keep_days) {
  const std::string days = std::to_string(keep_days);
  (void)::setxattr((directory_ + "/" + session + ".ndjson").c_str(), kKeepDays, days.data(), days.size(), 0);
  sessions_.insert(session);
}

std::vector<std::string> Store::list(const std::string& before, std::size_t limit) const {
  std::vector<std::string> out;
  for (auto at = before.empty() ? sessions_.end() : sessions_.lower_bound(before); at != sessions_.begin() && out.size() < limit;)
    out.push_back(*--at);
  return out;
}

Result<Fd> Store::open_segment(const std::string& session, unsigned number) const {
  if (!sessions_.contains(session)) return fail(Code::not_found, "no log of session " + quote(session, 64));
  return sys::open(directory_ + "/" + session + (number == 0 ? "" : segment_suffix(number)) + ".ndjson",
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
}

bool Store::sweep(const Rules& rules) {
  const std::map<std::string, Group> groups = groups_of(directory_);
  std::vector<std::pair<std::string, const Group*>> sessions, own;
  std::uint64_t bytes = 0, own_bytes = 0;
  sessions_.clear();
  for (const auto& [name, group] : groups) {
    const bool is_own = name.starts_with("launcher-");
    if (!is_own) sessions_.insert(name);
    if (is_own || !rules.running(name)) (is_own ? own : sessions).emplace_back(name, &group);
    (is_own ? own_bytes : bytes) += group.bytes;
  }
  std::ranges::sort(sessions, {}, [](const auto& s) { return s.second->modified_ns; });
  std::size_t left = kMaxDeletions;
  const auto remove = [&](const std::string& name, const Group& group, bool aged) {
    const std::string& last = group.files.back();
    const Tail tail = tail_of(directory_ + "/" + last);
    rules.record(
        {{"file", last}, {"count", tail.count}, {"head", tail.head}, {"bytes", group.bytes}, {"why", aged ? "age" : "room"}});
    for (const std::string& file : group.files) (void)::unlink((directory_ + "/" + file).c_str());  // or the next sweep does
    sessions_.erase(name);
    --left;
  };
  std::int64_t oldest_ns = rules.now_ns;
  for (const auto& [name, group] : sessions) {
    std::uint64_t days = rules.keep_days;
    char text[16];
    const ssize_t size = ::lgetxattr((directory_ + "/" + group->files.front()).c_str(), kKeepDays, text, sizeof text);
    if (size > 0) std::from_chars(text, text + size, days);
    const bool aged = (rules.now_ns - group->modified_ns) / kDayNs >= static_cast<std::int64_t>(days);
    if ((aged || bytes + own_bytes > max_bytes_ || sessions_.size() > kMaxLogs) && left != 0) {
      bytes -= group->bytes;
      remove(name, *group, aged);
    } else {
      oldest_ns = std::min(oldest_ns, group->modified_ns);
    }
  }
  // Nothing that is still there is checked against a log that ended before its own last record; an eighth of the room is theirs.
  for (const auto& [name, group] : own) {
    const bool aged =
        group->modified_ns < std::min(oldest_ns, rules.now_ns - static_cast<std::int64_t>(rules.keep_days) * kDayNs);
    if ((!aged && own_bytes <= max_bytes_ / 8) || left == 0) break;
    own_bytes -= group->bytes;
    remove(name, *group, aged);
  }
  return left != 0;
}

}  // namespace caisson::audit
