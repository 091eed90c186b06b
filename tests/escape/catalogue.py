"""Runs the escape program, in a session or unconfined, and says what became of each attack.

A verdict is one of
    stopped     the attack was refused as expected, and nothing outside changed; unconfined it works
    residual    it was not stopped, and the session's report says so
    open        it was not stopped, and nothing says so
    unprovable  it does not work unconfined either, for the reason given: this kernel shows nothing
    undecided   anything else: a broken probe, a control that failed, a launcher that no longer answers
"""

import base64
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from harness import BUILD

HERE = pathlib.Path(__file__).parent
# Errnos of a control that mean that the kernel has no such thing.
LACKING = {"ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENOPROTOOPT", "ENODEV", "ENXIO"}
LOST = {"verdict": "undecided", "sign": "", "note": "the program ended before this case"}


@dataclasses.dataclass
class Case:
    id: str
    area: str
    attack: str
    place: str
    field: str
    mechanisms: list
    expected: list
    flags: list
    control: str
    residual: list
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
    done = subprocess.run([path, "--list"], capture_output=True, text=True, check=True, timeout=60)
    return [Case(**json.loads(line)) for line in done.stdout.splitlines()]


def arguments(places):
    return [f"{name}={value}" for name, value in places.items() if value not in ("", None)]


def parse(text):
    found = {}
    for line in text.splitlines():
        try:
            one = json.loads(line[max(line.find('{"id": '), 0) :])  # random calls write to stdout, too
            found[one.pop("id")] = one
        except (ValueError, KeyError, TypeError, AttributeError):
            print(f"not a verdict: {line!r}", file=sys.stderr)
    return found


def in_session(control, session, path, chosen, places):
    """The verdicts of the program in this session, and how the session fares: None while it runs, else why it ended."""
    argv = [str(path), *(["--only", ",".join(chosen)] if chosen else []), *arguments(places)]
    ended, out, err = control.run(session, *argv)
    if err.strip():
        print(err, file=sys.stderr)
    # Without an answer the session is at its end, though perhaps not yet off the list.
    until = time.monotonic() + (0 if out else 10)
    while session in [s["session"] for s in control.call("session_list")[0]["sessions"]]:
        if time.monotonic() >= until:
            return parse(out), None
        time.sleep(0.05)
    over = control.event("session_end", session=session)
    return parse(out), over.get("reason") or ended.get("reason") or "ended"


def unconfined(path, chosen, places, where, prefix=(), own_mounts=True, preexec=None, environment=None, pass_fds=(), timeout=600):
    """The same program without a session, as root, with mounts of its own."""
    argv = [*(("unshare", "--mount", "--") if own_mounts else ()), *prefix, str(path), *(["--only", ",".join(chosen)] if chosen else []), *arguments(places)]
    out, _ = bounded([str(a) for a in argv], timeout, cwd=where, preexec_fn=preexec, env=environment, pass_fds=pass_fds)
    return parse(out)


def bounded(argv, timeout, **arguments):
    """Runs a command in a process group of its own, and ends the group with it whatever happens: (output, status)."""
    one = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True, **arguments)
    try:
        out, _ = one.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        out = ""
    finally:
        try:
            os.killpg(one.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        one.wait()
    return out, one.returncode


def statement(control, session):
    """What the launcher signs of this session: exactly what the token says."""
    reply = control.call("attest", session=session)[0]
    payload = reply["token"].split(".")[1]
    signed = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["caisson"]
    assert signed == reply["statement"], "the token does not say what the reply says"
    return signed


def shown(case, control):
    """Whether the control had the effect; else why it proves nothing, or None when it should have had it."""
    if control["verdict"] == "open":
        return True, ""
    if control["sign"] in LACKING:
        return False, f"not in this kernel ({control['sign']})"
    if case.place.startswith("/") and control["sign"] == "ENOENT":
        return False, f"not on this machine: {case.place}"
    if case.control:
        return False, case.control
    return False, None


def judge(case, inside, control, left):
    """One case's verdict from both runs. `left`: ids of what the session's report leaves open."""
    proved, reason = shown(case, control)
    verdict = {"verdict": inside["verdict"], "sign": inside["sign"], "note": inside["note"], "control": proved, "reason": reason}
    if inside["verdict"] == "open":
        stated = next((id for id in case.residual if id in left), None)
        verdict.update({"verdict": "residual", "residual": stated} if stated else {"verdict": "open"})
    elif inside["verdict"] == "stopped" and not proved:
        verdict["verdict"] = "undecided" if reason is None else "unprovable"
        if reason is None:
            verdict["note"] = f"the control failed: {control['verdict']} {control['sign']} {control['note']}"
    return verdict
