"""Prints what bench_spawn measured beside the targets. Ratios only: absolute times belong to the machine."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    rows = json.load(file)
for name, row in rows.items():
    print(f"{name:44s} median {row['median_us']:8.0f} us   p90 {row['p90_us']:8.0f}   min {row['min_us']:8.0f}")

median = {name: row["median_us"] for name, row in rows.items()}
bwrap, true, bash = median["bwrap --unshare-all true"], median["posix_spawn true"], median["posix_spawn bash -c true"]
targets = [
    ("session: create, exec true, destroy / bwrap", median["session: create, exec true, destroy"] / bwrap, 0.40),
    ("caisson run -- true / bwrap", median["caisson run -- true"] / bwrap, 0.60),
    ("exec true in a living session / posix_spawn", median["exec true in a living session"] / true, 1.3),
    ("POST /v1/bash/exec, living / (1.5 x bash + 0.5 ms)", median["POST /v1/bash/exec true, living session"] / (1.5 * bash + 500), 1.0),
    ("POST /v1/bash/exec, new session / the same", median["POST /v1/bash/exec true, new session"] / (1.5 * bash + 500), 1.0),
]
same = median["caisson run -- true, beside it"] / median["bwrap with the binds of caisson run"]
floor = median["floor: the same namespaces, nothing else"] / bwrap
print(f"\n{'floor: namespaces and true alone / bwrap':52s} {floor:5.2f}")
print(f"{'caisson run -- true / bwrap with the same binds':52s} {same:5.2f}")
for name, ratio, target in targets:
    print(f"{name:52s} {ratio:5.2f}   target {target:.2f}   {'held' if ratio <= target else 'MISSED'}")
