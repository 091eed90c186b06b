#include "launcher/cli/learn/calls.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace caisson::cli::learn {
namespace {

constexpr PathCall kCalls[] = {
    {SYS_openat, 0, 1, 0, true, Kind::open, 2},
    {SYS_openat2, 0, 1, 0, true, Kind::open_how, 2},
    {SYS_newfstatat, 0, 1, kLooked, true},
    {SYS_statx, 0, 1, kLooked, true},
    {SYS_faccessat, 0, 1, kLooked, true},
    {SYS_faccessat2, 0, 1, kLooked, true},
    {SYS_readlinkat, 0, 1, kLooked, false},
    {SYS_statfs, kCwd, 0, kLooked, true},
    {SYS_chdir, kCwd, 0, kLooked, true},
    {SYS_getxattr, kCwd, 0, kLooked, true},
    {SYS_lgetxattr, kCwd, 0, kLooked, false},
    {SYS_listxattr, kCwd, 0, kLooked, true},
    {SYS_execve, kCwd, 0, kExecuted | kRead, true},
    {SYS_execveat, 0, 1, kExecuted | kRead, true},
    {SYS_mkdirat, 0, 1, kEntries, false},
    {SYS_mknodat, 0, 1, kEntries, false},
    {SYS_unlinkat, 0, 1, kEntries, false},
    {SYS_symlinkat, 1, 2, kEntries, false},
    {SYS_linkat, 0, 1, kRead, false},
    {SYS_linkat, 2, 3, kEntries, false},
    {SYS_renameat2, 0, 1, kEntries, false},
    {SYS_renameat2, 2, 3, kEntries, false},
    {SYS_renameat, 0, 1, kEntries, false},
    {SYS_renameat, 2, 3, kEntries, false},
    {SYS_truncate, kCwd, 0, kWritten, true},
    {SYS_fchmodat, 0, 1, kWritten, true},
    {SYS_fchownat, 0, 1, kWritten, false},
    {SYS_utimensat, 0, 1, kWritten, true},
    {SYS_setxattr, kCwd, 0, kWritten, true},
    {SYS_lsetxattr, kCwd, 0, kWritten, false},
    {SYS_removexattr, kCwd, 0, kWritten, true},
#ifdef SYS_open  // not on arm64
    {SYS_open, kCwd, 0, 0, true, Kind::open, 1},
    {SYS_creat, kCwd, 0, kWritten | kEntries, true},
    {SYS_stat, kCwd, 0, kLooked, true},
    {SYS_lstat, kCwd, 0, kLooked, false},
    {SYS_access, kCwd, 0, kLooked, true},
    {SYS_readlink, kCwd, 0, kLooked, false},
    {SYS_mkdir, kCwd, 0, kEntries, false},
    {SYS_mknod, kCwd, 0, kEntries, false},
    {SYS_rmdir, kCwd, 0, kEntries, false},
    {SYS_unlink, kCwd, 0, kEntries, false},
    {SYS_symlink, kCwd, 1, kEntries, false},
    {SYS_link, kCwd, 0, kRead, false},
    {SYS_link, kCwd, 1, kEntries, false},
    {SYS_rename, kCwd, 0, kEntries, false},
    {SYS_rename, kCwd, 1, kEntries, false},
    {SYS_chmod, kCwd, 0, kWritten, true},
    {SYS_chown, kCwd, 0, kWritten, true},
    {SYS_lchown, kCwd, 0, kWritten, false},
    {SYS_utime, kCwd, 0, kWritten, true},
    {SYS_utimes, kCwd, 0, kWritten, true},
    {SYS_futimesat, 0, 1, kWritten, true},
#endif
};

}  // namespace

std::span<const PathCall> path_calls() { return kCalls; }

unsigned use_of_open(std::uint64_t flags) {
  unsigned use = 0;
  if ((flags & O_PATH) != 0) return kLooked;
  if ((flags & O_ACCMODE) != O_WRONLY) use |= kRead;
  if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0) use |= kWritten;
  // With O_CREAT the file may have been there: whether an entry was made shows when it is missing in another run.
  if ((flags & (O_CREAT | O_TMPFILE)) != 0 && (flags & O_DIRECTORY) == 0) use |= kEntries;
  if ((flags & O_TMPFILE) == O_TMPFILE) use |= kEntries;
  return use;
}

std::string call_name(std::uint64_t number) {
  char* const name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
  std::string out = name != nullptr ? name : std::to_string(number);
  ::free(name);
  return out;
}

}  // namespace caisson::cli::learn
