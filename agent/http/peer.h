// The address of a connection's other end.
#pragma once

#include <string>

namespace caisson::http {

// The key that stands for a host: its IPv4 address, or the /64 of its IPv6 address, because a host has 2^64 of these (RFC 4291).
[[nodiscard]] std::string network_of(const std::string& address);

}  // namespace caisson::http
