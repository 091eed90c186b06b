// Searching in files, by ripgrep.
#pragma once

#include "agent/worker/paths.h"

namespace caisson::worker {

// {path, pattern, ignore_case?, fixed?, multiline?, before?, after?, include?, exclude?, type?, max_file_size?, flat?,
// files_only?, skip?, most} -> {path, total, matched, truncated} + a JSON array of {f: file, n: line, l: text, b:
// [before], a: [after]}
[[nodiscard]] Outcome grep_files(const Request& request);

}  // namespace caisson::worker
