// What the operator mounted into the container below places of a list (CAISSON_MOUNTS), as grants: for caisson-policies and the
// command, no part of the launcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/policy/policy.h"

namespace caisson::confine {

inline constexpr std::size_t kMaxVolumes = 64, kMaxMountTable = 4U << 20;

struct Volumes {
  std::string places;            // "/mnt/*:/workspace": what is below /mnt, and /workspace with what is below it; "": none
  std::vector<std::string> own;  // the launcher's files and directories: no mount that holds one of them, or lies in one
  std::string table;             // /proc/self/mountinfo of the launcher
};

// A mount that the list names, by what the table alone says.
struct Volume {
  std::string path;
  unsigned long id = 0;  // of the mount
  bool read_only = false, execute = true;
};
// Never what is of the image: a path that is no mount point, the container's own root, a filesystem of the kernel. Errors: a
// place of the list that could show what is the container's.
[[nodiscard]] Result<std::vector<Volume>> listed_volumes(const Volumes& from);
// Those which are what the path leads to now, no link on the way, and a directory or a regular file. Errors: more than
// kMaxVolumes.
[[nodiscard]] Result<std::vector<policy::Grant>> volume_grants(const Volumes& from);

}  // namespace caisson::confine
