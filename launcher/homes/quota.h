// Project quotas: a limit of bytes and inodes that the kernel keeps for everything below one directory.
#pragma once

#include <sys/types.h>

#include "launcher/homes/home_tree.h"

namespace caisson::homes {

// Gives the directory the project `id` with these limits, and everything that is made below it from now on. Errors: unavailable,
// with why, where the filesystem, the kernel or our rights do not allow it, or the directory holds what no project counts.
[[nodiscard]] Status limit_project(int directory, unsigned id, const Use& most);

}  // namespace caisson::homes
