"""What sessions put where something is granted or hidden costs that path, not the domain."""

import contextlib
import os
import shutil

import pytest
from harness import Refused, eventually, inside
from test_covers import domain, own, writable

PLANTS = {
    "a link": lambda path, secret: path.symlink_to(secret),
    "a dangling link": lambda path, _: path.symlink_to("nowhere"),
    "a FIFO": lambda path, _: os.mkfifo(path),
    "nothing": lambda path, _: None,
}


def report(control, session):
    return control.call("session_report", session=session)[0]["report"]


@pytest.fixture
def secret(fresh):
    (fresh.base / "secret").mkdir()
    (fresh.base / "secret/key").write_text("secret\n")
    return fresh.base / "secret"


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("running", [True, False], ids=["running", "at the start"])
def test_also_grants_whose_source_a_session_has_replaced_are_left_out(fresh, secret, plant, running):
    (fresh.base / "data/x").mkdir(parents=True)
    own(fresh.base / "data", fresh.base / "data/x")
    domain(fresh, [writable(fresh), {"path": "/srv/x", "source": str(fresh.base / "data/x")}])
    if running:
        control = fresh.start().control()
        control.create("data")
    shutil.rmtree(fresh.base / "data/x")
    PLANTS[plant](fresh.base / "data/x", secret)
    if not running:
        control = fresh.start().control()

    def later():
        with contextlib.suppress(Refused):  # the tree is still the one of before; a session of it may end at once
            session = control.create("data")
            return session if "/srv/x" in report(control, session).get("closed", {}) else None

    session = eventually(later, what="a session without it")
    assert "/srv/x" in report(control, session)["absent"]
    assert inside(control, session, "out = [tried(os.stat, '/srv/x'), tried(os.mkdir, '/srv/data/new')]") == ["ENOENT", "ok"]


def test_also_grants_an_optional_source_that_a_session_made_a_link_is_covered(fresh, secret):
    """Else who reads its path inside the outer grant would follow the link, in every later session."""
    (fresh.base / "data").mkdir()
    own(fresh.base / "data")
    (fresh.base / "data/ro").symlink_to("free")
    (fresh.base / "data/free").write_text("free\n")
    domain(fresh, [writable(fresh), {"path": "/srv/data/ro", "source": str(fresh.base / "data/ro"), "required": False}])
    control = fresh.start().control()
    session = control.create("data")
    assert "/srv/data/ro" in report(control, session)["closed"]
    assert inside(control, session, "out = tried(open, '/srv/data/ro')") == "EACCES"


@pytest.mark.parametrize("plant", [p for p in PLANTS if p != "nothing"])
def test_also_grants_with_something_planted_at_a_hidden_path_start_and_it_is_covered(fresh, secret, plant):
    (fresh.base / "data").mkdir()
    own(fresh.base / "data")
    PLANTS[plant](fresh.base / "data/hidden", "/srv/data/free" if plant == "a link" else secret)
    (fresh.base / "data/free").write_text("free\n")
    domain(fresh, [writable(fresh)], hide=["/srv/data/hidden"])
    own(fresh.base / "data/free")
    control = fresh.start().control()
    session = control.create("data")
    code = "out = [tried(open, '/srv/data/hidden'), tried(os.rename, '/srv/data/hidden', '/srv/data/moved')]"
    assert inside(control, session, code) == ["EACCES", "EBUSY"]


@pytest.mark.parametrize("plant", [p for p in PLANTS if p != "nothing"])
def test_also_grants_whose_cover_on_something_planted_is_lost_end_the_session(fresh, secret, plant):
    hidden = fresh.base / "data/hidden"
    hidden.parent.mkdir()
    own(hidden.parent)
    PLANTS[plant](hidden, secret)
    domain(fresh, [writable(fresh)], hide=["/srv/data/hidden"])
    control = fresh.start().control()
    session = control.create("data")
    hidden.unlink()
    hidden.write_text("secret\n")
    assert control.event("session_end", session=session)["reason"] == "uncovered"


def test_also_grants_whose_place_in_the_home_a_session_has_replaced_are_left_out(fresh):
    (fresh.base / "tool").mkdir()
    domain(fresh, [{"path": "/home/gem/x/tool", "source": str(fresh.base / "tool")}])
    (fresh.home / "x").symlink_to("/etc")
    control = fresh.start().control()
    session = control.create("data")
    assert "/home/gem/x" in report(control, session)["closed"] and "/home/gem/x/tool" in report(control, session)["absent"]
    assert inside(control, session, "out = tried(os.listdir, '/home/gem/x')") in ("EACCES", "ENOTDIR")
