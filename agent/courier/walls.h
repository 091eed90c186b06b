// The walls that caisson-courier builds around itself, inside those of caisson-seal (launcher/seal/services/courier.json).
#pragma once

#include "agent/courier/destinations.h"

namespace caisson::courier {

// Landlock: from here on it reads the store of certificates and what names are looked up by, executes nothing, not even its own
// program, and connects by TCP to the ports of its addresses alone, and to that of name servers. A kernel without Landlock (or,
// for ports, older than 6.7) leaves that wall out: the container's tier says so.
[[nodiscard]] Status close_in(const Destinations& destinations);

}  // namespace caisson::courier
