// Blocks of addresses, and addresses that carry others.
#pragma once

#include <vector>

#include "launcher/egress/list/host.h"

namespace caisson::egress {

struct Prefix {
  Address address;
  unsigned bits = 0;
};
[[nodiscard]] bool contains(const Prefix& prefix, const Address& address);
// Whether no bit behind the prefix's is set, and no byte that the family has not.
[[nodiscard]] bool is_whole(const Prefix& prefix);
[[nodiscard]] constexpr unsigned family_bits(const Address& address) { return address.v6 ? 128 : 32; }

// ::ffff:a.b.c.d becomes a.b.c.d; every other address stays.
[[nodiscard]] Address canonical(const Address& address);

// The IPv4 addresses that an IPv6 address may lead to by a translator or tunnel. More than one where the layout is the operator's
// choice (64:ff9b:1::/48); none for an address that carries nothing.
[[nodiscard]] std::vector<Address> carried(const Address& address);

}  // namespace caisson::egress
