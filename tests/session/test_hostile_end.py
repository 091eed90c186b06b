"""Sessions that work against their own end: they kill or stop caisson-init, or what it waits for."""

import pytest
from harness import edit, eventually, marked

MARK = "86421.5"
STOP_ALL = """
import os, signal
while True:
    try:
        os.kill(-1, signal.SIGSTOP)
    except OSError:
        pass
"""


@pytest.fixture
def no_pid_namespace(fresh):
    """As in a container whose /proc is masked (T2 before Linux 7.2): sessions share the launcher's PID namespace."""
    why = [{"field": "/disable", "why": "a test of tiers without a PID namespace"}]
    edit(fresh.policies / "base.json", require=["capabilities", "no_new_privs", "landlock", "seccomp"])
    for name in ("bash", "shell", "run"):
        edit(fresh.policies / f"{name}.json", disable=["pid_ns", "proc"], weaken=why)
    fresh.start()
    return fresh.control()


@pytest.mark.parametrize("attempt", range(5))
def test_nothing_survives_a_killed_init_without_a_pid_namespace(no_pid_namespace, attempt):
    control = no_pid_namespace
    session = control.create()
    script = f"INIT=$PPID; (setsid sleep {MARK} </dev/null >/dev/null 2>&1 &); sleep .2; kill -9 $INIT; sleep {MARK}"
    control.start(session, "bash", "-c", script)
    control.event("session_end", session=session)
    assert marked(MARK) == []


def test_nothing_survives_a_destroyed_session_without_a_pid_namespace(no_pid_namespace):
    session = no_pid_namespace.create()
    no_pid_namespace.start(session, "bash", "-c", f"for i in 1 2 3; do setsid setsid sleep {MARK} & done; sleep {MARK}")
    eventually(lambda: len(marked(MARK)) >= 4)
    no_pid_namespace.destroy(session)
    assert marked(MARK) == []


def test_a_hard_timeout_holds_against_a_session_that_stops_everything(control):
    session = control.create()
    control.start(session, "python3", "-c", STOP_ALL)
    control.send("session_exec", session=session, argv=["sleep", "60"], stdin=False, hard_timeout_ms=1000)
    # Killed by init, or, where init was made deaf, with the whole session; never left running.
    ends = lambda m: m.get("event") == "session_end" or (m.get("event") == "exec_exit" and m["reason"] == "hard_timeout")  # noqa: E731
    while not ends(control.receive()[0]):
        pass
