#include "launcher/confine/landlock.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "launcher/confine/faults.h"
#include "launcher/confine/mount_tree.h"
#include "launcher/confine/plan.h"
#include "launcher/confine/raw.h"

namespace caisson::confine {
namespace {

constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                      LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV;

// What the plan requires it has found without a symbolic link on the way, and so it is opened here: without a mount namespace
// these rules are the grants, and a link put in the way meanwhile would lead one to another directory. What is optional are the
// container's own files and devices, which may be links (/dev/ptmx, /etc/resolv.conf) and which no session can replace.
int open_path(const LandlockRule& rule) {
  return open_resolved(AT_FDCWD, rule.path.c_str(), O_PATH, rule.required ? RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS : 0);
}

}  // namespace

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

int landlock_make(const Plan& plan, int init_fd, unsigned* entry) {
  raw::LandlockRulesetAttr attr{plan.landlock_fs, 0, plan.landlock_scoped};
  const std::size_t size = plan.landlock_scoped != 0 ? sizeof attr : sizeof attr.handled_access_fs;
  const int ruleset = raw::landlock_create_ruleset(&attr, size, 0);
  if (ruleset < 0) return -1;
  *entry = 0;
  if (faults::skip("landlock_rules")) {
    const int everything = ::open("/", O_PATH | O_CLOEXEC);
    const bool added = raw::landlock_add_path(ruleset, plan.landlock_fs, everything) == 0;
    ::close(everything);
    return added ? ruleset : -1;
  }
  for (const LandlockRule& rule : plan.landlock) {
    const int fd = open_path(rule);
    if (fd < 0 && !rule.required && errno == ENOENT) {
      ++*entry;
      continue;
    }
    struct stat st{};
    if (fd < 0 || ::fstat(fd, &st) != 0) return -1;
    const std::uint64_t access = S_ISDIR(st.st_mode) ? rule.access : rule.access & kFileRights;
    const bool added = raw::landlock_add_path(ruleset, access & plan.landlock_fs, fd) == 0;
    ::close(fd);
    if (!added) return -1;
    ++*entry;
  }
  if (init_fd >= 0 && raw::landlock_add_path(ruleset, LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE, init_fd) != 0)
    return -1;
  return ruleset;
}

}  // namespace caisson::confine
