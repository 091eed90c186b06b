// Walks and removes what a tenant made: the tree below one directory, whose every name, mode and depth is the tenant's choice and
// may change meanwhile. No symbolic link is followed, no mount is entered, nothing above the directory is reached. Runs with
// powers over the tenant's own files only (as_tenant).
#pragma once

#include <cstdint>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::homes {

struct Use {
  std::uint64_t bytes = 0, inodes = 0;
};

// What the files take of the disk; each counts once, whatever its names. Stops when it is over one of `most`; what no name leads
// to (open and deleted) is not seen. Errors, which all mean that it may be more: limit, for a tree that is deeper than a path is
// long, or whose directories are moved about so that they are not seen, in two looks; what the kernel says of a name that it does
// not let us look at. Changes the working directory.
[[nodiscard]] Result<Use> measure(int home, const Use& most);

// Empties the directory, whatever the depth.
[[nodiscard]] Status empty(int home);

}  // namespace caisson::homes
