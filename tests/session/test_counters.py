"""What the kernel counts and a session could use up: each row of "Kernel counters" (launcher/common/confine/README.md) without another test."""

import json
import os
import pathlib
import re

import pytest
from harness import PRELUDE, ROOT, inside

# Each takes what it can get, and says how much and what stopped it.
UNTIL_REFUSED = """
def until_refused(make, most=100000):
    taken = []
    for i in range(most):
        try: taken.append(make(i))
        except OSError as e: return [len(taken), name(e.errno)]
    return [len(taken), None]
"""


def taken(control, session, make, most=100000, before=""):
    return inside(control, session, f"{UNTIL_REFUSED}{before}\nout = until_refused({make}, {most})")


def holds(control, session, make, before=""):
    """As taken, by a program that stays: what it got, and its streams."""
    code = f"{PRELUDE}{UNTIL_REFUSED}{before}\nprint(json.dumps(until_refused({make})), flush=True)\nsignal.pause()"
    _, fds = control.start(session, "/usr/bin/python3", "-I", "-c", code)
    return json.loads(os.read(fds[1], 100)), fds


INSTANCES = """
def instance(i):
    ctypes.set_errno(0)
    fd = libc.inotify_init1(0)
    if fd < 0: raise OSError(ctypes.get_errno(), "")
    return fd
"""


def test_flaw_11_a_workspace_has_its_part_of_the_inotify_instances(control):
    """All sessions of it together; the next workspace, the agent's own user and root have theirs."""
    control.call("workspace_create", name="greedy")
    control.call("workspace_create", name="other")
    first, second = (control.create("shell", workspace="greedy") for _ in range(2))
    got, fds = holds(control, first, "instance", INSTANCES)
    assert got == [32, "EMFILE"]
    assert taken(control, second, "instance", before=INSTANCES)[0] == 0
    for workspace in ("other", "default"):
        assert taken(control, control.create("shell", workspace=workspace), "instance", 8, before=INSTANCES) == [8, None]
    for fd in fds:
        os.close(fd)
    for name in ("greedy", "other"):
        control.call("workspace_destroy", workspace=name)


def test_flaw_11_and_of_the_watches(control, session):
    facts = "out = [open('/proc/sys/user/' + n).read().split() for n in ('max_inotify_instances', 'max_inotify_watches')]"
    assert inside(control, session, facts) == [["32"], ["32768"]]
    assert inside(control, session, "out = tried(open, '/proc/sys/user/max_inotify_instances', 'w')") in ("EACCES", "EROFS")


def test_flaw_11_a_private_session_has_a_part_of_its_own(control):
    session = control.create(narrow={"home": "private", "tmp": "private"})
    assert taken(control, session, "instance", before=INSTANCES) == [32, "EMFILE"]


def test_flaw_12_tcp_buffers_have_a_bound_for_each_socket(control, session):
    facts = "out = [open('/proc/sys/net/ipv4/' + n).read().split() for n in ('tcp_rmem', 'tcp_wmem')]"
    assert inside(control, session, facts) == [["4096", "131072", "1048576"], ["4096", "16384", "1048576"]]


QUEUE = """
def queue(i):
    ctypes.set_errno(0)
    fd = libc.mq_open(b"/q%d" % i, os.O_CREAT | os.O_RDWR, 0o600, None)
    if fd < 0: raise OSError(ctypes.get_errno(), "")
    return fd
"""


def test_message_queues_cannot_be_made(control, session):
    """Landlock knows no place for them."""
    assert taken(control, session, "queue", before=QUEUE) == [0, "EACCES"]


SYSV = """
def segment(i):
    ctypes.set_errno(0)
    number = libc.shmget(0, 4096, 0o1600)
    if number < 0: raise OSError(ctypes.get_errno(), "")
    return number
"""


def test_system_v_segments_are_the_sessions_own(control):
    greedy, other = control.create(), control.create()
    got, fds = holds(control, greedy, "segment", SYSV)
    assert got == [4096, "ENOSPC"]
    assert taken(control, other, "segment", 8, before=SYSV) == [8, None]
    for fd in fds:
        os.close(fd)


@pytest.mark.parametrize("call", ["add_key", "keyctl", "io_uring_setup", "fanotify_init", "memfd_secret", "userfaultfd", "bpf", "perf_event_open"])
def test_counters_that_no_session_can_reach(control, session, call):
    numbers = {"add_key": (248, 217), "keyctl": (250, 219), "io_uring_setup": (425, 425), "fanotify_init": (300, 262), "memfd_secret": (447, 447),
               "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241)}  # fmt: skip
    number = numbers[call][os.uname().machine != "x86_64"]
    assert inside(control, session, f"out = call({number}, 0, 0, 0, 0, 0)") in ("EPERM", "ENOSYS")


def test_namespaces_cannot_be_made(control, session):
    kinds = {"user": 0x10000000, "net": 0x40000000, "mnt": 0x20000, "pid": 0x20000000, "ipc": 0x8000000, "uts": 0x4000000, "cgroup": 0x2000000}
    assert set(inside(control, session, f"out = [call({97 if os.uname().machine != 'x86_64' else 272}, f) for f in {list(kinds.values())}]")) == {"EPERM"}


@pytest.mark.parametrize("make", [
    "lambda i: os.eventfd(0)",
    "lambda i: __import__('select').epoll()",
    "lambda i: os.memfd_create('x')",
    "lambda i: socket.socket(socket.AF_UNIX)",
    "lambda i: socket.socket(socket.AF_INET)",
    "lambda i: os.pipe()",
], ids=["eventfd", "epoll", "memfd", "unix", "inet", "pipe"])  # fmt: skip
def test_what_is_a_descriptor_ends_with_them(control, session, make):
    got = taken(control, session, make)
    assert got[0] <= 1024 and got[1] == "EMFILE"


def test_pipes_beyond_the_users_part_are_small(control, session):
    soft = int(pathlib.Path("/proc/sys/fs/pipe-user-pages-soft").read_text())
    code = "import fcntl\nmade = [os.pipe() for _ in range(500)]\nfor r, w in made: tried(fcntl.fcntl, w, 1031, 1 << 20)\nout = sum(fcntl.fcntl(w, 1032) for r, w in made)"
    assert inside(control, session, code) <= soft * 4096 + 500 * 2 * 4096


TIMER = """
def timer(i):
    ctypes.set_errno(0)
    at = ctypes.c_int()
    if libc.timer_create(1, None, ctypes.byref(at)) < 0: raise OSError(ctypes.get_errno(), "")
    return at
"""


def test_timers_end_at_the_pending_signals(control, session):
    limit = inside(control, session, "import resource\nout = resource.getrlimit(resource.RLIMIT_SIGPENDING)[1]")
    assert limit > 0 and taken(control, session, "timer", limit + 100, before=TIMER)[1] == "EAGAIN"


def test_locked_memory_has_a_limit(control, session):
    assert inside(control, session, "import resource\nout = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]") >= 0


def test_file_locks_have_none(control, session):
    """Named as residual: ranges of one file, each of which takes kernel memory."""
    code = "import fcntl, tempfile\nf = tempfile.TemporaryFile()\nfor i in range(20000): fcntl.lockf(f, fcntl.LOCK_EX, 1, 2 * i)\nout = 'all'"
    assert inside(control, session, code) == "all"


def test_connections_within_are_not_tracked(control, session):
    code = """
server = socket.create_server(("127.0.0.1", 0))
kept = [socket.create_connection(server.getsockname()) for _ in range(20)]
try: out = int(open("/proc/sys/net/netfilter/nf_conntrack_count").read())
except OSError: out = 0
"""
    assert inside(control, session, code) == 0


def test_descriptors_on_their_way_end_at_the_limit_of_open_files(control, session):
    """Sent over a socket and not received: they count for the user."""
    code = """
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.setblocking(False)
pairs = [(a, b)]
out = None
for i in range(5000):
    got = tried(socket.send_fds, pairs[-1][0], [b"x"], [0] * 100)
    if got == "EAGAIN":
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        pairs[-1][0].setblocking(False)
    elif isinstance(got, str):
        out = got
        break
"""
    assert inside(control, session, code) == "ETOOMANYREFS"


def test_a_case_or_a_test_stands_for_each_row():
    """The page names the tests that prove a row, and they are there."""
    text = (ROOT / "launcher/common/confine/README.md").read_text()
    table = text.split("## Kernel counters")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| counter")]
    assert len(rows) >= 18
    for row in rows:
        named = re.findall(r"`(test_\w+)\.py: (\w+)`", row)
        assert named, row
        for module, function in named:
            found = [p for p in (ROOT / "tests").rglob(f"{module}.py") if re.search(rf"^def test_{function}", p.read_text(), re.M)]
            assert found, f"{module}.py has no test_{function}…"
