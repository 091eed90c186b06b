// System calls that name files: one table for the filter that tells of them (compiler/filter.cc), the observer and the auditor
// that record them, and `caisson policy learn`, which follows them. Where the paths lie among the arguments, and what is wanted
// there. Sources: the calls' man pages, section 2.
#pragma once

#include <sys/syscall.h>

#include <cstdint>
#include <string_view>

namespace caisson {

// open: by its flags. access: by its mode.
enum class Want : std::uint8_t { nothing, look, open, access, execute, create, remove, change, connect };

struct PathCall {
  int nr;
  std::string_view name;
  const char* operation;  // in records
  Want want;
  int dir, path;   // arguments: the directory that a relative path begins at (-1: the working directory), and the path
  bool follow;     // the last component, where it is a symbolic link
  int flags = -1;  // argument of open and access
  Want second = Want::nothing;
  int second_dir = -1, second_path = -1;
  bool observed = true;  // where a policy observes paths
};

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452  // Linux 6.6
#endif

inline constexpr int kNoFlags = -1;
#define CAISSON_CALL(call) SYS_##call, #call
inline constexpr PathCall kPathCalls[] = {
    {CAISSON_CALL(openat), "open", Want::open, 0, 1, true, 2},
    {CAISSON_CALL(openat2), "open", Want::open, 0, 1, true, 2},  // flags: behind the pointer
    {CAISSON_CALL(newfstatat), "stat", Want::look, 0, 1, true},
    {CAISSON_CALL(statx), "stat", Want::look, 0, 1, true},
    {CAISSON_CALL(faccessat), "access", Want::access, 0, 1, true, 2},
    {CAISSON_CALL(faccessat2), "access", Want::access, 0, 1, true, 2},
    {CAISSON_CALL(readlinkat), "readlink", Want::look, 0, 1, false},
    {CAISSON_CALL(execve), "execute", Want::execute, -1, 0, true},
    {CAISSON_CALL(execveat), "execute", Want::execute, 0, 1, true},
    {CAISSON_CALL(chdir), "chdir", Want::look, -1, 0, true},
    {CAISSON_CALL(mkdirat), "mkdir", Want::create, 0, 1, false},
    {CAISSON_CALL(unlinkat), "unlink", Want::remove, 0, 1, false},
    {CAISSON_CALL(renameat2), "rename", Want::remove, 0, 1, false, kNoFlags, Want::create, 2, 3},
    {CAISSON_CALL(linkat), "link", Want::look, 0, 1, false, kNoFlags, Want::create, 2, 3},
    {CAISSON_CALL(symlinkat), "symlink", Want::create, 1, 2, false},
    {CAISSON_CALL(truncate), "truncate", Want::change, -1, 0, true},
    {CAISSON_CALL(fchmodat), "chmod", Want::change, 0, 1, true},
    {CAISSON_CALL(fchmodat2), "chmod", Want::change, 0, 1, true},
    {CAISSON_CALL(fchownat), "chown", Want::change, 0, 1, false},
    {CAISSON_CALL(utimensat), "utime", Want::change, 0, 1, true},
    {CAISSON_CALL(connect), "connect", Want::connect, -1, 1, true},  // where the address is a path
    {CAISSON_CALL(bind), "bind", Want::create, -1, 1, false},
    {CAISSON_CALL(mknodat), "mknod", Want::create, 0, 1, false, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(statfs), "statfs", Want::look, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(getxattr), "xattr", Want::look, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(lgetxattr), "xattr", Want::look, -1, 0, false, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(listxattr), "xattr", Want::look, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(llistxattr), "xattr", Want::look, -1, 0, false, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(setxattr), "xattr", Want::change, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(lsetxattr), "xattr", Want::change, -1, 0, false, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(removexattr), "xattr", Want::change, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(lremovexattr), "xattr", Want::change, -1, 0, false, kNoFlags, Want::nothing, -1, -1, false},
#ifdef SYS_renameat
    {CAISSON_CALL(renameat), "rename", Want::remove, 0, 1, false, kNoFlags, Want::create, 2, 3},
#endif
#ifdef __x86_64__
    {CAISSON_CALL(open), "open", Want::open, -1, 0, true, 1},
    {CAISSON_CALL(creat), "open", Want::create, -1, 0, true},
    {CAISSON_CALL(stat), "stat", Want::look, -1, 0, true},
    {CAISSON_CALL(lstat), "stat", Want::look, -1, 0, false},
    {CAISSON_CALL(access), "access", Want::access, -1, 0, true, 1},
    {CAISSON_CALL(readlink), "readlink", Want::look, -1, 0, false},
    {CAISSON_CALL(mkdir), "mkdir", Want::create, -1, 0, false},
    {CAISSON_CALL(rmdir), "rmdir", Want::remove, -1, 0, false},
    {CAISSON_CALL(unlink), "unlink", Want::remove, -1, 0, false},
    {CAISSON_CALL(rename), "rename", Want::remove, -1, 0, false, kNoFlags, Want::create, -1, 1},
    {CAISSON_CALL(link), "link", Want::look, -1, 0, false, kNoFlags, Want::create, -1, 1},
    {CAISSON_CALL(symlink), "symlink", Want::create, -1, 1, false},
    {CAISSON_CALL(chmod), "chmod", Want::change, -1, 0, true},
    {CAISSON_CALL(chown), "chown", Want::change, -1, 0, true},
    {CAISSON_CALL(lchown), "chown", Want::change, -1, 0, false},
    {CAISSON_CALL(mknod), "mknod", Want::create, -1, 0, false, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(utime), "utime", Want::change, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(utimes), "utime", Want::change, -1, 0, true, kNoFlags, Want::nothing, -1, -1, false},
    {CAISSON_CALL(futimesat), "utime", Want::change, 0, 1, true, kNoFlags, Want::nothing, -1, -1, false},
#endif
};
#undef CAISSON_CALL

// The row of a call that is observed; nullptr: it is not.
[[nodiscard]] constexpr const PathCall* observed_call(int nr) {
  for (const PathCall& call : kPathCalls)
    if (call.nr == nr && call.observed) return &call;
  return nullptr;
}

}  // namespace caisson
