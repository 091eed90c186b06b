// The answer to a wrong credential, or to none: 401, later with each failure of the same address, and a line in the log. 429 for
// an address whose credentials are not looked at for now.
#pragma once

#include "agent/auth/gate.h"
#include "agent/http/coro.h"
#include "agent/http/response.h"

namespace caisson::routes {

// An identity provider may give each of its users a token without a scope of this server. Such a token makes no tickets, logins
// or tokens, because they would fill the tables.
[[nodiscard]] std::optional<http::Response> refuse_powerless(const auth::Principal& principal);
[[nodiscard]] asio::awaitable<http::Response> refuse(auth::Gate& gate, std::string sender, auth::Gate::Refusal why);

// The client's connection is encrypted, as far as its request tells. A lie makes its own cookie unusable.
[[nodiscard]] bool is_secure(const http::Request& request);

}  // namespace caisson::routes
