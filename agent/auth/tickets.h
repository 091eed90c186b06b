// Tickets: short-lived stand-ins for a key in an address, where no header can be sent: pages that are opened by their address,
// and WebSockets. Within its time a ticket opens pages and WebSockets as often as they are asked for, because documented
// addresses carry one ticket twice; it is used up by anything else. Only digests are kept.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/auth/principal.h"

namespace caisson::auth {

class Tickets {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxTickets = 4096, kShare = 1024;  // kShare: of one root

  explicit Tickets(std::chrono::seconds life) : life_(life) {}

  // single_use: even a page uses it up. At its share, or with kMaxTickets alive, the oldest one of those
  // with most ends.
  [[nodiscard]] std::string issue(Principal owner, bool single_use, Clock::time_point now);
  // opens: the request opens a page or a WebSocket. The ticket is used up only if it is good for this path.
  [[nodiscard]] std::optional<Principal> redeem(std::string_view ticket, const std::vector<std::string>& segments, bool opens,
                                                Clock::time_point now);
  void drop_over();
  [[nodiscard]] std::chrono::seconds life() const { return life_; }
  [[nodiscard]] std::size_t size() const { return tickets_.size(); }

 private:
  struct Ticket {
    Principal owner;
    bool single_use;
    Clock::time_point ends;
  };
  std::chrono::seconds life_;
  std::map<std::string, Ticket> tickets_;  // by SHA-256
};

}  // namespace caisson::auth
