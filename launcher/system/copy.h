// Copies what a session may read anyway from the container's system into a directory that is the session's own. What the caller
// may not read is left out, as are devices, sockets, other filesystems and what lies more than 100 directories deep; no symbolic
// link is followed.
#pragma once

#include <string>

#include "launcher/common/base/result.h"

namespace caisson::system {

enum class What {
  everything,
  directories,  // alone, and their modes: what overlayfs needs to be written in
};

// Copies `name` in `from` to the same name in `to`, whole and recursively. What is there already is replaced, directories are
// joined. Owners become the caller. Errors: a name that cannot be made, such as ENOSPC.
[[nodiscard]] Status copy(int from, int to, const std::string& name, What what);
// The same for all that is below the directory `from`.
[[nodiscard]] Status copy_below(int from, int to, What what);

}  // namespace caisson::system
