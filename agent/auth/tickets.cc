#include "agent/auth/tickets.h"

#include "agent/auth/secret.h"
#include "agent/auth/shares.h"

namespace caisson::auth {

std::string Tickets::issue(Principal owner, bool single_use, Clock::time_point now) {
  std::erase_if(tickets_, [&](const auto& item) { return item.second.ends <= now; });
  make_room(
      tickets_, owner, kShare, kMaxTickets, [](const auto& item) -> const Principal& { return item.second.owner; },
      [](const auto& item) { return item.second.ends; });
  std::string ticket = base64url_encode(random_bytes(32));
  owner.kind = Kind::ticket;
  tickets_.emplace(sha256(ticket), Ticket{std::move(owner), single_use, now + life_});
  return ticket;
}

std::optional<Principal> Tickets::redeem(std::string_view ticket, const std::vector<std::string>& segments, bool opens,
                                         Clock::time_point now) {
  const auto at = tickets_.find(sha256(ticket));
  if (at == tickets_.end() || at->second.ends <= now) return std::nullopt;
  Principal owner = at->second.owner;
  if (owner.bounds.path && !owner.bounds.path->holds(segments)) return std::nullopt;
  if (at->second.single_use || !opens) tickets_.erase(at);
  return owner;
}

void Tickets::drop_over() {
  std::erase_if(tickets_, [](const auto& item) { return item.second.owner.is_over(); });
}

}  // namespace caisson::auth
