"""Refused system calls on record: each one, by whom and why; a flood in numbers that add up; and nothing lost without a word."""

import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import time

import pytest
from harness import CLI, LAUNCHER, Refused, descendants, edit, eventually, inside, outside, processes

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the system calls are made by their x86-64 numbers")

KEYCTL, UNSHARE, SOCKET, PTRACE, MOUNT, IOCTL, PRCTL = 250, 272, 41, 101, 165, 16, 157
EVENTS = ("denial", "denials_dropped", "denial_audit_closed")


def denials(launcher, session):
    return [r for r in launcher.records(session) if r["event"] in EVENTS]


def told(launcher, session, count):
    """The denials of a session, once there are `count`."""
    return eventually(lambda: len(found := denials(launcher, session)) >= count and found, what=f"{count} records of denials")


def mechanism(report):
    return next(m for m in report["mechanisms"] if m["name"] == "denial_audit")


def report(control, session):
    return control.call("session_report", session=session)[0]["report"]


def auditor(launcher):
    return next((p for p, (parent, name, _) in processes().items() if parent == launcher.pid and name == "caisson-auditor"), None)


def flood(control, session, calls, processes=1):
    """keyctl that often in a tight loop of each process, or until it was answered otherwise a thousand times: how many were answered
    EPERM, how many otherwise, and the last answers."""
    return inside(
        control,
        session,
        f"""
libc.syscall.restype = ctypes.c_long
def loop():
    eperm = other = 0
    for _ in range({calls}):
        libc.syscall({KEYCTL}, 0, 0, 0)
        if ctypes.get_errno() == errno.EPERM: eperm += 1
        elif (other := other + 1) == 1000: break
    return eperm, other, ctypes.get_errno()
r, w = os.pipe()
for _ in range({processes}):
    if os.fork() == 0:
        os.write(w, struct.pack("3q", *loop()))
        os._exit(0)
for _ in range({processes}): os.wait()
told = [struct.unpack("3q", os.read(r, 24)) for _ in range({processes})]
out = sum(t[0] for t in told), sum(t[1] for t in told), "/".join(sorted(set(name(t[2]) for t in told)))
""",
    )


def test_every_refused_call_is_one_record_in_order(launcher, control, session):
    errnos = inside(
        control,
        session,
        f"""
out = [call({KEYCTL}, 3, 0), call({UNSHARE}, 0x10020000), call({SOCKET}, 17, 3, 768), call({PTRACE}, 16, 1, 0, 0),
       call({MOUNT}, 0, 0, 0, 4096, 0), call({IOCTL}, 0, 0x5412, 0), call({PRCTL}, 35, 1, 0, 0, 0), os.getpid()]
""",
    )
    pid = errnos.pop()
    records = told(launcher, session, 7)
    assert errnos == ["EPERM"] * 7 == [r["errno"] for r in records]
    assert [(r["syscall"], r["decoded"]) for r in records] == [
        ("keyctl", {"operation": "KEYCTL_REVOKE"}),
        ("unshare", {"flags": "CLONE_NEWNS|CLONE_NEWUSER"}),
        ("socket", {"family": "AF_PACKET", "type": "SOCK_RAW", "protocol": "768"}),
        ("ptrace", {"request": "PTRACE_ATTACH", "pid": "1"}),
        ("mount", {"flags": "MS_BIND"}),
        ("ioctl", {"fd": "0", "request": "TIOCSTI"}),
        ("prctl", {"option": "PR_SET_MM", "argument": "0x1"}),
    ]
    assert {r["pid"] for r in records} == {pid} and {r["untrusted"]["comm"] for r in records} == {"python3"}
    assert [r["at_us"] for r in records] == sorted(r["at_us"] for r in records)
    rules = {r["syscall"]: r["rule"] for r in records}
    assert rules["keyctl"] == "seccomp/refused" and rules["ioctl"] == "seccomp/terminal: refuse_if"
    assert "seccomp/sockets-unix: any_of" in rules["socket"]
    assert records[0]["args"][0] == "0x3" and len(records[0]["args"]) == 6


def test_what_is_allowed_or_unknown_leaves_no_record(launcher, control, session):
    # 435: clone3, which C libraries try; 1000: no system call at all.
    assert inside(control, session, "out = [call(435, 0, 0), call(1000), call(39) > 0]") == ["ENOSYS", "ENOSYS", True]
    inside(control, session, f"out = call({KEYCTL})")
    assert [r["syscall"] for r in told(launcher, session, 1)] == ["keyctl"]


def test_processes_and_threads_are_told_apart(launcher, control, session):
    parent, child = inside(
        control,
        session,
        f"""
import threading
pid = os.fork()
if pid == 0:
    call({KEYCTL}, 1)
    os._exit(0)
os.waitpid(pid, 0)
thread = threading.Thread(target=lambda: call({UNSHARE}, 0))
thread.start()
thread.join()
out = os.getpid(), pid
""",
    )
    by_child, by_thread = told(launcher, session, 2)
    assert (by_child["pid"], by_child["tid"]) == (child, child)
    assert by_thread["pid"] == parent and by_thread["tid"] not in (parent, child)
    assert by_thread["launcher_pid"] != by_thread["launcher_tid"] and by_child["launcher_pid"] != by_child["pid"]


def test_a_signal_in_between_makes_no_second_record(launcher, control, session):
    answered = inside(
        control,
        session,
        f"""
ticks = 0
def tick(*_):
    global ticks
    ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
answers = [call({KEYCTL}, n) for n in range(500)]
signal.setitimer(signal.ITIMER_REAL, 0)
out = answers.count("EPERM"), ticks > 0
""",
    )
    assert answered == [500, True]
    control.destroy(session)
    records = launcher.records(session)
    assert [int(r["args"][0], 16) for r in records if r["event"] == "denial"] == list(range(500))
    assert records[-1]["denials"] == {"recorded": 500, "dropped": 0}


def test_all_is_on_record_before_the_end(launcher, control):
    session = control.create()
    inside(control, session, f"out = [call({KEYCTL}, n) for n in range(100)]")
    control.destroy(session)
    records = launcher.records(session)
    assert records[-1]["event"] == "session_end" and records[-1]["denials"] == {"recorded": 100, "dropped": 0}
    assert sum(r["event"] == "denial" for r in records) == 100


def test_a_flood_is_counted_to_the_last_call(fresh):
    control = fresh.start().control()
    session = control.create()
    assert flood(control, session, 8000) == [8000, 0, "EPERM"]
    control.destroy(session)
    records = fresh.records(session)
    recorded = sum(r["event"] == "denial" for r in records)
    aggregates = [r for r in records if r["event"] == "denials_dropped"]
    # At most the burst, each by itself; fewer, where the launcher is too slow to read them.
    assert 0 < recorded < 8000 and recorded + sum(r["dropped"] for r in aggregates) == 8000
    for r in aggregates:
        assert r["calls"] == [{"syscall": "keyctl", "errno": "EPERM", "count": r["dropped"]}]
    assert records[-1]["denials"] == {"recorded": recorded, "dropped": 8000 - recorded}
    assert not [r for r in records if r["event"] == "denial_audit_closed"]


def test_a_listener_that_is_flooded_is_closed_and_the_log_says_so(fresh):
    control = fresh.start().control()
    loud, quiet = control.create(), control.create()
    assert mechanism(report(control, loud))["state"] == "enforced"
    # Several at once, so that there are enough in a second where each waits for a processor.
    eperm, other, last = flood(control, loud, 1_000_000, 8)
    assert last == "ENOSYS" and other > 0, "the kernel answers by itself when nobody listens"
    closed = eventually(lambda: [r for r in denials(fresh, loud) if r["event"] == "denial_audit_closed"], what="the end")
    records = denials(fresh, loud)
    assert records[-1] == closed[0] and closed[0]["reason"] == "flood" and "ENOSYS" in closed[0]["from_now_on"]
    recorded = sum(r["event"] == "denial" for r in records)
    dropped = sum(r["dropped"] for r in records if r["event"] == "denials_dropped")
    assert recorded + dropped == eperm == closed[0]["recorded"] + closed[0]["dropped"]
    assert mechanism(report(control, loud))["state"] == "unavailable", "no report claims what is not so"
    # Nobody else pays.
    assert inside(control, quiet, f"out = call({KEYCTL})") == "EPERM"
    assert [r["event"] for r in told(fresh, quiet, 1)] == ["denial"]
    assert mechanism(report(control, quiet))["state"] == "enforced"


def test_without_the_auditor_calls_fail_closed_and_the_logs_say_so(fresh):
    control = fresh.start().control()
    session = control.create()
    assert inside(control, session, f"out = call({KEYCTL})") == "EPERM"
    told(fresh, session, 1)
    os.kill(auditor(fresh), signal.SIGKILL)
    closed = told(fresh, session, 2)[1]
    assert (closed["event"], closed["reason"]) == ("denial_audit_closed", "auditor_died")
    assert inside(control, session, f"out = [call({KEYCTL}), call({MOUNT}, 0, 0, 0, 0, 0)]") == ["ENOSYS"] * 2
    assert mechanism(report(control, session))["state"] == "unavailable"

    def events():
        return [r["event"] for r in fresh.records() if r["event"].startswith("auditor")]

    eventually(lambda: auditor(fresh) and len(events()) > 2, what="another auditor, and its start on record")
    assert events() == ["auditor_start", "auditor_exit", "auditor_start"]
    again = eventually(lambda: created(control), what="a session with another auditor")
    assert inside(control, again, f"out = call({KEYCTL})") == "EPERM"
    assert told(fresh, again, 1)[0]["syscall"] == "keyctl"


def created(control):
    try:
        return control.create()
    except Refused:
        return None


def test_no_session_is_given_a_listener_that_died_before(fresh):
    control = fresh.start().control()
    control.destroy(control.create())  # sessions are built ahead from here on
    os.kill(auditor(fresh), signal.SIGKILL)
    eventually(lambda: [r for r in fresh.records() if r["event"] == "auditor_exit"], what="the launcher has noticed")
    session = eventually(lambda: created(control), what="a session with another auditor")
    assert mechanism(report(control, session))["state"] == "enforced"
    assert inside(control, session, f"out = call({KEYCTL})") == "EPERM"


def listeners(pid):
    """Descriptors of a process that are a filter's listener."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        for fd in pathlib.Path("/proc", str(pid), "fd").iterdir():
            with contextlib.suppress(OSError):  # closed in between
                found += [fd.name] if "seccomp notify" in os.readlink(fd) else []
    return found


def test_only_the_auditor_holds_listeners(launcher, control, session):
    name, fds = control.start(session, "sleep", "60", stdin=False)
    os.close(fds[0]), os.close(fds[1])

    def with_one():
        return {pid for pid in descendants(launcher.pid) | {launcher.pid} if listeners(pid)}

    # A session that is just being made ready hands over its own, before any of its programs runs.
    eventually(lambda: with_one() == {auditor(launcher)}, what="else a session could answer for the kernel, or a call hang when it dies")
    control.call("exec_signal", session=session, exec=name, signal="SIGKILL")
    control.exit(session, name)


def test_the_auditor_can_do_nothing(launcher):
    status = dict(
        line.split(":\t", 1) for line in pathlib.Path(f"/proc/{auditor(launcher)}/status").read_text().splitlines() if ":\t" in line
    )
    assert set(status["Uid"].split()) == {"991"} and set(status["Gid"].split()) == {"991"}
    assert {int(status[s], 16) for s in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"], status["Groups"].strip()) == ("1", "2", "")


def test_a_hostile_name_stays_a_string(launcher, control, session):
    inside(
        control,
        session,
        f"""
comm = b'\\"}},\\n\\x1b[2J\\\\\\xff'
libc.prctl(15, comm, 0, 0, 0)
out = call({KEYCTL})
""",
    )
    record = told(launcher, session, 1)[0]
    assert record["untrusted"]["comm"].startswith('"},') and "\x1b" in record["untrusted"]["comm"]
    lines = (launcher.audit / f"{session}.ndjson").read_bytes()
    assert b"\x1b" not in lines and b"\xff" not in lines
    checked = subprocess.run([CLI, "audit", "verify", launcher.audit / f"{session}.ndjson"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_killing_callers_harms_nobody(launcher, control, session):
    """Callers that die while the auditor has their call."""
    code = f"""
import time
children = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        while True:
            libc.syscall({KEYCTL}, 0)
    children.append(pid)
time.sleep(0.05)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
out = call({UNSHARE}, 0)
"""
    before = auditor(launcher)
    assert inside(control, session, code) in ("EPERM", "ENOSYS")
    other = control.create()
    assert inside(control, other, f"out = call({KEYCTL})") == "EPERM"
    control.destroy(other)
    assert auditor(launcher) == before


def test_a_policy_can_do_without_the_records(fresh):
    base = json.loads((fresh.policies / "base.json").read_text())
    edit(fresh.policies / "base.json", audit={**base.get("audit", {}), "denials": False})
    control = fresh.start().control()
    session = control.create()
    assert mechanism(report(control, session))["state"] == "disabled_by_policy"
    assert inside(control, session, f"out = call({KEYCTL})") == "EPERM"
    control.destroy(session)
    assert not denials(fresh, session)


# Holds a listener of a filter that lets everything through, as a container's runtime may, and becomes the launcher.
OUTER = """
import ctypes, os, sys
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]
allow = Filter(0x06, 0, 0, 0x7fff0000)
fd = ctypes.CDLL(None, use_errno=True).syscall(317, 1, 1 << 3, ctypes.byref(Program(1, ctypes.pointer(allow))))
assert fd >= 0, ctypes.get_errno()
os.set_inheritable(fd, True)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_below_another_listener_sessions_run_and_say_what_they_lack(fresh):
    control = fresh.start(wrapper=("/usr/bin/python3", "-c", OUTER)).control()
    session = control.create()
    lacking = mechanism(report(control, session))
    assert lacking["state"] == "unavailable" and "EBUSY" in lacking["detail"]
    assert inside(control, session, f"out = call({KEYCTL})") == "EPERM", "the filter answers by itself"
    control.destroy(session)
    assert not denials(fresh, session) and auditor(fresh) is None


def test_below_another_listener_a_policy_that_requires_records_refuses(fresh):
    edit(fresh.policies / "base.json", require=["denial_audit"])
    control = fresh.start(wrapper=("/usr/bin/python3", "-c", OUTER)).control()
    with pytest.raises(Refused, match="requires denial_audit"):
        control.create()


def test_a_policy_that_requires_records_has_them_here(fresh):
    edit(fresh.policies / "base.json", require=["denial_audit"])
    control = fresh.start().control()
    assert mechanism(report(control, control.create()))["state"] == "enforced"


def test_a_refused_request_is_in_the_sessions_own_log(launcher, control, session):
    for op, more in (("session_exec", {"argv": []}), ("exec_signal", {"exec": "e-1", "signal": "SIGNONE"}), ("session_stat", {"x": 1})):
        with pytest.raises(Refused):
            control.call(op, session=session, **more)
    refused = [r for r in launcher.records(session) if r["event"] == "request_refused"]
    assert [r["op"] for r in refused] == ["session_exec", "exec_signal", "session_stat"]
    assert "SIGNONE" in refused[1]["what"]


def test_a_limit_of_a_command_is_a_record(launcher, control, session):
    control.run(session, "sh", "-c", "ulimit -S -t 1; while :; do :; done")
    hit = [r for r in launcher.records(session) if r["event"] == "limit_hit"]
    assert [(r["limit"], r["by"], r["exec"]) for r in hit] == [("cpu_seconds", "rlimit", "e-1")]


def test_outside_these_calls_are_not_refused():
    """The control of all above: the numbers are right, and only a session's rules refuse them."""
    assert outside(f"out = [call({UNSHARE}, 0x20000), call({SOCKET}, 17, 3, 768) > 2, call({KEYCTL}, 0, -3, 1) > 0]") == [0, True, True]


def test_an_auditor_that_cannot_start_is_tried_again_slowly_and_said(fresh, tmp_path):
    """Also after one that had run for long: the first attempt then comes at once, the next ones do not."""
    programs = fresh.own_programs(tmp_path / "programs")
    fresh.start("--agent", "/usr/bin/true")
    begun = time.monotonic()
    eventually(lambda: time.monotonic() - begun > 11, what="the auditor has run for long")
    (programs / "caisson-auditor").unlink()
    killed = time.monotonic()
    os.kill(auditor(fresh), signal.SIGKILL)

    def failures():
        return fresh.log.read_text().count("the auditor cannot be started")

    eventually(lambda: failures() >= 3, what="three attempts")
    assert failures() <= time.monotonic() - killed + 2
    shutil.copy(LAUNCHER.parent / "caisson-auditor", programs)
    eventually(lambda: auditor(fresh), what="another auditor, once there is one")
