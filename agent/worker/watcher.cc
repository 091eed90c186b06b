#include "agent/worker/watcher.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/worker/walk.h"
#include "launcher/common/base/sys.h"

namespace caisson::worker {
namespace {

constexpr std::size_t kMostDirectories = 8192;
constexpr std::size_t kMostChanges = 4096;
constexpr std::size_t kBatch = 500;
constexpr std::uint32_t kMask =
    IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_EXCL_UNLINK | IN_ONLYDIR;
constexpr std::array<const char*, 5> kNames = {"create", "write", "remove", "rename", "chmod"};

std::string below(const std::string& directory, const std::string& name) {
  return directory.empty() ? name : directory + "/" + name;
}

}  // namespace

Done<std::shared_ptr<Watcher>> Watcher::start(WatchRequest request, Fd top, const Request& call) {
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return failed(errno, request.path);
  const std::shared_ptr<Watcher> made(new Watcher(std::move(request), std::move(inotify), std::move(top)));
  made->add_directory("", call, false);
  if (made->directories_.empty()) return failed(ENOSPC, made->request_.path);  // no room for watches
  // If only a part of a large tree could be watched, the first answer says so.
  if (made->overflow_) made->first_us_ = sys::monotonic_us();
  return made;
}

// Breadth first. tell_content: the directory is new, so its entries are reported as new, too.
void Watcher::add_directory(const std::string& relative, const Request& call, bool tell_content) {
  std::deque<std::string> waiting = {relative};
  while (!waiting.empty()) {
    const std::string at = std::move(waiting.front());
    waiting.pop_front();
    const Fd dir(open_below(top_, at));
    if (!dir) continue;  // gone again, or unreadable
    if (directories_.size() >= kMostDirectories) {
      overflow_ = true;
      return;
    }
    const std::string by_fd = "/proc/self/fd/" + std::to_string(dir.get());
    int wd = ::inotify_add_watch(inotify_.get(), by_fd.c_str(), kMask);
    // Without /proc only a name can be watched, and the kernel resolves it once more. It may then lead elsewhere, but only to
    // files that this session may read.
    if (wd < 0 && errno == ENOENT)
      wd = ::inotify_add_watch(inotify_.get(), below(request_.path, at).c_str(), kMask | IN_DONT_FOLLOW);
    if (wd < 0) {
      overflow_ = true;
      continue;
    }
    directories_[wd] = at;
    if (!request_.recursive || !request_.only.empty()) continue;
    bool complete = true;
    const auto visit = [&](const Entry& entry, int) {
      const std::string name = below(at, entry.name);
      const bool excluded = std::ranges::any_of(request_.exclude, [&](const Pattern& p) { return p.excludes(name); });
      if (excluded) return Next::skip;
      if (tell_content) note(Kind::create, name, entry.directory);
      if (entry.directory && !entry.link) waiting.push_back(name);
      return Next::skip;
    };
    if (!walk(dir, request_.path, call, visit, complete) || !complete) overflow_ = true;
  }
}

bool Watcher::wanted(const std::string& relative) const {
  if (!request_.only.empty()) return relative == request_.only;
  if (std::ranges::any_of(request_.exclude, [&](const Pattern& p) { return p.excludes(relative); })) return false;
  if (request_.include.empty()) return true;
  const std::string name = relative.substr(relative.rfind('/') + 1);
  return std::ranges::any_of(request_.include,
                             [&](const Pattern& p) { return p.has_slash() ? p.matches(relative) : p.matches(name); });
}

void Watcher::read() {
  alignas(inotify_event) std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t n = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (n <= 0) return;
    for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = buffer.data() + at + sizeof event;
      take(event.wd, event.mask, event.cookie, event.len > 0 ? std::string(name, ::strnlen(name, event.len)) : "");
      at += sizeof event + event.len;
    }
  }
}

void Watcher::take(int wd, std::uint32_t mask, std::uint32_t cookie, const std::string& name) {
  if ((mask & IN_Q_OVERFLOW) != 0) {
    overflow_ = true;
    if (first_us_ == 0) first_us_ = sys::monotonic_us();
    return;
  }
  const auto it = directories_.find(wd);
  if (it == directories_.end()) return;
  if ((mask & IN_IGNORED) != 0) {
    directories_.erase(it);
    return;
  }
  if ((mask & IN_DELETE_SELF) != 0 && it->second.empty()) note(Kind::remove, "", true);
  if (name.empty()) return;
  const std::string relative = below(it->second, name);
  take_name(relative, mask, cookie, (mask & IN_ISDIR) != 0);
}

void Watcher::take_name(const std::string& relative, std::uint32_t mask, std::uint32_t cookie, bool directory) {
  const Request nobody;
  if ((mask & IN_MOVED_FROM) != 0) {
    if (moves_.size() >= kMostChanges) overflow_ = true;
    else moves_[cookie] = {relative, directory};
    if (first_us_ == 0) first_us_ = sys::monotonic_us();
    return;
  }
  if ((mask & IN_MOVED_TO) != 0) {
    auto moved = moves_.extract(cookie);
    if (!moved.empty() && wanted(moved.mapped().relative)) {
      const std::string from = moved.mapped().relative;
      if (directory) rename_directory(from, relative);
      if (wanted(relative)) {
        changes_.erase(from);
        note(Kind::rename, relative, directory, from);
      } else {
        note(Kind::remove, from, directory);
      }
      return;
    }
    mask |= IN_CREATE;  // moved in from a directory that is not watched
  }
  if ((mask & IN_CREATE) != 0 && directory && request_.recursive && request_.only.empty() &&
      std::ranges::none_of(request_.exclude, [&](const Pattern& p) { return p.excludes(relative); }))
    add_directory(relative, nobody, true);
  if ((mask & IN_CREATE) != 0) note(Kind::create, relative, directory);
  else if ((mask & IN_MODIFY) != 0) note(Kind::write, relative, directory);
  else if ((mask & IN_DELETE) != 0) note(Kind::remove, relative, directory);
  else if ((mask & IN_ATTRIB) != 0) note(Kind::chmod, relative, directory);
}

// One change for each path: the one that a reader must know about now.
void Watcher::note(Kind kind, const std::string& relative, bool directory, const std::string& old_relative) {
  if (!relative.empty() && !wanted(relative)) return;
  if (first_us_ == 0) first_us_ = sys::monotonic_us();
  const auto it = changes_.find(relative);
  if (it != changes_.end()) {
    Change& change = it->second;
    if (kind == Kind::remove && change.kind == Kind::create) changes_.erase(it);
    else if (kind == Kind::remove || kind == Kind::rename)
      change = {kind, old_relative, directory, ++next_order_, sys::realtime_ns()};
    else if (kind == Kind::create && change.kind == Kind::remove) change.kind = Kind::write;
    else if (kind == Kind::write && change.kind == Kind::chmod) change.kind = Kind::write;
    return;
  }
  if (changes_.size() >= kMostChanges) {
    overflow_ = true;
    return;
  }
  changes_[relative] = {kind, old_relative, directory, ++next_order_, sys::realtime_ns()};
}

void Watcher::rename_directory(const std::string& from, const std::string& to) {
  for (auto& [wd, relative] : directories_)
    if (relative == from || relative.starts_with(from + "/")) relative = to + relative.substr(from.size());
}

// A name that was moved away and did not reappear in a watched directory counts as removed.
void Watcher::settle_moves() {
  const auto moves = std::exchange(moves_, {});
  for (const auto& [cookie, moved] : moves) {
    note(Kind::remove, moved.relative, moved.directory);
    if (!moved.directory) continue;
    for (const auto& [wd, relative] : directories_)
      if (relative == moved.relative || relative.starts_with(moved.relative + "/")) ::inotify_rm_watch(inotify_.get(), wd);
  }
}

std::optional<std::int64_t> Watcher::due_us() const {
  if (first_us_ == 0) return std::nullopt;
  return first_us_ + request_.debounce_ms * 1000;
}

json::Value Watcher::describe(const std::string& relative, const Change& change) const {
  json::Value out = {{"t", kNames[static_cast<std::size_t>(change.kind)]},
                     {"r", relative},
                     {"p", below(request_.path, relative)},
                     {"d", change.directory},
                     {"at", change.at_ns}};
  if (!change.old_relative.empty()) out["o"] = below(request_.path, change.old_relative);
  struct stat st{};
  if (stat_below(top_, relative, st))
    out.update({{"m", st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec},
                {"s", static_cast<std::int64_t>(st.st_size)},
                {"i", static_cast<std::int64_t>(st.st_ino)}});
  return out;
}

std::vector<json::Value> Watcher::flush() {
  settle_moves();
  std::vector<std::pair<std::int64_t, json::Value>> ordered;
  for (const auto& [relative, change] : changes_) ordered.emplace_back(change.order, describe(relative, change));
  std::ranges::sort(ordered, {}, [](const auto& o) { return o.first; });
  changes_.clear();
  first_us_ = 0;
  std::vector<json::Value> out;
  for (std::size_t i = 0; i < ordered.size() || (i == 0 && overflow_); i += kBatch) {
    json::Value event = {{"event", "watch"}, {"watcher", request_.id}, {"overflow", std::exchange(overflow_, false)}};
    json::Value changes = json::Value::array();
    for (std::size_t k = i; k < std::min(i + kBatch, ordered.size()); ++k) changes.push_back(std::move(ordered[k].second));
    event["changes"] = std::move(changes);
    out.push_back(std::move(event));
  }
  return out;
}

}  // namespace caisson::worker
