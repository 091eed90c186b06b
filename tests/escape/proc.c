// /proc: other processes' memory, files and names in it, and what it says of and does to the machine.
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

static int entry_path(const struct attack* row, char* path, size_t size) {
  const char* slash = strchr(row->path, '/');
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)(slash - row->path), row->path);
  const long pid = strcmp(name, "init") == 0 ? 1 : decoy_number(name);
  if (pid <= 0) return undecided("the decoy is missing");
  snprintf(path, size, "/proc/%ld%s", pid, slash);
  return EFFECT;
}

static int look(const struct attack* row) {
  char path[256], room[256];
  if (entry_path(row, path, sizeof path) != EFFECT) return UNDECIDED;
  struct stat st;
  if (lstat(path, &st) != 0) return refused();
  if (S_ISLNK(st.st_mode)) return outcome(readlink(path, room, sizeof room));
  if (S_ISDIR(st.st_mode)) {
    DIR* dir = opendir(path);
    if (dir == NULL) return refused();
    errno = 0;
    const struct dirent* name;
    while ((name = readdir(dir)) != NULL && name->d_name[0] == '.') {
    }
    const int saved = errno != 0 ? errno : ENOENT;
    closedir(dir);
    errno = saved;
    return name != NULL ? EFFECT : refused();
  }
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return refused();
  if (row->a) return close_effect(fd);  // opening is the check; the address that could be read is not known
  return read(fd, room, sizeof room) > 0 ? EFFECT : refused();
}

static int alter(const struct attack* row) {
  char path[256];
  if (entry_path(row, path, sizeof path) != EFFECT) return UNDECIDED;
  const int fd = open(path, O_WRONLY);
  if (fd < 0) return refused();
  const char* text = (const char*)row->a;
  return outcome(write(fd, text, strlen(text)));
}

static int read_fact(const struct attack* row) {
  char room[256];
  const int fd = open(row->path, O_RDONLY | O_NONBLOCK);
  if (fd < 0) return refused();
  const ssize_t got = read(fd, room, sizeof room);
  return got > 0 ? EFFECT : got == 0 ? ENOENT : refused();
}

// Keys that are not the reader's own; root's own count, so that there is a control. Own ones prove nothing: the kernel keeps the keyrings
// of a user id for ever once a process with it, in any container of the machine, has named one.
static int read_keys(const struct attack* row) {
  FILE* keys = fopen(row->path, "re");
  if (keys == NULL) return refused();
  unsigned uid, own = getuid();
  bool found = false;
  for (char line[512]; !found && fgets(line, sizeof line, keys) != NULL;)
    found = sscanf(line, "%*s %*s %*s %*s %*s %u", &uid) == 1 && (uid != own || own == 0);  // keyrings(7)
  fclose(keys);
  return found ? EFFECT : ENOENT;
}

// Opened only: what would be written ends or changes the machine.
static int open_knob(const struct attack* row) { return close_effect(open(row->path, O_WRONLY)); }

static int own_file(const struct attack* row) {
  const int fd = open(row->path, O_WRONLY);
  if (fd < 0) return refused();
  const char* text = (const char*)row->a;
  return outcome(write(fd, text, strlen(text)));
}

static int listed(const struct attack* row) {
  (void)row;
  const long victim = decoy_number("victim");
  DIR* dir = opendir("/proc");
  if (dir == NULL) return refused();
  for (const struct dirent* e; (e = readdir(dir)) != NULL;)
    if (strtol(e->d_name, NULL, 10) == victim) return note_effect("listed");
  return ENOENT;
}

#define WALLS "pid_ns uid landlock"
#define GONE "ENOENT EACCES EPERM ESRCH"
#define LOOK(id, entry) \
  {"PR-03." id, "read " entry " of another session's process", "/require", WALLS, GONE, look, "victim/" entry}
#define SEEN(id, entry) \
  {"PR-03." id, "read " entry " of another session's process", "/require", "pid_ns", GONE, look, "victim/" entry, .residual = "proc-shared"}
#define LAUNCHER(id, entry) \
  {"PR-03.launcher-" id, "read " entry " of the launcher", "/require", WALLS, GONE, look, "launcher/" entry}
#define INIT(id, entry) {"PR-03.init-" id, "read " entry " of the session's first process", "/require", WALLS, GONE, look, "init/" entry, .flags = BOX}
#define FACT(id, path) {"IP-09." id, "read " path, "/require", "proc", GONE, read_fact, path, .residual = "proc-shared"}
#define KNOB(id, path) {"PV-11." id, "open " path " for writing", "/grants", "mount_ns landlock uid", GONE " EROFS", open_knob, path}

static const struct attack kRows[] = {
    {"PR-03.listed", "find another session's process", "/require", "pid_ns", GONE, listed, .residual = "proc-shared"},
    {"PR-03.mem", "open mem of another session's process", "/require", WALLS, GONE, look, "victim/mem", 1},
    LOOK("maps", "maps"),
    LOOK("smaps", "smaps"),
    LOOK("environ", "environ"),
    LOOK("auxv", "auxv"),
    LOOK("root", "root"),
    LOOK("cwd", "cwd"),
    LOOK("exe", "exe"),
    {"PR-03.fd", "list fd of another session's process", "/require", "pid_ns", GONE, look, "victim/fd", .residual = "one-uid peers-tunable"},
    LOOK("fd-0", "fd/0"),
    LOOK("fdinfo", "fdinfo"),
    LOOK("map_files", "map_files"),
    LOOK("ns", "ns/net"),
    LOOK("io", "io"),
    LOOK("syscall", "syscall"),
    LOOK("stack", "stack"),
    LOOK("pagemap", "pagemap"),
    LOOK("personality", "personality"),
    SEEN("mountinfo", "mountinfo"),
    LOOK("wchan", "timerslack_ns"),
    SEEN("cmdline", "cmdline"),
    SEEN("status", "status"),
    SEEN("comm", "comm"),
    SEEN("stat", "stat"),
    SEEN("limits", "limits"),
    SEEN("cgroup", "cgroup"),
    SEEN("oom", "oom_score"),
    SEEN("net", "net/tcp"),
    LAUNCHER("environ", "environ"),
    LAUNCHER("maps", "maps"),
    LAUNCHER("root", "root/etc/passwd"),
    LAUNCHER("cwd", "cwd"),
    LAUNCHER("exe", "exe"),
    LAUNCHER("fd", "fd"),
    LAUNCHER("ns", "ns/mnt"),
    {"PR-03.launcher-mem", "open mem of the launcher", "/require", WALLS, GONE, look, "launcher/mem", 1},
    INIT("environ", "environ"),
    INIT("maps", "maps"),
    INIT("root", "root"),
    INIT("fd", "fd"),
    INIT("exe", "exe"),
    {"PR-03.init-mem", "open mem of the session's first process", "/require", WALLS, GONE, look, "init/mem", 1, .flags = BOX},
    {"PR-15.oom-victim", "make another session the first to be killed", "/require", WALLS, GONE " EROFS", alter, "victim/oom_score_adj", (long)"900", .flags = ALONE},
    {"PR-15.comm", "rename another session's process", "/require", WALLS, GONE " EROFS EINVAL", alter, "victim/comm", (long)"x",
     .control = "the kernel lets a process's own threads rename it only"},
    {"PR-15.clear_refs", "clear another session's page marks", "/require", WALLS, GONE " EROFS", alter, "victim/clear_refs", (long)"1"},
    {"PR-15.coredump", "let another session dump more", "/require", WALLS, GONE " EROFS", alter, "victim/coredump_filter", (long)"0x7f", .flags = ALONE},
    {"PR-15.timerslack", "slow another session's timers", "/require", WALLS, GONE " EROFS", alter, "victim/timerslack_ns", (long)"900000", .flags = ALONE},
    {"PR-15.oom-own", "never be killed for memory", "/require", "capabilities", GONE " EROFS", own_file, "/proc/self/oom_score_adj", (long)"-900",
     .control = "here root lacks CAP_SYS_RESOURCE, too"},
    {"PV-12.uid_map", "map other users", "/require", "user_ns capabilities", GONE " EROFS EINVAL", own_file, "/proc/self/uid_map", (long)"0 0 1",
     .control = "an own map is written once, and the machine's was written at its start"},
    {"PV-12.loginuid", "change the login user", "/require", "capabilities mount_ns", GONE " EROFS EINVAL", own_file, "/proc/self/loginuid", (long)"0"},
    {"PV-12.label", "change the security label", "/require", "mount_ns landlock", GONE " EROFS EINVAL", own_file, "/proc/self/attr/exec", (long)"unconfined",
     .control = "without a security module there is no label"},
    {"IP-09.keys", "read another's keys", "/require", "proc uid", GONE, read_keys, "/proc/keys"},
    FACT("key-users", "/proc/key-users"),
    FACT("kallsyms", "/proc/kallsyms"),
    FACT("interrupts", "/proc/interrupts"),
    {"IP-09.kcore", "read the kernel's memory", "/require", "user_ns uid", GONE, read_fact, "/proc/kcore"},
    {"IP-09.kmsg", "read the kernel's log", "/require", "user_ns uid capabilities", GONE, read_fact, "/proc/kmsg"},
    {"IP-09.kpageflags", "read page flags of the machine", "/require", "user_ns uid", GONE, read_fact, "/proc/kpageflags"},
    {"IP-09.slabinfo", "read the kernel's allocations", "/require", "user_ns uid", GONE, read_fact, "/proc/slabinfo"},
    {"IP-09.vmallocinfo", "read addresses of the kernel", "/require", "user_ns uid", GONE, read_fact, "/proc/vmallocinfo"},
    {"IP-09.timer_list", "read timers of the machine", "/require", "user_ns uid", GONE, read_fact, "/proc/timer_list"},
    {"IP-09.cmdline", "read the kernel's command line", "/require", "", GONE, read_fact, "/proc/cmdline", .residual = "machine-facts"},
    {"IP-09.modules", "read the list of modules", "/require", "", GONE, read_fact, "/proc/modules", .residual = "machine-facts"},
    {"IP-09.diskstats", "read the disks' counters", "/require", "", GONE, read_fact, "/proc/diskstats", .residual = "machine-facts"},
    {"IP-09.cpuinfo", "read the processor's kind", "/require", "", GONE, read_fact, "/proc/cpuinfo", .residual = "machine-facts"},
    {"IP-09.meminfo", "read the machine's memory", "/require", "", GONE, read_fact, "/proc/meminfo", .residual = "machine-facts"},
    {"IP-09.loadavg", "read the machine's load", "/require", "", GONE, read_fact, "/proc/loadavg", .residual = "machine-facts"},
    {"IP-10.boot_id", "read the machine's boot id", "/require", "", GONE, read_fact, "/proc/sys/kernel/random/boot_id", .residual = "machine-facts"},
    {"IP-10.machine-id", "read the machine's id", "/grants", "mount_ns landlock", GONE, read_fact, "/etc/machine-id"},
    {"IP-10.mac", "read a network card's address", "/grants", "mount_ns landlock", GONE, read_fact, "/sys/class/net/lo/address"},
    {"IP-10.dmi", "read the machine's maker", "/grants", "mount_ns landlock", GONE, read_fact, "/sys/class/dmi/id/sys_vendor"},
    KNOB("core_pattern", "/proc/sys/kernel/core_pattern"),
    KNOB("modprobe", "/proc/sys/kernel/modprobe"),
    KNOB("hotplug", "/proc/sys/kernel/hotplug"),
    KNOB("usermodehelper", "/proc/sys/kernel/usermodehelper/bset"),
    KNOB("sysrq", "/proc/sys/kernel/sysrq"),
    KNOB("sysrq-trigger", "/proc/sysrq-trigger"),
    KNOB("binfmt_misc", "/proc/sys/fs/binfmt_misc/register"),
    KNOB("overcommit", "/proc/sys/vm/overcommit_memory"),
    KNOB("drop_caches", "/proc/sys/vm/drop_caches"),
    KNOB("file-max", "/proc/sys/fs/file-max"),
    KNOB("hostname", "/proc/sys/kernel/hostname"),
    KNOB("ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    {"PV-11.max_user_namespaces", "open /proc/sys/user/max_user_namespaces for writing", "/grants", "mount_ns landlock uid", GONE " EROFS", open_knob,
     "/proc/sys/user/max_user_namespaces", .control = "here root lacks CAP_SYS_RESOURCE, too"},
    KNOB("uevent_helper", "/sys/kernel/uevent_helper"),
    KNOB("power", "/sys/power/state"),
    KNOB("irq", "/proc/irq/default_smp_affinity"),
    KNOB("mtrr", "/proc/mtrr"),
    KNOB("cgroup", "/sys/fs/cgroup/cgroup.procs"),
    KNOB("cgroup-v1", "/sys/fs/cgroup/memory/cgroup.procs"),
    KNOB("cgroup-unified", "/sys/fs/cgroup/unified/cgroup.procs"),
    KNOB("tracing", "/sys/kernel/tracing/trace_marker"),
};
AREA(proc_area, "process", kRows);
