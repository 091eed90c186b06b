// Runs the catalogue. Each case is a child of its own with a time limit, so that a signal or a hang is a verdict and not the
// end; a group of its own, so that what it leaves is ended with it.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

static const struct area* const kAreas[] = {&fs_area,      &write_area,   &process_area, &proc_area,      &privilege_area, &kernel_area,
                                            &entry_area,   &sockets_area, &network_area, &resources_area, &ipc_area};
enum { AREAS = sizeof kAreas / sizeof *kAreas };

static char** given;
static struct {
  int result;
  char note[160];
} report;

const char* decoy(const char* name) {
  const size_t length = strlen(name);
  for (char** g = given; *g != NULL; ++g)
    if (strncmp(*g, name, length) == 0 && (*g)[length] == '=') return *g + length + 1;
  return NULL;
}

long decoy_number(const char* name) {
  const char* text = decoy(name);
  return text == NULL ? -1 : strtol(text, NULL, 10);
}

int undecided(const char* why) {
  snprintf(report.note, sizeof report.note, "%s", why);
  return UNDECIDED;
}

int note_effect(const char* got) {
  snprintf(report.note, sizeof report.note, "%s", got);
  return EFFECT;
}

int refused(void) { return errno > 0 ? errno : undecided("refused without an errno"); }
int outcome(long result) { return result >= 0 ? EFFECT : refused(); }
int reached(long result, int answer) { return result >= 0 || errno == answer ? EFFECT : refused(); }

int close_effect(int fd) {
  if (fd < 0) return refused();
  close(fd);
  return EFFECT;
}

int holds_canary(int fd) {
  char text[4096] = "";
  if (fd < 0) return refused();
  const ssize_t got = read(fd, text, sizeof text - 1);
  const int saved = errno;
  close(fd);
  errno = saved;
  if (got < 0) return refused();
  const char* canary = decoy("canary");
  if (canary == NULL) return undecided("no canary was given");
  return memmem(text, (size_t)got, canary, strlen(canary)) != NULL ? EFFECT : undecided("opened, but the canary is not in it");
}

long raw(long number, long a, long b, long c, long d, long e, long f) { return syscall(number, a, b, c, d, e, f); }

const char* errno_text(int number) {
  static char text[16];
  const char* name = strerrorname_np(number);
  if (name == NULL) snprintf(text, sizeof text, "%d", number);
  return name != NULL ? name : text;
}

static const char* signal_text(int number) {
  static char text[16];
  const char* name = sigabbrev_np(number);
  snprintf(text, sizeof text, "SIG%s", name != NULL ? name : "?");
  return text;
}

static bool listed(const char* list, const char* word) {
  const size_t length = strlen(word);
  for (const char* at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length)
    if ((at == list || at[-1] == ' ' || at[-1] == ',') && (at[length] == '\0' || at[length] == ' ' || at[length] == ',')) return true;
  return false;
}

static void text_json(const char* text) {
  putchar('"');
  for (; text != NULL && *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') putchar('\\');
    if ((unsigned char)*text >= ' ') putchar(*text);
  }
  putchar('"');
}

static void words_json(const char* words) {
  putchar('[');
  for (const char* at = words; at != NULL && *at != '\0';) {
    const size_t length = strcspn(at, " ");
    printf("%s\"%.*s\"", at == words ? "" : ", ", (int)length, at);
    at += length + (at[length] == ' ');
  }
  putchar(']');
}

static void describe(const struct area* area, const struct attack* row) {
  printf("{\"id\": \"%s\", \"area\": \"%s\", \"attack\": ", row->id, area->name);
  text_json(row->what);
  printf(", \"place\": ");
  text_json(row->path);
  printf(", \"field\": \"%s\", \"mechanisms\": ", row->field);
  words_json(row->by);
  printf(", \"expected\": ");
  words_json(row->expected);
  printf(", \"flags\": [");
  static const char* const kFlags[] = {"alone", "box", "net", "user", "spare"};
  const char* comma = "";
  for (unsigned i = 0; i < 5; ++i)
    if (row->flags & (1U << i)) printf("%s\"%s\"", comma, kFlags[i]), comma = ", ";
  printf("], \"control\": ");
  text_json(row->control);
  printf(", \"residual\": ");
  words_json(row->residual);
  printf(", \"seconds\": %u", row->seconds != 0 ? row->seconds : 10);
}

struct verdict {
  const char *word, *sign, *note;
};

// A call that the filter refuses answers EPERM, and ENOSYS once a flood of them (the random ones) has cost the session its listener.
static bool stops(const struct attack* row, const char* name) {
  return listed(row->expected, name) || (!strcmp(name, "ENOSYS") && listed(row->by, "seccomp") && listed(row->expected, "EPERM"));
}

static struct verdict judge(const struct attack* row, bool answered, bool late, int status) {
  if (late) return (struct verdict){"undecided", "", "no answer in time"};
  if (!answered) {
    if (!WIFSIGNALED(status)) return (struct verdict){"undecided", "", "ended without an answer"};
    const char* name = signal_text(WTERMSIG(status));
    return (struct verdict){listed(row->expected, name) ? "stopped" : "undecided", name, "ended by a signal"};
  }
  if (report.result == EFFECT) return (struct verdict){"open", "", report.note};
  if (report.result < 0) return (struct verdict){"undecided", "", report.note};
  const char* name = errno_text(report.result);
  return (struct verdict){stops(row, name) ? "stopped" : "undecided", name, report.note};
}

static struct verdict run(const struct attack* row) {
  int tube[2];
  if (pipe2(tube, O_CLOEXEC) != 0) return (struct verdict){"undecided", "", "no pipe"};
  memset(&report, 0, sizeof report);
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return (struct verdict){"undecided", errno_text(errno), "no process"};
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(tube[0]);
    errno = 0;
    report.result = row->run(row);
    _exit(write(tube[1], &report, sizeof report) == (ssize_t)sizeof report ? 0 : 1);
  }
  close(tube[1]);
  struct pollfd wait = {tube[0], POLLIN, 0};
  const int ready = poll(&wait, 1, (int)(row->seconds != 0 ? row->seconds : 10) * 1000);
  const bool answered = ready > 0 && read(tube[0], &report, sizeof report) == (ssize_t)sizeof report;
  if (ready == 0) kill(child, SIGKILL);
  int status = 0;
  close(tube[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);
  return judge(row, answered, ready == 0, status);
}

static bool chosen(const struct attack* row, const char* only) {
  return only != NULL ? listed(only, row->id) : !(row->flags & ALONE);
}

static int usage(void) {
  fputs("usage: escape [--list | --table | --only ID,...] [DECOY=PLACE...]\n", stderr);
  return 64;
}

static bool say(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool said = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return said;
}

// The child goes on in namespaces of user, process ids and network, with every capability there, as the zygote of Chromium does. This
// process waits for it and ends as it does.
static void nest(void) {
  char users[48], groups[48];
  snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
  snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
  const pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!say("/proc/self/setgroups", "deny") || !say("/proc/self/uid_map", users) || !say("/proc/self/gid_map", groups)) _exit(70);
    return;
  }
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  _exit(child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 71);
}

int main(int argc, char** argv) {
  bool list = false, table = false;
  const char* only = NULL;
  int at = 1;
  // Programs that attacks start: this one again, under other ids if the attack works.
  if (argc == 2 && strcmp(argv[1], "--who") == 0) return geteuid() == 0 || getegid() == 0 ? 0 : 1;
  if (argc == 2 && strcmp(argv[1], "--able") == 0) return setuid(0) == 0 ? 0 : 1;
  for (; at < argc && strncmp(argv[at], "--", 2) == 0; ++at) {
    if (strcmp(argv[at], "--list") == 0) list = true;
    else if (strcmp(argv[at], "--table") == 0) table = true;
    else if (strcmp(argv[at], "--only") == 0 && at + 1 < argc) only = argv[++at];
    else return usage();
  }
  given = argv + at;
  // What an attack keeps from being answered must not end the program.
  signal(SIGPIPE, SIG_IGN);
  if (!list && decoy("nested") != NULL) nest();
  for (int i = 0; i < AREAS; ++i) {
    for (size_t j = 0; j < kAreas[i]->count; ++j) {
      const struct attack* row = &kAreas[i]->rows[j];
      if (!list && !chosen(row, only)) continue;
      if (list) {
        describe(kAreas[i], row);
        puts("}");
        continue;
      }
      const struct verdict v = run(row);
      if (table) {
        printf("%-34s %-9s %-14s %s\n", row->id, v.word, v.sign, v.note);
      } else {
        printf("{\"id\": \"%s\", \"verdict\": \"%s\", \"sign\": \"%s\", \"note\": ", row->id, v.word, v.sign);
        text_json(v.note);
        puts("}");
      }
      fflush(stdout);
    }
  }
  return 0;
}
