// Runs kToolProbe in a session of its own and keeps what it finds for GET /v1/sandbox. That it ran is also the proof that
// sessions can be made, so /readyz waits for it.
#pragma once

#include "agent/http/coro.h"
#include "agent/routes/services.h"

namespace caisson::routes {

// Tries until it works, with growing pauses; says in `services.status` why not meanwhile.
[[nodiscard]] task<void> probe_until_ready(Services& services);

}  // namespace caisson::routes
