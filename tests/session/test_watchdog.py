"""The watchdog, which stands in for the cgroup: who is within the limits stays, who is over them goes, the figures are true."""

import os

import pytest

MIB = 1 << 20
# One that has much, and children that share it. `own`: what each has of its own besides.
SHARING = """
import os, signal
held = bytearray({held} << 20)
held[::4096] = b"x" * len(held[::4096])
children = []
for _ in range({children}):
    children.append(os.fork())
    if children[-1] == 0:
        own = bytearray({own} << 20)
        own[::4096] = b"x" * len(own[::4096])
        os.write(1, b"+")
        signal.pause()
signal.pause()
"""


def counted_by_a_cgroup(control, session):
    mechanisms = control.call("session_report", session=session)[0]["report"]["mechanisms"]
    return next(m["state"] for m in mechanisms if m["name"] == "cgroup") == "enforced"


def shares(control, limit, held, children, own=0):
    session = control.create(narrow={"limits": {"memory_bytes": limit * MIB}})
    if counted_by_a_cgroup(control, session):
        pytest.skip("here a cgroup counts the memory, not the watchdog")
    code = SHARING.format(held=held, children=children, own=own)
    _, fds = control.start(session, "/usr/bin/python3", "-I", "-S", "-c", code, stdin=False)
    return session, fds


def all_there(fds, children):
    ready = 0
    while ready < children:
        more = os.read(fds[-2], 4096)
        assert more, "it was ended before all were there"
        ready += len(more)


def looks(control):
    """Waits until the watchdog has looked: at another session, which is over its limit."""
    other, fds = shares(control, 16, 64, 0)
    assert control.event("session_end", session=other)["reason"] == "memory"
    for fd in fds:
        os.close(fd)


def limit_hits(launcher, session):
    return [r for r in launcher.records(session) if r["event"] == "limit_hit"]


def stays(launcher, control, limit, held, children):
    session, fds = shares(control, limit, held, children)
    all_there(fds, children)
    for _ in range(3):
        looks(control)
    assert control.output(session, "echo", "alive") == "alive\n"
    assert limit_hits(launcher, session) == []
    control.destroy(session)
    for fd in fds:
        os.close(fd)


def test_flaw_08_what_many_share_counts_once_however_long_looking_takes(launcher, control):
    stays(launcher, control, 900, 250, 200)


@pytest.mark.parametrize("place", ["T0", "T2"])
def test_flaw_08_what_many_share_counts_once_where_the_launcher_has_few_rights(weakened, fresh, place):
    stays(fresh, weakened(place), 128, 48, 8)


@pytest.mark.parametrize("place", ["T3", "T0", "T2"])
def test_flaw_08_what_each_has_of_its_own_counts_and_the_figure_is_true(weakened, fresh, place):
    control = weakened(place)
    session, fds = shares(control, 128, 1, 16, own=48)
    assert control.event("session_end", session=session)["reason"] == "memory"
    hit = limit_hits(fresh, session)
    assert [h["limit"] for h in hit] == ["memory"]
    assert 128 * MIB < hit[0]["memory_bytes"] < 16 * 64 * MIB
    for fd in fds:
        os.close(fd)
