// A login that is bound to the page /terminal may also get a ticket for the page's socket, and log out. Such logins come of
// tickets and tokens of the path /terminal; without the socket their page would show nothing.
#pragma once

#include <string>
#include <vector>

#include "agent/auth/principal.h"

namespace caisson::routes {

[[nodiscard]] inline bool is_of_terminal_page(const auth::Bounds& bounds) {
  return bounds.path && !bounds.path->is_root() && bounds.path->holds({"terminal"});
}

[[nodiscard]] inline bool is_login_of_terminal_page(const auth::Principal& principal) {
  return principal.kind == auth::Kind::page && is_of_terminal_page(principal.bounds);
}

// A request of that login to another path than its own.
[[nodiscard]] inline bool is_part_of_terminal_page(const auth::Principal& principal, const std::vector<std::string>& segments) {
  using Path = std::vector<std::string>;
  return is_login_of_terminal_page(principal) && (segments == Path{"tickets"} || segments == Path{"v1", "page", "logout"});
}

// A ticket of that login.
[[nodiscard]] inline bool is_socket_of_terminal_page(const auth::Principal& principal, const auth::PathPrefix& asked) {
  static const auth::PathPrefix kSocket = auth::PathPrefix::parse("/v1/shell/ws").value_or(auth::PathPrefix());
  return is_login_of_terminal_page(principal) && asked == kSocket;
}

}  // namespace caisson::routes
