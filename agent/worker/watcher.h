// One watcher: its inotify instance, its watched directories, and the changes that wait for the end of the debounce window.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "agent/worker/pattern.h"
#include "agent/worker/walk.h"

namespace caisson::worker {

struct WatchRequest {
  std::string id, path;
  bool recursive = true;
  std::vector<Pattern> exclude, include;
  std::int64_t debounce_ms = 300;
  std::string only;  // of a directory: this name alone
};

class Watcher {
 public:
  [[nodiscard]] static Done<std::shared_ptr<Watcher>> start(WatchRequest request, Fd top, const Request& call);

  [[nodiscard]] int fd() const { return inotify_.get(); }
  // Reads the kernel's pending events.
  void read();
  // The time until the waiting changes are due; nullopt: none wait.
  [[nodiscard]] std::optional<std::int64_t> due_us() const;
  // Returns the changes as events for the agent and forgets them.
  [[nodiscard]] std::vector<json::Value> flush();

 private:
  enum class Kind { create, write, remove, rename, chmod };
  struct Change {
    Kind kind;
    std::string old_relative;
    bool directory = false;
    std::int64_t order = 0, at_ns = 0;
  };
  struct Moved {
    std::string relative;
    bool directory = false;
  };

  Watcher(WatchRequest request, Fd inotify, Fd top)
      : request_(std::move(request)), inotify_(std::move(inotify)), top_(std::move(top)) {}
  void add_directory(const std::string& relative, const Request& call, bool tell_content);
  [[nodiscard]] bool wanted(const std::string& relative) const;
  void take(int wd, std::uint32_t mask, std::uint32_t cookie, const std::string& name);
  void take_name(const std::string& relative, std::uint32_t mask, std::uint32_t cookie, bool directory);
  void note(Kind kind, const std::string& relative, bool directory, const std::string& old_relative = "");
  void rename_directory(const std::string& from, const std::string& to);
  void settle_moves();
  [[nodiscard]] json::Value describe(const std::string& relative, const Change& change) const;

  const WatchRequest request_;
  Fd inotify_, top_;
  std::map<int, std::string> directories_;  // by watch descriptor
  std::map<std::string, Change> changes_;
  std::map<std::uint32_t, Moved> moves_;  // moved away, destination not yet seen
  std::int64_t first_us_ = 0, next_order_ = 0;
  bool overflow_ = false;
};

}  // namespace caisson::worker
