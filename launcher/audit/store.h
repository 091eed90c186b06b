// The audit directory as the launcher knows it: which sessions have logs, and which of these must go, for their age or for
// room. Names, sizes and times are looked at; what a log says is read by whoever is given its descriptor.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "launcher/audit/log.h"

namespace caisson::audit {

class Store {
 public:
  static constexpr std::size_t kMaxLogs = 65'536;    // of sessions, however small
  static constexpr std::size_t kMaxDeletions = 256;  // of one sweep: the rest waits for the next

  Store(std::string directory, std::uint64_t max_bytes) : directory_(std::move(directory)), max_bytes_(max_bytes) {}

  // A new session's log. keep_days is noted with the file, for the sweep of a later launcher.
  void add(const std::string& session, std::uint64_t keep_days);
  // Up to `limit` sessions that started before `before` ("": all), the newest first: ids sort by time.
  [[nodiscard]] std::vector<std::string> list(const std::string& before, std::size_t limit) const;
  // A segment, to be read only; 0: the one that is written. Never the launcher's own log.
  [[nodiscard]] Result<Fd> open_segment(const std::string& session, unsigned number) const;

  struct Rules {
    std::int64_t now_ns = 0;
    std::uint64_t keep_days = 0;                              // of logs that do not say it themselves
    std::function<bool(const std::string& session)> running;  // its log stays
    std::function<void(json::Value)> record;                  // told of each deletion before it is made
  };
  // Deletes the logs that are older than they are kept, then the oldest until the rest fits; last those of the launcher's
  // own earlier logs that no other needs. false: there is more to do.
  [[nodiscard]] bool sweep(const Rules& rules);

 private:
  std::string directory_;
  std::uint64_t max_bytes_;
  std::set<std::string> sessions_;
};

}  // namespace caisson::audit
