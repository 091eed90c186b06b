"""Files in memory (memfd_create), which are nobody's memory unless they are mapped: they are counted where no cgroup does it."""

import os

import pytest
from test_watchdog import counted_by_a_cgroup, limit_hits, looks

MIB = 1 << 20
# `first`: what it does before; `more`: what it does with them.
HELD = """
import mmap, os, signal
{first}
fds = []
for _ in range({files}):
    fds.append(os.memfd_create("held"))
    for _ in range({mib}): os.write(fds[-1], b"x" * (1 << 20))
{more}
os.write(1, b"+")
signal.pause()
"""
CHILDREN = "for _ in range({}):\n    if os.fork() == 0: signal.pause()"


def holds_memory(control, limit, files, mib, more="", first="", **how):
    session = control.create(**how, narrow={"limits": {"memory_bytes": limit * MIB}})
    if counted_by_a_cgroup(control, session):
        pytest.skip("here a cgroup counts the memory, not the watchdog")
    code = HELD.format(files=files, mib=mib, more=more, first=first)
    _, fds = control.start(session, "/usr/bin/python3", "-I", "-S", "-c", code, stdin=False)
    return session, fds


def closed(*fds):
    for fd in fds:
        os.close(fd)


def is_ended(launcher, control, session, limit, most):
    """For its memory, with a figure that is true."""
    end = control.event("session_end", session=session)
    assert end["reason"] == "memory" and end["hit"]["allowed"] == limit * MIB
    hit = limit_hits(launcher, session)
    assert [h["limit"] for h in hit] == ["memory"]
    assert limit * MIB < hit[0]["memory_bytes"] == end["hit"]["figure"] < most * MIB


def stays(launcher, control, session, fds):
    assert os.read(fds[-2], 1) == b"+"
    for _ in range(2):
        looks(control)
    assert control.output(session, "echo", "on") == "on\n"
    assert limit_hits(launcher, session) == []
    control.destroy(session)
    closed(*fds)


OVER = {
    "one": {"files": 1, "mib": 256},
    "many": {"files": 64, "mib": 4},
    "that others have, too": {"files": 4, "mib": 64, "more": CHILDREN.format(4)},
    "that only a child has": {"files": 4, "mib": 64, "more": "if os.fork() == 0: signal.pause()\nfor fd in fds: os.close(fd)"},
    "behind many descriptors": {"files": 4, "mib": 64, "more": "more = [os.dup(0) for _ in range(900)]\n" + CHILDREN.format(20)},
}


@pytest.mark.parametrize("what", OVER)
def test_flaw_12_files_in_memory_that_nobody_has_mapped_count(launcher, control, what):
    session, fds = holds_memory(control, 128, **OVER[what])
    is_ended(launcher, control, session, 128, 320)
    closed(*fds)


@pytest.mark.parametrize("place", ["T0", "T2"])
def test_flaw_12_files_in_memory_count_where_the_launcher_has_few_rights(weakened, fresh, place):
    control = weakened(place)
    session, fds = holds_memory(control, 128, 4, 64)
    is_ended(fresh, control, session, 128, 320)
    closed(*fds)


def test_flaw_12_files_in_memory_count_with_what_else_there_is(launcher, control):
    """Each is within the limit, both are not."""
    session, fds = holds_memory(control, 128, 1, 96, "own = bytearray(96 << 20)\nown[::4096] = b'x' * len(own[::4096])")
    is_ended(launcher, control, session, 128, 256)
    closed(*fds)


WITHIN = {
    "that many have open": {"files": 1, "mib": 96, "more": CHILDREN.format(8)},
    "that is mapped as well": {"files": 1, "mib": 96, "more": "m = mmap.mmap(fds[0], 96 << 20)\nfor i in range(0, len(m), 4096): m[i]"},
    "that has several descriptors": {"files": 1, "mib": 96, "more": "more = [os.dup(fds[0]) for _ in range(8)]"},
    "that consists of holes": {"files": 1, "mib": 8, "more": "os.ftruncate(fds[0], 900 << 20)"},
    "that are no longer there": {"files": 4, "mib": 60, "more": "for fd in fds: os.close(fd)"},
}


@pytest.mark.parametrize("what", WITHIN)
def test_flaw_12_a_file_in_memory_counts_once_and_as_it_is(launcher, control, what):
    limit = 256 if what == "that are no longer there" else 160
    stays(launcher, control, *holds_memory(control, limit, **WITHIN[what]))


def test_flaw_12_the_sessions_of_a_workspace_are_counted_together(fresh):
    """And one that two of them have would count once."""
    control = fresh.start(CAISSON_WORKSPACE_MEMORY_MIB="128").control()
    control.call("workspace_create", name="many")
    held = [holds_memory(control, 112, 1, 64 + i, domain="shell", workspace="many") for i in range(3)]
    end = control.event("session_end")
    assert (end["reason"], end["hit"]["limit"]) == ("memory", "workspace_memory_bytes")
    assert 128 * MIB < end["hit"]["figure"] < 400 * MIB and end["session"] in [session for session, _ in held]
    for _, fds in held:
        closed(*fds)


def test_flaw_12_what_lets_nobody_look_counts_for_nothing_and_is_said(weakened, fresh):
    control = weakened("T0")
    session, fds = holds_memory(control, 64, 1, 96, first="import ctypes\nctypes.CDLL(None).prctl(4, 0)")
    os.read(fds[-2], 1)
    looks(control)
    looks(control)
    control.destroy(session)
    assert fresh.records(session)[-1]["memory_unread"] is True
    closed(*fds)
