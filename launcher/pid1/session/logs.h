// Which sessions have logs, and caisson-logs, which decides what must go and deletes it. It asks before each deletion: what we
// say yes to is on record then, and what runs stays. The loop never waits for it; without it nothing goes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/pid1/session/domains.h"
#include "launcher/pid1/session/host.h"

namespace caisson::session {

class Logs {
 public:
  Logs(const Host& host, const Domains& domains, std::function<bool(const std::string& session)> running)
      : host_(host), domains_(domains), running_(std::move(running)) {}

  // At the start, every hour, and when a sixteenth of the room has been written since.
  void sweep();
  void add(const std::string& session);
  void wrote(std::uint64_t bytes);  // a session's log that is complete
  // [{session, running}], the newest first, at most `most`; before: a session's id, or "".
  [[nodiscard]] Result<json::Value> list(const std::string& before, std::int64_t most) const;
  // Error: not_found, for anything but a segment of a session's log.
  [[nodiscard]] Result<Fd> open(const std::string& session, std::int64_t segment) const;

 private:
  [[nodiscard]] Status start_sweeper();
  [[nodiscard]] Status hear_sweeper();
  void sweep_in(std::int64_t delay_us);

  const Host& host_;
  const Domains& domains_;
  const std::function<bool(const std::string&)> running_;
  std::vector<std::uint64_t> logs_;  // numbers of the sessions that have one, sorted: there may be 65,536 and more
  Fd sweeper_, sweeper_socket_;      // of caisson-logs, while it runs
  std::uint64_t sweep_full_ = 0;     // bytes that may be written before the next
  Loop::TimerId sweep_timer_ = 0;
};

}  // namespace caisson::session
