// Where a command, a kernel or a piece of code begins.
#pragma once

#include <string>

namespace caisson::services {

// `dir` as an absolute path; relative ones start at `base`.
[[nodiscard]] inline std::string absolute_dir(const std::string& base, const std::string& dir) {
  if (dir.empty()) return base;
  if (dir.front() == '/') return dir;
  return base + (base.ends_with('/') ? "" : "/") + dir;
}

}  // namespace caisson::services
