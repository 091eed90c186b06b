"""audit.py CONTROL_SOCKET HOME [ROUNDS]: what does it cost a build that its refused system calls would be recorded? The same 50 files of C
are compiled in sessions of several policies: one that records, two that do not, and one whose paths are observed. Each round compares one of
them with the first that does not record, a few files of the one and the same files of the other in turn, and gives one ratio; the median of
all rounds is what counts. The second that does not record is the control: how far its ratio is from 1 says what cannot be told apart here."""
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control  # noqa: E402

FILES, OWNER = 50, 20001
SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct pair_{n} {{ int key; double value; char name[32]; }};
static int order(const void *a, const void *b) {{ return ((const struct pair_{n} *)a)->key - ((const struct pair_{n} *)b)->key; }}
int work_{n}(int count) {{
  struct pair_{n} *all = calloc((size_t)count, sizeof *all);
  for (int i = 0; i < count; i++) {{ all[i].key = (i * {n} + 7) % count; snprintf(all[i].name, sizeof all[i].name, "%d", i); }}
  qsort(all, (size_t)count, sizeof *all, order);
  int sum = 0;
  for (int i = 0; i < count; i++) sum += all[i].key * (int)strlen(all[i].name);
  free(all);
  return sum;
}}
"""
PART = 2  # files of one command: the two sessions of a pair take turns so often that both meet the same machine
BUILD = 'name=$1; shift; for n; do cc -O1 -c -o "/tmp/$name.o" "file$n.c" || exit 1; done'


DOMAINS = {"recorded": "bash", "control": "unrecorded-too", "observed": "observed"}


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def interval(values):
    """Where the median lies with 95 % (order statistics; nothing is assumed of the distribution)."""
    values, n = sorted(values), len(values)
    low = next(k for k in range(n // 2, -1, -1) if sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.025 or k == 0)
    return values[low], values[n - 1 - low]


def build(control, session, name, files):
    ended, out, err = control.run(session, "sh", "-c", BUILD, "sh", name, *map(str, files), cwd="/home/gem/project")
    assert ended.get("exit_code") == 0, out + err
    return {"wall": ended["wall_us"], "processor": ended["rusage"]["user_us"] + ended["rusage"]["sys_us"]}


def pair(control, sessions):
    """All files in both sessions, part by part, who begins changing each time: what was needed by the second / by the first."""
    sums = [{"wall": 0, "processor": 0} for _ in sessions]
    for part, first in enumerate(range(0, FILES, PART)):
        for which in (0, 1) if part % 2 == 0 else (1, 0):
            for what, value in build(control, sessions[which], f"s{which}", range(first, first + PART)).items():
                sums[which][what] += value
    return {what: sums[1][what] / sums[0][what] for what in sums[0]}


rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 25
project = pathlib.Path(sys.argv[2]) / "project"
project.mkdir()
for n in range(FILES):
    (project / f"file{n}.c").write_text(SOURCE.format(n=n))
os.chown(project, OWNER, OWNER)
control = Control(sys.argv[1])
base = control.create("unrecorded")
sessions = {name: control.create(domain) for name, domain in DOMAINS.items()}
ratios = {name: {"wall": [], "processor": []} for name in DOMAINS}
for round_ in range(rounds + 1):
    for name, session in sessions.items():
        for what, ratio in pair(control, [base, session]).items():
            if round_ > 0:  # the first one fills caches and does not count
                ratios[name][what].append(ratio)
sure = "95 %" if rounds >= 6 else "all"  # fewer rounds than that cannot say so much
for name, by in ratios.items():
    for what, values in by.items():
        (low, high), middle = interval(values), median(values)
        target = f"target 1.020   {'held' if middle <= 1.02 else 'MISSED'}" if name == "recorded" else ""
        print(f"{FILES} files compiled, {name:8} / not recorded, {what:9}  {middle:.3f}   ({sure}: {low:.3f} to {high:.3f}, {rounds} rounds)   {target}")
