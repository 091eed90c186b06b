"""What lies over a part of a writable grant stays where it is, whatever a session does to the directories above it: what is hidden, and
what is read-only."""

import contextlib
import json
import os

import pytest
from harness import SESSION_UID, Refused, cli, edit, eventually, inside

WHY = "for the tests of what lies over a grant"
RENAMES = """
import ctypes
def exchange(a, b):
    if ctypes.CDLL(None, use_errno=True).syscall(316 if os.uname().machine == 'x86_64' else 276, -100, a.encode(), -100, b.encode(), 2):
        raise OSError(ctypes.get_errno(), '')
"""


def own(*paths):
    for path in paths:
        os.chown(path, SESSION_UID, SESSION_UID)


def everybodys(top):
    for path in (top, *top.rglob("*")):
        path.chmod(0o777)


def domain(launcher, grants, name="data", hide=()):
    base = json.loads((launcher.policies / "base.json").read_text())
    weaken = [{"field": f"/grants{grant['path']}", "why": WHY} for grant in grants]
    policy = {"extends": "base", "grants": [{"description": WHY, **grant} for grant in grants], "weaken": weaken}
    (launcher.policies / f"{name}.json").write_text(json.dumps({**policy, "hide": [*base["hide"], *hide]}))


def writable(launcher, path="/srv/data", source="data"):
    return {"path": path, "source": str(launcher.base / source), "access": "read-write"}


@pytest.fixture
def covered(fresh):
    """/srv/data is writable; a/b/hidden in it is hidden, c/d/ro read-only."""
    for path, content in (("a/b/hidden/key", "secret\n"), ("c/d/ro/file", "fixed\n"), ("free/file", "mine\n")):
        (fresh.base / "data" / path).parent.mkdir(parents=True)
        (fresh.base / "data" / path).write_text(content)
    own(fresh.base / "data", *(fresh.base / "data").rglob("*"))
    read_only = {"path": "/srv/data/c/d/ro", "source": str(fresh.base / "data/c/d/ro")}
    domain(fresh, [writable(fresh), read_only], hide=["/srv/data/a/b/hidden"])
    return fresh


MOVES = {
    "rename": "os.rename(p, p + '-moved')",
    "rename to the top": "os.rename(p, '/srv/data/moved')",
    "exchange": "exchange(p, p + '-other')",
    "exchange with it": "exchange(p + '-other', p)",
    "rename over": "os.rename(p + '-other', p)",
    "by descriptors": "os.rename(p.rsplit('/', 1)[1], 'moved', src_dir_fd=os.open(p + '/..', os.O_PATH), dst_dir_fd=os.open(p + '/..', os.O_PATH))",
    "remove": "os.rmdir(p)",
}
# All that is in the tree, and what can be written to.
SEEN = """
read, wrote = [], []
for at, _, files in os.walk('/srv/data'):
    for file in files:
        path = os.path.join(at, file)
        read.append(open(path).read())
        if tried(os.truncate, path, os.stat(path).st_size) == 'ok':
            wrote.append(open(path).read())
out = [read, wrote]
"""


def another(control, domain="data"):
    """A session whose tree is made now."""
    return control.create(domain, narrow={"limits": {"processes": 64}})


def perhaps(control):
    """A session, or None while the tree is still the one of before."""
    with contextlib.suppress(Refused):
        return control.create("data")


def held(control, session, *paths):
    """What who moves these is told."""
    return [inside(control, session, f"out = tried(os.rename, '{path}', '{path}-moved')") for path in paths]


@pytest.mark.parametrize("path", ["a", "a/b", "a/b/hidden", "c", "c/d", "c/d/ro"])
def test_flaw_04_renaming_what_is_above_a_hidden_or_read_only_path_is_refused(covered, path):
    control = covered.start().control()
    session = control.create("data")
    for name, move in MOVES.items():
        code = f"{RENAMES}p = '/srv/data/{path}'\nos.makedirs(p + '-other', exist_ok=True)\nout = tried(lambda: {move})"
        # Between mounts nothing is renamed, and what is hidden is no place to begin at.
        other = {"rename to the top": "EXDEV" if "/" in path else "EBUSY", "by descriptors": "EACCES" if "hidden" in path else "EBUSY"}
        assert inside(control, session, code) == other.get(name, "EBUSY"), name


def test_flaw_04_renaming_uncovers_nothing_for_later_sessions(covered):
    control = covered.start().control()
    session = control.create("data")
    code = "cd /srv/data; for d in a a/b c c/d; do mv -T $d $d-moved; rm -rf $d; mkdir -p a/b/hidden c/d/ro; done; find . -exec chmod 777 {} +"
    control.run(session, "sh", "-c", code)
    assert "as planned" in control.call("attest", session=session)[0]["statement"]["confinement"]["facts"]["mountinfo"]
    for later in (control.create("data"), another(control)):
        read, wrote = inside(control, later, SEEN)
        assert "secret\n" not in read and "fixed\n" in read and "fixed\n" not in wrote
        assert inside(control, later, "out = tried(os.listdir, '/srv/data/a/b/hidden')") == "EACCES"
        assert held(control, later, "/srv/data/a", "/srv/data/c/d") == ["EBUSY"] * 2
    assert (covered.base / "data/a/b/hidden/key").read_text() == "secret\n"


def test_flaw_04_what_is_not_above_anything_is_moved_and_written_as_before(covered):
    control = covered.start().control()
    session = control.create("data")
    control.output(session, "sh", "-c", "cd /srv/data && echo new >a/b/new && mv a/b/new c/d/new && mv free c/free && rm -r c/free c/d/new")
    assert (covered.base / "data/a").stat().st_uid == SESSION_UID and not (covered.base / "data/free").exists()


def test_flaw_04_a_directory_that_is_missing_is_made_and_held(fresh):
    """Else a session would make it, and could move what others put there later."""
    (fresh.base / "data").mkdir()
    own(fresh.base / "data")
    domain(fresh, [writable(fresh)], hide=["/srv/data/x/y/hidden"])
    control = fresh.start().control()
    session = control.create("data")
    assert held(control, session, "/srv/data/x", "/srv/data/x/y") == ["EBUSY"] * 2
    (fresh.base / "data/x/y/hidden").write_text("secret\n")
    later = another(control)
    assert inside(control, later, "out = tried(open, '/srv/data/x/y/hidden')") == "EACCES"
    assert held(control, later, "/srv/data/x", "/srv/data/x/y", "/srv/data/x/y/hidden") == ["EBUSY"] * 3


def test_flaw_04_what_cannot_be_held_is_named_and_no_session_starts(fresh):
    """A grant for writing, in which the sessions' user may not write: who may could make the directory, and others move it."""
    (fresh.base / "data").mkdir()
    domain(fresh, [writable(fresh)], hide=["/srv/data/x/hidden"])
    with pytest.raises(Refused) as refused:
        fresh.start().control().create("data")
    assert refused.value.error["errno"] == "EACCES" and "data/x" in refused.value.error["what"]


def test_flaw_04_what_a_session_makes_at_a_hidden_path_ends_nobody(fresh):
    (fresh.base / "data").mkdir()
    own(fresh.base / "data")
    domain(fresh, [writable(fresh)], hide=["/srv/data/x/hidden"])
    control = fresh.start().control()
    sessions = [control.create("data") for _ in range(2)]
    control.output(sessions[0], "sh", "-c", "echo mine >/srv/data/x/hidden")
    later = another(control)
    assert inside(control, later, "out = tried(open, '/srv/data/x/hidden')") == "EACCES"
    for session in sessions:
        assert control.output(session, "cat", "/srv/data/x/hidden") == "mine\n"
        control.call("attest", session=session)


@pytest.mark.parametrize("place", ["/home/gem", "/tmp"])
def test_flaw_04_what_is_above_a_grant_in_the_home_or_tmp_is_held(fresh, place):
    (fresh.base / "tool").mkdir()
    (fresh.base / "tool/file").write_text("fixed\n")
    own(fresh.base / "tool", fresh.base / "tool/file")
    domain(fresh, [{"path": f"{place}/x/y/tool", "source": str(fresh.base / "tool")}])
    control = fresh.start().control()
    for session in (control.create("data"), another(control)):
        assert held(control, session, f"{place}/x", f"{place}/x/y", f"{place}/x/y/tool") == ["EBUSY"] * 3
        assert inside(control, session, f"out = tried(os.truncate, '{place}/x/y/tool/file', 6)") == "EROFS"


def test_flaw_04_a_narrowed_session_moves_nothing_either(covered):
    """Grants of its own, inside the policy's: what they leave of it, and what they carve out themselves."""
    control = covered.start().control()
    grants = [{"path": "/usr", "execute": True}, {"path": "/srv/data/a", "access": "read-write"}, {"path": "/srv/data/c", "access": "read-write"}]
    session = control.create("data", narrow={"grants": grants})
    assert held(control, session, "/srv/data/a/b", "/srv/data/c/d") == ["EBUSY"] * 2
    grants = [{"path": "/usr", "execute": True}, {"path": "/srv", "access": "read-write"}]
    with pytest.raises(Refused):
        control.create("data", narrow={"grants": grants})
    grants = [{"path": "/usr", "execute": True}, {"path": "/srv/data", "access": "read-write"}, {"path": "/srv/data/free/own"}]
    (covered.base / "data/free/own").mkdir()
    assert held(control, control.create("data", narrow={"grants": grants}), "/srv/data/free", "/srv/data/a") == ["EBUSY"] * 2


def test_flaw_04_another_grant_of_the_same_directory_moves_nothing(covered):
    """The kernel holds what is mounted on, by whatever path it is reached."""
    domain(covered, [writable(covered), writable(covered, "/srv/a", "data/a")], hide=["/srv/data/a/b/hidden", "/srv/a/b/hidden"])
    control = covered.start().control()
    session = control.create("data")
    assert held(control, session, "/srv/a/b", "/srv/a/b/hidden", "/srv/data/a/b") == ["EBUSY"] * 3


def test_flaw_04_what_is_above_in_a_workspace_of_its_own_is_held(covered):
    control = covered.start().control()
    everybodys(covered.base / "data")
    control.call("workspace_create", name="other")
    session = control.create("data", workspace="other")
    assert held(control, session, "/srv/data/a", "/srv/data/a/b", "/srv/data/c/d") == ["EBUSY"] * 3


def test_flaw_04_a_run_moves_nothing(covered):
    data = json.loads((covered.policies / "data.json").read_text())
    edit(covered.policies / "run.json", **{key: data[key] for key in ("grants", "weaken", "hide")})
    everybodys(covered.base / "data")
    code = "cd /srv/data; for d in a a/b c c/d; do mv -T $d $d-moved; done; ls a/b/hidden"
    done = cli("--policies", covered.policies, "run", "--", "sh", "-c", code)
    assert done.stderr.count(b"Device or resource busy") == 4 and b"Permission denied" in done.stderr, done


def test_flaw_04_a_symbolic_link_above_a_hidden_path_is_refused(covered):
    """What it leads to could be reached by its own name."""
    (covered.base / "data/a").rename(covered.base / "data/real")
    (covered.base / "data/a").symlink_to("real")
    with pytest.raises(Refused) as refused:
        covered.start().control().create("data")
    assert refused.value.error["errno"] == "ELOOP" and "data/a" in refused.value.error["what"]


def test_flaw_04_what_is_moved_by_who_has_the_outer_grant_alone_is_covered_in_a_new_tree(covered):
    """launcher/common/confine/README.md, "Known limits": the policy lets it. The others' next session has its covers at their paths and none elsewhere."""
    domain(covered, [writable(covered)], "outer")
    control = covered.start().control()
    control.create("data")
    outer = control.create("outer")
    control.output(outer, "sh", "-c", "cd /srv/data && mv c moved && mkdir -p c/d/ro && echo other >c/d/ro/file")
    later = eventually(lambda: perhaps(control), what="a new session")
    assert inside(control, later, "out = [open('/srv/data/c/d/ro/file').read(), tried(os.truncate, '/srv/data/c/d/ro/file', 6)]") == ["other\n", "EROFS"]
    assert held(control, later, "/srv/data/c", "/srv/data/c/d") == ["EBUSY"] * 2


def test_flaw_04_a_grant_whose_place_was_moved_is_mounted_anew(fresh):
    """In the home that all domains share: its source is the same, and nothing but the mounts of a new session shows it."""
    (fresh.base / "tool").mkdir()
    domain(fresh, [{"path": "/home/gem/x/tool", "source": str(fresh.base / "tool")}])
    control = fresh.start().control()
    session = control.create("data")
    assert held(control, session, "/home/gem/x") == ["EBUSY"]
    control.output(control.create("bash"), "sh", "-c", "mv ~/x ~/moved && mkdir -p ~/x/tool && touch ~/x/tool/file")
    assert control.event("session_end", session=session)["reason"] == "uncovered"
    later = eventually(lambda: perhaps(control), what="a new session")
    assert inside(control, later, "out = [os.listdir('/home/gem/x/tool'), tried(open, '/home/gem/x/tool/file', 'w')]") == [[], "EROFS"]


def test_flaw_04_more_mounts_than_a_session_can_have_are_refused_with_a_sentence(fresh):
    (fresh.base / "data").mkdir()
    own(fresh.base / "data")
    domain(fresh, [writable(fresh)], hide=["/srv/data" + "/d" * 300 + "/hidden"])
    fresh.spawn()
    assert fresh.process.wait(60) != 0
    assert "needs more than 256 mounts: grant less, or hide and grant less deep inside what is writable" in fresh.log.read_text()
