// A login that is bound to a page with a WebSocket, such as /terminal, may also get a ticket for that socket, and log out. Such
// logins come of tickets and tokens of the page's path; without the socket their page would show nothing.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/auth/principal.h"

namespace caisson::routes {

struct PageSocket {
  std::array<std::string_view, 2> page;  // its segments; the second may be empty
  std::array<std::string_view, 2> sockets;
};
inline constexpr PageSocket kTerminalPage{{"terminal", ""}, {"/v1/shell/ws", ""}};
inline constexpr PageSocket kPageSockets[] = {
    kTerminalPage,
    {{"codex", ""}, {"/v1/shell/ws", ""}},
    {{"opencode", ""}, {"/v1/shell/ws", ""}},
    {{"vnc", ""}, {"/websockify", "/vnc/websockify"}},
    {{"vnc", "index.html"}, {"/websockify", "/vnc/websockify"}},
    {{"vnc", "vnc.html"}, {"/websockify", "/vnc/websockify"}},
};

[[nodiscard]] inline bool is_of_page(const auth::Bounds& bounds, const PageSocket& row) {
  std::vector<std::string> segments{std::string(row.page[0])};
  if (!row.page[1].empty()) segments.emplace_back(row.page[1]);
  return bounds.path && !bounds.path->is_root() && bounds.path->holds(segments);
}

[[nodiscard]] inline bool is_of_terminal_page(const auth::Bounds& bounds) { return is_of_page(bounds, kTerminalPage); }

// The page that this login is bound to; nullptr: none with a socket.
[[nodiscard]] inline const PageSocket* page_of_login(const auth::Principal& principal) {
  if (principal.kind != auth::Kind::page) return nullptr;
  const auto* const found =
      std::ranges::find_if(kPageSockets, [&](const PageSocket& row) { return is_of_page(principal.bounds, row); });
  return found == std::end(kPageSockets) ? nullptr : found;
}

// A request of that login to another path than its own.
[[nodiscard]] inline bool is_part_of_its_page(const auth::Principal& principal, const std::vector<std::string>& segments) {
  using Path = std::vector<std::string>;
  return page_of_login(principal) != nullptr && (segments == Path{"tickets"} || segments == Path{"v1", "page", "logout"});
}

// A ticket of that login.
[[nodiscard]] inline bool is_socket_of_its_page(const auth::Principal& principal, const auth::PathPrefix& asked) {
  const PageSocket* const row = page_of_login(principal);
  return row != nullptr && std::ranges::any_of(row->sockets, [&](std::string_view one) {
           return !one.empty() && auth::PathPrefix::parse(one) == asked;
         });
}

}  // namespace caisson::routes
