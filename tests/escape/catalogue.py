"""Runs the escape program, in a session or unconfined, and says what became of each attack.

A verdict is one of
    stopped     the attack was refused as expected, and nothing outside changed; unconfined it works
    residual    it was not stopped, and the session's report says so
    open        it was not stopped, and nothing says so
    unprovable  it does not work unconfined either, for the reason given: this kernel shows nothing
    undecided   anything else: a broken probe, a control that failed, a launcher that no longer answers
"""

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

from harness import BUILD

HERE = pathlib.Path(__file__).parent
# What the residual entries of a session's report are known by. The ids that the rows name stand left.
RESIDUAL = {
    "shared_proc": "/proc is the container's",
    "no_mount_ns": "names and metadata .* outside the grants can be seen",
    "no_mount_ns_metadata": "attributes .* can be changed",
    "no_mount_ns_exec": "can be mapped as code",
    "no_mount_ns_sockets": "sockets .* outside the grants can be connected to",
    "no_mount_ns_tmp": "/tmp is (the container's|shared)",
    "no_ipc_ns": "no IPC namespace",
    "no_net_ns": "no network namespace",
    "no_user_ns": "no user namespace",
    "no_uts_ns": "host name is the container's",
    "no_cgroup_ns": "no cgroup namespace",
    "no_cgroup": "no cgroup: memory and process limits",
    "one_uid": "one uid for launcher, agent and sessions",
    "landlock_scopes": "has no scopes",
    "locks": "can be locked",
    "home_quota": "home has no quota",
    "machine_facts": "facts of the machine",
}  # fmt: skip
# Errnos of a control that mean that the kernel has no such thing.
LACKING = {"ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENOPROTOOPT", "ENODEV", "ENXIO"}
LOST = {"verdict": "undecided", "sign": "", "note": "the program ended before this case"}


@dataclasses.dataclass
class Case:
    id: str
    area: str
    attack: str
    field: str
    mechanisms: list
    expected: list
    flags: list
    control: str
    residual: str
    seconds: int
    facts: dict = dataclasses.field(default_factory=dict)

    def alone(self):
        return "alone" in self.flags


def program(directory):
    """The built program, or one made here: it has no dependencies."""
    built = BUILD / "tests" / "escape" / "escape"
    if built.exists():
        return built
    made = directory / "escape"
    if not made.exists():
        sources = sorted(HERE.glob("*.c"))
        subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-static", "-o", made, *sources], check=True, timeout=120)
    return made


def cases(path):
    done = subprocess.run([path, "--list"], capture_output=True, text=True, check=True, timeout=20)
    return [Case(**json.loads(line)) for line in done.stdout.splitlines()]


def arguments(places):
    return [f"{name}={value}" for name, value in places.items() if value not in ("", None)]


def parse(text):
    found = {}
    for line in text.splitlines():
        try:
            one = json.loads(line)
            found[one.pop("id")] = one
        except (ValueError, KeyError):
            print(f"not a verdict: {line!r}", file=sys.stderr)
    return found


def in_session(control, session, path, chosen, places):
    """The verdicts of the program in this session, and how the session fares: None while it runs, else why it ended."""
    argv = [str(path), *(["--only", ",".join(chosen)] if chosen else []), *arguments(places)]
    ended, out, err = control.run(session, *argv)
    if err.strip():
        print(err, file=sys.stderr)
    running = [s["session"] for s in control.call("session_list")[0]["sessions"]]
    if session in running:
        return parse(out), None
    over = control.event("session_end", session=session)
    return parse(out), over.get("reason") or ended.get("reason") or "ended"


def unconfined(path, chosen, places, where, prefix=(), preexec=None, environment=None, pass_fds=(), timeout=300):
    """The same program without a session, as root, with mounts of its own."""
    argv = ["unshare", "--mount", "--", *prefix, str(path), *(["--only", ",".join(chosen)] if chosen else []), *arguments(places)]
    done = subprocess.run(
        [str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False, cwd=where,
        preexec_fn=preexec, env=environment, pass_fds=pass_fds,
    )  # fmt: skip
    if done.stderr.strip():
        print(done.stderr, file=sys.stderr)
    return parse(done.stdout)


def residual_ids(report):
    """The ids of what the session's report leaves open: by the entry's own id, or by its words."""
    texts = report["residual"]
    known = {entry["id"] for entry in texts if isinstance(entry, dict)}
    words = [entry["text"] if isinstance(entry, dict) else entry for entry in texts]
    return known | {name for name, pattern in RESIDUAL.items() if any(re.search(pattern, w) for w in words)}


def shown(case, control):
    """Whether the control had the effect; else why it proves nothing, or None when it should have had it."""
    if control["verdict"] == "open":
        return True, ""
    if control["sign"] in LACKING:
        return False, f"not in this kernel ({control['sign']})"
    if case.control:
        return False, case.control
    return False, None


def judge(case, inside, control, left):
    """One case's verdict from both runs. `left`: ids of what the session's report leaves open."""
    proved, reason = shown(case, control)
    verdict = {"verdict": inside["verdict"], "sign": inside["sign"], "note": inside["note"], "control": proved, "reason": reason}
    if inside["verdict"] == "open":
        verdict["verdict"] = "residual" if case.residual in left else "open"
    elif inside["verdict"] == "stopped" and not proved:
        verdict["verdict"] = "undecided" if reason is None else "unprovable"
        if reason is None:
            verdict["note"] = f"the control failed: {control['verdict']} {control['sign']} {control['note']}"
    return verdict
