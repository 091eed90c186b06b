// What the launcher and caisson-homes agree upon besides the answer's JSON (launcher/homes/main.cc).
#pragma once

#include <sys/types.h>

namespace caisson::homes {

inline constexpr int kDirectoryFd = 3;  // of all homes
// Of persistent workspaces; no other workspace, session or program has one of these.
inline constexpr uid_t kFirstHomeUid = 30001, kLastHomeUid = 39999;

}  // namespace caisson::homes
