#!/usr/bin/env python3
"""Checks that includes point one way: each folder may include itself and what its row names, nothing else.

The launcher never includes the agent; the agent sees of the launcher only `base` and `ipc` (it is assumed to be taken
over, so nothing of the launcher's decisions may be compiled into it). Tests may include anything; nothing includes tests.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

BELOW_SERVICES = ["launcher/base", "agent/frames", "agent/http", "agent/bridge"]
SERVICES = [f"agent/services/{name}" for name in ("common", "program", "shell", "code", "notebook", "files", "observe", "workspace")]

ALLOWED = {
    "launcher/base": [],
    "launcher/ipc": ["launcher/base"],
    "launcher/policy": ["launcher/base"],
    "launcher/audit": ["launcher/base"],
    "launcher/confine": ["launcher/base", "launcher/policy"],
    "launcher/attest": ["launcher/base", "launcher/cli"],  # of cli: the program caisson-attest only
    "launcher/session": ["launcher/base", "launcher/ipc", "launcher/policy", "launcher/audit", "launcher/attest", "launcher/confine"],
    "launcher/init": ["launcher/base"],
    "launcher/auditor": ["launcher/base"],
    "launcher/homes": ["launcher/base", "launcher/confine"],  # of confine: id maps
    "launcher/logs": ["launcher/base", "launcher/audit"],
    # Of confine: names below a root, the inner user; of init: what an empty home gets.
    "launcher/protect": ["launcher/base", "launcher/confine", "launcher/init"],
    "launcher/system": ["launcher/base", "launcher/confine"],  # of confine: mounts and names below a root
    "launcher/reader": ["launcher/base", "launcher/policy", "launcher/confine"],
    "launcher/probe": ["launcher/base", "launcher/policy", "launcher/confine"],  # of policy: bytes
    "launcher/seal": ["launcher/base", "launcher/policy", "launcher/confine"],
    "launcher/cli": ["launcher/base", "launcher/ipc", "launcher/policy", "launcher/audit", "launcher/attest", "launcher/confine",
                     "launcher/session"],
    "launcher/cli/learn": ["launcher/base", "launcher/policy", "launcher/cli"],
    "launcher": ["launcher/base", "launcher/ipc", "launcher/policy", "launcher/audit", "launcher/attest", "launcher/confine",
                 "launcher/session"],
    "agent/http": ["launcher/base"],
    "agent/bridge": ["launcher/base", "launcher/ipc", "agent/http"],
    "agent/frames": ["launcher/base"],
    "agent/worker": ["launcher/base", "agent/frames"],
    # Kinds of sessions know nothing of each other; only a workspace has all of them.
    "agent/services/common": [*BELOW_SERVICES],
    "agent/services/program": [*BELOW_SERVICES, "agent/services/common"],
    "agent/services/shell": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/code": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/notebook": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/files": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/observe": [*BELOW_SERVICES, "agent/services/common"],
    "agent/services/workspace": [*BELOW_SERVICES, "agent/services/common", "agent/services/program", "agent/services/shell", "agent/services/code", "agent/services/notebook", "agent/services/files", "agent/services/observe"],
    "agent/auth": ["launcher/base", "agent/http"],
    "agent/routes": ["launcher/base", "agent/frames", "agent/http", "agent/auth", "agent/bridge", *SERVICES],
    "agent/derive": ["launcher/base", "agent/http", "agent/routes"],
    "agent/page": ["agent/http", "agent/routes"],
    "agent": ["launcher/base", "launcher/ipc", "agent/http", "agent/auth", "agent/bridge", *SERVICES, "agent/routes", "agent/derive"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def check(path: pathlib.Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    folder = path.parent.relative_to(ROOT).as_posix()
    found = []
    if folder not in ALLOWED:
        return [f"{name}: folder '{folder}' has no row in scripts/includes.py"]
    for target in INCLUDE.findall(path.read_text()):
        there = pathlib.PurePosixPath(target).parent.as_posix()
        if there == ".":
            found.append(f'{name}: "{target}" is not a path from the repository\'s root')
        elif not (ROOT / target).is_file():
            found.append(f'{name}: "{target}" is no file of this repository (other libraries: angle brackets)')
        elif there != folder and there not in ALLOWED[folder]:
            found.append(f"{name}: {folder} must not include {there}")
    if path.suffix == ".h" and "#pragma once" not in path.read_text():
        found.append(f"{name}: no #pragma once")
    return found


def main() -> int:
    problems = []
    for top in ("launcher", "agent"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".cc", ".h"):
                problems += check(path)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
