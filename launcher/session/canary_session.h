// A session that serves nobody: built like every other of its template, asked to make the canary probes, and ended.
#pragma once

#include "launcher/confine/build.h"
#include "launcher/confine/canary.h"

namespace caisson::session {

// Blocks, some milliseconds; ten seconds at most. Errors: a step that failed, timeout, protocol.
[[nodiscard]] Result<confine::ProbeResults> run_canary(const confine::Builder& builder, const confine::Template& prepared,
                                                       const confine::Workspace& workspace, uid_t uid,
                                                       const init::Targets& targets);

}  // namespace caisson::session
