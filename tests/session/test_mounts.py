"""What an operator mounts below CAISSON_MOUNTS: sessions of the default workspace have it as it is mounted, and nothing else of it."""

import json
import os
import subprocess

import places
import pytest
from harness import CLI, SESSION_UID, Launcher, inside

# An image with directories, a link and files in /mnt, and what somebody mounted there.
OWN = f"uid={SESSION_UID},gid={SESSION_UID},mode=0755"
MOUNTED = f"""
mount -t tmpfs image /mnt && cd /mnt && mkdir image rw ro quiet keys said user-data && echo image > image/file && ln -s /mnt/rw link
mkdir -p user-data/workspace /opt && echo image > user-data/image && touch one fifo && mkfifo pipe
mount -t tmpfs -o {OWN} volume rw && mkdir rw/nested && mount -t tmpfs -o {OWN} volume rw/nested
echo nested > rw/nested/file && mount -o remount,bind,ro rw/nested
mount -t tmpfs -o {OWN} volume ro && echo read > ro/file && printf '#!/bin/sh\\necho ran\\n' > ro/program && chmod 755 ro/program && mount -o remount,bind,ro ro
mount -t tmpfs -o {OWN},noexec volume quiet && cp ro/program quiet
mount -t tmpfs -o {OWN} volume user-data/workspace
mount -t tmpfs -o {OWN} volume said && mkdir said/secret said/shown && echo secret > said/secret/file && echo shown > said/shown/file
mount -t tmpfs volume keys && mkdir -m 700 keys/homes
echo one > rw/one && mount --bind rw/one one && mount --bind pipe fifo
mount -t proc proc image/proc 2>/dev/null || true
mount -t tmpfs -o {OWN} volume /opt && echo elsewhere > /opt/file
cd / && exec "$@"
"""
LIST = "/mnt/*:/workspace"


def around(*wrapper):
    return ("unshare", "--mount", "--propagation", "private", "--", "sh", "-ec", MOUNTED, "sh", *wrapper)


def say(policies):
    """Domain `said`: its policy grants a part of one volume, and hides another."""
    why = "a test of what a policy says of a place"
    grant = {"path": "/mnt/said", "access": "read", "description": why}
    policy = {"extends": "base", "grants": [grant], "hide": ["/usr/lib/caisson", "/usr/bin/caisson", "/mnt/said/secret"]}
    (policies / "said.json").write_text(json.dumps({**policy, "weaken": [{"field": "/grants/mnt/said", "why": why}]}))


@pytest.fixture(scope="module")
def mounting(here, tmp_path_factory):
    launcher = Launcher(tmp_path_factory.mktemp("mounts"))
    say(launcher.policies)
    yield launcher.start("--workspaces", "/mnt/keys/homes", wrapper=around(), CAISSON_MOUNTS=LIST)
    launcher.stop()


@pytest.fixture
def control(mounting):
    one = mounting.control()
    if one.hello["tier"] != "T3":
        pytest.skip(f"this host gives tier {one.hello['tier']}: the lower ones have their own test")
    yield one
    one.close()


@pytest.fixture
def session(control):
    return control.create("bash")


def policy(control, domain):
    return control.call("policy", domain=domain)[0]["policy"]


def granted(control, domain):
    return {g["path"]: (g["access"], g["execute"]) for g in policy(control, domain)["grants"] if g.get("mounted")}


AS_MOUNTED = {
    "/mnt/one": ("read-write", True),
    "/mnt/quiet": ("read-write", False),
    "/mnt/ro": ("read", True),
    "/mnt/rw": ("read-write", True),
    "/mnt/rw/nested": ("read", True),
    "/mnt/said": ("read-write", True),
    "/mnt/user-data/workspace": ("read-write", True),
}
SHARED = ("bash", "shell", "code", "code-server", "file", "jupyter", "nodejs")


@pytest.mark.parametrize("domain", SHARED)
def test_a_domain_that_shares_the_home_has_each_volume_as_it_is_mounted(control, domain):
    runs = policy(control, domain)["exec_writable"]
    assert granted(control, domain) == {path: (access, execute and runs) for path, (access, execute) in AS_MOUNTED.items()}


@pytest.mark.parametrize("domain", ["mcp", "browser", "desktop", "run"])
def test_a_domain_whose_home_is_its_own_has_none(control, domain):
    assert granted(control, domain) == {}


def test_sessions_write_where_it_is_mounted_for_writing(control, session):
    assert control.output(session, "sh", "-c", "cd /mnt/user-data/workspace && echo kept > file && cat file") == "kept\n"
    assert control.output(control.create("code"), "cat", "/mnt/user-data/workspace/file") == "kept\n"


def test_sessions_only_read_where_it_is_mounted_for_reading(control, session):
    assert control.output(session, "cat", "/mnt/ro/file", "/mnt/rw/nested/file") == "read\nnested\n"
    assert control.output(session, "/mnt/ro/program") == "ran\n"
    tries = [f"tried(open, '{p}', 'w')" for p in ("/mnt/ro/file", "/mnt/ro/new", "/mnt/rw/nested/file", "/mnt/rw/nested/new")]
    assert inside(control, session, f"out = [{', '.join(tries)}]") == ["EROFS"] * 4


def test_a_volume_that_is_mounted_noexec_stays_so(control, session):
    assert inside(control, session, "out = tried(os.execv, '/mnt/quiet/program', ['x'])") == "EACCES"


def test_nothing_of_the_image_comes_along(control, session):
    assert control.output(session, "ls", "-A", "/mnt").split() == ["one", "quiet", "ro", "rw", "said", "user-data"]
    assert control.output(session, "ls", "-A", "/mnt/user-data").split() == ["workspace"], "its parents are empty"
    for path in ("/mnt/image", "/mnt/image/proc", "/mnt/link", "/mnt/fifo", "/opt/file"):
        assert inside(control, session, f"out = tried(os.lstat, '{path}')") == "ENOENT", path


def test_what_the_launcher_keeps_for_itself_is_granted_to_nobody(control, session):
    assert inside(control, session, "out = tried(os.lstat, '/mnt/keys')") == "ENOENT"


def test_what_a_policy_says_of_a_place_stands(control):
    """A volume that it grants in part, or for reading, is not opened by being mounted; the other volumes are there."""
    session = control.create("said")
    assert "/mnt/said" not in granted(control, "said") and "/mnt/rw" in granted(control, "said")
    assert control.output(session, "cat", "/mnt/said/shown/file") == "shown\n"
    assert inside(control, session, "out = [tried(os.listdir, '/mnt/said/secret'), tried(open, '/mnt/said/new', 'w')]") == ["EACCES", "EROFS"]


def test_the_statement_names_each(control, session):
    said = control.call("attest", session=session)[0]["statement"]["confinement"]
    assert {g["path"]: (g["access"], g["execute"]) for g in said["grants"] if g["path"].startswith("/mnt")} == AS_MOUNTED
    assert {f for f in said["weaken"] if f.startswith("/grants/mnt")} == {f"/grants{path}" for path in AS_MOUNTED}
    assert said["weaken"]["/grants/mnt/ro"] == "mounted by the operator (CAISSON_MOUNTS)"
    assert said["weaken"]["/grants/mnt/rw"] == f"mounted by the operator (CAISSON_MOUNTS); of uid {SESSION_UID}, mode 755"


def test_a_request_may_narrow_them(control):
    session = control.create("bash", narrow={"grants": [{"path": "/usr", "execute": True}, {"path": "/mnt/rw", "access": "read"}]})
    assert inside(control, session, "out = [tried(open, '/mnt/rw/x', 'w'), tried(os.lstat, '/mnt/ro')]") == ["EROFS", "ENOENT"]


@pytest.mark.parametrize("isolation", ["shared", "private"])
def test_a_named_workspace_has_none(control, isolation):
    """Two tenants would meet there."""
    name = f"tenant-{isolation}"
    control.call("workspace_create", name=name)
    session = control.create("bash", workspace=name, isolation=isolation)
    assert inside(control, session, "out = tried(os.lstat, '/mnt')") == "ENOENT"
    report = control.call("session_report", session=session)[0]["report"]
    assert not any("/mnt" in field for field in report["weaken"])
    assert report["policy_digest"] != policy(control, "bash")["digest"]
    control.call("workspace_destroy", workspace=name)


def test_they_are_there_after_a_reload(mounting, control):
    mounting.reload()
    assert granted(control, "bash") == AS_MOUNTED
    assert control.output(control.create("bash"), "cat", "/mnt/ro/file") == "read\n"


@pytest.mark.parametrize("preset, there", [("finance", False), ("medical", False), ("legal", True), ("research", True)])
def test_a_preset_wins(fresh, preset, there):
    control = fresh.start("--workspaces", "/mnt/keys/homes", wrapper=around(), CAISSON_MOUNTS=LIST, CAISSON_PRESET=preset).control()
    assert set(granted(control, "bash")) == (set(AS_MOUNTED) if there else set())
    assert {execute for _, execute in granted(control, "bash").values()} <= {False, preset == "research"}


@pytest.mark.parametrize("tier", ["T0", "T2", "no mounts"])
def test_a_lower_tier_has_them_too(here, tmp_path_factory, tier):
    with Launcher(tmp_path_factory.mktemp("low")) as launcher:
        options = () if tier == "T2" else ("--home", "/home/gem")
        launcher.start(*options, wrapper=around(*places.wrapper(tier, launcher.home)), CAISSON_MOUNTS=LIST)
        control = launcher.control()
        assert control.hello["tier"] == places.tier(tier)
        session = control.create("bash")
        assert control.output(session, "cat", "/mnt/ro/file", "/mnt/rw/nested/file") == "read\nnested\n"
        assert inside(control, session, "out = [tried(open, '/mnt/ro/new', 'w'), tried(open, '/mnt/rw/nested/new', 'w')]") == ["EROFS"] * 2
        wanted = ["EACCES"] * 2 if tier != "T2" else ["ENOENT"] * 2
        assert inside(control, session, "out = [tried(open, p) for p in ('/mnt/image/file', '/mnt/user-data/image')]") == wanted
        # T0 gives each session a uid: who may write is for the volume's modes to say.
        assert inside(control, session, "out = tried(os.mkdir, '/mnt/rw/new')") in (("ok",) if tier == "T2" else ("ok", "EACCES"))


@pytest.mark.parametrize("places_", [None, "", "/mnt/elsewhere:/workspace"])
def test_what_is_not_named_is_not_granted(fresh, places_):
    control = fresh.start(wrapper=around(), **({} if places_ is None else {"CAISSON_MOUNTS": places_})).control()
    assert granted(control, "bash") == {}
    assert inside(control, control.create("bash"), "out = tried(os.lstat, '/mnt')") == "ENOENT"


@pytest.mark.parametrize("named, granted_", [("/mnt", True), ("/mnt/rw:/opt", True), ("/mnt/rw/*", False)])
def test_a_place_is_the_mount_itself_or_what_is_below(fresh, named, granted_):
    control = fresh.start(wrapper=around(), CAISSON_MOUNTS=named).control()
    paths = granted(control, "bash")
    assert ("/mnt/rw" in paths) == granted_ and "/mnt/rw/nested" in paths
    assert ("/mnt" in paths) == (named == "/mnt") and "/opt" not in paths, "base grants below /opt"


@pytest.mark.parametrize("wrong", ["mnt", "/", "/*", "/mnt/../etc", "/mnt/*/x", "/etc/*", "/usr/share", "/home/*", "/mnt/*,/workspace"])
def test_a_place_that_could_show_the_container_s_own_is_refused_by_name(fresh, wrong):
    fresh.spawn(wrapper=around(), CAISSON_MOUNTS=wrong)
    assert fresh.process.wait(60) == 2
    assert f"CAISSON_MOUNTS '{wrong}': " in fresh.log.read_text()


def told(policies, *argv, **environment):
    """What the command says inside."""
    argv = [*around(), CLI, "--policies", policies, *argv]
    done = subprocess.run([str(a) for a in argv], env={"PATH": os.environ["PATH"], **environment}, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_explain_names_them_where_the_variable_is_set(fresh):
    explained = ("policy", "explain", "bash")
    lines = [line.split() for line in told(fresh.policies, *explained, CAISSON_MOUNTS=LIST).splitlines() if "/mnt/ro" in line]
    assert lines and all(line[0] == "/mnt/ro" and line[-1] == "(CAISSON_MOUNTS)" for line in lines)
    assert "/mnt" not in told(fresh.policies, *explained)
    assert "CAISSON_MOUNTS 'mnt': " in told(fresh.policies, *explained, CAISSON_MOUNTS="mnt")
