"""What is granted can be seen, nothing else; the case numbers are those of the semantics of path grants. The same facts hold for
domains (by policy) and for `caisson run --grant`."""

import json
import os
import pathlib
import shutil
import socket
import tempfile

import pytest
from harness import SESSION_UID, Launcher, Refused, cli, copy_policies, eventually, inside

WHY = "a test of the grants"
DENIED = ("EROFS", "EACCES")


def domain(policies, grants, name="data", **more):
    """A domain of its own that adds the grants to base's."""
    grants = [{"description": WHY, **g} for g in grants]
    weaken = [{"field": f"/grants{path}", "why": WHY} for path in dict.fromkeys(g["path"] for g in grants)]
    (policies / f"{name}.json").write_text(json.dumps({"extends": "base", "grants": grants, "weaken": weaken, **more}))


def make_tree(base):
    """data (rw) / ro (read-only) / rw (rw again), beside a secret that nobody grants."""
    for path in ("data", "data/ro", "data/ro/rw", "secret"):
        (base / path).mkdir()
        (base / path / "file").write_text(f"{path}\n")
        (base / path / "program").write_text("#!/bin/sh\necho ran\n")
        (base / path / "program").chmod(0o755)
    (base / "one").write_text("one\n")
    for path in [base / "one", base / "data", *(base / "data").rglob("*")]:
        os.chown(path, SESSION_UID, SESSION_UID)
    return [
        {"path": "/srv/data", "source": str(base / "data"), "access": "read-write"},
        {"path": "/srv/data/ro", "source": str(base / "data/ro"), "access": "read", "execute": True},
        {"path": "/srv/data/ro/rw", "source": str(base / "data/ro/rw"), "access": "read-write"},
        {"path": "/srv/one", "source": str(base / "one"), "access": "read"},
        {"path": "/srv/missing", "source": str(base / "missing"), "required": False},
    ]


@pytest.fixture(scope="module")
def granting(here, tmp_path_factory):
    launcher = Launcher(tmp_path_factory.mktemp("grants"))
    domain(launcher.policies, make_tree(launcher.base))
    launcher.start()
    yield launcher
    launcher.stop()


@pytest.fixture
def control(granting):
    one = granting.control()
    yield one
    one.close()


@pytest.fixture
def session(control):
    return control.create("data")


WRITES = {
    "create": "os.close(os.open('{0}/new', os.O_CREAT | os.O_WRONLY))",
    "write": "os.close(os.open('{0}/file', os.O_WRONLY))",
    "truncate": "os.truncate('{0}/file', 0)",
    "rename": "os.rename('{0}/file', '{0}/x')",
    "unlink": "os.unlink('{0}/file')",
    "chmod": "os.chmod('{0}/file', 0o777)",
    "mkdir": "os.mkdir('{0}/dir')",
    "link into": "os.link('/srv/data/file', '{0}/x')",
    "symlink": "os.symlink('x', '{0}/x')",
    "utime": "os.utime('{0}/file')",
    "setxattr": "os.setxattr('{0}/file', 'user.x', b'x')",
}


# Case 1.

BAD_PATHS = [
    "/",
    "//",
    "relative",
    "",
    ".",
    "/srv/../etc",
    "/srv/./data",
    "/srv/data/",
    "//srv",
    "/srv//data",
    "/" + "x" * 4096,
    "/" + "x" * 300,
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=lambda p: p[:20])
def test_case_01_a_path_that_is_not_absolute_and_canonical_is_refused_by_run(path):
    done = cli("--policies", copied(), "run", "--grant", f"{path}:ro", "--", "true")
    assert done.returncode == 125 and b"grant" in done.stderr


@pytest.mark.parametrize("path", [*BAD_PATHS, "/srv/data\0/x"], ids=lambda p: p[:20])
def test_case_01_such_a_path_is_refused_in_a_narrowing(control, path):
    with pytest.raises(Refused) as refused:
        control.create("data", narrow={"grants": [{"path": path}]})
    assert "grants/0" in refused.value.error["what"]


@pytest.mark.parametrize("path", [*BAD_PATHS[:-1], "/srv/data\0/x"], ids=lambda p: p[:20])
def test_case_01_such_a_path_is_refused_in_a_policy(tmp_path, path):
    policies = copy_policies(tmp_path / "policies")
    domain(policies, [{"path": path, "source": "/usr"}])
    done = cli("policy", "check", policies)
    assert done.returncode == 21 and b"/grants/0/path" in done.stdout


def test_case_01_a_symlink_to_the_root_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("/")
    done = cli("--policies", copied(), "run", "--grant", tmp_path / "link", "--", "true")
    assert done.returncode == 125 and b"ELOOP" in done.stderr and str(tmp_path / "link").encode() in done.stderr


def test_case_01_a_symlink_in_the_middle_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("/srv")
    done = cli("--policies", copied(), "run", "--grant", tmp_path / "link/data", "--", "true")
    assert done.returncode == 125 and b"ELOOP" in done.stderr


@pytest.fixture(scope="module", autouse=True)
def policies_of_run(here, tmp_path_factory):
    copied.path = copy_policies(tmp_path_factory.mktemp("policies") / "p")


def copied():
    return copied.path


# Case 2.


def test_case_02_a_grant_twice_is_refused_in_a_policy(tmp_path):
    policies = copy_policies(tmp_path / "policies")
    domain(policies, [{"path": "/srv/data", "source": "/usr"}, {"path": "/srv/data", "source": "/usr", "access": "read-write"}])
    done = cli("policy", "check", policies)
    assert done.returncode == 21 and b"/grants/1" in done.stdout


def test_case_02_a_grant_twice_is_refused_in_a_narrowing(control):
    with pytest.raises(Refused):
        control.create(
            "data",
            narrow={
                "grants": [
                    {"path": "/usr", "execute": True},
                    {"path": "/srv/data"},
                    {"path": "/srv/data", "access": "read-write"},
                ]
            },
        )


# Case 3.


@pytest.mark.parametrize(
    "call",
    [
        "open('{0}')",
        "os.listdir('{0}')",
        "os.stat('{0}')",
        "os.execv('{0}', ['x'])",
        "open('{0}', 'w')",
        "os.mkdir('{0}/x')",
        "os.chdir('{0}')",
    ],
)
def test_case_03_a_path_under_no_grant_is_not_found(granting, control, session, call):
    assert inside(control, session, f"out = tried(lambda: {call.format(granting.base / 'secret')})") == "ENOENT"


# Cases 4 and 7.


@pytest.mark.parametrize("path", ["/srv/data", "/srv/data/ro", "/srv/data/ro/rw"])
def test_case_04_what_is_granted_can_be_read(control, session, path):
    assert control.output(session, "cat", f"{path}/file") == path[5:] + "\n"


@pytest.mark.parametrize("what", WRITES)
def test_case_04_a_read_only_grant_refuses_to(control, session, what):
    allowed = ("EXDEV",) if what == "link into" else ()
    assert inside(control, session, f"out = tried(lambda: {WRITES[what].format('/srv/data/ro')})") in DENIED + allowed


def test_case_04_a_read_only_grant_of_a_writable_file_system_was_writable_outside(granting):
    (granting.base / "data/ro/probe").write_text("x")
    (granting.base / "data/ro/probe").unlink()


@pytest.mark.parametrize("path", ["/srv/data", "/srv/data/ro/rw"])
def test_case_07_read_write_holds_outside_and_inside_of_read_only(control, session, path):
    control.output(session, "sh", "-c", f"echo x > {path}/made && rm {path}/made && mkdir {path}/d && rmdir {path}/d")


@pytest.mark.parametrize(
    "path, code", [("/srv/data/program", 126), ("/srv/data/ro/program", 0), ("/srv/data/ro/rw/program", 126)]
)
def test_case_07_programs_run_only_where_the_longest_grant_says_so(control, session, path, code):
    assert control.run(session, "sh", "-c", path)[0]["exit_code"] == code


def test_case_07_a_mount_point_cannot_be_renamed_or_removed(control, session):
    assert (
        inside(control, session, "out = [tried(os.rename, '/srv/data/ro', '/srv/data/x'), tried(os.rmdir, '/srv/data/ro')]")
        == ["EBUSY"] * 2
    )


def test_case_07_nothing_moves_between_grants(control, session):
    code = "out = [tried(os.rename, '/srv/data/ro/file', '/srv/data/stolen'), tried(os.link, '/srv/data/ro/file', '/srv/data/stolen')]"
    assert set(inside(control, session, code)) <= {"EXDEV", "EROFS", "EACCES", "EPERM"}


# Cases 5, 6, 8, 9, 10, 11.


def test_case_05_writing_through_an_alias_into_read_only_is_denied(control, session):
    assert (
        inside(
            control,
            session,
            "os.symlink('/srv/data/ro', os.environ.get('HOME', '/home/gem') + '/alias'); out = tried(open, '/home/gem/alias/new', 'w'); os.unlink('/home/gem/alias')",
        )
        in DENIED
    )


def test_case_06_a_symlink_to_a_granted_directory_is_followed(control, session):
    assert control.output(session, "sh", "-c", "ln -s /srv/data ~/granted && cat ~/granted/file; rm ~/granted") == "data\n"


def test_case_06_a_symlink_to_an_ungranted_directory_leads_nowhere(granting, control, session):
    code = f"""
os.symlink({str(granting.base / 'secret')!r}, '/home/gem/out')
out = [tried(open, '/home/gem/out/file'), tried(open, '/home/gem/out/new', 'w'), tried(os.listdir, '/home/gem/out'), tried(os.mkdir, '/home/gem/out/d'), tried(os.unlink, '/home/gem/out/file')]
os.unlink('/home/gem/out')
"""
    assert inside(control, session, code) == ["ENOENT"] * 5 and sorted(os.listdir(granting.base / "secret")) == [
        "file",
        "program",
    ]


def test_case_08_removing_a_symlink_leaves_its_target(granting, control, session):
    control.output(session, "sh", "-c", "ln -s /srv/data/file ~/leaf && rm ~/leaf")
    assert (granting.base / "data/file").exists() and not (granting.home / "leaf").is_symlink()


def test_case_09_parents_stay_inside(granting, control, session):
    control.output(session, "mkdir", "-p", "pkg")
    assert control.output(session, "sh", "-c", "echo in > pkg/../x9; cat x9; rm x9") == "in\n"
    assert set(inside(control, session, "out = [tried(open, p, 'w') for p in ('../x9', 'pkg/../../x9', '../../../x9')]")) <= set(
        DENIED
    )
    assert not [
        p
        for p in (granting.base / "x9", granting.base.parent / "x9", pathlib.Path("/x9"), pathlib.Path("/home/x9"))
        if p.exists()
    ]


def test_case_10_a_cycle_and_a_long_chain_of_symlinks_fail(control, session):
    code = "os.chdir('/tmp'); os.symlink('b', 'a'); os.symlink('a', 'b')\nfor i in range(64): os.symlink('c%d' % (i + 1), 'c%d' % i)\nopen('c64', 'w').close()\n"
    code += "out = [tried(open, '/tmp/a'), tried(open, '/tmp/c0'), tried(lambda: open('/tmp/c63').close())]\nfor n in ['a', 'b'] + ['c%d' % i for i in range(65)]: os.unlink(n)"
    assert inside(control, session, code) == ["ELOOP", "ELOOP", "ok"]


def test_case_11_a_file_beside_the_home_is_not_made(granting, control, session):
    assert control.run(session, "sh", "-c", "echo x > ../escape.txt")[0]["exit_code"] != 0
    assert not (granting.base / "escape.txt").exists() and not pathlib.Path("/home/escape.txt").exists()


# Cases 12 and 13.


def test_case_12_a_command_that_cannot_be_confined_does_not_run(tmp_path):
    done = cli("--policies", copied(), "run", "--grant", f"{tmp_path}/gone:rw", "--", "echo", "ran")
    assert done.returncode == 125 and done.stdout == b"" and b"gone" in done.stderr and b"ENOENT" in done.stderr


def test_case_12_a_required_grant_that_vanished_refuses_new_sessions_and_names_it(fresh):
    (fresh.base / "data").mkdir()
    domain(fresh.policies, [{"path": "/srv/data", "source": str(fresh.base / "data")}])
    control = fresh.start().control()
    running = control.create("data")
    (fresh.base / "data").rmdir()

    def refusal():
        try:
            control.destroy(control.create("data"))
        except Refused as e:
            return e.error

    assert "/srv/data" in eventually(refusal)["what"] and control.output(running, "echo", "on") == "on\n"


@pytest.mark.parametrize(
    "env",
    [{"PATH": "/root:/sbin"}, {"HOME": "/root"}, {"PWD": "/root"}, {"TMPDIR": "/root"}, {"PYTHONPATH": "/root"}],
    ids=json.dumps,
)
def test_case_13_an_environment_widens_nothing(control, session, env):
    ended, _, error = control.run(session, "/bin/sh", "-c", "/usr/bin/ls /root", env=env)
    assert ended["exit_code"] == 2 and "No such file" in error


# Case 16.


def test_case_16_a_home_that_is_a_symlink_is_refused(fresh):
    real = fresh.base / "real"
    fresh.home.rename(real)
    fresh.home.symlink_to(real)
    assert fresh.spawn().process.wait(60) != 0 and str(fresh.home) in fresh.log.read_text()


# Case 17.


def test_case_17_a_grant_of_a_file_is_that_file(control, session):
    assert inside(
        control, session, "out = [open('/srv/one').read(), tried(open, '/srv/one', 'w'), sorted(os.listdir('/srv'))]"
    ) == ["one\n", "EROFS", ["data", "one"]]


def test_case_17_a_grant_that_need_not_be_there_is_reported_as_absent(control, session):
    assert "/srv/missing" in control.call("session_report", session=session)[0]["report"]["absent"]


def test_case_17_a_grant_that_must_be_there_starts_nothing(fresh):
    domain(fresh.policies, [{"path": "/srv/data", "source": str(fresh.base / "nowhere")}])
    assert fresh.spawn().process.wait(60) != 0 and "/srv/data" in fresh.log.read_text() and "ENOENT" in fresh.log.read_text()


def unix_socket(path):
    socket.socket(socket.AF_UNIX).bind(str(path))


@pytest.mark.parametrize(
    "make", [os.mkfifo, unix_socket, lambda p: os.mknod(p, 0o20666, os.makedev(1, 3))], ids=["FIFO", "socket", "device"]
)
def test_case_17_a_grant_of_something_else_is_refused_at_once(tmp_path, make):
    make(tmp_path / "special")
    done = cli("--policies", copied(), "run", "--grant", tmp_path / "special", "--", "true")
    assert done.returncode == 125 and b"neither a directory nor a regular file" in done.stderr


# Case 18.


def test_case_18_a_replaced_source_is_the_old_one_for_the_old_and_the_new_one_for_the_new(fresh):
    source = fresh.base / "data"
    source.mkdir()
    (source / "which").write_text("old")
    domain(fresh.policies, [{"path": "/srv/data", "source": str(source)}])
    control = fresh.start().control()
    old = control.create("data")
    source.rename(fresh.base / "moved")
    source.mkdir()
    (source / "which").write_text("new")
    eventually(lambda: control.output(control.create("data"), "cat", "/srv/data/which") == "new")
    assert control.output(old, "cat", "/srv/data/which") == "old"


def test_case_18_a_source_replaced_by_a_symlink_is_refused(fresh):
    source = fresh.base / "data"
    source.mkdir()
    domain(fresh.policies, [{"path": "/srv/data", "source": str(source)}])
    control = fresh.start().control()
    source.rmdir()
    source.symlink_to("/root")

    def refusal():
        try:
            assert control.output(control.create("data"), "ls", "-A", "/srv/data") == ""
        except Refused as e:
            return e.error

    assert "ELOOP" in json.dumps(eventually(refusal))


# Narrowing.


def test_a_narrowed_session_sees_the_subset_only(control):
    session = control.create("data", narrow={"grants": [{"path": "/usr", "execute": True}, {"path": "/srv/one"}]})
    assert inside(control, session, "out = [os.listdir('/srv'), tried(os.stat, '/srv/data')]") == [["one"], "ENOENT"]


def test_a_read_write_grant_can_be_narrowed_to_read_only(control):
    session = control.create(
        "data", narrow={"grants": [{"path": "/usr", "execute": True}, {"path": "/srv/data", "access": "read"}]}
    )
    assert inside(control, session, "out = [open('/srv/data/file').read(), tried(open, '/srv/data/new', 'w')]") == [
        "data\n",
        "EROFS",
    ]


def test_a_narrowed_grant_keeps_what_the_policy_carves_out_of_it(control):
    session = control.create(
        "data", narrow={"grants": [{"path": "/usr", "execute": True}, {"path": "/srv/data", "access": "read-write"}]}
    )
    assert inside(
        control,
        session,
        "out = [tried(open, '/srv/data/ro/new', 'w'), tried(os.mkdir, '/srv/data/new'), tried(os.rmdir, '/srv/data/new')]",
    ) == ["EROFS", "ok", "ok"]


def test_a_grant_can_be_narrowed_to_a_directory_inside(control):
    session = control.create(
        "data", narrow={"grants": [{"path": "/usr", "execute": True}, {"path": "/srv/data/ro/rw", "access": "read-write"}]}
    )
    assert inside(
        control, session, "out = [os.listdir('/srv/data'), os.listdir('/srv/data/ro'), open('/srv/data/ro/rw/file').read()]"
    ) == [["ro"], ["rw"], "data/ro/rw\n"]


@pytest.mark.parametrize(
    "grant",
    [
        {"path": "/etc/shadow"},
        {"path": "/root"},
        {"path": "/srv"},
        {"path": "/srv/database"},
        {"path": "/proc"},
        {"path": "/usr", "access": "read-write"},
        {"path": "/srv/one", "access": "read-write"},
        {"path": "/srv/data/ro", "access": "read-write"},
        {"path": "/srv/data", "execute": True},
        {"path": "/srv/data", "source": "/root"},
        {"path": "/usr/lib", "source": "/etc"},
    ],
    ids=json.dumps,
)
def test_a_narrowing_that_widens_is_refused(control, grant):
    with pytest.raises(Refused) as refused:
        control.create(
            "data",
            narrow={"grants": [{"path": "/usr", "execute": True} if grant["path"] != "/usr" else {"path": "/srv/data"}, grant]},
        )
    assert refused.value.error["code"] == "permission_denied" and "/grants/1" in refused.value.error["what"]


def test_an_empty_list_of_grants_is_not_all_of_them(control):
    try:
        session = control.create("data", narrow={"grants": []})
    except Refused:
        return
    with pytest.raises(Refused):  # without /usr nothing can run
        control.run(session, "/usr/bin/true")


# `caisson run --grant` where the session has directories of its own.


@pytest.mark.parametrize("parent", ["/tmp", "/home/gem"])
def test_a_grant_below_a_private_directory_is_there(parent, request):
    made = not pathlib.Path(parent).exists()
    pathlib.Path(parent).mkdir(parents=True, exist_ok=True)
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-", dir=parent))
    request.addfinalizer(lambda: (shutil.rmtree(base), pathlib.Path(parent).rmdir() if made else None))
    base.chmod(0o755)
    (base / "file").write_text("granted\n")
    done = cli("--policies", copied(), "run", "--grant", base, "--", "cat", base / "file")
    assert done.stdout == b"granted\n", done.stderr


def test_a_hidden_path_is_empty_and_cannot_be_read(fresh):
    (fresh.base / "data/hidden").mkdir(parents=True)
    (fresh.base / "data/hidden/file").write_text("x")
    base = json.loads((fresh.policies / "base.json").read_text())
    domain(fresh.policies, [{"path": "/srv/data", "source": str(fresh.base / "data")}], hide=[*base["hide"], "/srv/data/hidden"])
    control = fresh.start().control()
    assert inside(
        control,
        control.create("data"),
        "out = [os.listdir('/srv/data'), tried(os.listdir, '/srv/data/hidden'), tried(open, '/srv/data/hidden/file')]",
    ) == [["hidden"], "EACCES", "EACCES"]


@pytest.mark.parametrize("path", ["/tmp", "/home/gem", "/proc", "/proc/sys", "/dev", "/dev/shm"])
def test_a_grant_of_what_the_session_makes_itself_is_refused(path):
    done = cli("--policies", copied(), "run", "--grant", f"{path}:rw", "--", "echo", "ran")
    assert done.returncode == 125 and done.stdout == b"" and path.encode() in done.stderr
