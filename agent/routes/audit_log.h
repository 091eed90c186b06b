// AuditLog: one session's audit log as the agent reads it, record by record over its segments, from descriptors that the launcher
// opens one at a time. The launcher wrote it; it is bounded and parsed strictly all the same.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/bridge/launcher_client.h"

namespace caisson::routes {

struct AuditRecord {
  std::string line;  // byte for byte as in the file, so that its hash can be checked
  json::Value fields;
  std::int64_t seq = 0;
};

class AuditLog {
 public:
  // Positioned at the first record behind `after_seq`. Code::not_found: no such log.
  [[nodiscard]] static task<AuditLog> open(bridge::LauncherClient& launcher, std::string session, std::int64_t after_seq);

  // The next record; nullopt: none has been written yet, or, with ended(), none will follow.
  [[nodiscard]] task<std::optional<AuditRecord>> next();
  [[nodiscard]] bool ended() const { return !running_; }
  // The session's first and last record, and the size of the log.
  struct Ends {
    std::optional<AuditRecord> first, last;
    std::int64_t bytes = 0;
    bool running = false;
  };
  [[nodiscard]] static task<Ends> ends(bridge::LauncherClient& launcher, std::string session);

 private:
  struct Segment {
    std::int64_t number = 1;
    std::int64_t first_seq = 1;
    Fd fd;
  };
  AuditLog(bridge::LauncherClient& launcher, std::string session) : launcher_(&launcher), session_(std::move(session)) {}
  [[nodiscard]] static task<Segment> segment(bridge::LauncherClient& launcher, std::string session, std::int64_t number,
                                             bool& running);
  // The existing segments, oldest first.
  [[nodiscard]] static task<std::vector<Segment>> segments(bridge::LauncherClient& launcher, std::string session, bool& running);
  [[nodiscard]] task<bool> advance();
  void seek(std::int64_t after_seq);
  [[nodiscard]] std::optional<std::string> line();

  bridge::LauncherClient* launcher_;
  std::string session_;
  Segment at_;
  bool running_ = false, segment_ended_ = false;
  std::string buffer_;  // read, not yet given
  std::int64_t offset_ = 0, after_seq_ = 0;
  int idle_ = 0;  // polls without a new record
};

}  // namespace caisson::routes
