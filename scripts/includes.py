#!/usr/bin/env python3
"""Checks that includes point one way: each folder may include itself and what its row names, nothing else.

The launcher never includes the agent. The agent is assumed to be taken over, so nothing of the launcher's decisions may be
compiled into it: it sees of the launcher only `common/base`, `common/ipc` and `common/tables`. Tests may include anything;
nothing includes tests.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

BELOW_SERVICES = ["launcher/common/base", "launcher/common/tables", "agent/frames", "agent/metrics", "agent/http", "agent/bridge"]
SERVICES = [f"agent/services/{name}" for name in ("common", "program", "shell", "code", "notebook", "files", "observe", "desktop", "browser", "mcp", "skills", "documents", "coding", "workspace")]



def commons(names: str) -> list[str]:
    return [f"launcher/common/{name}" for name in names.split()]


# What PID 1 is made of, beside its own folder: scripts/lint counts the lines of all of it.
PID_1 = "attest audit base confine ipc kernel policy wire"
PID_1_PARTS = [f"launcher/pid1{part}" for part in ("", "/ipc", "/execute", "/session")]

ALLOWED = {
    # launcher: a folder is a program; what several need is below common. The command line has the compiler, too: it shows and
    # tries policies, and `caisson run` needs no launcher.
    **{f"launcher/common/{name}": commons(needs) for name, needs in {
        "base": "",
        "tables": "base",
        "freestanding": "",
        "policy": "base",
        "kernel": "base",
        "making": "",
        "ipc": "base",
        "wire": "base kernel policy",
        "build": "base kernel making wire",
        "confine": "base kernel policy wire",
        "capture": "base",
        "egress": "",
        "probing": "base build capture confine kernel making watching wire",
        "audit": "base",
        "audit_lines": "audit base tables",
        "attest": "base",
        "watching": "base wire",
        "telling": "",
    }.items()},
    **{f"launcher/pid1{part}": [*commons(PID_1), *PID_1_PARTS] for part in ("", "/ipc", "/execute", "/session")},
    "launcher/builder": commons("base build egress kernel making wire"),
    "launcher/connector": commons("base egress watching"),
    "launcher/egress/list": commons("base"),
    "launcher/egress/parse": [*commons("base egress"), "launcher/egress/list"],
    "launcher/compiler": [*commons("base build capture confine egress kernel making policy tables wire"), "launcher/egress/list"],
    "launcher/egress/loop": commons("base telling egress"),
    "launcher/egress/door": [*commons("base capture telling egress"), "launcher/egress/list", "launcher/egress/loop", "launcher/egress/parse"],
    "launcher/egress/dialer": [*commons("base telling egress"), "launcher/egress/list", "launcher/egress/loop", "launcher/egress/parse"],
    "launcher/egress/secret": [*commons("base egress"), "launcher/egress/list", "launcher/egress/parse"],
    "launcher/egress/opener": [*commons("base telling egress"), *[f"launcher/egress/{name}" for name in ("list", "loop", "parse", "secret")]],
    "launcher/egress": [*commons("base egress"), *[f"launcher/egress/{name}" for name in ("door", "dialer", "opener", "loop")]],
    "launcher/init": commons("base freestanding wire"),
    "launcher/auditor": commons("base tables telling watching wire"),
    "launcher/observer": commons("base tables watching wire"),
    "launcher/gate": [*commons("base build capture confine egress ipc tables telling wire"), "launcher/egress/list"],
    "launcher/homes": commons("base confine tables"),
    "launcher/options": [*commons("base egress kernel policy"), "launcher/pid1", "launcher/pid1/session"],
    "launcher/logs": commons("audit audit_lines base tables"),
    "launcher/protect": commons("base build confine freestanding tables"),
    "launcher/system": commons("base build confine tables"),
    "launcher/probe": commons("base confine policy probing"),
    "launcher/seal": [*commons("base confine kernel making policy"), "launcher/compiler"],
    "launcher/cli": [*commons("audit audit_lines base build confine egress ipc kernel policy probing tables wire"), "launcher/compiler", "launcher/cli/audit", "launcher/egress/list"],
    "launcher/cli/audit": commons("audit audit_lines base tables"),
    "launcher/cli/attest": [*commons("attest base tables"), "launcher/cli"],
    "launcher/cli/learn": [*commons("audit_lines base policy tables"), "launcher/cli", "launcher/compiler", "launcher/egress/list"],
    "agent/traces": [*commons("base")],
    "agent/http": [*commons("base tables"), "agent/traces"],
    "agent/metrics": [],
    # A program of its own, and the line to it that the agent has as well.
    "agent/courier": [*commons("base kernel making"), "agent/http"],
    "agent/bridge": [*commons("base ipc tables"), "agent/courier", "agent/http", "agent/metrics", "agent/traces"],
    "agent/frames": [*commons("base tables")],
    "agent/worker": [*commons("base tables"), "agent/frames"],
    "agent/display": [*commons("base"), "agent/frames"],
    # Programs of the session `browser`, which know nothing of the agent but the lines between them.
    "agent/cdp": commons("base"),
    "agent/relay": commons("base"),
    # Kinds of sessions know nothing of each other; only a workspace has all of them.
    "agent/services/common": [*BELOW_SERVICES, *commons("ipc")],
    "agent/services/program": [*BELOW_SERVICES, "agent/services/common"],
    "agent/services/shell": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/code": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/notebook": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/files": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/desktop": [*BELOW_SERVICES, "agent/services/common", "agent/services/program", "agent/services/files"],
    "agent/services/browser": [*BELOW_SERVICES, "agent/services/common", "agent/services/program", "agent/services/files", "agent/services/desktop"],
    "agent/services/observe": [*BELOW_SERVICES, "agent/services/common"],
    "agent/services/skills": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/documents": [*BELOW_SERVICES, "agent/services/common", "agent/services/program", "agent/services/files"],
    "agent/services/coding": [*BELOW_SERVICES, "agent/courier", "agent/services/common", "agent/services/files"],
    "agent/services/mcp": [*BELOW_SERVICES, "agent/services/common", "agent/services/program"],
    "agent/services/workspace": [*BELOW_SERVICES, "agent/services/common", "agent/services/program", "agent/services/shell", "agent/services/code", "agent/services/notebook", "agent/services/files", "agent/services/observe", "agent/services/desktop", "agent/services/browser", "agent/services/mcp", "agent/services/skills", "agent/services/documents", "agent/services/coding"],
    "agent/auth": [*commons("base tables"), "agent/http"],
    "agent/proxy": [*commons("base"), "agent/bridge", "agent/http", "agent/metrics"],
    "agent/routes": [*commons("base egress tables"), "agent/frames", "agent/http", "agent/metrics", "agent/auth", "agent/proxy", "agent/bridge", "agent/traces", *SERVICES],
    "agent/derive": [*commons("base tables"), "agent/http", "agent/routes"],
    "agent/mcp": [*commons("base tables"), "agent/bridge", "agent/frames", "agent/http", "agent/auth", "agent/routes", "agent/services/mcp", "agent/services/shell", "agent/services/workspace"],
    "agent/page": [*commons("base"), "agent/http", "agent/auth", "agent/routes"],
    "agent": [*commons("base ipc"), "agent/http", "agent/auth", "agent/courier", "agent/metrics", "agent/traces", "agent/bridge", "agent/proxy", *SERVICES, "agent/routes", "agent/derive"],
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
    if sys.argv[1:] == ["--pid-1"]:  # the folders that it is made of
        print("launcher/pid1", *commons(PID_1))
        sys.exit(0)
    sys.exit(main())
