// SOCKS version 5 (RFC 1928) as a server: no authentication, CONNECT only. Names are taken as names, so that the list decides by
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/egress/list/host.h"
#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

// The byte that a client of SOCKS 5 begins with, and no HTTP or TLS.
inline constexpr char kSocksVersion = 5;

// The client's methods. done: "no authentication" is among them.
Outcome read_socks_greeting(std::string_view bytes);
[[nodiscard]] std::string_view socks_greeting_answer(bool accepted);

struct SocksRequest {
  std::optional<Host> host;
  std::uint16_t port = 0;
};
// What follows the greeting.
Outcome read_socks_request(std::string_view bytes, SocksRequest& request);

enum class SocksReply : std::uint8_t {
  succeeded = 0,
  failure = 1,
  not_allowed = 2,
  network_unreachable = 3,
  host_unreachable = 4,
  connection_refused = 5,
  expired = 6,
  no_such_command = 7,
  no_such_address = 8,
};
// With the unspecified address: the one that the connection is really made from is none of the client's business.
[[nodiscard]] std::string socks_answer(SocksReply reply);

}  // namespace caisson::egress
