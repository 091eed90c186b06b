// System calls that name files: where their paths lie among the arguments, and what they want there. The same calls are in
// kPathCalls of confine/filter.cc, whose filter tells of them; a unit test compares. Read by the observer and the auditor.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace caisson::auditor {

// open: by its flags. access: by its mode.
enum class Want : std::uint8_t { nothing, look, open, access, execute, create, remove, change, connect };

struct PathCall {
  int nr;
  const char* operation;
  Want want;
  int dir, path;  // arguments: the directory that a relative path begins at (-1: the working directory), and the path
  Want second = Want::nothing;
  int second_dir = -1, second_path = -1;
  int flags = -1;  // of open and access
};

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452  // Linux 6.6
#endif

inline constexpr PathCall kPathCalls[] = {
    {SYS_openat, "open", Want::open, 0, 1, Want::nothing, -1, -1, 2},
    {SYS_openat2, "open", Want::open, 0, 1, Want::nothing, -1, -1, 2},  // flags: behind the pointer
    {SYS_newfstatat, "stat", Want::look, 0, 1},
    {SYS_statx, "stat", Want::look, 0, 1},
    {SYS_faccessat, "access", Want::access, 0, 1, Want::nothing, -1, -1, 2},
    {SYS_faccessat2, "access", Want::access, 0, 1, Want::nothing, -1, -1, 2},
    {SYS_readlinkat, "readlink", Want::look, 0, 1},
    {SYS_execve, "execute", Want::execute, -1, 0},
    {SYS_execveat, "execute", Want::execute, 0, 1},
    {SYS_chdir, "chdir", Want::look, -1, 0},
    {SYS_mkdirat, "mkdir", Want::create, 0, 1},
    {SYS_unlinkat, "unlink", Want::remove, 0, 1},
    {SYS_renameat2, "rename", Want::remove, 0, 1, Want::create, 2, 3},
    {SYS_linkat, "link", Want::look, 0, 1, Want::create, 2, 3},
    {SYS_symlinkat, "symlink", Want::create, 1, 2},
    {SYS_truncate, "truncate", Want::change, -1, 0},
    {SYS_fchmodat, "chmod", Want::change, 0, 1},
    {SYS_fchmodat2, "chmod", Want::change, 0, 1},
    {SYS_fchownat, "chown", Want::change, 0, 1},
    {SYS_utimensat, "utime", Want::change, 0, 1},
    {SYS_connect, "connect", Want::connect, -1, 1},  // where the address is a path
    {SYS_bind, "bind", Want::create, -1, 1},
#ifdef SYS_renameat
    {SYS_renameat, "rename", Want::remove, 0, 1, Want::create, 2, 3},
#endif
#ifdef __x86_64__
    {SYS_open, "open", Want::open, -1, 0, Want::nothing, -1, -1, 1},
    {SYS_creat, "open", Want::create, -1, 0},
    {SYS_stat, "stat", Want::look, -1, 0},
    {SYS_lstat, "stat", Want::look, -1, 0},
    {SYS_access, "access", Want::access, -1, 0, Want::nothing, -1, -1, 1},
    {SYS_readlink, "readlink", Want::look, -1, 0},
    {SYS_mkdir, "mkdir", Want::create, -1, 0},
    {SYS_rmdir, "rmdir", Want::remove, -1, 0},
    {SYS_unlink, "unlink", Want::remove, -1, 0},
    {SYS_rename, "rename", Want::remove, -1, 0, Want::create, -1, 1},
    {SYS_link, "link", Want::look, -1, 0, Want::create, -1, 1},
    {SYS_symlink, "symlink", Want::create, -1, 1},
    {SYS_chmod, "chmod", Want::change, -1, 0},
    {SYS_chown, "chown", Want::change, -1, 0},
    {SYS_lchown, "chown", Want::change, -1, 0},
#endif
};

[[nodiscard]] constexpr const PathCall* path_call(int nr) {
  for (const PathCall& call : kPathCalls)
    if (call.nr == nr) return &call;
  return nullptr;
}

}  // namespace caisson::auditor
