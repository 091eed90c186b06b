#include "launcher/logs/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "launcher/common/audit/log.h"
#include "launcher/common/audit_lines/lines.h"
#include "launcher/common/base/session_id.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/directory.h"
#include "launcher/common/tables/fields.h"

namespace caisson::audit {
namespace {

constexpr std::int64_t kDayNs = 86'400LL * 1'000'000'000;
constexpr std::int64_t kCatchUp = 4;  // how much faster than time the clock for ages follows a wall clock that is ahead of it
constexpr std::int64_t kSaneNs = 1'500'000'000LL * 1'000'000'000;  // 2017: a clock that says less has not been set yet
constexpr const char* kClock = "/clock";
constexpr std::uint64_t kFrame = 384;  // of a record, beside its fields
constexpr int kTries = 8;

// A session's log, with all its segments, or one of the launcher's earlier ones.
struct Group {
  std::vector<std::string> files;  // names, the last segment last
  std::uint64_t bytes = 0;
};

// What a session's first record says of how long its log is kept, on whose account, and since when.
struct Head {
  std::string workspace;
  std::uint64_t keep_days = 0;
  std::string time;
};

// What a workspace takes.
struct Share {
  std::uint64_t bytes = 0, logs = 0;
  // As far as we know; the oldest first. Many begin in one second, which is all that their names say.
  std::set<std::tuple<std::int64_t, std::string, std::string>> ended;
};

std::int64_t begun_ns(const std::string& session) {
  return static_cast<std::int64_t>(session_number(session) >> 32) * 1'000'000'000;
}

// A session with our uid may make a file unreadable: what it says would then count for nothing.
Result<Fd> open_for(int flags, const std::string& path) {
  auto fd = sys::open(path, flags | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  for (int tries = 0; !fd && fd.error().sys == EACCES && tries < kTries; ++tries) {
    (void)::fchmodat(AT_FDCWD, path.c_str(), S_IRUSR | S_IWUSR, 0);
    fd = sys::open(path, flags | O_NOFOLLOW | O_NONBLOCK);
  }
  return fd;
}

// By session, or by name. The launcher's log that is being written is none.
std::map<std::string, Group> groups_of(const std::string& directory) {
  std::map<std::string, Group> out;
  auto fd = sys::open(directory, O_RDONLY | O_DIRECTORY);
  const auto dir = fd ? sys::read_directory(std::move(*fd)) : std::unexpected(std::move(fd).error());
  while (const char* entry = dir ? sys::next_name(dir->get()) : nullptr) {
    const std::string name = entry;
    const bool session = name.starts_with("s-") && name.size() > kSessionIdSize;
    struct stat st{};
    if (!name.ends_with(".ndjson") || !(session || name.starts_with("launcher-")) ||
        ::fstatat(::dirfd(dir->get()), entry, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    if ((st.st_mode & S_IRUSR) == 0) (void)::fchmodat(::dirfd(dir->get()), entry, S_IRUSR | S_IWUSR, 0);
    Group& group = out[session ? name.substr(0, kSessionIdSize) : name];
    group.files.push_back(name);
    group.bytes += static_cast<std::uint64_t>(st.st_size);
  }
  for (auto& [name, group] : out) std::ranges::sort(group.files);
  return out;
}

// Of what does not say it: no workspace, and `keep_days`. nullopt: it cannot be read now.
std::optional<Head> head_of(const std::string& path, std::uint64_t keep_days) {
  const auto fd = open_for(O_RDONLY, path);
  if (!fd) return std::nullopt;
  std::string text(kMaxRecord, '\0');
  const ssize_t size = ::pread(fd->get(), text.data(), text.size(), 0);
  if (size < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  Head head{"", keep_days, ""};
  const auto record = parse_record(std::string_view(text).substr(0, text.find('\n')));
  if (!record || !record->is_object()) return head;
  if (const auto name = json::get_string(*record, "workspace"); name && *name) head.workspace = **name;
  if (const auto days = json::get_int(*record, "keep_days"); days && *days && **days > 0)
    head.keep_days = static_cast<std::uint64_t>(**days);
  head.time = json::text_of(*record, "time");
  return head;
}

// A wall clock that jumps must not delete what is kept: ages are counted by a clock that follows it forward only slowly, over
// restarts, too. Without a file, which older launchers did not write, the newest session says what time it was.
std::int64_t clock_ns(const std::string& path, const Rules& rules, const std::optional<std::string>& newest) {
  std::int64_t clock_ns = 0, clock_us = 0;
  std::string boot;
  if (const auto fd = open_for(O_RDONLY, path))
    std::istringstream(sys::read_fd(fd->get(), 256).value_or("")) >> clock_ns >> clock_us >> boot;
  if (clock_ns < kSaneNs) clock_ns = newest ? begun_ns(*newest) : rules.now_ns, boot.clear();
  const std::int64_t most = boot == rules.boot ? std::max<std::int64_t>(rules.mono_us - clock_us, 0) * 1'000 * kCatchUp : 0;
  clock_ns += std::clamp<std::int64_t>(rules.now_ns - clock_ns, 0, most);
  // In place, and always of one length: no moment finds it empty. What cannot be written only keeps longer.
  char text[128];
  std::snprintf(text, sizeof text, "%019ld %019ld %32s", clock_ns, rules.mono_us, rules.boot.c_str());
  if (clock_ns >= kSaneNs)
    if (const auto fd = open_for(O_WRONLY | O_CREAT, path)) (void)sys::write_all(fd->get(), text);
  return std::min(rules.now_ns, clock_ns);
}

class Sweep {
 public:
  Sweep(const std::string& directory, const Rules& rules) : directory_(directory), rules_(rules), groups_(groups_of(directory)) {
    for (const auto& [name, group] : groups_)
      if (!name.starts_with("launcher-")) sessions_.emplace(name, head_of(path(group.files.front()), rules.keep_days));
    now_ns_ = clock_ns(directory + kClock, rules, sessions_.empty() ? std::nullopt : std::optional(sessions_.rbegin()->first));
  }

  bool run() {
    std::vector<std::string> own;
    std::uint64_t own_bytes = 0;
    for (const auto& [name, group] : groups_) {
      const auto known = sessions_.find(name);
      if (known == sessions_.end()) {
        own.push_back(name);
        own_bytes += group.bytes;
        continue;
      }
      const Head head = known->second.value_or(Head());
      if (known->second && left_ != 0 && aged(begun_ns(name), head.keep_days) && gone(name, head.keep_days)) continue;
      Share& share = shares_[head.workspace];
      for (Share* one : {&share, &all_}) one->bytes += group.bytes, ++one->logs;
      if (known->second) share.ended.emplace(begun_ns(name), head.time, name);  // what cannot be read now stays
    }
    // An eighth of the room is the launcher's own, and no more: the rest of its logs goes below.
    make_room(&Share::bytes, rules_.max_bytes - std::min(own_bytes, rules_.max_bytes / 8));
    make_room(&Share::logs, kMaxLogs);

    // Nothing that is still there is checked against a log that ended before its own last record.
    const std::int64_t oldest_ns = sessions_.empty() ? now_ns_ : begun_ns(sessions_.begin()->first);
    for (const std::string& name : own) {
      const std::uint64_t bytes = groups_.at(name).bytes;
      const auto last = tail(name);
      if (!last) break;  // they are one chain, which only its beginning may leave
      const bool old = last->time_ns != 0 && aged(last->time_ns, rules_.keep_days) && last->time_ns < oldest_ns;
      if ((!old && own_bytes <= rules_.max_bytes / 8) || left_ == 0) break;
      if (!old && !keep_roots(groups_.at(name).files.back())) break;
      if (!remove(name, *last, old)) break;
      own_bytes -= bytes;
    }
    return left_ != 0;
  }

 private:
  [[nodiscard]] std::string path(const std::string& file) const { return directory_ + "/" + file; }
  [[nodiscard]] bool aged(std::int64_t time_ns, std::uint64_t days) const {
    return (now_ns_ - time_ns) / kDayNs >= static_cast<std::int64_t>(days);
  }
  [[nodiscard]] std::optional<Tail> tail(const std::string& name) const {
    const auto fd = open_for(O_RDONLY, path(groups_.at(name).files.back()));
    if (!fd) return std::nullopt;
    return tail_of(fd);
  }

  bool remove(const std::string& name, const Tail& last, bool old) {
    const Group& group = groups_.at(name);
    if (!rules_.may_go({{"file", group.files.back()},
                        {"count", last.count},
                        {"head", last.head},
                        {"bytes", group.bytes},
                        {"why", old ? "age" : "room"}}))
      return false;
    for (const std::string& file : group.files) (void)::unlink(path(file).c_str());  // or the next sweep does
    sessions_.erase(name);
    --left_;
    return true;
  }

  // For its age, which its last record says, that none but the launcher writes; what has none is not old.
  bool gone(const std::string& name, std::uint64_t days) {
    const auto last = tail(name);
    return last && last->time_ns != 0 && aged(last->time_ns, days) && remove(name, *last, true);
  }

  // A workspace that takes no more than its part of the room loses nothing, whatever the others do.
  void make_room(std::uint64_t Share::* what, std::uint64_t room) {
    std::priority_queue<std::pair<std::uint64_t, Share*>> most;
    const auto push = [&](Share& share) {
      if (!share.ended.empty() && share.*what > room / shares_.size()) most.emplace(share.*what, &share);
    };
    for (auto& [workspace, share] : shares_) push(share);
    while (all_.*what > room && left_ != 0 && !most.empty()) {
      Share& share = *most.top().second;
      most.pop();
      const std::string name = std::get<2>(share.ended.extract(share.ended.begin()).value());
      if (const auto last = tail(name); last && remove(name, *last, false))
        for (Share* one : {&share, &all_}) one->bytes -= groups_.at(name).bytes, --one->logs;
      push(share);
    }
  }

  // One workspace can fill the launcher's logs with the ends of its sessions. The roots of other workspaces' logs are kept, the
  // newest first: each workspace has an equal part of half of the launcher's room. false: the file cannot be read now.
  bool keep_roots(const std::string& file) {
    auto fd = open_for(O_RDONLY, path(file));
    if (!fd) return false;
    std::map<std::string, std::vector<json::Value>> roots;  // by workspace
    Lines lines(std::move(*fd));
    for (auto line = lines.next(); line && *line; line = lines.next()) {
      if (!(*line)->whole || !(*line)->text.contains("\"file\":\"s-")) continue;
      const auto record = parse_record((*line)->text);
      if (!record || !record->is_object()) continue;
      const std::string event = json::text_of(*record, "event");
      if (event != event_name(Event::session_end) && event != event_name(Event::log_root)) continue;
      const auto of = sessions_.find(json::text_of(*record, "file").substr(0, kSessionIdSize));
      if (of == sessions_.end() || !of->second) continue;
      json::Value root = json::Value::object();
      for (const char* key : {"session", "workspace", "file", "count", "head", "reason", "key", "signature"})
        if (record->contains(key)) root[key] = (*record)[key];
      roots[of->second->workspace].push_back(std::move(root));
    }
    for (auto& [workspace, list] : roots) {
      std::uint64_t& kept = kept_[workspace];
      for (; !list.empty(); list.pop_back()) {
        kept += json::dump(list.back()).size() + kFrame;
        if (kept > rules_.max_bytes / 16 / shares_.size()) break;
        rules_.keep_root(list.back());
      }
    }
    return true;
  }

  const std::string& directory_;
  const Rules& rules_;
  const std::map<std::string, Group> groups_;
  std::map<std::string, std::optional<Head>> sessions_;  // that have a log; nullopt: it cannot be read now
  std::map<std::string, Share> shares_;                  // by workspace
  Share all_;
  std::map<std::string, std::uint64_t> kept_;  // bytes of roots, by workspace
  std::int64_t now_ns_ = 0;
  std::size_t left_ = kMaxDeletions;
};

}  // namespace

bool sweep(const std::string& directory, const Rules& rules) { return Sweep(directory, rules).run(); }

}  // namespace caisson::audit
