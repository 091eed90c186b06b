// A home that is empty gets what the image has in /etc/skel, as `useradd -m` gives it: .bashrc, .profile, .bash_logout. It runs
// inside the session, behind its walls and as its user, so it can do nothing that the session's own programs could not. Without a
// C library, for caisson-init; caisson-protect comes before it where names are protected.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "launcher/common/freestanding/kernel.h"

namespace caisson::init {

inline constexpr int kSkelFiles = 32;
inline constexpr long kSkelBytes = 64 * 1024;  // of each

// Regular files of /etc/skel, as they are; no link, no directory. Nothing that is there is touched, and what cannot be done is
// left: a home without them is one, too.
void fill_home(const char* home);

}  // namespace caisson::init
