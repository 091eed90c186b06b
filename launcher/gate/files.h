// Files that others write, as the gate reads them: without waiting, and again when they have changed.
#pragma once

#include <sys/stat.h>

#include <string>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::gate {

// A regular file, to be read; `st` is of it. Not one that has to be waited for, such as a FIFO.
[[nodiscard]] Result<Fd> open_regular(const std::string& path, struct stat& st);
// Differs after somebody has written into the file, or put another one in its place.
[[nodiscard]] std::string stamp_of(const std::string& path);

}  // namespace caisson::gate
