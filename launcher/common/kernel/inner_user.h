// The user of a session inside its user namespace.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace caisson::confine {

inline constexpr uid_t kInnerUid = 1000;
inline constexpr gid_t kInnerGid = 1000;

// Becomes the inner user. Root's own uid does not exist inside, so it could create nothing in a new tmpfs; the capabilities in
// the user namespace stay, because no inner uid 0 is mapped. Async-signal-safe.
[[nodiscard]] inline bool become_inner() {
  return ::setresgid(kInnerGid, kInnerGid, kInnerGid) == 0 && ::setresuid(kInnerUid, kInnerUid, kInnerUid) == 0;
}

}  // namespace caisson::confine
