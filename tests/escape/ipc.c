// IPC and names: what sessions and the machine could share without files.
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "case.h"

static int segment(const struct attack* row) {
  const char* canary = decoy("canary");
  const int id = shmget((key_t)decoy_number("shm_key"), 0, 0);
  if (id < 0) return refused();
  char* room = shmat(id, NULL, 0);
  if (room == (char*)-1) return refused();
  if (row->a) strcpy(room, "changed");
  return row->a || strcmp(room, canary) == 0 ? EFFECT : undecided("a segment without the canary");
}
static int segment_by_id(const struct attack* row) {
  const int id = (int)decoy_number("shm_id");
  (void)row;
  return shmat(id, NULL, SHM_RDONLY) == (void*)-1 ? refused() : EFFECT;
}
static int segment_list(const struct attack* row) {
  struct shm_info info;
  (void)row;
  const int top = shmctl(0, SHM_INFO, (struct shmid_ds*)&info);
  if (top < 0) return refused();
  return info.used_ids > 0 ? EFFECT : ENOENT;
}
static int segment_remove(const struct attack* row) {
  (void)row;
  return outcome(shmctl((int)decoy_number("shm_id"), IPC_RMID, NULL));
}
static int semaphore(const struct attack* row) {
  const int id = semget((key_t)decoy_number("sem_key"), 0, 0);
  if (id < 0) return refused();
  struct sembuf up = {0, 1, 0};
  return outcome(row->a ? semop(id, &up, 1) : semctl(id, 0, GETVAL));
}
static int messages(const struct attack* row) {
  const int id = msgget((key_t)decoy_number("msg_key"), 0);
  struct {
    long type;
    char text[64];
  } message = {1, "escape"};
  if (id < 0) return refused();
  return outcome(row->a ? msgsnd(id, &message, 8, IPC_NOWAIT) : msgrcv(id, &message, sizeof message.text, 0, IPC_NOWAIT));
}
static int queue(const struct attack* row) {
  const char* name = decoy("mq");
  if (name == NULL) return undecided("the decoy is missing");
  const mqd_t open = mq_open(name, row->a ? O_WRONLY : O_RDONLY | O_NONBLOCK);
  if (open < 0) return refused();
  char text[8192];
  return outcome(row->a ? mq_send(open, "escape", 6, 0) : mq_receive(open, text, sizeof text, NULL));
}
static int queue_remove(const struct attack* row) {
  const char* name = decoy("mq");
  (void)row;
  return name == NULL ? undecided("the decoy is missing") : outcome(mq_unlink(name));
}

static int shared_file(const struct attack* row) {
  const char* path = decoy(row->path);
  return path == NULL ? undecided("the decoy is missing") : holds_canary(open(path, O_RDONLY));
}
static int shared_file_written(const struct attack* row) {
  const char* path = decoy(row->path);
  if (path == NULL) return undecided("the decoy is missing");
  const int fd = open(path, O_WRONLY | O_APPEND);
  return fd < 0 ? refused() : outcome(write(fd, "x", 1));
}
static int names(const struct attack* row) {
  const char* wanted = decoy(row->path);
  DIR* dir = opendir((const char*)row->a);
  if (wanted == NULL) return undecided("the decoy is missing");
  if (dir == NULL) return refused();
  const char* slash = strrchr(wanted, '/');
  for (const struct dirent* e; (e = readdir(dir)) != NULL;)
    if (strcmp(e->d_name, slash + 1) == 0) return EFFECT;
  return ENOENT;
}
static int host_name(const struct attack* row) {
  struct utsname name;
  (void)row;
  uname(&name);
  const char* host = decoy("hostname");
  return host == NULL ? undecided("the decoy is missing") : strcmp(host, name.nodename) == 0 ? EFFECT : ENOENT;
}
// The keyring of a user is not in a namespace but bound to its id.
static int key_of_another(const struct attack* row) {
  (void)row;
  return outcome(CALL(SYS_keyctl, 10, -4, "user", decoy("key"), 0));
}
static int same_namespace(const struct attack* row) {
  char link[64], here[128] = "";
  const char* theirs = decoy(row->path);
  if (theirs == NULL) return undecided("the decoy is missing");
  snprintf(link, sizeof link, "/proc/self/ns/%s", row->path + 3);
  if (readlink(link, here, sizeof here - 1) < 0) return refused();
  return strcmp(here, theirs) == 0 ? EFFECT : ENOENT;
}

#define SYSV(id, what, fn, ...) {"IP-01." id, what, "/syscalls", "ipc_ns seccomp", "ENOENT EPERM EINVAL EIDRM", fn, NULL, __VA_ARGS__}
#define POSIX(id, what, fn, ...) {"IP-02." id, what, "/syscalls", "ipc_ns landlock seccomp", "ENOENT EPERM EACCES", fn, NULL, __VA_ARGS__}
#define SHARED(id, what, fn, key, ...) {"IP-03." id, what, "/tmp", "mount_ns landlock", "ENOENT EACCES", fn, key, __VA_ARGS__}
#define SPACE(name, by) {"IP-11." name, "be in the launcher's " name " namespace", "/disable", by, "ENOENT", same_namespace, "ns_" name, .residual = "namespaces-shared"}

static const struct attack kRows[] = {
    SYSV("segment-read", "read a segment of the host's", segment, 0),
    SYSV("segment-write", "write a segment of the host's", segment, 1),
    SYSV("segment-id", "attach a segment by its number", segment_by_id, 0),
    SYSV("segment-list", "count the host's segments", segment_list, 0),
    SYSV("semaphore-read", "read a semaphore of the host's", semaphore, 0),
    SYSV("semaphore-raise", "raise a semaphore of the host's", semaphore, 1),
    SYSV("message-read", "take a message of the host's", messages, 0),
    SYSV("message-send", "send a message to the host's", messages, 1),
    POSIX("read", "take a message of the host's queue", queue, 0),
    POSIX("send", "send to the host's queue", queue, 1),
    POSIX("remove", "remove the host's queue", queue_remove, 0),
    SYSV("segment-remove", "remove a segment of the host's", segment_remove, 0),
    SHARED("shm-read", "read a file in the host's /dev/shm", shared_file, "dev_shm", 0),
    SHARED("shm-list", "find a file in the host's /dev/shm", names, "dev_shm", (long)"/dev/shm"),
    {"IP-03.tmp-read", "read a file in the host's /tmp", "/tmp", "mount_ns", "ENOENT EACCES", shared_file, "tmp", .residual = "tmp-shared"},
    {"IP-03.tmp-write", "change a file in the host's /tmp", "/tmp", "mount_ns", "ENOENT EACCES", shared_file_written, "tmp", .residual = "tmp-shared"},
    {"IP-03.tmp-list", "find a file in the host's /tmp", "/tmp", "mount_ns", "ENOENT EACCES", names, "tmp", (long)"/tmp", .residual = "tmp-shared"},
    SHARED("var-tmp", "read a file in the host's /var/tmp", shared_file, "secret", 0),
    {"IP-04.private-home", "read a file in the home of a private session", "/home", "mount_ns", "ENOENT EACCES", shared_file, "private_home", .control = "seen by its launcher's mount tree only"},
    {"IP-10.hostname", "find the machine's name", "/hostname", "uts_ns", "ENOENT", host_name, .residual = "namespaces-shared"},
    {"PV-10.host-key", "find a key of the launcher's user", "/syscalls", "seccomp", "EPERM", key_of_another},
    SPACE("user", "user_ns"),
    SPACE("mnt", "mount_ns"),
    SPACE("pid", "pid_ns"),
    SPACE("net", "net_ns"),
    SPACE("ipc", "ipc_ns"),
    SPACE("uts", "uts_ns"),
    SPACE("cgroup", "cgroup_ns"),
};
AREA(ipc_area, "ipc", kRows);
