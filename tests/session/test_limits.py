"""What a session may use: each limit hit, and said."""

import resource

import pytest
from harness import inside

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
