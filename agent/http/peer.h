// Who is at the other end of a connection.
#pragma once

#include <string>

namespace caisson::http {

// What stands for the host with this address: itself, or its /64 where it is an IPv6 address, of which a host has 2^64 (RFC
// 4291).
[[nodiscard]] std::string network_of(const std::string& address);

}  // namespace caisson::http
