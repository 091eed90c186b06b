// A grant: what an operator has allowed besides a list, of what neither a rule nor the mode says anything. One host, one port,
// for a while. It never touches what a rule denies, and leads to global addresses alone. caisson-gate keeps them; door and dialer
// have what is in force.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/egress/list/list.h"

namespace caisson::egress {

inline constexpr std::size_t kMaxGrants = 32;  // of a workspace: one message tells them all

struct Grant {
  std::uint32_t id = 0;         // of the gate; never 0
  std::string domain, session;  // without a session: of all of the domain
  Host host;
  std::uint16_t port = 0;
  bool once = false;  // for one connection,
  bool used = false;  // which has been made, and may go on
};
using Grants = std::vector<Grant>;

// The session that asks. Without one, which is so where sessions are not told apart and in the dialer, every grant of the domain
// counts.
struct Asker {
  std::string_view domain, session;
};
// Preferred are, in this order: `using_`, which the connection uses already; a grant for more than one connection; an unused one.
// nullptr: no grant is for this.
[[nodiscard]] Grant* find_grant(Grants& grants, const Asker& asker, const Host& host, std::uint16_t port,
                                std::uint32_t using_ = 0);

// How caisson-gate tells door and dialer: one line for each grant. Malformed lines are refused.
[[nodiscard]] std::string grant_bytes(const Grants& grants);
[[nodiscard]] Result<Grants> read_grants(std::string_view bytes);

}  // namespace caisson::egress
