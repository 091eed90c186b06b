// What every process of ours that serves the launcher gives up before it runs: the agent, the auditor.
#pragma once

#include <sys/types.h>

namespace caisson::confine {

// For the child, before its exec: own POSIX session, no core files, `uid` (where change_uid; 0 without it: may stay root), no
// capability, no_new_privs, Landlock (-1: none), dies with the launcher. 0, or what the child exits with. Async-signal-safe.
[[nodiscard]] int give_up(uid_t uid, bool change_uid, int landlock);

}  // namespace caisson::confine
