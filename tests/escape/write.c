// Files: changing what is granted for reading only, or not at all. Every decoy here has mode 0777 or 0666 and belongs to the
// session's user, so that only the grants stand between.
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

#define RO "EROFS EACCES"
#define WALLS "mount_ns landlock"

static char path_[4096], other_[4096];
static const char* at(const char* base, const char* name, char* buffer) {
  const char* dir = decoy(base);
  snprintf(buffer, 4096, "%s/%s", dir != NULL ? dir : "/nowhere", name);
  return buffer;
}
#define IN(row) const char* path = at((row)->path, "file", path_)
#define NEW(row) const char* path = at((row)->path, (row)->id, path_)

static int do_write(const struct attack* row) {
  IN(row);
  const int fd = open(path, (int)row->a);
  return fd < 0 ? refused() : outcome(write(fd, "x", 1));
}
static int do_truncate(const struct attack* row) {
  IN(row);
  return outcome(truncate(path, 1));
}
// Without write access, whose right Landlock has always governed: for reading, or with no access at all (3, for ioctl).
static int do_cut_by_opening(const struct attack* row) {
  IN(row);
  return close_effect(open(path, O_TRUNC | (int)row->a));
}
static int do_open_for_ioctl(const struct attack* row) {
  IN(row);
  return close_effect(open(path, O_ACCMODE));
}
static int do_cut_by_openat2(const struct attack* row) {
  IN(row);
  struct open_how how = {.flags = O_TRUNC | (unsigned)row->a};
  return close_effect((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}
static int do_create(const struct attack* row) {
  NEW(row);
  return close_effect(open(path, O_CREAT | O_WRONLY | O_EXCL, 0600));
}
static int do_temporary(const struct attack* row) {
  const char* dir = decoy(row->path);
  return close_effect(open(dir != NULL ? dir : "/nowhere", O_TMPFILE | O_RDWR, 0600));
}
static int do_unlink(const struct attack* row) {
  const char* path = at(row->path, "victim", path_);
  return outcome(unlink(path));
}
static int do_mkdir(const struct attack* row) {
  NEW(row);
  return outcome(mkdir(path, 0700));
}
static int do_rmdir(const struct attack* row) {
  const char* path = at(row->path, "empty", path_);
  return outcome(rmdir(path));
}
static int do_rename(const struct attack* row) {
  const char* path = at(row->path, "moved", path_);
  return outcome(rename(path, at(row->path, "moved-2", other_)));
}
static int do_rename_out(const struct attack* row) {
  const char* path = at(row->path, "leaving", path_);
  return outcome(rename(path, at("rw", "left", other_)));
}
static int do_exchange(const struct attack* row) {
  const char* path = at(row->path, "exchanged", path_);
  return outcome(CALL(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, at("rw", "exchanged", other_), 2));
}
static int do_whiteout(const struct attack* row) {
  const char* path = at(row->path, "whiteout", path_);
  return outcome(CALL(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, at(row->path, "whiteout-2", other_), 4));
}
static int do_link_in(const struct attack* row) {
  NEW(row);
  return outcome(link(at("rw", "exchanged", other_), path));
}
// A second name in a writable grant would make a read-only file writable.
static int do_link_out(const struct attack* row) {
  IN(row);
  return outcome(link(path, at("rw", "linked", other_)));
}
static int do_symlink(const struct attack* row) {
  NEW(row);
  return outcome(symlink("x", path));
}
static int do_fifo(const struct attack* row) {
  NEW(row);
  return outcome(mkfifo(path, 0600));
}
static int do_chmod(const struct attack* row) {
  IN(row);
  return outcome(chmod(path, 0666));
}
static int do_fchmodat2(const struct attack* row) {
  IN(row);
  return outcome(CALL(452, AT_FDCWD, path, 0666, 0));
}
static int do_chown(const struct attack* row) {
  IN(row);
  return outcome(chown(path, (uid_t)-1, getgid()));
}
static int do_utime(const struct attack* row) {
  IN(row);
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  return outcome(utimensat(AT_FDCWD, path, times, 0));
}
static int do_setxattr(const struct attack* row) {
  IN(row);
  return outcome(setxattr(path, "user.escape", "x", 1, 0));
}
static int do_removexattr(const struct attack* row) {
  IN(row);
  return outcome(removexattr(path, "user.decoy"));
}
static int do_map(const struct attack* row) {
  IN(row);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return undecided("the file cannot be read");
  char* map = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map != MAP_FAILED) return EFFECT;
  return errno == EACCES ? close_effect(open(path, O_RDWR)) : refused();
}
// Held while whoever looks from outside tries to lock the same file.
static int do_lock(const struct attack* row) {
  IN(row);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return undecided("the file cannot be read");
  const struct flock lock = {F_RDLCK, SEEK_SET, 0, 0, 0};
  if ((row->a ? fcntl(fd, F_OFD_SETLK, &lock) : flock(fd, LOCK_EX | LOCK_NB)) != 0) return refused();
  sleep(2);
  return EFFECT;
}
static int do_lease(const struct attack* row) {
  IN(row);
  const int fd = open(path, O_RDONLY);
  return fd < 0 ? undecided("the file cannot be read") : outcome(fcntl(fd, F_SETLEASE, F_RDLCK));
}
static int do_make(const struct attack* row) {
  char path[256];
  snprintf(path, sizeof path, "%s/caisson-escape", row->path);
  const int fd = open(path, O_CREAT | O_WRONLY, 0600);
  const int saved = errno;
  if (fd >= 0) unlink(path);
  errno = saved;
  return close_effect(fd);
}
static int do_open(const struct attack* row) { return close_effect(open(row->path, (int)row->a)); }

#define R(id, what, fn) {"FS-02." id, what " in a read-only grant", "/grants", WALLS, RO, fn, "ro"}
#define M(id, what, fn) \
  {"FS-02." id, what " in a read-only grant", "/grants", "mount_ns", RO " EPERM", fn, "ro", .residual = "metadata-changeable"}
#define O(id, what, fn) {"FS-04." id, what " outside the grants", "/grants", WALLS, "ENOENT EACCES", fn, "outside"}
#define P(id, what, fn) \
  {"FS-04." id, what " outside the grants", "/grants", "mount_ns", "ENOENT EACCES EPERM", fn, "outside", .residual = "metadata-changeable"}
// Before Linux 6.2 Landlock does not govern it, and seccomp stands in.
#define CUT(id, what, errnos, fn, target, ...) \
  {id, "cut a file " what, "/grants", WALLS " seccomp", errnos " EPERM ENOSYS", fn, target, __VA_ARGS__, .residual = "landlock-no-truncate"}
#define MAKE(id, path) {"FS-03." id, "make a file in " path, "/grants", WALLS " uid", "EROFS EACCES ENOENT", do_make, path}
#define OPEN(id, path) {"FS-03." id, "write " path, "/grants", WALLS " uid", "EROFS EACCES ENOENT", do_open, path, O_WRONLY}

static const struct attack kRows[] = {
    {"FS-02.write", "write a file in a read-only grant", "/grants", WALLS, RO, do_write, "ro", O_WRONLY},
    {"FS-02.append", "append to a file in a read-only grant", "/grants", WALLS, RO, do_write, "ro", O_WRONLY | O_APPEND},
    {"FS-02.open-truncate", "empty a file in a read-only grant", "/grants", WALLS, RO, do_write, "ro", O_RDWR | O_TRUNC},
    CUT("FS-02.truncate", "by name in a read-only grant", RO, do_truncate, "ro", 0),
    CUT("FS-02.open-for-reading", "by opening it for reading in a read-only grant", RO, do_cut_by_opening, "ro", O_RDONLY),
    CUT("FS-02.open-for-nothing", "by opening it for nothing in a read-only grant", RO, do_cut_by_opening, "ro", O_ACCMODE),
    CUT("FS-02.openat2", "by openat2 in a read-only grant", RO, do_cut_by_openat2, "ro", O_RDONLY),
    R("create", "make a file", do_create),
    R("tmpfile", "make a file without a name", do_temporary),
    R("unlink", "remove a file", do_unlink),
    R("mkdir", "make a directory", do_mkdir),
    R("rmdir", "remove a directory", do_rmdir),
    R("rename", "rename a file", do_rename),
    R("link-in", "link a file", do_link_in),
    R("symlink", "make a symbolic link", do_symlink),
    R("fifo", "make a FIFO", do_fifo),
    R("map", "map a file for writing", do_map),
    M("chmod", "change the mode of a file", do_chmod),
    // ENOSYS: an outer filter that is older than the call.
    {"FS-02.fchmodat2", "change the mode of a file by the new call in a read-only grant", "/grants", "mount_ns", RO " EPERM ENOSYS",
     do_fchmodat2, "ro", .residual = "metadata-changeable"},
    M("chown", "change the group of a file", do_chown),
    M("utime", "change the times of a file", do_utime),
    M("setxattr", "set an attribute of a file", do_setxattr),
    M("removexattr", "remove an attribute of a file", do_removexattr),
    {"FS-30.rename-out", "move a file from a read-only to a writable grant", "/grants", WALLS, RO " EXDEV", do_rename_out, "ro"},
    {"FS-30.exchange", "exchange a file with one of a writable grant", "/grants", WALLS, RO " EXDEV", do_exchange, "ro"},
    {"FS-30.whiteout", "rename and leave a whiteout", "/grants", WALLS, RO " EPERM", do_whiteout, "ro"},
    {"FS-30.link-out", "give a read-only file a name in a writable grant", "/grants", WALLS, RO " EXDEV", do_link_out, "ro"},
    {"RS-17.flock", "lock a file of a read-only grant against everybody", "/grants", "", "EPERM EACCES", do_lock, "ro", .flags = ALONE, .residual = "file-locks"},
    {"RS-17.ofd-lock", "hold a read lock that keeps writers out", "/grants", "", "EPERM EACCES", do_lock, "ro", 1, .flags = ALONE, .residual = "file-locks"},
    {"RS-17.lease", "take a lease on a file of another", "/grants", "capabilities uid", "EACCES EPERM", do_lease, "lease"},
    {"FS-04.write", "write a file outside the grants", "/grants", WALLS, "ENOENT EACCES", do_write, "outside", O_WRONLY},
    CUT("FS-04.truncate", "by name outside the grants", "ENOENT EACCES", do_truncate, "outside", 0),
    CUT("FS-04.open-for-nothing", "by opening it for nothing outside the grants", "ENOENT EACCES", do_cut_by_opening, "outside", O_ACCMODE),
    CUT("FS-04.openat2", "by openat2 outside the grants", "ENOENT EACCES", do_cut_by_openat2, "outside", O_ACCMODE),
    P("open-for-ioctl", "open a file for ioctl alone", do_open_for_ioctl),
    O("create", "make a file", do_create),
    O("unlink", "remove a file", do_unlink),
    O("mkdir", "make a directory", do_mkdir),
    O("rename", "rename a file", do_rename),
    O("symlink", "make a symbolic link", do_symlink),
    O("fifo", "make a FIFO", do_fifo),
    P("chmod", "change the mode of an own file", do_chmod),
    P("chown", "change the group of an own file", do_chown),
    P("utime", "change the times of a file", do_utime),
    P("setxattr", "set an attribute of a file", do_setxattr),
    MAKE("root", "/"),
    MAKE("usr-bin", "/usr/bin"),
    MAKE("usr-lib", "/usr/lib"),
    MAKE("usr-local", "/usr/local/bin"),
    MAKE("etc", "/etc"),
    MAKE("profile", "/etc/profile.d"),
    MAKE("dev", "/dev"),
    MAKE("var", "/var/lib"),
    MAKE("home", "/home"),
    OPEN("passwd", "/etc/passwd"),
    OPEN("hosts", "/etc/hosts"),
    OPEN("program", "/usr/bin/env"),
    OPEN("linker-cache", "/etc/ld.so.cache"),
};
AREA(write_area, "filesystem", kRows);
