// Where the launcher keeps what it writes, and the sessions their home. A container may leave none of the usual places writable
// (a read-only root, an id that owns nothing): then they are in memory, and the log and the boot's statement say so.
#pragma once

#include "launcher/pid1/options.h"

namespace caisson {

// Makes the directories, or changes `options` to others in /dev/shm, and adds to `options.residual` what that costs. Errors: a
// directory that was named by the operator, or the last resort, cannot be written; with the volume that helps.
[[nodiscard]] Status settle_directories(Options& options);

}  // namespace caisson
