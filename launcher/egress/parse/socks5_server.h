// SOCKS version 5 as its client: what a proxy says to us (RFC 1928, and 1929 for user and password). A proxy is as hostile as any
// other server.
#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/egress/parse/outcome.h"

namespace caisson::egress {

enum class SocksMethod : std::uint8_t { none = 0, password = 2, refused = 0xff };
// The method that it has chosen.
Outcome read_socks_method(std::string_view bytes, SocksMethod& method);
// Whether it takes the credential.
Outcome read_socks_login(std::string_view bytes, bool& taken);
// Its reply to the request. `reply`: a SocksReply, or whatever else it says.
Outcome read_socks_reply(std::string_view bytes, std::uint8_t& reply);

}  // namespace caisson::egress
