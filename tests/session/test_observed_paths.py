"""Paths that the walls refuse, on record where a policy asks for it: advisory, and never a wall. What is expected to be the kernel's
answer is compared with what the kernel answered."""

import json
import os
import platform
import signal

import pytest
from harness import PRELUDE, Refused, below, edit, eventually, inside, processes

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the system calls are made by their x86-64 numbers")

KEYCTL, OPENAT2, CREAT, RENAME = 250, 437, 85, 82
EVENTS = ("path_refusal", "denial", "denials_dropped", "denial_audit_closed")


def observed(policies, **more):
    (policies / "observed.json").write_text(json.dumps({"extends": "base", "audit": {"paths": "observe"}, **more}))


@pytest.fixture(scope="module")
def launcher(here, tmp_path_factory):
    import harness

    with harness.Launcher(tmp_path_factory.mktemp("observed")) as one:
        observed(one.policies)
        yield one.start()


@pytest.fixture
def session(control):
    one = control.create("observed")
    yield one
    control.end(one)


def told(launcher, session):
    return [r for r in launcher.records(session) if r["event"] in EVENTS]


def refusals(launcher, session, under=""):
    """(operation, path, expected errno) of the records whose path begins so, once the session is over and all is written."""
    return [
        (r["operation"], r["untrusted"]["path"], r["expected_errno"])
        for r in told(launcher, session)
        if r["event"] == "path_refusal" and r["untrusted"]["path"].startswith(under)
    ]


def mechanism(control, session):
    report = control.call("session_report", session=session)[0]["report"]
    return next(m for m in report["mechanisms"] if m["name"] == "denial_audit")


# Operation, path and how: what is answered is what the record expects, unless something else comes first.
TRIES = """
def names(path): return os.fsencode(path) + b"\\0"
def connect(path):
    with socket.socket(socket.AF_UNIX) as s: s.connect(path)
def bind(path):
    with socket.socket(socket.AF_UNIX) as s: s.bind(path)
out = {
    "open": tried(open, "/etc/shadow"), "write": tried(open, "/root/x", "w"), "stat": tried(os.stat, "/etc/sudoers"),
    "access": tried(lambda: os.close(os.open("/var/lib/dpkg/status", os.O_RDONLY))), "execute": tried(os.execv, "/opt/program", ["x"]),
    "readlink": tried(os.readlink, "/srv/link"), "chdir": tried(os.chdir, "/root"), "mkdir": tried(os.mkdir, "/usr/made"),
    "unlink": tried(os.unlink, "/srv/gone"), "rename": tried(os.rename, "/home/gem/a", "/usr/b"),
    "link": tried(os.link, "/etc/gshadow", "/home/gem/l"), "symlink": tried(os.symlink, "x", "/usr/link"),
    "truncate": tried(os.truncate, "/srv/cut", 0), "chmod": tried(os.chmod, "/srv/mode", 0o600), "chown": tried(os.chown, "/srv/own", 1, 1),
    "utime": tried(os.utime, "/srv/time"), "connect": tried(connect, "/run/docker.sock"), "bind": tried(bind, "/srv/socket"),
}
"""


def test_what_is_refused_is_on_record_with_what_the_kernel_said(launcher, control, session):
    inside(control, session, "open('/home/gem/a', 'w'); out = 1")
    answers = inside(control, session, TRIES)
    assert "ok" not in answers.values()
    control.destroy(session)
    records = told(launcher, session)
    assert all(r["advisory"] is True and r["pid"] > 0 and r["launcher_tid"] > 0 and r["why"] for r in records if r["event"] == "path_refusal")
    by = {path: (operation, error) for operation, path, error in refusals(launcher, session)}
    expected = {
        "open": "/etc/shadow", "write": "/root/x", "stat": "/etc/sudoers", "execute": "/opt/program", "readlink": "/srv/link",
        "chdir": "/root", "mkdir": "/usr/made", "unlink": "/srv/gone", "rename": "/usr/b", "link": "/etc/gshadow", "symlink": "/usr/link",
        "truncate": "/srv/cut", "chmod": "/srv/mode", "chown": "/srv/own", "utime": "/srv/time", "connect": "/run/docker.sock",
        "bind": "/srv/socket",
    }  # fmt: skip
    assert {k: by.get(v) for k, v in expected.items()} == {
        k: ("open" if k == "write" else k, answers[k] if k not in ("mkdir", "rename", "symlink") else "EROFS") for k in expected
    }
    # What the kernel looks at first it says first: here the two sides of a rename, and who may write a directory.
    assert {answers[k] for k in ("mkdir", "rename", "symlink")} <= {"EROFS", "EACCES", "EXDEV"}


def test_what_is_granted_leaves_no_record(launcher, control, session):
    inside(
        control,
        session,
        """
os.makedirs("/home/gem/made/b", exist_ok=True)
for path in ("/usr/bin/env", "/bin/sh", "/etc/passwd", "/proc/self/status", "/dev/null", "/lib64", "/", "/etc", "/home"): os.stat(path)
open("/tmp/x", "w").close(); os.rename("/tmp/x", "/tmp/y"); os.unlink("/tmp/y")
os.chdir("/home/gem/made"); open("b/f", "w").close(); os.stat("../made/./b//f"); os.stat("/bin/../bin/sh")
fd = os.open("/usr", os.O_PATH); os.stat("bin/env", dir_fd=fd)
out = 1
""",
    )
    control.destroy(session)
    seen = {p for _, p, _ in refusals(launcher, session)}
    assert seen <= {"/etc/ld.so.preload"}, "the loader asks for this one; nothing else here is refused"
    assert next(r for r in launcher.records(session) if r["event"] == "session_end")["denials"]["paths"]["dropped"] == 0


def test_names_are_resolved_from_where_they_begin(launcher, control, session):
    inside(
        control,
        session,
        f"""
os.chdir("/usr/lib")
fd = os.open("/usr", os.O_PATH)
out = [tried(os.stat, "../../root/../srv/one"), tried(os.stat, "/bin/../../opt/two"), tried(os.stat, "../srv/unseen", dir_fd=fd),
       tried(os.stat, "/srv/three", dir_fd=fd), tried(os.stat, "/var/tmp/../srv/four"), call({OPENAT2}, -100, b"/srv/five", struct.pack("QQQ", 1, 0, 0), 24)]
""",
    )
    control.destroy(session)
    asked = [r[:2] for r in refusals(launcher, session, "/srv")]
    assert asked == [("stat", "/srv/one"), ("stat", "/srv/three"), ("stat", "/srv/four"), ("open", "/srv/five")]
    assert ("stat", "/opt/two") in [r[:2] for r in refusals(launcher, session, "/opt")]
    # Where a descriptor leads is not told; the call is counted.
    assert next(r for r in launcher.records(session) if r["event"] == "session_end")["denials"]["paths"]["unseen"] >= 1
    given = next(r["untrusted"]["given"] for r in told(launcher, session) if r.get("untrusted", {}).get("path") == "/srv/one")
    assert given == "../../root/../srv/one"


def test_hostile_names_stay_strings(launcher, control, session):
    answers = inside(
        control,
        session,
        f"""
import mmap
long = b"/srv/" + b"a/" * 2040
page = mmap.mmap(-1, 8192)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
libc.munmap(ctypes.c_void_p(at + 4096), 4096)
page[4096 - 7:4096] = b"/srv/x\\0"
ends = at + 4096 - 7
out = [tried(os.stat, b'/srv/"}},\\n\\x1b[2J\\\\\\xff\\xfe'), tried(os.stat, long), tried(os.stat, b"/srv/" + b"x" * 5000),
       call({CREAT}, 0, 0), call({CREAT}, 1, 0), call({CREAT}, -4096, 0), call({CREAT}, 0x7fffffffe000, 0), call({CREAT}, ends, 0)]
os._exit(print(json.dumps(out), flush=True) or 0)
""",
    )
    assert answers == ["ENOENT", "ENOENT", "ENAMETOOLONG", "EFAULT", "EFAULT", "EFAULT", "EFAULT", "ENOENT"]
    control.destroy(session)
    records = [r for r in told(launcher, session) if r["event"] == "path_refusal" and r["untrusted"]["path"].startswith("/srv")]
    assert records[0]["untrusted"]["path"] == '/srv/"},\n\x1b[2J\\\u00ff\u00fe'
    assert records[1]["untrusted"]["path_bytes"] > 4000 and len(records[1]["untrusted"]["path"]) == 1024
    raw = (launcher.audit / f"{session}.ndjson").read_bytes()
    assert b"\x1b" not in raw and b"\xff" not in raw and all(json.loads(line) for line in raw.splitlines())
    end = next(r for r in launcher.records(session) if r["event"] == "session_end")
    assert end["denials"]["paths"]["unseen"] >= 4, "what cannot be read is said to be unseen"


def test_processes_threads_and_vfork(launcher, control, session):
    pid = inside(
        control,
        session,
        """
import threading, subprocess
thread = threading.Thread(target=lambda: tried(os.stat, "/srv/thread"))
thread.start(); thread.join()
child = os.fork()
if child == 0: tried(os.stat, "/srv/child"); os._exit(0)
os.waitpid(child, 0)
subprocess.run(["/usr/bin/stat", "/srv/spawned"], capture_output=True, close_fds=False)
out = os.getpid()
""",
    )
    control.destroy(session)
    by = {r["untrusted"]["path"]: r for r in told(launcher, session) if r["event"] == "path_refusal"}
    assert by["/srv/thread"]["pid"] == pid != by["/srv/thread"]["tid"] and by["/srv/child"]["pid"] != pid
    assert by["/srv/spawned"]["untrusted"]["comm"] == "stat"


def test_refused_calls_stay_refused_and_on_record(launcher, control, session):
    assert inside(control, session, f"out = [call({KEYCTL}, 3), call(165, 0, 0, 0, 4096, 0), call(133, b'/tmp/device', 0o20666, 259)]") == ["EPERM"] * 3
    control.destroy(session)
    assert [(r["syscall"], r["errno"]) for r in told(launcher, session) if r["event"] == "denial"] == [
        ("keyctl", "EPERM"), ("mount", "EPERM"), ("mknod", "EPERM")]  # fmt: skip


def test_a_call_that_the_policy_denies_is_not_let_on(fresh):
    """It names a file, and is told of as these are; but its answer is a refusal."""
    observed(fresh.policies, syscalls={"deny": ["rename", "openat2"]})
    control = fresh.start().control()
    session = control.create("observed")
    answers = inside(
        control,
        session,
        f"""
open("/tmp/from", "w").close()
out = [call({RENAME}, b"/tmp/from", b"/tmp/to"), call({OPENAT2}, -100, b"/tmp/from", struct.pack("QQQ", 0, 0, 0), 24), os.path.exists("/tmp/from")]
""",
    )
    assert answers == ["EPERM", "EPERM", True]
    control.destroy(session)
    assert [r["syscall"] for r in told(fresh, session) if r["event"] == "denial"] == ["rename", "openat2"]


def test_off_unless_asked_for(launcher, control):
    session = control.create()
    inside(control, session, "out = tried(os.stat, '/srv/x')")
    control.destroy(session)
    assert not told(launcher, session)
    watched = control.create("observed")
    assert (mechanism(control, watched)["state"], mechanism(control, watched)["detail"]) == ("enforced", "paths observed")


def test_a_flood_is_counted_and_the_session_goes_on(fresh):
    observed(fresh.policies)
    control = fresh.start().control()
    session, other = control.create("observed"), control.create("observed")
    calls = 20_000
    assert inside(
        control,
        session,
        f"""
failed = sum(call(4, b"/srv/x", 0) == "ENOENT" for _ in range({calls}))
denied = sum(call({KEYCTL}) == "EPERM" for _ in range({calls}))
out = failed, denied, os.path.exists("/usr/bin/env")
""",
    ) == [calls, calls, True]
    inside(control, other, "out = tried(os.stat, '/srv/quiet')")
    control.destroy(session), control.destroy(other)
    assert [p for _, p, _ in refusals(fresh, other, "/srv")] == ["/srv/quiet"], "nobody else pays"
    records = told(fresh, session)
    assert not [r for r in records if r["event"] == "denial_audit_closed"], "its listener cannot be closed: it could open nothing"
    end = next(r for r in fresh.records(session) if r["event"] == "session_end")["denials"]
    assert end["recorded"] + end["dropped"] == calls
    counted = [r for r in records if r["event"] == "denials_dropped"]
    assert sum(r["dropped"] for r in counted if "advisory" not in r) == end["dropped"]
    paths = end["paths"]
    assert sum(r["dropped"] for r in counted if "advisory" in r) == paths["dropped"]
    assert sum(r["unseen"] for r in counted if "advisory" in r) == paths["unseen"]
    assert paths["recorded"] + paths["dropped"] + paths["unseen"] >= calls
    assert paths["recorded"] == sum(r["event"] == "path_refusal" for r in records) < calls


def test_without_the_auditor_sessions_go_on_and_the_log_says_so(fresh):
    observed(fresh.policies)
    control = fresh.start().control()
    session = control.create("observed")
    guard = below(fresh.pid, "caisson-observe")
    os.kill(below(fresh.pid, "caisson-auditor"), signal.SIGKILL)
    eventually(lambda: [r for r in told(fresh, session) if r["event"] == "denial_audit_closed"], what="the end of records")
    # Files are there, walls are there, and calls that are refused are refused.
    assert inside(control, session, f"out = [tried(os.stat, '/usr'), tried(open, '/etc/shadow'), call({KEYCTL})]") != ["ok", "ok", "ok"]
    answers = inside(control, session, f"out = [os.path.exists('/usr'), tried(open, '/etc/shadow'), call({KEYCTL})]")
    assert answers == [True, "ENOENT", "EPERM"]
    closed = told(fresh, session)[-1]
    assert (closed["event"], closed["reason"]) == ("denial_audit_closed", "auditor_died")
    assert mechanism(control, session)["state"] == "unavailable"
    again = eventually(lambda: created(control), what="a session with another auditor")
    inside(control, again, "out = tried(os.stat, '/srv/again')")
    control.destroy(again)
    assert [p for _, p, _ in refusals(fresh, again, "/srv")] == ["/srv/again"]
    assert guard in processes(), "it serves the first session"
    control.destroy(session)
    eventually(lambda: guard not in processes(), what="it ends with its last session")


def test_the_auditor_dies_in_the_middle_of_calls(fresh):
    """Whatever state a call is in then, it gets the answer that it would have got, and none hangs."""
    observed(fresh.policies)
    control = fresh.start().control()
    session = control.create("observed")
    # Children with threads, so that several calls are under way at any time.
    name, fds = control.start(
        session,
        "/usr/bin/python3",
        "-I",
        "-c",
        PRELUDE
        + f"""
import threading, time
end, wrong = time.monotonic() + 3, []
def work():
    while time.monotonic() < end:
        for answer, wanted in ((tried(os.stat, "/srv/x"), "ENOENT"), (call({KEYCTL}), "EPERM"), (os.path.exists("/usr"), True)):
            if answer != wanted: wrong.append(answer)
child = os.fork()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
if child == 0: os._exit(len(wrong) > 0)
print(json.dumps([wrong[:5], os.waitpid(child, 0)[1]]))
""",
        stdin=False,
    )
    eventually(lambda: [r for r in told(fresh, session) if r["event"] == "denials_dropped"], what="more calls than records")
    os.kill(below(fresh.pid, "caisson-auditor"), signal.SIGKILL)
    assert control.exit(session, name)["exit_code"] == 0
    assert json.loads(os.read(fds[0], 1000)) == [[], 0]
    for fd in fds:
        os.close(fd)
    closed = eventually(lambda: [r["reason"] for r in told(fresh, session) if r["event"] == "denial_audit_closed"], what="the end of records")
    assert closed == ["auditor_died"]


def created(control):
    try:
        return control.create("observed")
    except Refused:
        return None


def test_without_the_observer_its_sessions_end_and_the_log_says_why(fresh):
    observed(fresh.policies)
    control = fresh.start().control()
    session, plain = control.create("observed"), control.create()
    os.kill(below(fresh.pid, "caisson-observe"), signal.SIGKILL)
    ended = control.event("session_end", session=session)
    assert ended["reason"] == "observer_died"
    closed = [r for r in told(fresh, session) if r["event"] == "denial_audit_closed"]
    assert [r["reason"] for r in closed] == ["observer_died"]
    assert inside(control, plain, "out = os.path.exists('/usr')") is True, "sessions that are not observed do not need it"
    again = eventually(lambda: created(control), what="a session with another observer")
    inside(control, again, "out = tried(os.stat, '/srv/again')")
    control.destroy(again)
    assert [p for _, p, _ in refusals(fresh, again, "/srv")] == ["/srv/again"]


def test_sessions_end_with_the_observer_when_the_auditor_has_not_read_all(fresh):
    """It ends with a message unread, which the launcher meets as an error before what the auditor said last."""
    observed(fresh.policies)
    control = fresh.start(CAISSON_READY_SESSIONS="0").control()
    session = control.create("observed")
    auditor = below(fresh.pid, "caisson-auditor")
    os.kill(auditor, signal.SIGSTOP)
    waiting = control.send("session_create", domain="bash")  # its listener waits in the socket
    waiting = [waiting, control.send("session_create", domain="bash")]
    eventually(lambda: len([p for p in processes().values() if p[1] == "caisson-init" and p[0] == fresh.pid]) >= 3, what="they wait")
    os.kill(below(fresh.pid, "caisson-observe"), signal.SIGKILL)
    os.kill(auditor, signal.SIGCONT)
    assert control.event("session_end", session=session)["reason"] == "observer_died"


def test_killing_callers_harms_nobody(launcher, control, session):
    code = """
import time
children = []
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        while True: tried(os.stat, "/srv/loop")
    children.append(pid)
time.sleep(0.05)
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
out = tried(os.stat, "/srv/after")
"""
    before = below(launcher.pid, "caisson-auditor"), below(launcher.pid, "caisson-observe")
    assert inside(control, session, code) == "ENOENT"
    other = control.create("observed")
    assert inside(control, other, "out = tried(os.stat, '/srv/x')") == "ENOENT"
    control.destroy(other)
    assert (below(launcher.pid, "caisson-auditor"), below(launcher.pid, "caisson-observe")) == before


def test_the_observer_can_do_nothing_else(launcher, control, session):
    pid = below(launcher.pid, "caisson-observe")
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert {int(status[s], 16) for s in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"], status["Groups"].strip()) == ("1", "2", "")
    files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2}
    assert {f for f in files if f.startswith("/")} == {"/proc"}


def test_a_policy_says_so(fresh):
    edit(fresh.policies / "base.json", audit={"paths": "observe"})
    observed(fresh.policies, audit={"paths": "off"})
    fresh.spawn()
    assert fresh.process.wait(60) != 0
    assert "/audit/paths" in fresh.log.read_text(), "to record less than base needs its reason"
