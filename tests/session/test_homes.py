"""Persistent workspaces: a home on disk that outlives workspace and launcher, is its tenant's alone, and has a limit."""

import json
import os
import pathlib
import subprocess

import pytest
from harness import SKEL, Launcher, Refused, eventually, inside
from homes_by_hand import ask, asked, told

MIB = 1 << 20


@pytest.fixture
def place(tmp_path):
    """The operator's directory."""
    folder = tmp_path / "workspaces"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def start(here, tmp_path, place):
    """start(): a launcher with that directory, and its control; another one after stop()."""
    made = []

    def begin(**environment):
        base = tmp_path / f"launcher{len(made)}"
        base.mkdir()
        made.append(Launcher(base).start("--agent", "/usr/bin/true", "--workspaces", place, **environment))
        control = made[-1].control()
        if control.hello["tier"] != "T3":
            pytest.skip(f"this host gives tier {control.hello['tier']}: workspaces are refused there")
        return control

    begin.launchers = made
    yield begin
    for launcher in made:
        launcher.stop()


def make(control, name="kept", **fields):
    return control.call("workspace_create", name=name, persistent=True, **fields)[0]["workspace"]


def kept_in(place):
    return [name for name in os.listdir(place) if name != ".lock"]


def named(control, name="kept"):
    return next((w for w in control.call("workspace_list")[0]["workspaces"] if w["name"] == name), None)


def refused(control, code, name="kept", **fields):
    with pytest.raises(Refused) as error:
        make(control, name, **fields)
    assert error.value.error["code"] == code, error.value.error
    return error.value.error["what"]


def test_files_and_uid_survive_the_launcher(start):
    control = start()
    uid = make(control)["uid"]
    control.output(control.create("shell", workspace="kept"), "sh", "-c", "echo kept > /home/gem/file; echo gone > /tmp/file")
    start.launchers[-1].stop()
    control = start()
    assert make(control)["uid"] == uid
    session = control.create("shell", workspace="kept")
    assert control.output(session, "sh", "-c", "cat /home/gem/file; ls /tmp; echo more >> /home/gem/file") == "kept\n"


def test_the_home_is_its_tenants_alone(start, place):
    control = start()
    uids = {name: make(control, name)["uid"] for name in ("a", "b")}
    assert uids["a"] != uids["b"]
    for name, uid in uids.items():
        home = (place / name / "home").stat()
        assert (home.st_uid, home.st_gid, home.st_mode & 0o777) == (uid, uid, 0o700)
        above = (place / name).stat()
        assert (above.st_uid, above.st_mode & 0o777) == (0, 0o700)
    control.output(control.create("shell", workspace="a"), "sh", "-c", "echo secret > /home/gem/file")
    other = control.create("shell", workspace="b")
    assert inside(control, other, f"out = [sorted(os.listdir('/home/gem')), tried(os.listdir, '{place}')]") == [SKEL, "ENOENT"]


def test_a_uid_is_not_given_again_while_its_files_are_there(start):
    """Asleep or awake, whatever the order in which they come back."""
    control = start()
    before = {name: make(control, name)["uid"] for name in ("a", "b", "c")}
    start.launchers[-1].stop()
    control = start()
    after = {name: make(control, name)["uid"] for name in ("c", "new", "a", "b")}
    assert len(set(after.values())) == 4
    assert {name: after[name] for name in before} == before


def test_an_idle_one_keeps_its_files_and_a_deleted_one_does_not(start, place):
    control = start()
    make(control, idle_seconds=5)  # in which the session must be asked for
    control.destroy(control.create("shell", workspace="kept"))
    control.event("workspace_end")
    assert (place / "kept" / "home").is_dir()
    make(control)
    session = control.create("shell", workspace="kept")
    control.output(session, "sh", "-c", "cd; mkdir -p d/e; echo x > d/e/f; ln -s / d/root; chmod 0 d/e; mkdir -m 0 locked", env={"HOME": "/home/gem"})
    control.call("workspace_destroy", workspace="kept")
    assert kept_in(place) == []
    assert pathlib.Path("/etc/passwd").exists()


def test_a_tree_deeper_than_any_path_is_removed_and_stops_nothing_before(start, place):
    control = start()
    make(control)
    session = control.create("shell", workspace="kept")
    code = "import os\nos.chdir('/home/gem')\nfor _ in range(900):\n  os.mkdir('d' * 200)\n  os.chdir('d' * 200)"
    control.run(session, "/usr/bin/python3", "-c", code)  # not to its end, where it is measured meanwhile
    # What cannot be measured counts as full.
    assert control.event("session_end", session=session)["reason"] == "disk"
    assert "cannot be measured" in named(control)["full"]
    control.call("workspace_destroy", workspace="kept")
    assert kept_in(place) == []


def test_a_home_over_its_measured_limit_ends_its_sessions_and_takes_no_more(start):
    control = start()
    described = make(control, disk_bytes=4 * MIB)
    if described["disk"]["enforced_by"] == "project_quota":
        pytest.skip("the filesystem keeps the limit itself")
    assert described["disk"]["enforced_by"] == "measured" and described["disk"]["limit"] == 4 * MIB
    session = control.create("shell", workspace="kept")
    control.start(session, "sh", "-c", "dd if=/dev/zero of=/home/gem/big bs=1M count=6; sleep 1000")
    assert control.event("session_end", session=session)["reason"] == "disk"
    hit = next(r for r in start.launchers[0].records(session) if r["event"] == "limit_hit")
    assert (hit["limit"], hit["by"], hit["disk"]["bytes"] > 4 * MIB) == ("workspace_disk", "measured", True)
    with pytest.raises(Refused) as error:
        control.create("shell", workspace="kept")
    assert error.value.error["code"] == "limit" and "over its limit" in error.value.error["what"]
    control.create("shell")  # nobody else is meant


def test_what_an_operator_frees_can_be_used_again(start, place):
    control = start()
    make(control, disk_bytes=4 * MIB)
    big = place / "kept" / "home" / "big"
    big.write_bytes(b"x" * 6 * MIB)
    eventually(lambda: "full" in named(control), what="the home is full")
    big.unlink()
    eventually(lambda: "full" not in named(control), what="the home has room")
    assert control.output(control.create("shell", workspace="kept"), "echo", "on") == "on\n"


def test_files_with_several_names_count_once(start):
    control = start()
    make(control, disk_bytes=16 * MIB)
    session = control.create("shell", workspace="kept")
    control.output(session, "sh", "-c", "cd /home/gem && dd if=/dev/zero of=a bs=1M count=6 2>&1 && for n in b c d e; do ln a $n; done")
    used = lambda: named(control)["disk"]  # noqa: E731
    eventually(lambda: used()["inodes"] == 1 + len(SKEL), what="it was measured")
    assert 6 * MIB <= used()["bytes"] < 7 * MIB


@pytest.mark.parametrize("what", ["of another user", "two of one uid", "a link", "a file", "a link below"])
def test_a_home_that_is_not_as_it_was_left_is_refused(start, place, what):
    control = start()
    uid = make(control, "kept")["uid"]
    control.call("workspace_create", name="w")
    start.launchers[-1].stop()
    if what == "of another user":
        os.chown(place / "kept" / "home", 1000, 1000)
    elif what == "two of one uid":
        (place / "copy").mkdir(mode=0o700)
        (place / "copy" / "home").mkdir(mode=0o700)
        os.chown(place / "copy" / "home", uid, uid)
    elif what == "a link below":
        (place / "kept" / "home").rmdir()
        (place / "kept" / "home").symlink_to("/etc")
    else:
        (place / "kept" / "home").rmdir()
        (place / "kept").rmdir()
        if what == "a link":
            (place / "kept").symlink_to("/etc")
        else:
            (place / "kept").write_text("")
    control = start()
    said = refused(control, "io")
    assert "kept" in said and named(control) is None
    assert os.stat("/etc").st_uid == 0 and not os.path.exists("/etc/home")


def test_a_launcher_without_a_directory_says_so(here, tmp_path):
    launcher = Launcher(tmp_path).start("--agent", "/usr/bin/true")
    try:
        assert "--workspaces" in refused(launcher.control(), "unavailable")
    finally:
        launcher.stop()


@pytest.mark.parametrize("what", ["open to others", "a link", "in use"])
def test_the_launcher_does_not_start_on_a_directory_that_is_not_its_own(start, place, tmp_path, what):
    directory = place
    if what == "open to others":
        place.chmod(0o755)
    elif what == "a link":
        directory = tmp_path / "link"
        directory.symlink_to(place)
    else:
        start()
    (tmp_path / "other").mkdir()
    other = Launcher(tmp_path / "other").spawn("--agent", "/usr/bin/true", "--workspaces", directory)
    assert other.process.wait(60) != 0
    assert "workspaces" in other.log.read_text()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc", ".hidden"])
def test_the_program_takes_no_name_that_leads_elsewhere(place, name):
    for task in (("open", name, MIB, 100), ("measure", name, MIB, 100), ("remove", name)):
        assert "error" in ask(place, *task)
    assert kept_in(place) == []


def test_the_program_reaches_nothing_but_the_tenants_files(place):
    """A file of root's in a home stays: measuring and removing have power over the tenant's own files alone."""
    assert ask(place, "open", "a", MIB, 100)["uid"] == 30001
    theirs = place / "a" / "home" / "of-root"
    theirs.mkdir(mode=0o700)
    (theirs / "file").write_text("x")
    assert "error" in ask(place, "measure", "a", MIB, 100)
    assert "error" in ask(place, "remove", "a")
    assert (theirs / "file").read_text() == "x"


def test_two_that_are_made_at_once_have_uids_of_their_own(start):
    control = start()
    asked = [control.send("workspace_create", name=f"kept{i}", persistent=True) for i in range(6)]
    answers = control.until(*asked)
    uids = [answers[number]["workspace"]["uid"] for number in asked]
    assert len(set(uids)) == len(asked), uids


def given(control, name="kept", **fields):
    """The uid of a workspace that is made and deleted again."""
    uid = control.call("workspace_create", name=name, **fields)[0]["workspace"]["uid"]
    control.call("workspace_destroy", workspace=name)
    return uid


def test_flaw_02_the_uid_of_a_deleted_home_is_never_given_again(start):
    control = start()
    uids = [given(control, persistent=True), given(control, persistent=True), given(control, "other", persistent=True)]
    start.launchers[-1].stop()
    uids += [given(start(), persistent=True)]
    assert len(set(uids)) == len(uids), uids


@pytest.mark.parametrize("lost", ["nothing", "the audit logs", "the workspaces"])
def test_flaw_02_the_uid_of_an_ordinary_workspace_is_never_given_again(start, place, lost):
    """Restarts included, as long as one of the directories that keep it is there."""
    control = start()
    uids = [given(control), given(control), control.call("workspace_create", name="left")[0]["workspace"]["uid"]]
    start.launchers[-1].stop()
    if lost != "the audit logs":  # start() gives each launcher a directory of its own
        start.launchers.append(start.launchers[-1].start("--agent", "/usr/bin/true", *(() if lost == "the workspaces" else ("--workspaces", place))))
        control = start.launchers[-1].control()
    else:
        control = start()
    uids += [given(control), given(control)]
    assert len(set(uids)) == len(uids), uids


def test_flaw_02_a_file_in_a_shared_grant_is_not_the_next_tenants(start, tmp_path):
    """What it is about: a file that only its owner may read, left where both may write."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    for each in (tmp_path, *list(tmp_path.parents)[:-2]):
        each.chmod(each.stat().st_mode | 0o011)
    control = start()
    for persistent in (True, False):
        first = control.call("workspace_create", name="first", persistent=persistent)[0]["workspace"]["uid"]
        (shared / "secret").write_text("x")
        (shared / "secret").chmod(0o600)
        os.chown(shared / "secret", first, first)
        control.call("workspace_destroy", workspace="first")
        second = control.call("workspace_create", name="second", persistent=persistent)[0]["workspace"]["uid"]
        read = subprocess.run(["cat", shared / "secret"], user=second, group=second, extra_groups=[], capture_output=True, check=False)
        assert read.returncode == 1 and b"Permission denied" in read.stderr
        control.call("workspace_destroy", workspace="second")
        (shared / "secret").unlink()


def test_flaw_02_the_mark_follows_homes_that_are_there(place):
    """A directory that was restored, or is from before there was a mark."""
    (place / "old" / "home").mkdir(parents=True)
    os.chown(place / "old" / "home", 30050, 30050)
    (place / ".lock").touch(0o600)
    assert ask(place, "open", "a", MIB, 100)["uid"] == 30051
    os.chown(place / "old" / "home", 30090, 30090)
    assert ask(place, "open", "old", MIB, 100)["uid"] == 30090
    assert ask(place, "remove", "old") == {}
    assert ask(place, "open", "b", MIB, 100)["uid"] == 30091
    (place / ".lock").unlink()  # what is removed is noted, whatever was known before
    assert ask(place, "remove", "b") == {}
    assert ask(place, "open", "c", MIB, 100)["uid"] == 30092


BROKEN = ["", "x", "{}", "[]", "30001", '{"home": 29999}', '{"home": 40000}', '{"home": "30001"}', '{"home": 30001.5}', '{"home": -1}',
          '{"home": 30001, "home": 30002}', '{"other": 30001}', '{"home": 30001', '{"workspace": 40000}', '{"home": 30001}' + " " * 300]


@pytest.mark.parametrize("text", BROKEN)
def test_flaw_02_a_broken_mark_gives_no_uid(place, tmp_path, text):
    (tmp_path / "state").mkdir()
    assert ask(place, "open", "a", MIB, 100)["uid"] == 30001
    assert told(asked(place, "uid", state=tmp_path / "state"))["uid"] == 40001
    (place / ".lock").write_text(text)
    for answer in (ask(place, "open", "b", MIB, 100), ask(place, "open", "a", MIB, 100), told(asked(place, "uid", state=tmp_path / "state"))):
        assert list(answer) == ["error"] and "'.lock' in the directory of workspaces" in answer["error"], answer
    assert kept_in(place) == ["a"] and (place / ".lock").read_text() == text


@pytest.mark.parametrize("what", ["a link", "a directory", "of another user", "open to others"])
def test_flaw_02_a_mark_that_is_not_ours_gives_no_uid(place, what):
    mark = place / ".lock"
    assert ask(place, "open", "a", MIB, 100)["uid"] == 30001
    if what in ("a link", "a directory"):
        mark.rename(place / ".aside")
        if what == "a link":
            mark.symlink_to(".aside")
        else:
            mark.mkdir()
    elif what == "of another user":
        os.chown(mark, 1000, 1000)
    else:
        mark.chmod(0o622)
    assert "error" in ask(place, "open", "b", MIB, 100)
    assert not (place / "b").exists()


def test_flaw_02_a_range_that_is_used_up_is_refused_and_never_begun_again(place, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / ".lock").write_text('{"workspace": 65532}')
    (place / ".lock").write_text('{"home": 39998}')
    assert ask(place, "open", "last", MIB, 100)["uid"] == 39999
    assert told(asked(place, "uid", state=state))["uid"] == 65533
    assert ask(place, "remove", "last") == {}
    for answer in (ask(place, "open", "more", MIB, 100), told(asked(place, "uid", state=state)), told(asked(os.devnull, "uid", state=state))):
        assert "has been given once" in answer["error"] and "remove '.lock'" in answer["error"]
    assert kept_in(place) == []


def test_flaw_02_many_at_once_get_uids_of_their_own(place, tmp_path):
    """Each waits for the one before, although each puts another file in the lock's place."""
    state = tmp_path / "state"
    state.mkdir()
    started = [asked(place, "uid", state=state) for _ in range(12)] + [asked(place, "open", f"w{i}", MIB, 100) for i in range(12)]
    uids = [told(each)["uid"] for each in started]
    assert sorted(uids) == [*range(30001, 30013), *range(40001, 40013)]
    assert json.loads((place / ".lock").read_text()) == {"home": 30012, "workspace": 40012}


def test_flaw_02_without_room_for_the_mark_no_uid_is_given(place):
    """Neither told nor lost: the one before stays readable."""
    assert ask(place, "open", "a", MIB, 100)["uid"] == 30001
    (place / ".lock.new").mkdir()  # where the next one would be written
    assert "error" in ask(place, "open", "b", MIB, 100)
    assert not (place / "b").exists() and json.loads((place / ".lock").read_text()) == {"home": 30001}
    (place / ".lock.new").rmdir()
    (place / ".lock.new").write_text("cut off by a power failure")
    assert ask(place, "open", "b", MIB, 100)["uid"] == 30002
