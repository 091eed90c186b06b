"""Paths that are swapped while sessions are built on them, programs that fork while they are killed: no session ever sees,
binds or deletes anything outside its grants, and its end is the end of all that it started."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from harness import SESSION_UID, Launcher, Refused, edit, eventually, marked
from seat import counts, serves, settled

WHY = "a test of races"
ROUNDS = 150
WALLS = ["mount_ns", "pid_ns", "ipc_ns", "uts_ns", "net_ns", "cgroup_ns", "proc"]


def grant(launcher, path, source, name="victim", **more):
    document = {"extends": "base", "grants": [{"path": path, "source": str(source), "access": "read-write", "description": WHY}]}
    document["weaken"] = [{"field": f"/grants{path}", "why": WHY}] + more.pop("weaken", [])
    (launcher.policies / f"{name}.json").write_text(json.dumps({**document, **more}))


@pytest.fixture
def open_to_all(tier):
    """A folder that any uid may enter: what then stops a session is the wall, not the mode of pytest's own folder."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-race-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def place(open_to_all, compiled):
    """A home with `sub` and `a/b/sub`, links beside them that lead outside, and what is outside."""
    launcher = Launcher(open_to_all)
    secret, home = launcher.base / "secret", launcher.home
    for folder in (secret, secret / "b" / "sub", home / "sub", home / "a" / "b" / "sub"):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        (folder / "file").write_text("outside\n" if secret in (folder, *folder.parents) else "inside\n")
    os.symlink(secret, home / "link")
    os.symlink("/", home / "root")
    shutil.copy(compiled("swapper"), home / "swapper")
    for path in [home, *home.rglob("*")]:
        os.chown(path, SESSION_UID, SESSION_UID, follow_symlinks=False)
    launcher.secret = secret
    yield launcher
    launcher.stop()
    left = {str(p.relative_to(secret)): p.read_text() for p in secret.rglob("file")}
    assert left == {"file": "outside\n", "b/sub/file": "outside\n"}, "something outside was changed"


def swap(control, *names):
    """Starts the swapper inside a session of its own, as an attacker would."""
    session = control.create()
    _, fds = control.start(session, "/home/gem/swapper", *names, stdin=False, cwd="/home/gem")
    assert os.read(fds[0], 100) == b"swapping\n"
    return session


SWAPS = {
    "the granted directory, a link to outside": ("sub", ("sub", "link"), "sub"),
    "the granted directory, a link to the root": ("sub", ("sub", "root"), "sub"),
    "its grandparent, a link to outside": ("a/b/sub", ("a", "link"), "a/b/sub"),
}


@pytest.mark.parametrize("what", SWAPS)
def test_a_grant_that_is_swapped_is_refused_closed_or_what_was_meant(place, what):
    path, names, _ = SWAPS[what]
    grant(place, "/srv/sub", place.home / path)
    place.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")
    control = place.control()
    swap(control, *names)
    seen, refused, closed = [], [], []
    end = time.monotonic() + 180  # on a busy machine one outcome can be rare
    while len(seen) + len(refused) + len(closed) < ROUNDS or (not (seen and (refused or closed)) and time.monotonic() < end):
        try:
            # Narrowed, so that its paths are resolved for it alone.
            session = control.create("victim", narrow={"tmp": "private"})
        except Refused as e:
            refused.append(e.error)
            continue
        if "/srv/sub" in control.call("session_report", session=session)[0]["report"].get("closed", {}):
            ended, out, _ = control.run(session, "cat", "/srv/sub/file")
            closed.append((ended["exit_code"], out))
        else:
            seen.append(control.output(session, "cat", "/srv/sub/file"))
        control.destroy(session)
        control.events.clear()
    assert set(seen) == {"inside\n"} and (refused or closed), f"the race was not run both ways: {seen[:3]} {refused[:3]} {closed[:3]}"
    assert set(closed) <= {(1, "")}, "a path that is said to be closed shows nothing"
    assert all(e["code"] and "/sub" in e["what"] for e in refused), refused


@pytest.mark.parametrize("what", SWAPS)
def test_a_swapped_grant_opens_nothing_where_landlock_alone_holds(place, what):
    """Without a mount namespace the grant is a rule on a path, not a mount: the rule must not land on another directory."""
    path, names, _ = SWAPS[what]
    disabled = [{"field": "/disable", "why": WHY}]
    edit(place.policies / "base.json", require=["capabilities", "no_new_privs", "landlock", "seccomp"])
    # The container's own /tmp and home are granted there: what is outside must not lie below them.
    outside = pathlib.Path(tempfile.mkdtemp(prefix="caisson-race-", dir="/var/lib"))
    try:
        outside.chmod(0o755)
        (outside / "b" / "sub").mkdir(parents=True)
        for folder in (outside, outside / "b" / "sub"):
            (folder / "file").write_text("outside\n")
        shared = outside.parent / (outside.name + "-shared")
        shared.mkdir()
        (shared / "a" / "b" / "sub").mkdir(parents=True)
        (shared / "sub").mkdir()
        os.symlink(outside, shared / "link")
        os.symlink("/", shared / "root")
        grant(place, str(shared / path), shared / path, disable=WALLS, weaken=disabled)
        place.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")
        swapper = subprocess.Popen([place.home / "swapper", *(shared / n for n in names)], stdout=subprocess.PIPE)
        assert swapper.stdout.readline() == b"swapping\n"
        control, read = place.control(), 0
        try:
            for _ in range(ROUNDS):
                try:
                    session = control.create("victim", narrow={"limits": {"execs": 7}})
                except Refused:
                    continue
                ended, out, err = control.run(session, "cat", str(outside / "file"), str(outside / "b/sub/file"), cwd="/")
                assert "outside" not in out, "a rule landed outside the grant"
                read += "Permission denied" in err
                control.destroy(session)
                control.events.clear()
        finally:
            swapper.kill()
            swapper.wait()
        assert read > 0
    finally:
        shutil.rmtree(outside)
        shutil.rmtree(outside.parent / (outside.name + "-shared"), ignore_errors=True)


def test_a_working_directory_that_is_swapped_is_never_outside(place):
    place.start("--agent", "/usr/bin/true")
    control = place.control()
    swap(control, "sub", "link")
    swap(control, "a", "root")
    session = control.create()
    for i in range(ROUNDS):
        try:
            out = control.output(session, "sh", "-c", "pwd -P; cat file", cwd="/home/gem/sub" if i % 2 else "/home/gem/a")
        except (Refused, AssertionError) as e:
            out = str(e)
        assert "outside" not in out and "unreachable" not in out and "secret" not in out


def test_sessions_come_and_go_on_a_home_in_motion_and_delete_nothing(place):
    place.start("--agent", "/usr/bin/true", wrapper=place.in_own_mounts(), CAISSON_READY_SESSIONS="0")
    control = place.control()
    swap(control, "sub", "link")
    before = settled(place)
    for i in range(ROUNDS):
        session = control.create("shell" if i % 2 else "bash", narrow={"home": "private"} if i % 3 == 0 else None)
        _, fds = control.start(session, "sh", "-c", "cd /home/gem; while :; do ln -sfn / x; rm -f x; mkdir -p x; rmdir x; done")
        control.destroy(session)
        for fd in fds:
            os.close(fd)
        control.events.clear()
    eventually(lambda: counts(place) == before, what=f"{counts(place)} is {before} again")


# Programs that fork while they are killed.


def end_all(mark):
    """Whatever the launcher has left, so that a test that fails leaves nothing either."""
    for _ in range(500):
        if not (left := marked(mark)):
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def ended(place, session):
    return place.records(session)[-1]["event"] == "session_end"


@pytest.mark.parametrize("walls", [[], ["pid_ns", "proc"], WALLS], ids=["pid_ns", "no pid_ns", "no namespaces"])
def test_programs_that_fork_while_they_are_killed_all_end(place, compiled, walls):
    shutil.copy(compiled("forker"), place.home / "forker")
    if walls:
        edit(place.policies / "base.json", require=["capabilities", "no_new_privs", "landlock", "seccomp"])
        for name in ("bash", "shell", "run"):
            edit(place.policies / f"{name}.json", disable=walls, weaken=[{"field": "/disable", "why": WHY}])
    place.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")
    control = place.control()
    # Without a mount namespace the home is where it is.
    program = place.home / "forker" if "mount_ns" in walls else "/home/gem/forker"
    for i in range(4):
        mark = f"forker-{os.getpid()}-{i}"
        session = control.create()
        try:
            control.start(session, str(program), mark, cwd="/tmp", stdin=False)
            # A link is there for two milliseconds: of a hundred chains a look on a busy machine meets a few. Or the watchdog has met
            # so many dead ones that it has killed the session itself.
            eventually(lambda m=mark, s=session: len(marked(m)) > 4 or ended(place, s), what="it forks")
            with contextlib.suppress(Refused):  # it has ended
                control.destroy(session)
            eventually(lambda s=session: ended(place, s), what="its end is on record")
            assert marked(mark) == []
        finally:
            end_all(mark)
    # It still serves.
    assert control.output(control.create(), "echo", "on", cwd="/tmp") == "on\n"


# Trees and names that no careful program would make: what the launcher and a session do with them ends as it began.


NAMES = ["line\nfeed", "-rf", "..hidden", " ", "\x1b[2J", "\udcff\udcfe", "*", "$(reboot)", "a" * 255, "\u202egpj.exe"]


def test_a_deep_tree_is_only_a_deep_tree(place):
    """Deeper than a path may be long: whoever walks it by name or by recursion fails; the session's end does neither."""
    place.start("--agent", "/usr/bin/true", wrapper=place.in_own_mounts(), CAISSON_READY_SESSIONS="0")
    control = place.control()
    before = settled(place)
    code = "for i in range(1000): os.mkdir('dddddddd'); os.chdir('dddddddd')"
    for narrow in (None, {"home": "private", "tmp": "private"}):
        session = control.create(narrow=narrow)
        for top in ("/home/gem", "/tmp"):
            control.output(session, "/usr/bin/python3", "-c", f"import os; os.chdir({top!r})\n{code}")
            assert control.run(session, "ls", cwd=top + "/dddddddd" * 400)[0]["exit_code"] == 0
        control.destroy(session)
    # What is shared stays, and is the user's to remove; what was private is gone with its session.
    shared = control.create()
    control.output(shared, "rm", "-r", "/home/gem/dddddddd", "/tmp/dddddddd")
    control.destroy(shared)
    control.events.clear()
    eventually(lambda: counts(place) == before, what=f"{counts(place)} is {before} again")
    serves(place)


@pytest.mark.parametrize("name", NAMES, ids=[ascii(n)[:20] for n in NAMES])
def test_a_weird_name_is_a_name(place, name):
    """As a granted directory, a working directory and an argument; in the log it is one line and the same again."""
    if name.isprintable() and "/" not in name and name.strip():
        (place.home / name).mkdir()
        grant(place, "/srv/weird", place.home / name)
    place.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")
    control = place.control()
    session = control.create()
    spelled = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    control.output(session, "mkdir", "-p", "--", "./" + spelled)
    out = control.output(session, "/usr/bin/python3", "-c", "import os; print(ascii(os.getcwd()))", cwd="/home/gem/" + spelled)
    assert out.strip() == ascii("/home/gem/" + spelled)
    control.destroy(session)
    lines = (place.audit / f"{session}.ndjson").read_bytes().split(b"\n")
    argvs = [r["argv"] for r in map(json.loads, filter(None, lines)) if "argv" in r]
    assert ["mkdir", "-p", "--", "./" + spelled] in argvs
    if (place.policies / "victim.json").exists():
        granted = control.create("victim", narrow={"tmp": "private"})
        assert control.output(granted, "ls", "-A", "/srv/weird") == ""
        control.destroy(granted)
