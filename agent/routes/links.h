// Addresses of this server for its clients: they name it as the client does, and hold what opens them.
#pragma once

#include <string>
#include <string_view>

#include "agent/auth/principal.h"
#include "agent/routes/route.h"

namespace caisson::routes {

// "scheme://host" of the request; "ws" or "wss" for a socket.
[[nodiscard]] std::string origin_of(const http::Request& request, bool socket);

// A ticket of the request's credential for one path, its workspace and no more than `scopes`. "": none is needed, or the
// credential makes none: a ticket, or one of a trusted peer.
[[nodiscard]] std::string ticket_for(const Call& call, std::string_view path, auth::Scopes scopes);

}  // namespace caisson::routes
