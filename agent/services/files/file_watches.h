// FileWatches: the watchers of one workspace. The file worker watches; events are numbered here, and the last thousand of each
// watcher are kept for clients. Any loss (the kernel's queue, our bound, the worker's end) is an overflow: the client must look
// again.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/services/common/keep.h"
#include "agent/services/common/output_buffer.h"
#include "agent/services/common/service_limits.h"
#include "agent/services/files/file_service.h"

namespace caisson::services {

struct FileEvent {
  std::uint64_t seq = 0;
  std::string type, path, relative_path, old_path;
  bool is_dir = false;
  std::int64_t timestamp_ns = 0;
  std::optional<std::int64_t> mtime_ns, size, inode;
};

struct WatchParams {
  std::string path;
  bool recursive = true;
  std::vector<std::string> exclude, include;
  std::int64_t debounce_ms = 300;
  bool exact = false;  // this path alone, even if it does not exist
};

struct FileWatcher {
  explicit FileWatcher(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::string id;
  WatchParams params;
  std::string path;  // absolute
  bool directory = false, exists = false;
  std::int64_t created_ns = 0;
  bridge::Clock::time_point last_used;
  std::deque<FileEvent> events;
  std::size_t bytes = 0;      // of their paths
  http::Budget::Share share;  // of these
  std::uint64_t last_seq = 0;
  std::uint64_t lost_seq = 0;  // number of the last overflow, counted among the events; 0: none
  bool stopped = false;
  bool attached = true;  // the running worker watches for it
  Keep::Record record;   // ends: last_seq, lost_seq
  bridge::Notifier changed;
  std::size_t readers = 0;  // requests that wait for its events

  // Whether a reader at `cursor` has missed an event.
  [[nodiscard]] bool missed(std::uint64_t cursor) const { return cursor < lost_seq; }
};

class FileWatches {
 public:
  using Pointer = std::shared_ptr<FileWatcher>;
  static constexpr std::size_t kMost = 32;
  static constexpr std::size_t kKept = 1000;
  static constexpr std::size_t kKeptBytes = 1024 * 1024;

  FileWatches(FileService& files, bridge::LauncherClient& launcher, const Config& config);
  ~FileWatches();
  FileWatches(const FileWatches&) = delete;
  FileWatches& operator=(const FileWatches&) = delete;

  using Made = std::expected<Pointer, FileFailure>;
  [[nodiscard]] asio::awaitable<Made> create(WatchParams params);
  [[nodiscard]] Pointer find(const std::string& id) const;
  [[nodiscard]] std::vector<Pointer> all() const;
  asio::awaitable<void> stop(Pointer watcher);
  // Restores a watcher of the previous agent. Unread events are lost, which an overflow reports.
  void restore(Keep::Left left);
  void serve_workspace(std::string name);  // the previous workspace's watchers have ended with it
  // After the worker has died: watches again, in a new worker. Does nothing for a watcher that is attached.
  asio::awaitable<void> attach(Pointer watcher);
  // Waits for an event after the cursor, an overflow, or the deadline.
  static asio::awaitable<void> wait(Pointer watcher, std::uint64_t cursor, bridge::Clock::time_point deadline);

 private:
  void take(const frames::Frame& frame);
  static void keep(FileWatcher& watcher, FileEvent event);
  static void save(FileWatcher& watcher);
  void worker_ended();
  [[nodiscard]] bool in_use();
  [[nodiscard]] asio::awaitable<FileReply> ask(Pointer watcher);

  FileService& files_;
  const std::shared_ptr<OutputBudget> budget_;  // absent: room is not shared
  bridge::LauncherClient& launcher_;
  const std::chrono::seconds idle_expiry_;
  std::string workspace_;
  std::map<std::string, Pointer> watchers_;
};

}  // namespace caisson::services
