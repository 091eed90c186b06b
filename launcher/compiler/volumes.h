// What the operator mounted into the container below places of a list (CAISSON_MOUNTS), as grants: for caisson-policies and the
// command, no part of the launcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/common/base/result.h"
#include "launcher/common/policy/policy.h"

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
// The image's own files are never among them: only mount points are, without the container's root and the kernel's filesystems.
// invalid_argument: the list names a place that overlaps the container's own directories.
[[nodiscard]] Result<std::vector<Volume>> listed_volumes(const Volumes& from);
// Grants for those that their path leads to now, without a link, and that are directories or regular files. limit: more than
// kMaxVolumes.
[[nodiscard]] Result<std::vector<policy::Grant>> volume_grants(const Volumes& from);

}  // namespace caisson::confine
