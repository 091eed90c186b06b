// The process that connects on a session's behalf, where it has no network namespace: it becomes caisson-connector and is the
// parent of what becomes caisson-init, because Yama (ptrace_scope 1) lets only an ancestor read memory.
#pragma once

#include "launcher/common/build/child.h"

namespace caisson::confine {

// In a session's new process. Comes back in a child of it, in which the session is to be built: a socket to the connector. What
// fails ends both. gate: the workspace's line to it; whose: "session domain"; program: a descriptor of caisson-connector.
[[nodiscard]] int fork_from_connector(const ChildArgs& args, int gate, const char* whose, int program);

}  // namespace caisson::confine
