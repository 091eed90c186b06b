// A session that serves nobody: built like every other of its template, asked to make the canary probes, and ended.
#pragma once

#include <functional>

#include "launcher/common/confine/canary.h"
#include "launcher/pid1/execute/session_builder.h"

namespace caisson::session {

// Gives the filter's listener to somebody who answers.
using Listen = std::function<Status(const Fd&)>;

// Some milliseconds; ten seconds at most. Errors: a step that failed, timeout, protocol.
[[nodiscard]] Task<Result<confine::ProbeResults>> run_canary(Loop& loop, const confine::Builder& builder,
                                                             const confine::Template& prepared,
                                                             const confine::Workspace& workspace, uid_t uid,
                                                             init::Targets targets, Listen listen);

}  // namespace caisson::session
