// The contents of directories: list, glob, find. The answer's bytes are a JSON array with one object for each entry: {p: path, n:
// name, d: is a directory, and on request s: size, m: modified (ns), x: permission bits}.
#pragma once

#include "agent/worker/walk.h"

namespace caisson::worker {

// {path, recursive, hidden, types?, max_depth?, facts, sort, descending, most} -> {path, total, directories, truncated}
[[nodiscard]] Outcome list_directory(const Request& request);
// {path, pattern, exclude?, hidden, files_only, facts, sort, descending, most} -> {path, total, truncated}
[[nodiscard]] Outcome glob_files(const Request& request);

}  // namespace caisson::worker
