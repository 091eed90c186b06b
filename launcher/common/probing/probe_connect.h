// Whether connections can be made on a process's behalf here (launcher/connector), by making one.
#pragma once

#include <sys/types.h>

namespace caisson::confine {

struct ConnectOutcome {
  int error;
  const char* step;  // "landlock_abi": the kernel is too old for the wall that it needs
};
// In a child of the caller's that is over afterwards. uid: who sessions are, where ids can be changed.
[[nodiscard]] ConnectOutcome probe_connect(uid_t uid);

}  // namespace caisson::confine
