"""audit.py CONTROL_SOCKET HOME: what does it cost a build that its refused system calls would be recorded? The same 50 files of C are
compiled in a session whose policy records them and in one whose policy does not, in turn, so that both meet the same machine."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from control import Control  # noqa: E402

FILES, ROUNDS, OWNER = 50, 6, 20001
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


def median(values):
    return sorted(values)[len(values) // 2]


project = pathlib.Path(sys.argv[2]) / "project"
project.mkdir()
for n in range(FILES):
    (project / f"file{n}.c").write_text(SOURCE.format(n=n))
os.chown(project, OWNER, OWNER)
control = Control(sys.argv[1])
sessions = {"recorded": control.create("bash"), "not recorded": control.create("unrecorded")}
wall, cpu = ({name: [] for name in sessions} for _ in range(2))
for round_ in range(ROUNDS + 1):
    # Who begins changes from round to round; the first one fills caches and does not count.
    for name in sorted(sessions, reverse=round_ % 2 == 1):
        begin = time.monotonic()
        ended, out, err = control.run(sessions[name], "sh", "-c", BUILD, "sh", name.replace(" ", ""), cwd="/home/gem/project")
        assert ended.get("exit_code") == 0, out + err
        if round_ > 0:
            wall[name].append(time.monotonic() - begin)
            cpu[name].append((ended["rusage"]["user_us"] + ended["rusage"]["sys_us"]) / 1e6)
for name in sessions:
    print(f"{FILES} files compiled, {name:12}  median {median(wall[name]):6.3f} s of wall, {median(cpu[name]):6.3f} s of processor ({ROUNDS} rounds)")
for what, times in (("wall", wall), ("processor", cpu)):
    ratio = median(times["recorded"]) / median(times["not recorded"])
    print(f"recorded / not recorded, {what:9}  {ratio:.3f}   target 1.020   {'held' if ratio <= 1.02 else 'MISSED'}")
