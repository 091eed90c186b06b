// Privilege: other ids, capabilities, namespaces, keyrings, and the switches that hold them down.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

#define HIGH (1L << 32)
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static int ids(const struct attack* row) { return outcome(CALL(row->a, row->b, row->c, row->c)); }
static int file_ids(const struct attack* row) {
  CALL(row->a, 0);
  return CALL(row->a, -1) == 0 ? EFFECT : EPERM;
}
static int groups(const struct attack* row) {
  const gid_t group = (gid_t)row->a;
  return outcome(setgroups(1, &group));
}
static int groups_handed(const struct attack* row) {
  (void)row;
  gid_t list[64];
  const int count = getgroups(64, list);
  if (count < 0) return refused();
  for (int i = 0; i < count; ++i)
    if (list[i] != getgid()) return note_effect("a supplementary group is left");
  return ENOENT;
}

static int capability_set(const struct attack* row) {
  static char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return undecided("no /proc/self/status");
  unsigned long long value = 0;
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, row->path, strlen(row->path)) == 0) value = strtoull(line + strlen(row->path) + 1, NULL, 16);
  fclose(status);
  return value != 0 ? EFFECT : EPERM;
}
static int regain(const struct attack* row) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
  CALL(SYS_capget, &head, data);
  if (row->a == 0) data[0].effective |= 1U << CAP_SYS_ADMIN % 32, data[0].permitted |= 1U << CAP_SYS_ADMIN % 32;
  else data[0].inheritable |= 1U << CAP_SYS_ADMIN % 32;
  return outcome(CALL(SYS_capset, &head, data));
}
static int control_process(const struct attack* row) { return outcome(CALL(SYS_prctl, row->a, row->b, row->c, 0, 0)); }
static int raise_ambient(const struct attack* row) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
  (void)row;
  CALL(SYS_capget, &head, data);
  data[0].inheritable |= 1;
  CALL(SYS_capset, &head, data);
  return outcome(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0, 0, 0));
}
static int switch_is_off(const struct attack* row) { return prctl((int)row->a, 0, 0, 0, 0) == 0 ? EFFECT : EPERM; }
static int securebits_off(const struct attack* row) {
  (void)row;
  return (prctl(PR_GET_SECUREBITS) & 0xaa) != 0xaa ? EFFECT : EPERM;
}

static int unshare_it(const struct attack* row) { return outcome(CALL(SYS_unshare, row->a)); }
static int clone_it(const struct attack* row) {
  const long child = CALL(SYS_clone, row->a | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  if (child > 0) waitpid((pid_t)child, NULL, 0);
  return outcome(child);
}
static int clone3_it(const struct attack* row) {
  uint64_t arguments[11] = {(uint64_t)row->a, 0, 0, 0, SIGCHLD, 0, 0, 0, 0, 0, 0};
  const long child = CALL(435, arguments, 64);
  if (child == 0) _exit(0);
  if (child > 0) waitpid((pid_t)child, NULL, 0);
  return outcome(child);
}
static int enter(const struct attack* row) {
  char path[64];
  const long pid = row->b == 0 ? getpid() : decoy_number("launcher");
  snprintf(path, sizeof path, "/proc/%ld/ns/%s", pid, row->path);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return refused();
  return outcome(CALL(SYS_setns, fd, 0));
}
static int enter_by_process(const struct attack* row) {
  const int fd = (int)CALL(SYS_pidfd_open, getpid(), 0);
  return fd < 0 ? refused() : outcome(CALL(SYS_setns, fd, row->a));
}
static int capable_in_user_ns(const struct attack* row) {
  (void)row;
  if (unshare(CLONE_NEWUSER) != 0) return refused();
  return outcome(unshare(CLONE_NEWNET | CLONE_NEWNS));
}

static int add_key(const struct attack* row) {
  return outcome(CALL(SYS_add_key, row->path, "caisson-escape", "x", strcmp(row->path, "keyring") == 0 ? 0 : 1, row->a));
}
static int key_control(const struct attack* row) {
  const long result = CALL(SYS_keyctl, row->a, row->b, row->c, 0, 0);
  return outcome(result);
}
static int request_key(const struct attack* row) {
  (void)row;
  return reached(CALL(SYS_request_key, "user", "caisson-none", 0, 0), ENOKEY);
}

static struct sock_filter kYes[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static int listener(const struct attack* row) {
  const struct sock_fprog program = {1, kYes};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return close_effect((int)CALL(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 8 | row->a, &program));
}
// A filter that answers 0 for setuid lets a process believe it; the kernel must not.
static int pretend(const struct attack* row) {
  (void)row;
  struct sock_filter lie[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                              {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_setuid},
                              {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
                              {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO}};
  const struct sock_fprog program = {4, lie};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (CALL(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return refused();
  return setuid(0) == 0 && geteuid() == 0 ? EFFECT : EPERM;
}

#define IDS(id, what, nr, a, b) {"PV-01." id, what, "/syscalls", "seccomp capabilities", "EPERM EINVAL", ids, NULL, nr, a, b}
#define NS(id, what, fn, flag) {"PV-06." id, what, "/syscalls", "seccomp", "EPERM", fn, NULL, flag}
#define NS3(id, what, flag) {"PV-06." id, what, "/syscalls", "seccomp", "ENOSYS", clone3_it, NULL, flag}
#define ENTER(name) {"PV-08." name, "enter the own " name " namespace anew", "/syscalls", "seccomp", "EPERM", enter, name}
#define JOIN(name) {"PV-08.launcher-" name, "enter the launcher's " name " namespace", "/syscalls", "seccomp pid_ns", "EPERM ENOENT EACCES", enter, name, 0, 1}
#define KEY(id, what, fn, ...) {"PV-10." id, what, "/syscalls", "seccomp", "EPERM", fn, __VA_ARGS__}
#define CAPS(name) {"PV-03." name, "find a capability in " name, "/require", "capabilities", "EPERM", capability_set, name}

static const struct attack kRows[] = {
    IDS("setuid", "become root", SYS_setuid, 0, 0),
    IDS("setuid-high", "become root with garbage above the id", SYS_setuid, HIGH, 0),
    IDS("setreuid", "become root by both ids", SYS_setreuid, 0, 0),
    IDS("setresuid", "become root by all ids", SYS_setresuid, 0, 0),
    IDS("setresuid-saved", "keep root as the saved id", SYS_setresuid, -1, 0),
    IDS("setgid", "take root's group", SYS_setgid, 0, 0),
    IDS("setregid", "take root's group by both ids", SYS_setregid, 0, 0),
    IDS("setresgid", "take root's group by all ids", SYS_setresgid, 0, 0),
    IDS("setuid-agent", "become the agent", SYS_setuid, 990, 0),
    IDS("setuid-other", "become another workspace's user", SYS_setuid, 20077, 0),
    {"PV-01.setfsuid", "use files as root", "/syscalls", "seccomp capabilities", "EPERM", file_ids, NULL, SYS_setfsuid},
    {"PV-01.setfsgid", "use files as root's group", "/syscalls", "seccomp capabilities", "EPERM", file_ids, NULL, SYS_setfsgid},
    {"PV-01.setgroups", "join root's group", "/require", "capabilities user_ns", "EPERM", groups, NULL, 0},
    {"PV-01.setgroups-disk", "join the disks' group", "/require", "capabilities user_ns", "EPERM", groups, NULL, 6},
    {"PV-05.groups", "find a supplementary group", "/require", "uid", "ENOENT", groups_handed, NULL, .residual = "one-uid"},
    CAPS("CapInh"),
    CAPS("CapPrm"),
    CAPS("CapEff"),
    {"PV-03.CapBnd", "find a capability in CapBnd", "/require", "", "EPERM", capability_set, "CapBnd", .residual = "bounding-set"},
    CAPS("CapAmb"),
    {"PV-03.capset", "win capabilities back", "/require", "capabilities", "EPERM", regain, NULL, 0},
    {"PV-03.capset-inheritable", "make capabilities inheritable", "/require", "capabilities", "EPERM", regain, NULL, 1},
    {"PV-03.ambient", "raise an ambient capability", "/require", "capabilities", "EPERM", raise_ambient},
    {"PV-03.securebits", "change the secure bits", "/syscalls", "seccomp capabilities", "EPERM", control_process, NULL, PR_SET_SECUREBITS, 0},
    {"PV-03.securebits-handed", "have root's powers come with its id", "/require", "", "EPERM", securebits_off, .residual = "bounding-set"},
    {"PV-04.no_new_privs", "gain by running a program", "/require", "no_new_privs", "EPERM", switch_is_off, NULL, PR_GET_NO_NEW_PRIVS},
    {"PV-04.seccomp", "call the kernel without a filter", "/require", "seccomp", "EPERM", switch_is_off, NULL, PR_GET_SECCOMP},
    NS("unshare-user", "make a user namespace", unshare_it, CLONE_NEWUSER),
    NS("unshare-mount", "make a mount namespace", unshare_it, CLONE_NEWNS),
    NS("unshare-net", "make a network namespace", unshare_it, CLONE_NEWNET),
    NS("unshare-pid", "make a PID namespace", unshare_it, CLONE_NEWPID),
    NS("unshare-ipc", "make an IPC namespace", unshare_it, CLONE_NEWIPC),
    NS("unshare-uts", "make a UTS namespace", unshare_it, CLONE_NEWUTS),
    NS("unshare-cgroup", "make a cgroup namespace", unshare_it, CLONE_NEWCGROUP),
    NS("unshare-time", "make a time namespace", unshare_it, CLONE_NEWTIME),
    NS("unshare-user-mount", "make a user and a mount namespace", unshare_it, CLONE_NEWUSER | CLONE_NEWNS),
    NS("unshare-files", "unshare only descriptors", unshare_it, CLONE_FILES),
    NS("clone-user", "clone into a user namespace", clone_it, CLONE_NEWUSER),
    NS("clone-user-high", "clone into a user namespace with garbage above the flags", clone_it, CLONE_NEWUSER | HIGH),
    NS("clone-mount", "clone into a mount namespace", clone_it, CLONE_NEWNS),
    NS("clone-net", "clone into a network namespace", clone_it, CLONE_NEWNET),
    NS("clone-net-high", "clone into a network namespace with the highest bit", clone_it, CLONE_NEWNET | (long)(1UL << 63)),
    NS("clone-pid", "clone into a PID namespace", clone_it, CLONE_NEWPID),
    NS("clone-ipc", "clone into an IPC namespace", clone_it, CLONE_NEWIPC),
    NS("clone-uts", "clone into a UTS namespace", clone_it, CLONE_NEWUTS),
    NS("clone-cgroup", "clone into a cgroup namespace", clone_it, CLONE_NEWCGROUP),
    NS("clone-all", "clone into all namespaces", clone_it, 0x7e020000),
    NS3("clone3-user", "clone3 into a user namespace", CLONE_NEWUSER),
    NS3("clone3-net", "clone3 into a network namespace", CLONE_NEWNET),
    NS3("clone3-time", "clone3 into a time namespace", CLONE_NEWTIME),
    {"PV-06.capable", "be root in an own user namespace", "/syscalls", "seccomp", "EPERM", capable_in_user_ns},
    ENTER("net"),
    ENTER("uts"),
    ENTER("ipc"),
    ENTER("cgroup"),
    {"PV-08.by-process", "enter namespaces by a process descriptor", "/syscalls", "seccomp", "EPERM", enter_by_process, NULL, CLONE_NEWNET},
    JOIN("net"),
    JOIN("mnt"),
    JOIN("pid"),
    KEY("add-user", "add a key to the user's keyring", add_key, "user", -4),
    KEY("add-session", "add a key to the session's keyring", add_key, "user", -3),
    KEY("add-process", "add a key to the process's keyring", add_key, "user", -2),
    KEY("add-keyring", "make a keyring", add_key, "keyring", -2),
    KEY("join", "join a session keyring", key_control, NULL, 1, 0),
    KEY("user-keyring", "find the user's keyring", key_control, NULL, 0, -4, 1),
    KEY("persistent", "find the persistent keyring", key_control, NULL, 22, -1, -2),
    KEY("high", "find a keyring with garbage above the operation", key_control, NULL, HIGH, -2, 1),
    KEY("request", "request a key", request_key, NULL),
    {"PV-09.listener", "answer own system calls", "/syscalls", "seccomp", "EPERM", listener, NULL, 0},
    {"PV-09.listener-tsync", "answer system calls of all threads", "/syscalls", "seccomp", "EPERM", listener, NULL, 0x11},
    {"PV-09.listener-high", "answer own system calls, garbage above the flags", "/syscalls", "seccomp", "EPERM", listener, NULL, HIGH,
     .control = "the kernel reads the upper half and refuses"},
    {"PV-09.pretend", "have a filter answer that one is root", "/syscalls", "no_new_privs seccomp", "EPERM", pretend},
};
AREA(privilege_area, "privilege", kRows);
