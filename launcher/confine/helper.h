// How the launcher starts the programs that serve it, and what they give up before they run.
#pragma once

#include <sys/types.h>

namespace caisson::confine {

// For the child, before its exec: own POSIX session, no core files, `uid` (where change_uid; 0 without it: may stay root), no
// capability, no_new_privs, Landlock (-1: none), dies with the launcher. 0, or what the child exits with. Async-signal-safe.
[[nodiscard]] int give_up(uid_t uid, bool change_uid, int landlock);

// The last step of a child that becomes a program of ours with our rights: descriptors 0, 1 (ours: 1) and 3 from these, 2 ours,
// and no other; it dies with the launcher.
struct Helper {
  int executable, in, out, fd3;
};
[[noreturn]] void exec_helper(const Helper& helper, char* const argv[], char* const envp[]);

}  // namespace caisson::confine
