// Makes a session, which is the proof that they can be made: /readyz waits for it. Then asks the system for its tools
// (kToolProbe) and keeps them for GET /v1/sandbox, which says the same in every workspace: so nothing of a home is among them.
#pragma once

#include "agent/http/coro.h"
#include "agent/routes/services.h"

namespace caisson::routes {

// Tries until it works, with growing pauses; says in `services.status` why not meanwhile.
[[nodiscard]] task<void> probe_until_ready(Services& services);

}  // namespace caisson::routes
