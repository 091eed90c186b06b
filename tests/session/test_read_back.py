"""What the launcher reads back of a session before its first command and whenever it attests."""

import contextlib
import json
import os

import pytest
from harness import Refused, eventually, inside, marked, processes

MARK = "7200.52"  # a sleep that nobody else has
WHY = "for the tests of what is read back"


def facts(control, session):
    return control.call("attest", session=session)[0]["statement"]["confinement"]["facts"]


def test_mounts_covers_and_streams_are_among_the_attested_facts(control):
    found = facts(control, control.create())
    assert found["mountinfo"].endswith("granted, as planned") and found["covers"].endswith("paths covered")
    assert found["stdio"] == "/dev/null, a POSIX session of its own"


def replace(path):
    """As editors and package managers do."""
    path.with_name("new").write_text("new")
    path.with_name("new").rename(path)


@pytest.mark.parametrize("there", ["secret", "other"], ids=["replaced", "made later"])
def test_a_hidden_file_that_is_replaced_is_seen_by_no_new_session_and_ends_the_others(fresh, there):
    """The kernel takes a cover away with the file below it, in every session, when somebody outside renames another one over it."""
    (fresh.base / "data").mkdir()
    (fresh.base / "data" / there).write_text("old")
    base = json.loads((fresh.policies / "base.json").read_text())
    grant = {"path": "/srv/data", "source": str(fresh.base / "data"), "description": WHY}
    policy = {"extends": "base", "grants": [grant], "weaken": [{"field": "/grants/srv/data", "why": WHY}]}
    (fresh.policies / "data.json").write_text(json.dumps({**policy, "hide": [*base["hide"], "/srv/data/secret"]}))
    control = fresh.start().control()
    session = control.create("data")
    replace(fresh.base / "data/secret")

    def created():
        with contextlib.suppress(Refused):  # while the tree is still the one of before
            return control.create("data")

    new = eventually(created, what="a new session")
    assert inside(control, new, "out = tried(open, '/srv/data/secret')") == "EACCES"
    assert control.event("session_end", session=session)["reason"] == "uncovered"


def test_what_cannot_be_read_of_a_dying_process_is_no_broken_wall(control):
    """The files of /proc fail while the kernel frees what a killed session had in memory."""
    session = control.create(narrow={"limits": {"memory_bytes": 1 << 30}})
    name, fds = control.start(session, "sh", "-c", f"head -c 400M /dev/zero >/dev/shm/big; echo; exec sleep {MARK}")
    assert os.read(fds[-2], 1) == b"\n"
    sleeper = eventually(lambda: marked(MARK, "sleep"))[0]
    first = processes()[sleeper][0]
    os.kill(sleeper, 9)
    control.exit(session, name)
    os.kill(first, 9)
    with pytest.raises(Refused):
        while True:
            facts(control, session)
    assert control.event("session_end", session=session)["reason"] == "init_died"
