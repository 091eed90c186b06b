// Settings of caisson-launcher: flags, then environment, then defaults.
#pragma once

#include "launcher/common/base/result.h"
#include "launcher/pid1/options.h"

namespace caisson {

// Relative programs are looked for beside our own. Errors: invalid_argument: an option that there is not, or a value that it
// cannot have.
[[nodiscard]] Result<Options> parse_options(int argc, char** argv);

}  // namespace caisson
