// Reading a directory's names.
#pragma once

#include <dirent.h>
#include <errno.h>

#include <memory>
#include <string_view>

#include "launcher/common/base/fd.h"
#include "launcher/common/base/result.h"

namespace caisson::sys {

struct CloseDir {
  void operator()(DIR* dir) const { (void)::closedir(dir); }
};
using Directory = std::unique_ptr<DIR, CloseDir>;

[[nodiscard]] inline Result<Directory> read_directory(Fd fd) {
  Directory dir(::fdopendir(fd.get()));
  if (dir == nullptr) return sys_error("read directory");
  (void)fd.release();
  return dir;
}

// The next name but "." and "..", nullptr at the end; ask all_read() then. Valid until the next call.
[[nodiscard]] inline const char* next_name(DIR* dir) {
  while (const dirent* entry = (errno = 0, ::readdir(dir))) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
  return nullptr;
}

// Directly after next_name() gave nullptr: whether that was the end, or the directory could not be read on.
[[nodiscard]] inline Status all_read() {
  if (errno != 0) return sys_error("read directory");
  return {};
}

}  // namespace caisson::sys
