#include "launcher/compiler/landlock.h"

#include "launcher/common/making/calls.h"

namespace caisson::confine {

std::uint64_t landlock_fs_rights(int abi) {
  std::uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // ABI 1: bits 0-12
  if (abi >= 2) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (abi >= 5) rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  return abi >= 1 ? rights : 0;
}

std::uint64_t landlock_scopes(int abi) {
  return abi >= 6 ? raw::kLandlockScopeAbstractUnixSocket | raw::kLandlockScopeSignal : 0;
}

std::uint64_t landlock_read(int abi, bool execute) {
  std::uint64_t rights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  if (execute) rights |= LANDLOCK_ACCESS_FS_EXECUTE;
  return rights & landlock_fs_rights(abi);
}

std::uint64_t landlock_write(int abi) {
  // Never devices: no grant is a reason to make one.
  return landlock_fs_rights(abi) & ~(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK);
}

}  // namespace caisson::confine
