#include "launcher/homes/quota.h"

#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/common/base/sys.h"

namespace caisson::homes {
namespace {

constexpr std::uint64_t kQuotaBlock = 1024;  // of dqb_bhardlimit

// quotactl_fd(2), Linux 5.14: needs no path of a block device, which a container does not have.
Status quota(int fd, unsigned command, unsigned id, void* data, const char* what) {
  if (::syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), id, data) != 0) return sys_error(what);
  return {};
}

}  // namespace

Status limit_project(int directory, unsigned id, const Use& most) {
  fs_quota_statv state{.qs_version = FS_QSTATV_VERSION1};
  TRY(quota(directory, Q_XGETQSTATV, 0, &state, "ask for project quotas"));
  if ((state.qs_flags & FS_QUOTA_PDQ_ENFD) == 0) return fail(Code::unavailable, "project quotas are not enforced here");
  fsxattr now{};
  if (::ioctl(directory, FS_IOC_FSGETXATTR, &now) != 0) return sys_error("read the project");
  if (now.fsx_projid != id || (now.fsx_xflags & FS_XFLAG_PROJINHERIT) == 0) {
    TRY_ASSIGN(const Use use, measure(directory, {0, 0}));
    if (use.inodes != 0) return fail(Code::unavailable, "it has files that were made before there was a quota");
    now.fsx_projid = id;
    now.fsx_xflags |= FS_XFLAG_PROJINHERIT;
    if (::ioctl(directory, FS_IOC_FSSETXATTR, &now) != 0) return sys_error("set the project");
  }
  if_dqblk limits{.dqb_bhardlimit = most.bytes / kQuotaBlock, .dqb_ihardlimit = most.inodes, .dqb_valid = QIF_LIMITS};
  TRY(quota(directory, Q_SETQUOTA, id, &limits, "set the quota"));
  if_dqblk set{};
  TRY(quota(directory, Q_GETQUOTA, id, &set, "read the quota back"));
  if (set.dqb_bhardlimit != limits.dqb_bhardlimit || set.dqb_ihardlimit != limits.dqb_ihardlimit)
    return fail(Code::internal, "the quota is not what was set");
  return {};
}

}  // namespace caisson::homes
