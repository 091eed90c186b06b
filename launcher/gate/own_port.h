// The container's own ports, as the agent's: a session that tries to reach one is no accident.
#pragma once

#include <cstdint>

#include "launcher/egress/list/host.h"

namespace caisson::gate {

// Whether the address is one of the network namespace that we are in, and something listens there at the TCP port. false where
// the kernel does not say (sock_diag(7)). Connects to nothing, and costs the same however many sockets there are.
[[nodiscard]] bool is_own_port(const egress::Address& address, std::uint16_t port);

}  // namespace caisson::gate
