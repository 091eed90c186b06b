"""What the session tests share: a native launcher of their own, programs run outside a session for comparison, waiting for facts."""

import collections
import contextlib
import json
import os
import pathlib
import platform
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from control import SKEL, Control, Refused  # noqa: E402, F401

ROOT = TESTS.parent
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD") or os.environ.get("CAISSON_BUILD_DIR") or ROOT / "build" / "release")
LAUNCHER, INIT, CLI = (BUILD / "launcher" / name for name in ("caisson-launcher", "caisson-init", "caisson"))
AGENT = BUILD / "agent" / "caisson-agent"
API_KEY = "decoy-0123456789abcdef-api-key"
SESSION_UID = 20001


def eventually(fact, seconds=60.0, what="the fact"):
    """Waits until fact() is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def state_of(pid):
    """The state letter of /proc/<pid>/stat, or None if the process does not exist."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2]


def ended(pids, seconds=60):
    """Waits until none of these processes runs. A zombie has ended: when the machine's PID 1 reaps it is not ours to say."""

    def running():
        return {p: processes().get(p) for p in pids if state_of(p) not in (None, "Z", "X")}

    with contextlib.suppress(AssertionError):
        eventually(lambda: not running(), seconds)
    assert not running()


def listing(*tops):
    """What a change would show in: inode, size and time of each name in these directories, where they are."""
    return {
        str(p): (s.st_ino, s.st_size, s.st_mtime_ns) for top in tops if os.path.isdir(top) for p in pathlib.Path(top).iterdir() for s in [p.lstat()]
    }


def open_files(pid):
    """What each descriptor of a process stands for, by its name in /proc."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def own_cgroup():
    """Where the tests are given a tree of cgroup v2 (in the guest): a cgroup for one launcher, as a service manager makes it."""
    if "CAISSON_TEST_CGROUP" not in os.environ:
        return None
    return pathlib.Path(tempfile.mkdtemp(prefix="launcher-", dir=os.environ["CAISSON_TEST_CGROUP"]))


def free_port():
    """Below those that the kernel gives away (ip_local_port_range): until it is used nobody else, in another leg, is given it."""
    for port in random.SystemRandom().sample(range(20000, 32000), 200):
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


def copy_policies(to):
    shutil.copytree(ROOT / "policies", to, ignore=shutil.ignore_patterns("*.md"))
    for path in [to, *to.rglob("*")]:
        os.chown(path, 0, 0)
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to


def c_compiler():
    """A C compiler; skips where there is none."""
    found = next((c for c in ("cc", "gcc", "gcc-14", "clang-19", "clang") if shutil.which(c)), None)
    return found or pytest.skip("there is no C compiler")


def edit(path, **members):
    """Changes top-level members of a policy file; objects are updated, anything else is replaced."""
    policy = json.loads(path.read_text())
    for key, value in members.items():
        policy[key] = {**policy.get(key, {}), **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(policy, indent=2))


class Launcher:
    """A native launcher with directories of its own below `base`. It inherits what a careless parent would hand down."""

    program = LAUNCHER

    def __init__(self, base):
        self.base = base
        self.policies = copy_policies(base / "policies")
        self.audit, self.run, self.home = base / "audit", base / "run", base / "home"
        self.home.mkdir()
        os.chown(self.home, SESSION_UID, SESSION_UID)
        self.log = base / "launcher.log"
        self.port = free_port()
        self.process = None
        self.cgroup = own_cgroup()
        self.controls = []

    def spawn(self, *options, wrapper=(), **environment):
        """Starts the process and does not wait. Its environment is clean but for a key."""
        decoy = os.open("/etc/passwd", os.O_RDONLY)
        argv = [
            *wrapper,
            self.program,
            "--policies",
            self.policies,
            "--audit",
            self.audit,
            "--run",
            self.run,
            "--home",
            self.home,
            "--port",
            self.port,
            "--bind",
            "127.0.0.1",
            *options,
        ]
        if not AGENT.exists() and "--agent" not in options:
            argv += ["--agent", "/usr/bin/true"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(a) for a in argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[decoy],
                preexec_fn=lambda: careless(self.cgroup),
                env={"PATH": os.environ["PATH"], "SANDBOX_API_KEY": API_KEY, "LEAKED_VARIABLE": "leaked", **environment},
            )
        os.close(decoy)
        return self

    def start(self, *options, **arguments):
        self.spawn(*options, **arguments)
        try:
            eventually(lambda: self.process.poll() is not None or self.answers(), 360, "the launcher answers")
        except AssertionError as late:
            raise AssertionError(f"{late}; its log ends: {self.log.read_text()[-1000:]!r}") from None
        assert self.process.poll() is None, self.log.read_text()
        return self

    def answers(self):
        try:
            self.control()
            return True
        except (OSError, EOFError):  # EOFError: it has ended before it answered
            return False

    @property
    def pid(self):
        return self.process.pid

    @property
    def socket(self):
        return self.run / "control.sock"

    def control(self, hello=True):
        control = Control(self.socket, hello)
        self.controls.append(control)
        return control

    def records(self, name="launcher"):
        # A write that crosses a page can be seen half done: what has no end yet is not a line yet.
        whole, _, _ = (self.audit / f"{name}.ndjson").read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def own_programs(self, to):
        """Runs copies of the launcher's programs, one of which is then changed: their folder."""
        to.mkdir()
        for program in LAUNCHER.parent.glob("caisson*"):
            shutil.copy(program, to)
        self.program = to / "caisson-launcher"
        return to

    def in_own_mounts(self, then=""):
        """A wrapper for start(): a mount namespace of its own, after `then` (shell) in it; mounts() tells what it inherited from the rest."""
        keep = 'cat /proc/self/mountinfo > "$0" && '
        return ["unshare", "--mount", "--", "sh", "-c", f'{keep}{then and f"{then} && "}exec "$@"', str(self.base / "inherited")]

    def mounts(self):
        """Its mounts, without those that it inherited: the kernel takes a copy away when the host removes the directory below it."""
        inherited = collections.Counter((self.base / "inherited").read_text().splitlines())
        mounts = pathlib.Path(f"/proc/{self.pid}/mountinfo").read_text().splitlines()
        return sorted((collections.Counter(mounts) - inherited).elements())

    def reload(self):
        """SIGHUP; its policies are taken."""
        before = self.log.read_text().count("policies reloaded")
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: self.log.read_text().count("policies reloaded") > before, what="the policies are reloaded")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        for control in self.controls:
            control.close()
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def careless(cgroup=None):
    """In the launcher's process before exec: state that must not reach a session."""
    if cgroup:
        (cgroup / "cgroup.procs").write_text("0")
    os.umask(0)
    os.setgroups([4, 24])
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])


def cli(*argv, stdin=None, timeout=60, **kwargs):
    return subprocess.run(
        [str(a) for a in (CLI, *argv)],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=timeout,
        check=False,
        **kwargs,
    )


PRELUDE = """
import ctypes, errno, json, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def name(number): return errno.errorcode.get(number, str(number))
def call(number, *args):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return name(ctypes.get_errno()) if result < 0 else result
def tried(function, *args, **kwargs):
    try:
        return function(*args, **kwargs) or "ok"
    except OSError as e:
        return name(e.errno)
"""


def inside(control, session, code, **arguments):
    """Runs Python in the session: the value of `out`."""
    return json.loads(
        control.output(session, "/usr/bin/python3", "-I", "-c", f"{PRELUDE}\n{code}\nprint(json.dumps(out))", **arguments)
    )


def outside(code):
    """The same code as root without a session, with mounts and processes of its own: the control of every refusal."""
    done = subprocess.run(
        ["unshare", "--mount", "--", "/usr/bin/python3", "-I", "-c", f"{PRELUDE}\n{code}\nprint(json.dumps(out))"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def processes():
    """pid -> (parent, name, uid) of everything on the machine."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
            uid = os.stat(f"/proc/{entry}").st_uid
        except OSError:
            continue
        comm = stat[stat.index("(") + 1 : stat.rindex(")")]
        found[int(entry)] = (int(stat[stat.rindex(")") + 2 :].split()[1]), comm, uid)
    return found


def marked(text, name=None):
    """Processes of the machine whose command line holds the text, of that name where one is given. Each is looked at once: who forks
    and ends all the time is met, too."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if text.encode() in pathlib.Path("/proc", pid, "cmdline").read_bytes():
                if name is None or pathlib.Path("/proc", pid, "comm").read_text() == name + "\n":
                    found.append(int(pid))
        except OSError:  # it ended meanwhile
            continue
    return found


# Code for inside(): forks until it is refused or there are MOST children, which stay.
FORKS = """
import sys, time
pids, error = [], None
while error is None and len(pids) < MOST:
    try:
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        pids.append(pid)
    except OSError as e:
        error = errno.errorcode[e.errno]
"""

# As /proc/<pid>/syscall says it.
NUMBERS = {
    "x86_64": {"read": 0, "write": 1, "poll": 7, "ppoll": 271, "wait4": 61, "waitid": 247, "epoll_wait": 232, "epoll_pwait": 281},
    "aarch64": {"read": 63, "write": 64, "ppoll": 73, "wait4": 260, "waitid": 95, "epoll_pwait": 22},
}[platform.machine()]


def blocked(pid, call, descriptor):
    """Whether a process waits in that call on that descriptor."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith(f"{NUMBERS[call]} {descriptor:#x} ")


def below(pid, name):
    """The process of that name below the pid that is nearest to it, or None: until it executes another program, a child has the name
    of its parent."""
    everything, under = processes(), descendants(pid)
    named = {p for p in under if p in everything and everything[p][1] == name}
    return next((p for p in named if everything[p][0] not in named), None)


def workers(pid):
    """Below a launcher, what is there for a session."""
    everything = processes()
    return {p for p in descendants(pid) if p in everything and everything[p][1] not in ("caisson-auditor", "caisson-observe", "caisson-builder")}


def names_below(pid):
    """The names of what descends from it, in order."""
    everything = processes()
    return sorted(everything[p][1] for p in descendants(pid, everything))


def descendants(pid, everything=None):
    everything = everything or processes()
    below, grown = {pid}, True
    while grown:
        more = {p for p, (parent, _, _) in everything.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return below - {pid}
