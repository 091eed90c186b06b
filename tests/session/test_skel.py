"""A home that is empty begins with /etc/skel, whosever it is; nothing that is there is touched."""

import json
import os
import pathlib

import places
import pytest
from harness import SESSION_UID, Launcher, inside

SKEL = pathlib.Path("/etc/skel")
WANTED = {p.name: p.read_text() for p in SKEL.iterdir() if p.is_file()} if SKEL.is_dir() else {}
LOOK = """
home = os.environ['HOME']
names = sorted(n for n in os.listdir(home) if n != '.tmp')
out = {n: open(os.path.join(home, n)).read() for n in names}
"""
# An /etc/skel that also holds a link, a FIFO, a directory and a file that is too large.
ODD = """
mount -t tmpfs skel /etc/skel && cd /etc/skel && echo one > .one && echo run > run && chmod 4755 run && mkdir folder && touch folder/file
ln -s /etc/passwd link && mkfifo pipe && head -c 65536 /dev/zero > large && cd / && exec "$@"
"""


@pytest.fixture(scope="module", autouse=True)
def skel(here):
    if not WANTED:
        pytest.skip("this host's /etc/skel has no files")


@pytest.fixture
def control(fresh):
    fresh.homes = fresh.base / "homes"
    fresh.homes.mkdir(mode=0o700)
    one = fresh.start("--workspaces", fresh.homes).control()
    if one.hello["tier"] != "T3":
        pytest.skip(f"this host gives tier {one.hello['tier']}: the lower ones have their own test")
    return one


def test_the_default_home_begins_with_it(fresh, control):
    assert inside(control, control.create("bash"), LOOK) == WANTED
    for path in fresh.home.iterdir():
        assert (path.stat().st_uid, path.stat().st_gid) == (SESSION_UID, SESSION_UID)
        assert path.stat().st_mode == (SKEL / path.name).stat().st_mode


def test_a_home_in_which_something_is_stays_as_it_is(fresh):
    (fresh.home / ".profile").write_text("mine")
    control = fresh.start().control()
    assert inside(control, control.create("bash"), LOOK) == {".profile": "mine"}


def test_a_new_filesystem_is_empty_whatever_its_maker_put_there(fresh):
    (fresh.home / "lost+found").mkdir()
    control = fresh.start().control()
    assert set(os.listdir(fresh.home)) == {"lost+found"} | set(inside(control, control.create("bash"), "out = os.listdir('/home/gem')"))
    assert set(WANTED) < set(os.listdir(fresh.home))


@pytest.mark.parametrize("persistent", [False, True])
def test_a_workspace_s_home_begins_with_it_and_is_its_own(fresh, control, persistent):
    control.call("workspace_create", name="w", persistent=persistent)
    session = control.create("bash", workspace="w")
    assert inside(control, session, LOOK) == WANTED
    owners = inside(control, session, "out = sorted({os.stat('/home/gem/' + n).st_uid for n in os.listdir('/home/gem')})")
    assert owners == [1000]
    control.output(session, "sh", "-c", "echo changed > ~/.bashrc && rm ~/.profile")
    control.destroy(session)
    control.call("workspace_destroy", workspace="w") if not persistent else None
    again = control.create("bash", workspace="w") if persistent else None
    assert again is None or inside(control, again, LOOK) == {**{n: t for n, t in WANTED.items() if n != ".profile"}, ".bashrc": "changed\n"}


@pytest.mark.parametrize("domain, isolation", [("code", "private"), ("mcp", "shared")])
def test_a_home_of_a_session_s_own_begins_with_it(control, domain, isolation):
    assert inside(control, control.create(domain, isolation=isolation), LOOK) == WANTED


def test_only_regular_files_of_a_bounded_size_come_along(fresh):
    control = fresh.start(wrapper=("unshare", "--mount", "--propagation", "private", "--", "sh", "-ec", ODD, "sh")).control()
    assert inside(control, control.create("bash"), LOOK) == {".one": "one\n", "run": "run\n"}
    assert (fresh.home / "run").stat().st_mode & 0o7777 == 0o755


def test_what_it_begins_with_is_protected_and_no_news_at_the_end(fresh):
    """With `legal`, which protects the shell's own files in the home."""
    control = fresh.start(CAISSON_PRESET="legal").control()
    session = control.create("bash")
    assert inside(control, session, "out = [tried(open, '/home/gem/.bashrc', 'a'), tried(os.unlink, '/home/gem/.profile')]") == ["EROFS", "EBUSY"]
    control.destroy(session)
    end = fresh.records(session)[-1]
    assert end["event"] == "session_end" and end["auto_run"] == {"count": 0, "paths": []}


def test_a_policy_that_does_not_show_it_gives_none(fresh):
    base = fresh.policies / "base.json"
    policy = json.loads(base.read_text())
    policy["grants"] = [g for g in policy["grants"] if g["path"] != "/etc/skel"]
    base.write_text(json.dumps(policy))
    control = fresh.start().control()
    assert inside(control, control.create("bash"), LOOK) == {}


@pytest.mark.parametrize("tier", ["T0", "T2", "no mounts"])
def test_in_a_lower_tier_too(here, tmp_path_factory, tier):
    with Launcher(tmp_path_factory.mktemp("low")) as launcher:
        options = () if tier == "T2" else ("--home", "/home/gem")
        control = launcher.start(*options, wrapper=places.wrapper(tier, launcher.home)).control()
        assert control.hello["tier"] == places.tier(tier)
        first, second = control.create("bash"), control.create("shell")
        assert inside(control, first, LOOK) == inside(control, second, LOOK) == WANTED
        control.output(second, "sh", "-c", "echo changed >> ~/.bashrc")  # in T0 another user, of the same group
        control.call("workspace_create", name="w")
        assert inside(control, control.create("bash", workspace="w"), LOOK) == WANTED
