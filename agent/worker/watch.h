// Watches files with inotify. Changes below a path are sent in batches, each with one change for each path. A thread of its own
// starts with the first watcher. A reached bound, or events that the kernel dropped, are sent as an overflow: the client must
// look again.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "agent/worker/pattern.h"
#include "agent/worker/walk.h"

namespace caisson::worker {

class Watcher;

class Watches {
 public:
  static constexpr std::size_t kMost = 64;
  // tell: sends an event to the agent.
  explicit Watches(std::function<void(json::Value)> tell) : tell_(std::move(tell)) {}

  // {watcher, path, recursive, exclude, include, debounce, exact?} -> {path, directory, exists}
  // Events: {event: "watch", watcher, overflow, changes: [{t: type, p: path, r: relative, o: old path, d, m: mtime ns, s, i, at:
  // ns}]}
  [[nodiscard]] Outcome start(const Request& request);
  [[nodiscard]] Outcome stop(const Request& request);

 private:
  void run();
  void wake() const;

  std::function<void(json::Value)> tell_;
  std::mutex lock_;
  std::map<std::string, std::shared_ptr<Watcher>> watchers_;
  Fd wake_;
  std::jthread thread_;
};

}  // namespace caisson::worker
