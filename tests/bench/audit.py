"""audit.py CONTROL_SOCKET HOME [ROUNDS]: what does it cost a build that its refused system calls would be recorded? The same 50 files of C
are compiled in sessions of several policies in turn: one that records, two that do not, and one whose paths are observed. Each round
gives one ratio to the first that does not, of two builds beside each other in time; the median of all rounds is what counts. The
second that does not record is the control: how far its ratio is from 1 says what this machine cannot tell apart."""
import math
import os
import pathlib
import sys
import time

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
BUILD = 'for f in *.c; do cc -O1 -c -o "/tmp/$1-${f%.c}.o" "$f" || exit 1; done; rm -f /tmp/"$1"-*.o'


DOMAINS = {"recorded": "bash", "control": "unrecorded-too", "observed": "observed"}


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def interval(values):
    """Where the median lies with 95 % (order statistics; nothing is assumed of the distribution)."""
    values, n = sorted(values), len(values)
    low = next(k for k in range(n // 2, -1, -1) if sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.025 or k == 0)
    return values[low], values[n - 1 - low]


def build(control, session, name):
    begin = time.monotonic()
    ended, out, err = control.run(session, "sh", "-c", BUILD, "sh", name, cwd="/home/gem/project")
    assert ended.get("exit_code") == 0, out + err
    return {"wall": time.monotonic() - begin, "processor": (ended["rusage"]["user_us"] + ended["rusage"]["sys_us"]) / 1e6}


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
        # Who begins changes from round to round; the first round fills caches and does not count.
        order = [(base, "base"), (session, name)]
        times = {who: build(control, which, who) for which, who in (order if round_ % 2 == 0 else order[::-1])}
        for what, values in ratios[name].items():
            if round_ > 0:
                values.append(times[name][what] / times["base"][what])
for name, by in ratios.items():
    for what, values in by.items():
        (low, high), middle = interval(values), median(values)
        target = f"target 1.020   {'held' if middle <= 1.02 else 'MISSED'}" if name == "recorded" else ""
        print(f"{FILES} files compiled, {name:8} / not recorded, {what:9}  {middle:.3f}   (95 %: {low:.3f} to {high:.3f}, {rounds} rounds)   {target}")
