"""What a session may use: each limit hit, and said."""

import contextlib
import os
import pathlib
import platform
import resource
import shutil
import signal
import subprocess
import tempfile

import places
import pytest
from harness import AGENT, PRELUDE, Launcher, Refused, below, edit, eventually, inside
from over_http import OverHttp

MIB = 1 << 20


def test_memory_over_the_limit_ends_the_session_as_out_of_memory(control):
    session = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(
        session,
        "/usr/bin/python3",
        "-c",
        f"import signal; x = bytearray(300 * {MIB}); x[::4096] = b'x' * len(x[::4096]); signal.pause()",
    )
    assert control.exit(session, name)["reason"] == "oom"


def test_a_fork_bomb_stays_within_the_limit_and_the_launcher_answers(launcher, control):
    session = control.create(narrow={"limits": {"processes": 64}})
    code = "import os, signal\nfor _ in range(500):\n  try:\n    if os.fork() == 0: signal.pause()\n  except OSError: break\nelse: signal.pause()\nprint('stopped', flush=True)\nos.kill(0, signal.SIGKILL)"
    ended, out, _ = control.run(session, "/usr/bin/python3", "-S", "-c", code)
    # By the cgroup fork fails; without one the watchdog ends the session.
    assert out == "stopped\n" or control.event("session_end", session=session)["reason"] == "processes"
    assert control.output(control.create(), "echo", "on") == "on\n"
    assert ended["reason"] in ("signal", "session_end")


def test_all_sessions_of_a_user_together_have_few_thousand_processes(control):
    """What a fork bomb reaches before the watchdog looks; where a cgroup counts, the limit of the user must never come first."""
    session = control.create(narrow={"limits": {"processes": 64}})
    states = {m["name"]: m["state"] for m in control.call("session_report", session=session)[0]["report"]["mechanisms"]}
    wanted = 16384 if states["cgroup"] == "enforced" else 2048 + 4 * 64
    outer = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    got = inside(control, session, "import resource; out = resource.getrlimit(resource.RLIMIT_NPROC)")
    assert got == [min(wanted, outer) if outer >= 0 else wanted] * 2


def test_a_limit_that_ends_a_session_is_on_record(launcher, control):
    session = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    control.start(session, "/usr/bin/python3", "-c", f"import signal; x = b'x' * (300 * {MIB}); signal.pause()")
    control.event("session_end", session=session)
    assert [r["limit"] for r in launcher.records(session) if r["event"] == "limit_hit"] == ["memory"]


def test_a_file_over_the_limit_is_named_in_the_exit(control):
    session = control.create(narrow={"limits": {"file_size_bytes": MIB}})
    ended = control.run(session, "dd", "if=/dev/zero", "of=/tmp/big", "bs=1M", "count=3")[0]
    assert (ended["signal"], ended["limit"]) == ("SIGXFSZ", "file_size_bytes")


def test_processor_time_over_the_limit_is_named_in_the_exit(control):
    session = control.create(narrow={"limits": {"cpu_seconds": 1}})
    ended = control.run(session, "sh", "-c", "while :; do :; done")[0]
    assert (ended["signal"], ended["limit"]) == ("SIGXCPU", "cpu_seconds")


def test_ignoring_the_end_of_processor_time_does_not_help(control):
    session = control.create(narrow={"limits": {"cpu_seconds": 1}})
    assert control.run(session, "sh", "-c", "trap '' XCPU; while :; do :; done")[0]["signal"] == "SIGKILL"


def test_open_files_end_at_the_limit(control):
    session = control.create(narrow={"limits": {"open_files": 32}})
    assert inside(
        control,
        session,
        "fds = []\nwhile True:\n  r = tried(os.dup, 0)\n  if isinstance(r, str): out = [r, len(fds) <= 32]; break\n  fds.append(r)",
    ) == ["EMFILE", True]


@pytest.mark.parametrize("directory", ["/tmp", "/home/gem", "/dev/shm"])
def test_a_private_tmpfs_is_full_at_its_limit(control, directory):
    session = control.create(narrow={"home": "private", "tmp": "private", "limits": {"tmp_bytes": MIB}})
    assert "No space left" in control.run(session, "dd", "if=/dev/zero", f"of={directory}/big", "bs=1M", "count=3")[2]


def test_files_in_a_private_tmpfs_end_at_their_limit(control):
    session = control.create(narrow={"tmp": "private", "limits": {"tmp_inodes": 64}})
    assert inside(control, session, "made = [tried(os.mkdir, '/tmp/%d' % i) for i in range(200)]; out = made[-1]") == "ENOSPC"


def test_a_flood_of_output_does_not_grow_the_launcher(launcher, control, session):
    def resident():
        with open(f"/proc/{launcher.pid}/statm") as f:
            return int(f.read().split()[1])

    before = resident()
    control.start(session, "yes")
    control.start(session, "sh", "-c", "exec cat /dev/zero >&2")
    assert control.output(session, "echo", "on") == "on\n" and resident() < before + 512


CROWD = 200
FORKS = """import os, resource, signal
made = []
try:
    for _ in range(60):
        made.append(os.fork() or signal.pause())
except OSError as e:
    print(e)
print(len(made), *resource.getrlimit(resource.RLIMIT_NPROC))
for pid in made:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.fixture
def crowd():
    """Processes of T1's user, outside what its launcher can see, as those of another container on a shared host."""
    code = f"import os, signal\nfor _ in range({CROWD}):\n  if os.fork() == 0: signal.pause()\nprint('there', flush=True)\nsignal.pause()"
    argv = ["setpriv", f"--reuid={places.UID}", f"--regid={places.UID}", "--clear-groups", "--", "/usr/bin/python3", "-S", "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as first:
        assert first.stdout.readline() == b"there\n"
        yield
        os.killpg(first.pid, signal.SIGKILL)


@pytest.fixture
def in_t1(here):
    """A launcher that is not started yet, of T1's user and where that user can come, and the wrapper of its place."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-"))
    base.chmod(0o755)
    with Launcher(base) as one:
        one.own_programs(base / "bin")
        for name in (one.audit, one.run):
            name.mkdir()
        for name in (one.home, one.audit, one.run):
            os.chown(name, places.UID, places.UID)
        yield one, places.wrapper("T1", one.home)
    shutil.rmtree(base)


def test_flaw_19_processes_of_the_same_uid_elsewhere_on_the_host_keep_no_domain_from_starting(crowd, in_t1):
    one, wrapper = in_t1
    for domain in ("bash", "file"):
        edit(one.policies / f"{domain}.json", limits={"processes": 32})
    one.spawn("--agent", "/usr/bin/true", wrapper=wrapper)
    eventually(lambda: one.process.poll() is not None or ": tier T" in one.log.read_text(), what="the launcher is there")
    log = one.log.read_text()
    assert ": tier T1 " in log and "canary" not in log and "EAGAIN" not in log


@pytest.mark.skipif(not AGENT.exists(), reason="T1 has no control socket, and the agent is not built")
def test_flaw_19_a_session_has_its_policys_processes_beside_those_of_others(crowd, in_t1):
    one, wrapper = in_t1
    edit(one.policies / "bash.json", limits={"processes": 64})
    one.spawn("--agent", AGENT, wrapper=wrapper)

    def served():
        with contextlib.suppress(OSError, Refused):
            return OverHttp(one)

    api = eventually(served, what="the API answers")
    made, soft, hard = map(int, api.output(api.create(), "/usr/bin/python3", "-S", "-c", FORKS).split())
    assert made == 60 and soft == hard
    # What others had, launcher and agent among them, was at most doubled when it was counted.
    assert CROWD < hard <= 4 * CROWD + 2048 + 4 * 64 or hard == resource.getrlimit(resource.RLIMIT_NPROC)[1]


def test_flaw_19_a_fork_that_the_uids_limit_refuses_names_the_cause(crowd, in_t1):
    one, wrapper = in_t1
    run = [one.program.with_name("caisson"), "--policies", one.policies, "run", "--policy", "bash", "--", "true"]
    done = subprocess.run([*wrapper, "prlimit", f"--nproc={CROWD // 2}", "--", *run], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 125 and "EAGAIN" in done.stderr and "ulimit -u, which counts the uid's on the whole host" in done.stderr


# prlimit64, setpriority, ioprio_set, sched_setaffinity, sched_setparam, sched_setscheduler, sched_setattr.
PRLIMIT, NICE, IO, AFFINITY, PARAM, SCHEDULER, ATTR = (
    (302, 141, 251, 203, 142, 144, 314) if platform.machine() == "x86_64" else (261, 140, 30, 122, 118, 119, 274)
)
TUNINGS = f"""
import resource, struct
HIGH, none = 1 << 32, struct.pack("=QQ", 0, 0)
idle = struct.pack("=IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0)
def limits(pid):
    return [call({PRLIMIT}, number, kind, none, None) for number in (pid, pid | HIGH) for kind in range(16)]
def tunings(pid):
    return [call(*one) for one in (
        ({NICE}, 0, pid, 19), ({NICE}, 0 | HIGH, pid | HIGH, 19), ({NICE}, 1, pid, 19), ({NICE}, 2, 0, 19), ({NICE}, 2, os.getuid(), 19),
        ({IO}, 1, pid, 3 << 13), ({IO}, 2, pid, 3 << 13), ({IO}, 3, os.getuid(), 3 << 13), ({IO}, 1 | HIGH, pid | HIGH, 3 << 13),
        ({AFFINITY}, pid, 8, struct.pack("=Q", 1)), ({AFFINITY}, pid | HIGH, 8, struct.pack("=Q", 1)),
        ({PARAM}, pid, struct.pack("=i", 0)), ({SCHEDULER}, pid, 5, struct.pack("=i", 0)), ({ATTR}, pid, idle, 0))]
"""


def facts(pid):
    """What tuning would change, by the kernel's own account."""
    with open(f"/proc/{pid}/limits") as limits:
        return limits.read(), os.sched_getscheduler(pid), os.getpriority(os.PRIO_PROCESS, pid), sorted(os.sched_getaffinity(pid))


def is_left_alone(launcher, control):
    first = below(launcher.pid, "caisson-launche")
    before, session = facts(first), control.create()
    assert set(inside(control, session, f"{TUNINGS}out = limits(1) + limits(os.getppid()) + tunings(1)")) == {"EPERM"}
    assert facts(first) == before
    assert control.output(control.create(), "echo", "on") == "on\n"


def test_flaw_14_where_there_is_one_user_no_session_tunes_or_ends_the_first_process(one_user):
    launcher, control = one_user
    assert control.hello["tier"] == "T1"
    is_left_alone(launcher, control)


@pytest.mark.parametrize("place", ["T0", "T2"])
def test_flaw_14_nor_does_any_where_processes_are_shared(weakened, fresh, place):
    control = weakened(place)
    assert control.hello["tier"] == place
    is_left_alone(fresh, control)


def test_flaw_14_nor_of_a_sessions_own_first_process_or_of_another_command(control, session):
    for fd in control.start(session, "sleep", "1000")[1]:
        os.close(fd)
    code = f"{TUNINGS}others = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]\n"
    code += "out = [r for p in others for r in limits(p)] + tunings(1) if len(others) > 1 else []"
    assert set(inside(control, session, code)) == {"EPERM"}


@pytest.mark.parametrize("command", [
    "ulimit -n 64 && test $(ulimit -n) = 64", "prlimit --nofile=64 true", "nice -n 5 true", "renice -n 5 -p $$", "ionice -c 3 true",
    "ionice -c 3 -p $$", "chrt --idle 0 true", "taskset 1 true", "taskset -p 1 $$",
])  # fmt: skip
def test_programs_still_tune_themselves(control, session, command):
    program = command.split()[0]
    if program != "ulimit" and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    control.output(session, "bash", "-c", command)


def test_threads_still_tune_themselves_by_their_number(control, session):
    code = """import threading
def own():
    tid = threading.get_native_id()
    out.extend([tried(os.sched_setaffinity, tid, os.sched_getaffinity(tid)), tried(os.setpriority, os.PRIO_PROCESS, tid, 5)])
out = []
one = threading.Thread(target=own)
one.start()
one.join()"""
    assert inside(control, session, code) == ["ok", "ok"]


EVERY_TERMINAL = """
def every():
    for taken in range(5000):
        try: os.open("/dev/ptmx", os.O_RDWR)
        except OSError as e: return [taken, name(e.errno)]
"""


def leaves_the_others_theirs(control, **narrow):
    greedy, other = control.create(narrow=narrow or None), control.create()
    code = f"{PRELUDE}{EVERY_TERMINAL}print(every(), flush=True)\nsignal.pause()"
    _, fds = control.start(greedy, "/usr/bin/python3", "-I", "-c", code)
    assert os.read(fds[1], 100) == b"[32, 'ENOSPC']\n"
    assert inside(control, other, "out = len(os.openpty())") == 2
    _, terminal = control.start(other, "tty", pty={"cols": 80, "rows": 24})
    assert os.read(terminal[0], 100).startswith(b"/dev/pts/")
    for fd in (*fds, *terminal):
        os.close(fd)


@pytest.mark.parametrize("narrow", [{}, {"home": "private", "tmp": "private"}], ids=["shared", "private"])
def test_flaw_10_a_session_has_its_part_of_the_pseudo_terminals(control, narrow):
    leaves_the_others_theirs(control, **narrow)


def test_flaw_10_as_it_has_in_t2(weakened):
    leaves_the_others_theirs(weakened("T2"))


def test_flaw_10_how_many_is_read_back_and_attested(control, session):
    facts = control.call("attest", session=session)[0]["statement"]["confinement"]["facts"]
    assert "terminals max=32" in facts["mountinfo"]
