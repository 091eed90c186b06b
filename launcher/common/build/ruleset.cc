#include "launcher/common/build/ruleset.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "launcher/common/build/mount_tree.h"
#include "launcher/common/kernel/faults.h"
#include "launcher/common/kernel/raw.h"
#include "launcher/common/making/calls.h"

namespace caisson::confine {
namespace {

constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                                      LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV;

// What the plan requires it has found without a symbolic link on the way, and so it is opened here: without a mount namespace
// these rules are the grants, and a link put in the way meanwhile would lead one to another directory. What is optional are the
// container's own files and devices, which may be links (/dev/ptmx, /etc/resolv.conf) and which no session can replace.
int open_path(const builder::Rule& rule) {
  return open_resolved(AT_FDCWD, rule.path, O_PATH, rule.required ? RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS : 0);
}

}  // namespace

int make_ruleset(const ChildArgs& args, StepWriter& steps) {
  const BuildPlan& plan = *args.plan;
  // Where a connector connects for them sessions do it themselves nowhere: no rule grants these. Without this wall the connector
  // could let no connect(2) go on, for what it looked at may be another address by then.
  const std::uint64_t net = plan.connected ? LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP : 0;
  raw::LandlockRulesetAttr attr{plan.landlock_fs, net, plan.landlock_scoped};
  const std::size_t size = plan.landlock_scoped != 0 || net != 0 ? sizeof attr : sizeof attr.handled_access_fs;
  const int ruleset = raw::landlock_create_ruleset(&attr, size, 0);
  if (ruleset < 0) steps.failed(Step::landlock_rules, errno);
  const builder::Rule everything{"/", plan.landlock_fs};
  const builder::List<builder::Rule> rules = faults::skip("landlock_rules") ? builder::List{&everything, 1} : plan.landlock;
  for (std::uint16_t entry = 0; entry < rules.size; ++entry) {
    const builder::Rule& rule = rules[entry];
    const int fd = open_path(rule);
    if (fd < 0 && !rule.required && errno == ENOENT) continue;
    struct stat st{};
    if (fd < 0 || ::fstat(fd, &st) != 0) steps.failed(Step::landlock_rules, errno, entry);
    const std::uint64_t access = S_ISDIR(st.st_mode) ? rule.access : rule.access & kFileRights;
    if (raw::landlock_add_path(ruleset, access & plan.landlock_fs, fd) != 0) steps.failed(Step::landlock_rules, errno, entry);
    ::close(fd);
  }
  constexpr std::uint64_t kInit = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
  if (args.init_exe >= 0 && raw::landlock_add_path(ruleset, kInit, args.init_exe) != 0) steps.failed(Step::landlock_rules, errno);
  steps.done(Step::landlock_rules);
  return ruleset;
}

}  // namespace caisson::confine
