"""Sessions that work against their own end: they kill or stop caisson-init, or what it waits for."""

import os
import signal
import socket
import struct
import time

import pytest
from harness import descendants, eventually, marked, processes, state_of

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
def no_pid_namespace(weakened):
    """As in a container whose /proc is masked (T2 before Linux 7.2): sessions share the launcher's PID namespace."""
    return weakened("T3", "pid_ns", "proc")


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


def test_a_session_cannot_stop_what_kills_it(weakened):
    control = weakened("T0", "landlock")  # whose scopes keep signals inside, from Linux 6.12
    for _ in range(20):
        session = control.create()
        control.start(session, "python3", "-c", f"import os\nif os.fork(): os.fork()\n{STOP_ALL}")
        time.sleep(0.1)
        control.destroy(session)


def test_a_session_built_ahead_that_was_killed_is_given_to_nobody(weakened):
    control = weakened("T0", CAISSON_READY_SESSIONS="1")
    control.create()
    launcher = struct.unpack("3i", control.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]

    def inits():
        running = {p for p, (_, name, _) in processes().items() if name == "caisson-init" and state_of(p) in ("R", "S", "D")}
        return running & descendants(launcher)

    def settled():
        looks = [inits()]
        for _ in range(4):
            time.sleep(0.3)  # those of the canaries end
            looks.append(inits())
        return looks[0] if len(looks[0]) > 1 and looks.count(looks[0]) == len(looks) else None

    there = eventually(settled, what="one is built ahead")
    # The request is there before the launcher can know of the deaths.
    os.kill(launcher, signal.SIGSTOP)
    try:
        asked = control.send("session_create", domain="bash")
        for init in there:
            os.kill(init, signal.SIGKILL)
        eventually(lambda: all(state_of(init) == "Z" for init in there))
    finally:
        os.kill(launcher, signal.SIGCONT)
    answer, _ = control.wait(asked)
    assert answer["ok"] and control.output(answer["session"], "echo", "here") == "here\n"
