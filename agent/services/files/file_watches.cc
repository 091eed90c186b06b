#include "agent/services/files/file_watches.h"

#include <algorithm>
#include <cerrno>

#include "agent/services/common/text.h"
#include "launcher/common/base/sys.h"
#include "launcher/common/tables/fields.h"

namespace caisson::services {
namespace {

std::string utf8_of(const json::Value& object, std::string_view key) { return to_utf8(json::text_of(object, key)); }

void lose(FileWatcher& watcher) { watcher.lost_seq = ++watcher.last_seq; }

bool known_type(const std::string& type) {
  return type == "create" || type == "write" || type == "remove" || type == "rename" || type == "chmod";
}

}  // namespace

FileWatches::FileWatches(FileService& files, bridge::LauncherClient& launcher, const Config& config)
    : files_(files), budget_(config.budget), launcher_(launcher), idle_expiry_(config.idle_expiry), workspace_(config.workspace) {
  files_.on_event = [this](frames::Frame frame) { take(frame); };
  files_.on_worker_end = [this] { worker_ended(); };
  files_.in_use = [this] { return in_use(); };
}

FileWatches::~FileWatches() {
  files_.on_event = nullptr;
  files_.on_worker_end = nullptr;
  files_.in_use = nullptr;
}

asio::awaitable<FileReply> FileWatches::ask(Pointer watcher) {
  const WatchParams& params = watcher->params;
  json::Value head = {{"watcher", watcher->id},    {"path", params.path},       {"recursive", params.recursive},
                      {"exclude", params.exclude}, {"include", params.include}, {"debounce", params.debounce_ms},
                      {"exact", params.exact}};
  co_return co_await files_.call(frames::FileOp::watch_start, std::move(head));
}

asio::awaitable<FileWatches::Made> FileWatches::create(WatchParams params) {
  if (watchers_.size() >= kMost)
    co_return std::unexpected(
        FileFailure{EMFILE, params.path, "",
                    "the workspace has " + std::to_string(kMost) + " watchers, and may have no more: stop one first"});
  auto watcher = std::make_shared<FileWatcher>(launcher_.executor());
  watcher->id = "watch-" + sys::random_hex(8);
  watcher->params = std::move(params);
  if (budget_) watcher->share = budget_->share();
  watcher->created_ns = sys::realtime_ns();
  watcher->last_used = bridge::Clock::now();
  watchers_[watcher->id] = watcher;  // before the worker's first event
  auto reply = co_await ask(watcher);
  if (!reply) {
    watchers_.erase(watcher->id);
    co_return std::unexpected(std::move(reply).error());
  }
  watcher->path = utf8_of(reply->head, "path");
  watcher->directory = json::flag_of(reply->head, "directory");
  watcher->exists = json::flag_of(reply->head, "exists");
  const WatchParams& asked = watcher->params;
  watcher->record = Keep::make("watch", {{"workspace", workspace_},
                                         {"id", watcher->id},
                                         {"asked", asked.path},
                                         {"recursive", asked.recursive},
                                         {"exclude", asked.exclude},
                                         {"include", asked.include},
                                         {"debounce_ms", asked.debounce_ms},
                                         {"exact", asked.exact},
                                         {"path", watcher->path},
                                         {"directory", watcher->directory},
                                         {"exists", watcher->exists},
                                         {"created_ns", watcher->created_ns}});
  save(*watcher);
  co_return watcher;
}

void FileWatches::save(FileWatcher& watcher) { watcher.record.advance({watcher.last_seq, watcher.lost_seq}); }

void FileWatches::restore(Keep::Left left) {
  const json::Value& body = left.body;
  auto watcher = std::make_shared<FileWatcher>(launcher_.executor());
  watcher->id = json::text_of(body, "id");
  if (!watcher->id.starts_with("watch-") || watchers_.contains(watcher->id) || watchers_.size() >= kMost) return;
  const auto words = [&body](const char* key) {
    std::vector<std::string> out;
    if (const auto list = body.find(key); list != body.end() && list->is_array())
      for (const json::Value& word : *list)
        if (word.is_string()) out.push_back(word.get<std::string>());
    return out;
  };
  watcher->params = {.path = json::text_of(body, "asked"),
                     .recursive = json::flag_of(body, "recursive"),
                     .exclude = words("exclude"),
                     .include = words("include"),
                     .debounce_ms = std::clamp<std::int64_t>(json::number_of(body, "debounce_ms").value_or(300), 50, 5000),
                     .exact = json::flag_of(body, "exact")};
  watcher->path = json::text_of(body, "path");
  watcher->directory = json::flag_of(body, "directory");
  watcher->exists = json::flag_of(body, "exists");
  watcher->created_ns = json::number_of(body, "created_ns").value_or(0);
  watcher->last_used = bridge::Clock::now();
  if (budget_) watcher->share = budget_->share();
  watcher->record = std::move(left.record);
  watcher->last_seq =
      std::min<std::uint64_t>(left.ends.first, std::uint64_t{1} << 52);  // a number that JSON clients read exactly
  watcher->attached = false;
  lose(*watcher);
  save(*watcher);
  watchers_[watcher->id] = watcher;
}

FileWatches::Pointer FileWatches::find(const std::string& id) const {
  const auto it = watchers_.find(id);
  return it == watchers_.end() ? nullptr : it->second;
}

std::vector<FileWatches::Pointer> FileWatches::all() const {
  std::vector<Pointer> out;
  for (const auto& [id, watcher] : watchers_) out.push_back(watcher);
  return out;
}

asio::awaitable<void> FileWatches::stop(Pointer watcher) {
  watchers_.erase(watcher->id);
  watcher->stopped = true;
  watcher->record.erase();
  watcher->changed.notify_all();
  if (!watcher->attached) co_return;
  json::Value head = json::Value::object();
  head["watcher"] = watcher->id;
  (void)co_await files_.call(frames::FileOp::watch_stop, std::move(head));  // a worker that is gone watches nothing
}

void FileWatches::serve_workspace(std::string name) {
  workspace_ = std::move(name);
  for (const auto& [id, watcher] : watchers_) {
    watcher->stopped = true;
    watcher->record.erase();
    watcher->changed.notify_all();
  }
  watchers_.clear();
}

asio::awaitable<void> FileWatches::attach(Pointer watcher) {
  watcher->last_used = bridge::Clock::now();
  if (watcher->attached || watcher->stopped) co_return;
  watcher->attached = true;
  auto reply = co_await ask(watcher);
  if (!reply) watcher->attached = false;  // the next request tries again
}

asio::awaitable<void> FileWatches::wait(Pointer watcher, std::uint64_t cursor, bridge::Clock::time_point deadline) {
  ++watcher->readers;
  while (!watcher->stopped && watcher->last_seq <= cursor && !watcher->missed(cursor))
    if (!co_await watcher->changed.wait_until(deadline)) break;
  --watcher->readers;
  watcher->last_used = bridge::Clock::now();
}

void FileWatches::take(const frames::Frame& frame) {
  if (utf8_of(frame.head, "event") != "watch") return;
  const Pointer watcher = find(utf8_of(frame.head, "watcher"));
  if (!watcher) return;
  if (json::flag_of(frame.head, "overflow")) lose(*watcher);
  const auto changes = frame.head.find("changes");
  if (changes != frame.head.end() && changes->is_array())
    for (const json::Value& change : *changes) {
      FileEvent event{.type = utf8_of(change, "t"),
                      .path = utf8_of(change, "p"),
                      .relative_path = utf8_of(change, "r"),
                      .old_path = utf8_of(change, "o"),
                      .is_dir = json::flag_of(change, "d"),
                      .timestamp_ns = json::number_of(change, "at").value_or(0),
                      .mtime_ns = json::number_of(change, "m"),
                      .size = json::number_of(change, "s"),
                      .inode = json::number_of(change, "i")};
      if (!known_type(event.type)) continue;
      event.seq = ++watcher->last_seq;
      keep(*watcher, std::move(event));
    }
  save(*watcher);
  watcher->changed.notify_all();
}

// A path may be 4 KiB long, three times in an event.
void FileWatches::keep(FileWatcher& watcher, FileEvent event) {
  const auto size_of = [](const FileEvent& e) { return sizeof e + e.path.size() + e.relative_path.size() + e.old_path.size(); };
  watcher.bytes += size_of(event);
  watcher.events.push_back(std::move(event));
  while (!watcher.events.empty() && (watcher.events.size() > kKept || watcher.bytes > kKeptBytes ||
                                     watcher.share.resize(watcher.bytes) != http::Room::granted)) {
    watcher.lost_seq = std::max(watcher.lost_seq, watcher.events.front().seq);
    watcher.bytes -= size_of(watcher.events.front());
    watcher.events.pop_front();
  }
}

void FileWatches::worker_ended() {
  for (const auto& [id, watcher] : watchers_) {
    watcher->attached = false;
    lose(*watcher);
    save(*watcher);
    watcher->changed.notify_all();
  }
}

// Unused watchers end here; without watchers the worker may be idle.
bool FileWatches::in_use() {
  if (idle_expiry_.count() != 0)
    std::erase_if(watchers_, [&](const auto& entry) {
      return entry.second->readers == 0 && bridge::Clock::now() - entry.second->last_used > idle_expiry_;
    });
  return !watchers_.empty();
}

}  // namespace caisson::services
