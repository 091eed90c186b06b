"""What a session is, from inside and from outside, as facts with names: a wall that is missing changes at least one of them."""

import json
import os
import pathlib
import re

from harness import PRELUDE, Refused, descendants, eventually

# Attacks give the errno by which they are refused, or what they get.
INSIDE = r"""
import pwd, resource
def status(*names):
    lines = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    return [lines[n] for n in names]
def mounts():
    rows = [line.split() for line in open("/proc/self/mountinfo")]
    return sorted([r[4], r[5], r[r.index("-") + 1]] for r in rows)
def connect(host, port):
    s = socket.socket(socket.AF_INET)
    s.settimeout(2)
    try: return name(s.connect_ex((host, port)))
    finally: s.close()
def reads(path):
    try: return sorted(os.listdir(path)) if os.path.isdir(path) else len(open(path, "rb").read(64))
    except OSError as e: return name(e.errno)
def first(path):
    # From the end: behind the name are state, parent, group, session and terminal.
    return open(path).read().rsplit(")", 1)[1].split()[3:5]
def terminal():
    try: os.close(os.openpty()[0]); return "ok"
    except OSError as e: return name(e.errno)
def terminals():
    held = []
    try:
        while len(held) < 100: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
        return "no end"
    except OSError as e: return [len(held), name(e.errno)]
    finally:
        for fd in held: os.close(fd)
out = {
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "user database": tried(lambda: pwd.getpwuid(os.getuid()).pw_name) if os.path.exists("/etc/passwd") else "none",
    "capabilities": status("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"),
    "no new privileges": status("NoNewPrivs"),
    "filter": status("Seccomp"),
    "limits": [resource.getrlimit(i) for i in range(16)],
    "host name": os.uname().nodename,
    "descriptors": len(os.listdir("/proc/self/fd")),
    "first process's POSIX session": first("/proc/1/stat"),
    "the root": reads("/"),
    "mounts": mounts(),
    "what /proc shows": [n for n in reads("/proc") if not n.isdigit()],
    "read what /proc has of the machine": [reads(f"/proc/{n}") for n in ("interrupts", "keys", "key-users", "kallsyms", "bus", "acpi", "scsi")],
    "read what is hidden": reads("/usr/share/doc"),
    "read a policy": reads(OUTSIDE),
    "read the root's home": reads("/root"),
    "write the root": tried(os.mkdir, "/made"),
    "write a read-only grant": tried(lambda: open("/srv/ro/file", "a").close()),
    "write a protected name": tried(lambda: open("/srv/rw/protected", "a").close()),
    "write a read-write grant": tried(lambda: open("/srv/rw/file", "a").close()),
    "write the home": tried(lambda: open(os.path.expanduser("~/new"), "w").close()),
    "write one's own /proc": tried(lambda: open("/proc/self/oom_score_adj", "w").close()),
    "make a terminal": terminal(),
    "take all terminals": terminals(),
    "reach the host's port": connect("127.0.0.1", PORT),
    "signal the launcher": tried(os.kill, LAUNCHER, 0),
    "a new user namespace": call(272, 0x10000000) if os.uname().machine == "x86_64" else call(97, 0x10000000),
}
"""
SPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


def inside(control, session, launcher):
    code = INSIDE.replace("OUTSIDE", repr(str(launcher.policies / "base.json"))).replace("PORT", str(launcher.port))
    code = code.replace("LAUNCHER", str(launcher.pid))
    try:
        ended, out, err = control.run(session, "/usr/bin/python3", "-I", "-c", f"{PRELUDE}\n{code}\nprint(json.dumps(out))", cwd="/")
    except Refused as e:
        return {"the probe itself": e.error["what"]}
    if ended.get("exit_code") != 0:
        return {"the probe itself": f"{ended.get('exit_code', ended.get('signal'))}: {err.strip().splitlines()[-1:]}"}
    return json.loads(out)


def first_processes(launcher):
    found = []
    for pid in sorted(descendants(launcher.pid)):
        try:
            if os.readlink(f"/proc/{pid}/exe").endswith("caisson-init"):
                found.append(pid)
        except OSError:
            pass
    return found


def spaces(pid):
    return {n: os.readlink(f"/proc/{pid}/ns/{n}") for n in SPACES}


def outside(launcher):
    """Two sessions as root sees them: whose namespaces they share, what their first process holds."""
    one, other = eventually(lambda: (lambda p: p[:2] if len(p) >= 2 else None)(first_processes(launcher)), what="two sessions")
    mine, first, second = spaces(launcher.pid), spaces(one), spaces(other)
    held = []
    for fd in os.listdir(f"/proc/{one}/fd"):
        held.append(re.sub(r"\d+", "N", os.readlink(f"/proc/{one}/fd/{fd}")))
    ids = re.search(r"Uid:\s+(.*)", pathlib.Path(f"/proc/{one}/status").read_text())[1].split()
    return {
        "namespaces shared with the launcher": [n for n in SPACES if first[n] == mine[n]],
        "namespaces shared with another session": [n for n in SPACES if first[n] == second[n]],
        "what the first process holds": sorted(held),
        "its uid outside": ids,
    }


def of(launcher, escape=None):
    """Every fact, and what the escape program adds."""
    control = launcher.control()
    session, other = control.create(), control.create()
    facts = outside(launcher)
    facts |= {f"escape {k}": v for k, v in (escape.run(control, session) if escape else {}).items()}
    facts |= inside(control, session, launcher)
    control.destroy(other)
    private = control.create(narrow={"home": "private", "tmp": "private"})
    for name, value in inside(control, private, launcher).items():
        if name in ("mounts", "write the home", "the probe itself"):
            facts[f"private: {name}"] = value
    control.close()
    launcher.controls.remove(control)
    return facts
