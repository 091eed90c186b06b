"""caisson-builder, which makes the processes of sessions: killed, stopped, overwhelmed, and left behind."""

import os
import signal

import pytest
from control import Refused
from harness import eventually, processes, state_of, workers


def builders(launcher):
    """Those of a launcher that only wait for orders: what they make has their name for a moment, but another PID namespace."""
    own = os.readlink(f"/proc/{launcher.pid}/ns/pid")
    found = set()
    for pid, (parent, name, _) in processes().items():
        if parent == launcher.pid and name == "caisson-builder":
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == own:
                    found.add(pid)
            except OSError:
                pass  # it has ended meanwhile
    return found


@pytest.fixture
def started(fresh):
    return fresh.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")


def user_namespaces(pids):
    return {os.readlink(f"/proc/{pid}/ns/user") for pid in pids}


def test_each_workspace_has_one_and_it_ends_with_it(started):
    control = started.control()
    eventually(lambda: len(builders(started)) == 2, what="one outside all user namespaces, one of the default workspace")
    before = builders(started)
    assert len(user_namespaces(before)) == 2
    control.call("workspace_create", name="other")
    # What a builder makes is in its builder's PID namespace for a moment, too: while the workspace is made there may be more.
    eventually(lambda: len(builders(started)) == 3, what="it has one")
    assert not user_namespaces(builders(started) - before) & user_namespaces(before)
    control.call("workspace_destroy", workspace="other")
    eventually(lambda: builders(started) == before, what="the workspace's builder has ended")


def test_one_that_is_killed_is_replaced_in_the_same_user_namespace(started):
    control = started.control()
    living = control.create()
    before = builders(started)
    spaces = user_namespaces(before)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not builders(started) & before, what="they have ended")
    session = control.create()
    assert control.output(session, "echo", "made") == "made\n"
    assert control.output(living, "echo", "still there") == "still there\n"
    now = builders(started)
    assert len(now) == 2 and user_namespaces(now) == spaces
    control.call("workspace_create", name="other")
    assert control.output(control.create(workspace="other"), "echo", "made") == "made\n"


def test_one_that_stands_still_makes_no_session_and_what_it_makes_later_ends(started):
    control = started.control()
    own = user_namespaces([started.pid])
    waiting = next(pid for pid in builders(started) if user_namespaces([pid]) != own)
    os.kill(waiting, signal.SIGSTOP)
    try:
        with pytest.raises(Refused, match="not built in time"):
            control.create()
        eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="it is forgotten")
    finally:
        os.kill(waiting, signal.SIGCONT)
    eventually(lambda: not workers(started.pid), what="the late child has ended")
    assert control.output(control.create(), "echo", "made") == "made\n"


def test_more_requests_than_it_can_hold_are_answered_each(started):
    """While it stands still, so that its socket fills."""
    control = started.control()
    own = user_namespaces([started.pid])
    waiting = next(pid for pid in builders(started) if user_namespaces([pid]) != own)
    os.kill(waiting, signal.SIGSTOP)
    numbers = [control.send("session_create", domain="bash") for _ in range(60)]
    os.kill(waiting, signal.SIGCONT)
    answers = control.until(*numbers).values()
    made = [a["session"] for a in answers if a["ok"]]
    # A busy machine may not build all in the time that each has.
    assert made and all(a["error"]["code"] in ("limit", "unavailable", "internal", "timeout") for a in answers if not a["ok"]), answers
    assert control.output(made[-1], "echo", "made") == "made\n"
    for session in made:
        control.destroy(session)
    eventually(lambda: not workers(started.pid), what="nothing is left of them")


def test_none_outlives_a_launcher_that_is_killed(started):
    started.control().create()
    left = builders(started)
    started.process.kill()
    started.process.wait()
    eventually(lambda: not {p for p in left if p in processes() and state_of(p) not in ("Z", None)}, what="they have ended")
