// Files: reading, naming, reaching and mounting what is not granted.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "case.h"

#define WALLS "mount_ns landlock"
#define GONE "ENOENT EACCES"
#define SYSCALL "EPERM"

// A decoy's path, or the row's own: "secret" is a decoy, "/etc/shadow" a path.
static const char* place(const struct attack* row, char* buffer, size_t size) {
  if (row->path[0] == '/') return row->path;
  const char* slash = strchr(row->path, '/');
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)(slash ? slash - row->path : (long)strlen(row->path)), row->path);
  const char* base = decoy(name);
  if (base == NULL) return NULL;
  snprintf(buffer, size, "%s%s", base, slash ? slash : "");
  return buffer;
}
#define PLACE(row)                                         \
  char place_buffer[4096];                                 \
  const char* path = place(row, place_buffer, 4096);       \
  if (path == NULL) return undecided("the decoy is missing")

static int read_canary(const struct attack* row) {
  PLACE(row);
  return holds_canary(open(path, O_RDONLY));
}

static int read_any(const struct attack* row) {
  PLACE(row);
  char byte;
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  return fd < 0 ? refused() : outcome(read(fd, &byte, 1));
}

static int open_for(const struct attack* row) {
  PLACE(row);
  return close_effect(open(path, (int)row->a));
}

static int list_directory(const struct attack* row) {
  PLACE(row);
  DIR* dir = opendir(path);
  if (dir == NULL) return refused();
  int names = 0;
  while (readdir(dir) != NULL) ++names;
  closedir(dir);
  return names > 2 ? EFFECT : ENOENT;
}

static int stat_it(const struct attack* row) {
  PLACE(row);
  struct stat st;
  return outcome(stat(path, &st));
}
static int access_it(const struct attack* row) {
  PLACE(row);
  return outcome(access(path, F_OK));
}
static int readlink_it(const struct attack* row) {
  PLACE(row);
  char to[256];
  return outcome(readlink(path, to, sizeof to));
}
static int statfs_it(const struct attack* row) {
  PLACE(row);
  struct statfs st;
  return outcome(statfs(path, &st));
}
static int xattr_it(const struct attack* row) {
  PLACE(row);
  char names[256];
  return outcome(listxattr(path, names, sizeof names));
}
static int chdir_it(const struct attack* row) {
  PLACE(row);
  return outcome(chdir(path));
}
static int opath_it(const struct attack* row) {
  PLACE(row);
  return close_effect(open(path, O_PATH));
}
static int watch_it(const struct attack* row) {
  PLACE(row);
  return outcome(inotify_add_watch(inotify_init1(IN_CLOEXEC), path, IN_ALL_EVENTS));
}

// The target through a symbolic link of the attacker's own.
static int through_symlink(const struct attack* row) {
  PLACE(row);
  char name[64];
  snprintf(name, sizeof name, "link-%d", (int)getpid());
  if (symlink(path, name) != 0) return undecided("no symbolic link could be made in the working directory");
  const int fd = row->a ? -1 : open(name, O_RDONLY);
  int result = row->a ? list_directory(&(struct attack){.path = path}) : holds_canary(fd);
  unlink(name);
  return result;
}

// The secret by as many ".." as lead to any root, from a descriptor of the working directory.
static int dots(const struct attack* row) {
  const char* secret = decoy("secret");
  if (secret == NULL) return undecided("the decoy is missing");
  char path[4096];
  snprintf(path, sizeof path, "%s", row->path);
  for (int i = 0; i < 40; ++i) strcat(path, "/..");
  strcat(path, secret);
  const int at = open(".", O_PATH | O_DIRECTORY);
  return holds_canary(openat(at, path[0] == '/' ? path : path, O_RDONLY));
}

static int by_prefix(const struct attack* row) {
  const char* secret = decoy("secret");
  char path[4096];
  if (secret == NULL) return undecided("the decoy is missing");
  snprintf(path, sizeof path, "%s%s", row->path, secret);
  return holds_canary(open(path, O_RDONLY));
}

static int inherited_directory(const struct attack* row) {
  (void)row;
  for (int fd = 0; fd < 4096; ++fd) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) return note_effect("a directory is open");
  }
  return EBADF;
}

// A descriptor for reading becomes one for writing through its magic link.
static int reopen(const struct attack* row) {
  PLACE(row);
  char link[64];
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return undecided("the granted file cannot be read");
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return close_effect(open(link, O_WRONLY));
}

static int handle_of(const struct attack* row) {
  (void)row;
  struct {
    unsigned bytes;
    int type;
    char data[128];
  } handle = {128, 0, ""};
  int mount = 0;
  return outcome(CALL(SYS_name_to_handle_at, AT_FDCWD, ".", &handle, &mount, 0));
}

// The root of the filesystem has inode 2 on ext4: a handle that can be guessed.
static int shocker(const struct attack* row) {
  (void)row;
  struct {
    unsigned bytes;
    int type;
    uint32_t data[2];
  } handle = {8, 1, {2, 0}};
  const int at = open(".", O_RDONLY | O_DIRECTORY);
  return reached(CALL(SYS_open_by_handle_at, at, &handle, O_RDONLY), ESTALE);
}

static int own_mounts(void) { return unshare(CLONE_NEWNS) == 0 ? mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) : -1; }

static int mount_it(const struct attack* row) {
  own_mounts();
  const char* target = row->b ? decoy("rw") : "/proc";
  if (target == NULL) return undecided("the decoy is missing");
  return outcome(mount(row->path, target, row->path, (unsigned long)row->a, row->c ? "lowerdir=/usr:/etc" : NULL));
}
static int bind_it(const struct attack* row) {
  own_mounts();
  const char* rw = decoy("rw");
  return outcome(mount("/", rw, NULL, (unsigned long)row->a, NULL));
}
static int remount_it(const struct attack* row) {
  own_mounts();
  return outcome(mount(NULL, row->path, NULL, MS_REMOUNT | MS_BIND, NULL));
}
static int umount_it(const struct attack* row) {
  own_mounts();
  return outcome(umount2(row->path, MNT_DETACH));
}
static int pivot_it(const struct attack* row) {
  (void)row;
  own_mounts();
  const char* rw = decoy("rw");
  if (rw == NULL) return undecided("the decoy is missing");
  mount(rw, rw, NULL, MS_BIND, NULL);
  chdir(rw);
  return outcome(CALL(SYS_pivot_root, ".", "."));
}
static int chroot_it(const struct attack* row) { return outcome(chroot(row->path)); }
static int open_tree_it(const struct attack* row) {
  own_mounts();
  return close_effect((int)CALL(row->b, AT_FDCWD, row->path, row->a));
}
static int fsopen_it(const struct attack* row) { return close_effect((int)CALL(SYS_fsopen, row->path, 0)); }
static int fspick_it(const struct attack* row) {
  own_mounts();
  return close_effect((int)CALL(SYS_fspick, AT_FDCWD, row->path, 0));
}
static int mount_call(const struct attack* row) { return reached(CALL(row->a, -1, "", -1, "", 0), (int)row->b); }
static int mount_attributes(const struct attack* row) {
  (void)row;
  own_mounts();
  const uint64_t attributes[4] = {0, 1, 0, 0};  // clears MOUNT_ATTR_RDONLY
  return outcome(CALL(SYS_mount_setattr, AT_FDCWD, "/proc", 0, attributes, sizeof attributes));
}
static int mount_list(const struct attack* row) {
  struct {
    uint32_t size, spare;
    uint64_t id, param, ns;
  } request = {24, 0, (uint64_t)-1, 0, 0};
  uint64_t ids[16];
  return reached(CALL(row->a, &request, ids, 16, 0), (int)row->b);
}

// In a user namespace of the attacker's own.
static int mount_in_user_ns(const struct attack* row) {
  (void)row;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return refused();
  return outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int run_program(const struct attack* row) {
  PLACE(row);
  const pid_t child = fork();
  if (child == 0) {
    execl(path, path, row->a ? "--able" : "--who", (char*)NULL);
    _exit(100 + (errno & 63));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return undecided("the program did not end by itself");
  if (WEXITSTATUS(status) >= 100) return WEXITSTATUS(status) - 100;
  return WEXITSTATUS(status) == 0 || row->b ? EFFECT : EPERM;
}

static int map_code(const struct attack* row) {
  PLACE(row);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return undecided("the granted file cannot be read");
  void* code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  return code != MAP_FAILED ? EFFECT : refused();
}

static int copy_to_and_run(const struct attack* row) {
  char name[128];
  snprintf(name, sizeof name, "%s/run-%d", row->path, (int)getpid());
  const int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_CREAT | O_WRONLY, 0755);
  if (from < 0 || to < 0) return to < 0 ? refused() : undecided("no program to copy");
  struct stat st;
  fstat(from, &st);
  for (off_t at = 0; at < st.st_size && CALL(SYS_sendfile, to, from, &at, 1 << 20) > 0;) {
  }
  close(to);
  const int result = run_program(&(struct attack){.path = name, .b = 1});
  unlink(name);
  return result;
}

static int file_capability(const struct attack* row) {
  (void)row;
  const uint32_t capability[5] = {0x02000001, 0xffffffff, 0, 0xffffffff, 0};
  char name[64];
  snprintf(name, sizeof name, "cap-%d", (int)getpid());
  close(open(name, O_CREAT | O_WRONLY, 0755));
  const int result = setxattr(name, "security.capability", capability, sizeof capability, 0);
  const int saved = errno;
  unlink(name);
  errno = saved;
  return outcome(result);
}

static int device_node(const struct attack* row) {
  char name[64];
  snprintf(name, sizeof name, "node-%d", (int)getpid());
  const int result = mknod(name, (mode_t)row->a | 0666, (dev_t)row->b);
  const int saved = errno;
  unlink(name);
  errno = saved;
  return outcome(result);
}

static int file_ioctl(const struct attack* row) {
  char name[64], room[512] = "";
  snprintf(name, sizeof name, "flags-%d", (int)getpid());
  const int fd = open(name, O_CREAT | O_RDWR, 0600);
  if (fd < 0) return undecided("no file could be made in the working directory");
  if (write(fd, "data", 4) != 4 || fsync(fd) != 0) return undecided("the file could not be written");
  if (row->c) memcpy(room, &row->c, sizeof row->c);
  if (row->a == (long)FS_IOC_FIEMAP) memset(room + 8, 0xff, 8);
  const int result = ioctl(fd, (unsigned long)row->a, room);
  const int saved = errno;
  unsigned long none = 0;
  if (result == 0 && row->b) ioctl(fd, (unsigned long)row->a, &none);
  close(fd);
  unlink(name);
  errno = saved;
  // A filesystem that shares no blocks answers for itself, too.
  return row->b == 2 && result != 0 ? (errno == EOPNOTSUPP ? EFFECT : reached(-1, EINVAL)) : outcome(result);
}

static int path_socket(const struct attack* row) {
  const char* path = decoy(row->path);
  if (path == NULL) return undecided("the decoy is missing");
  struct sockaddr_un to = {AF_UNIX, ""};
  snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
  return outcome(connect(socket(AF_UNIX, (int)row->a, 0), (struct sockaddr*)&to, sizeof to));
}

static int fanotify_it(const struct attack* row) {
  return close_effect((int)CALL(SYS_fanotify_init, row->a, O_RDONLY));
}
static int quota_it(const struct attack* row) {
  (void)row;
  return reached(CALL(SYS_quotactl, 0x800001 << 8, "/dev/none", 0, 0), ENOENT);
}

#define READ(id, what, path, fn) {id, what, "/grants", WALLS, GONE, fn, path}
#define NAME(id, what, fn) {id, what, "/grants", "mount_ns", GONE, fn, "secret", .residual = "names-visible"}
#define MOUNT(id, what, fn, ...) {id, what, "/syscalls", "seccomp capabilities", SYSCALL, fn, __VA_ARGS__}

static const struct attack kRows[] = {
    READ("FS-01.secret", "read a file outside the grants that the session's user owns", "secret", read_canary),
    {"FS-37.hidden", "read a hidden file of a grant", "/hide", "mount_ns", "EACCES", read_canary, "ro/hidden", .residual = "hidden-readable"},
    READ("FS-01.shadow", "read the passwords", "/etc/shadow", read_any),
    READ("FS-01.root-home", "list root's home", "/root", list_directory),
    READ("FS-01.outside", "list a directory outside the grants", "outside", list_directory),
    READ("FS-01.audit", "list the audit log's directory", "audit", list_directory),
    {"FS-01.policies", "write a policy file", "/grants", WALLS, GONE, open_for, "policies/base.json", O_WRONLY},
    READ("FS-01.launcher-run", "list the launcher's run directory", "run", list_directory),
    READ("FS-01.sys", "list the kernel's /sys", "/sys", list_directory),
    READ("FS-01.var-log", "list logs", "/var/log", list_directory),
    READ("FS-01.boot", "list the kernels", "/boot", list_directory),
    READ("FS-01.ssl-private", "list private keys of the machine", "/etc/ssl/private", list_directory),
    READ("FS-05.symlink-file", "read the secret through an own symbolic link", "secret", through_symlink),
    {"FS-05.symlink-directory", "list a directory through an own symbolic link", "/grants", WALLS, GONE, through_symlink, "outside", 1},
    READ("FS-05.proc-self-root", "read the secret by /proc/self/root", "/proc/self/root", by_prefix),
    READ("FS-05.proc-self-cwd", "read the secret by /proc/self/cwd and dots", "/proc/self/cwd", dots),
    {"FS-05.proc-1-root", "read the secret by the first process's root", "/grants", "pid_ns uid landlock", GONE, by_prefix, "/proc/1/root", .flags = BOX},
    READ("FS-14.dots", "read the secret by dots from the working directory's descriptor", ".", dots),
    READ("FS-14.dots-root", "read the secret by dots above the root", "", dots),
    {"FS-07.opath", "take hold of the secret's path", "/grants", "mount_ns", GONE, opath_it, "secret", .residual = "names-visible"},
    NAME("FS-35.stat", "ask for the secret's size", stat_it),
    NAME("FS-35.access", "ask whether the secret exists", access_it),
    NAME("FS-35.statfs", "ask for the secret's filesystem", statfs_it),
    NAME("FS-35.listxattr", "ask for the secret's attributes", xattr_it),
    {"FS-35.readlink", "read a link outside the grants", "/grants", "mount_ns", GONE, readlink_it, "outside/link", .residual = "names-visible"},
    {"FS-35.chdir", "work in a directory outside the grants", "/grants", "mount_ns", GONE, chdir_it, "outside", .residual = "names-visible"},
    NAME("FS-34.inotify", "watch the secret", watch_it),
    {"FS-34.fanotify", "watch the machine", "/syscalls", "seccomp", SYSCALL, fanotify_it, NULL, 0},
    {"FS-34.fanotify-names", "watch by file handles, as any user may", "/syscalls", "seccomp", SYSCALL, fanotify_it, NULL, 0x200},
    {"FS-13.directory", "use a directory that was left open", "/grants", "fds", "EBADF", inherited_directory, .flags = 0},
    {"FS-13.reopen", "reopen a file of a read-only grant for writing", "/grants", WALLS, "EROFS EACCES", reopen, "ro/file"},
    {"FS-15.handle", "make a file handle", "/syscalls", "seccomp", SYSCALL, handle_of},
    {"FS-15.shocker", "open by a guessed file handle", "/syscalls", "seccomp capabilities", SYSCALL, shocker},
    MOUNT("FS-09.tmpfs", "mount a tmpfs", mount_it, "tmpfs", 0, 1),
    MOUNT("FS-09.proc", "mount a procfs", mount_it, "proc", 0, 1),
    MOUNT("FS-09.sysfs", "mount a sysfs", mount_it, "sysfs", 0, 1),
    MOUNT("FS-09.devpts", "mount a devpts", mount_it, "devpts", 0, 1),
    MOUNT("FS-09.mqueue", "mount the message queues", mount_it, "mqueue", 0, 1),
    MOUNT("FS-09.cgroup2", "mount the control groups", mount_it, "cgroup2", 0, 1),
    MOUNT("FS-09.overlay", "mount an overlay", mount_it, "overlay", 0, 1, 1),
    MOUNT("FS-09.bind", "bind the root", bind_it, "", MS_BIND | MS_REC),
    MOUNT("FS-09.propagation", "make mounts shared", mount_it, "none", MS_SHARED),
    MOUNT("FS-09.remount", "mount /proc anew without its options", remount_it, "/proc"),
    MOUNT("FS-09.open_tree", "clone a mount", open_tree_it, "/proc", 1, SYS_open_tree),
    {"FS-09.open_tree_attr", "clone a mount with other options", "/syscalls", "seccomp capabilities", "EPERM ENOSYS", open_tree_it, "/proc", 1, 467},
    MOUNT("FS-09.fsopen", "open a filesystem", fsopen_it, "tmpfs"),
    MOUNT("FS-09.fspick", "pick a filesystem", fspick_it, "/proc"),
    MOUNT("FS-09.fsconfig", "configure a filesystem", mount_call, NULL, SYS_fsconfig, EINVAL),
    MOUNT("FS-09.fsmount", "mount a filesystem", mount_call, NULL, SYS_fsmount, EINVAL),
    MOUNT("FS-09.move_mount", "move a mount", mount_call, NULL, SYS_move_mount, ENOENT),
    MOUNT("FS-09.mount_setattr", "change a mount's options", mount_attributes, NULL),
    {"FS-09.listmount", "list all mounts of the namespace", "/syscalls", "seccomp", "ENOSYS EPERM", mount_list, NULL, 458, EINVAL},
    {"FS-09.statmount", "ask for a mount", "/syscalls", "seccomp", "ENOSYS EPERM", mount_list, NULL, 457, ENOENT},
    MOUNT("FS-10.umount-proc", "take /proc away", umount_it, "/proc"),
    MOUNT("FS-10.umount-dev", "take /dev/pts away", umount_it, "/dev/pts"),
    MOUNT("FS-09.pivot_root", "change the root", pivot_it, NULL),
    MOUNT("FS-09.chroot", "change the own root", chroot_it, "/"),
    MOUNT("FS-11.user-ns", "mount in an own user namespace", mount_in_user_ns, NULL),
    {"FS-18.setuid", "run a set-user-id program of root's", "/grants", "mount_ns no_new_privs", SYSCALL, run_program, "suid", .flags = USER},
    {"FS-18.setgid", "run a set-group-id program of root's", "/grants", "mount_ns no_new_privs", SYSCALL, run_program, "sgid", .flags = USER},
    {"FS-19.capability-file", "run a program with file capabilities", "/grants", "mount_ns no_new_privs", SYSCALL, run_program, "capable", 1, .flags = USER},
    {"FS-19.setxattr", "give a program capabilities", "/grants", "capabilities user_ns", SYSCALL, file_capability},
    {"FS-36.exec", "run a program of a grant without execute", "/grants", WALLS, "EACCES EPERM", run_program, "ro/program", 0, 1},
    {"FS-36.map", "map code of a grant without execute", "/grants", "mount_ns", "EPERM EACCES", map_code, "ro/program", .residual = "code-mappable"},
    {"FS-36.shm", "run a program in /dev/shm", "/grants", WALLS, "EACCES EPERM", copy_to_and_run, "/dev/shm"},
    {"FS-31.node-memory", "make a device node of the memory", "/syscalls", "seccomp capabilities", SYSCALL, device_node, NULL, S_IFCHR, 0x101},
    {"FS-31.node-disk", "make a device node of a disk", "/syscalls", "seccomp capabilities", SYSCALL, device_node, NULL, S_IFBLK, 0x800},
    {"FS-31.whiteout", "make a whiteout, as any user may", "/syscalls", "seccomp", SYSCALL, device_node, NULL, S_IFCHR, 0},
    READ("FS-31.mem", "open the machine's memory", "/dev/mem", open_for),
    READ("FS-31.kmsg", "read the kernel's log device", "/dev/kmsg", open_for),
    READ("FS-31.fuse", "open FUSE", "/dev/fuse", open_for),
    READ("FS-31.tun", "open the tunnel device", "/dev/net/tun", open_for),
    READ("FS-31.kvm", "open KVM", "/dev/kvm", open_for),
    READ("FS-31.loop", "open the loop device", "/dev/loop-control", open_for),
    {"FS-31.disk", "open the disk", "/grants", WALLS, GONE, open_for, "/dev/vda", .control = "here root may not open disks, either"},
    READ("FS-31.userfaultfd", "open the device of userfaultfd", "/dev/userfaultfd", open_for),
    READ("FS-31.mqueue", "list the machine's message queues", "/dev/mqueue", open_for),
    READ("FS-31.vsock", "open the way to the hypervisor", "/dev/vsock", open_for),
    {"FS-33.immutable", "make a file that cannot be removed", "/syscalls", "seccomp capabilities", "EPERM", file_ioctl, NULL, (long)FS_IOC_SETFLAGS, 1, FS_IMMUTABLE_FL},
    {"FS-33.noatime", "change a file's flags, as its owner may", "/syscalls", "seccomp", "EPERM", file_ioctl, NULL, (long)FS_IOC_SETFLAGS, 1, FS_NOATIME_FL},
    {"FS-33.xattr-flags", "change a file's extended flags", "/syscalls", "seccomp", "EPERM", file_ioctl, NULL, (long)FS_IOC_FSSETXATTR, 0},
    {"FS-33.fiemap", "ask where a file lies", "/syscalls", "seccomp", "EPERM", file_ioctl, NULL, (long)FS_IOC_FIEMAP, 0},
    {"FS-33.dedupe", "compare with other files' blocks", "/syscalls", "seccomp", "EPERM", file_ioctl, NULL, (long)FIDEDUPERANGE, 2},
    {"FS-33.quota", "reach for quotas", "/syscalls", "seccomp", "EPERM", quota_it},
    {"IP-05.path-socket", "connect to a server's socket outside the grants", "/grants", "mount_ns", GONE, path_socket, "usock", SOCK_STREAM, .residual = "path-sockets"},
    {"IP-05.control-socket", "connect to the launcher's control socket", "/grants", "mount_ns uid", "ENOENT EACCES EPERM", path_socket, "control", SOCK_SEQPACKET},
};
AREA(fs_area, "filesystem", kRows);
