// What the areas share with the runner: one row a case. The program knows nothing of the launcher: it is told where the
// decoys are (key=value arguments) and reports what an attack got; whoever runs it judges the effects from outside.
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What an attack returns. Above 0 it is the errno with which the kernel refused.
enum { EFFECT = 0, UNDECIDED = -1 };

enum {
  ALONE = 1,  // has an effect outside, or may end its session: run by itself, with fresh decoys
  BOX = 2,    // its control runs in namespaces of its own, with nothing of the machine's in reach
  NET = 4,    // its control runs where every address leads to a listener
  USER = 8,   // its control runs as an ordinary user, for root has it without any attack
  SPARE = 16  // never run unconfined: `control` says why
};

struct attack {
  const char *id, *what;
  const char* field;     // pointer into the policy: what stops it
  const char* by;        // mechanisms that stop it, the first wall first
  const char* expected;  // names of errnos and signals by which it may be stopped
  int (*run)(const struct attack*);
  const char* path;  // arguments of a `run` that serves several rows
  long a, b, c;
  unsigned flags;
  const char* control;   // why a control cannot show it here; without it the control must have the effect
  const char* residual;  // ids of residual entries: the first that a tier states covers it there
  unsigned seconds;      // 0: ten
};

struct area {
  const char* name;
  const struct attack* rows;
  size_t count;
};

extern const struct area fs_area, write_area, process_area, proc_area, privilege_area, kernel_area, sockets_area, network_area,
    resources_area, ipc_area, entry_area;

#define AREA(symbol, text, table) const struct area symbol = {text, table, sizeof(table) / sizeof((table)[0])}

// A decoy's place: NULL when none was given, and then the attack is undecided.
const char* decoy(const char* name);
long decoy_number(const char* name);  // -1: none

int undecided(const char* why);        // sets the note
int note_effect(const char* got);      // EFFECT, with what was got
int refused(void);                     // errno, which must not be 0
int outcome(long result);              // EFFECT or refused()
int reached(long result, int answer);  // an answer of the call's own code is an effect: the call is within reach
int close_effect(int fd);              // EFFECT when fd is open (closes it), else refused()
int holds_canary(int fd);              // EFFECT when the canary can be read from fd (closes it)
long raw(long number, long a, long b, long c, long d, long e, long f);
const char* errno_text(int number);

// A system call with what arguments it has, the rest 0.
#define CALL(...) raw_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define raw_(n, a, b, c, d, e, f, ...) raw((long)(n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
