// Makes a session, to prove that sessions can be made: /readyz waits for it. Then lists the system's tools (kToolProbe) for GET
// /v1/sandbox. The answer is the same in every workspace, so no program of a home is in it.
#pragma once

#include "agent/http/coro.h"
#include "agent/routes/services.h"

namespace caisson::routes {

// Tries until it works, with growing pauses; meanwhile `services.status` has the reason.
[[nodiscard]] task<void> probe_until_ready(Services& services);

}  // namespace caisson::routes
