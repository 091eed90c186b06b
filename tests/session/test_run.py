"""`caisson run`: one confined command without a server."""

import json
import os
import pathlib
import pty
import shutil
import signal
import struct
import subprocess
import tempfile

import pytest
from harness import CLI, INIT, SKEL, copy_policies, eventually, marked


@pytest.fixture(scope="module")
def place(here):
    """A directory that every user can enter, with copies of the programs and the policies."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-"))
    base.chmod(0o755)
    shutil.copy(CLI, base)
    shutil.copy(INIT, base)
    copy_policies(base / "policies")
    yield base
    shutil.rmtree(base)


@pytest.fixture
def run(place):
    def run(*argv, options=(), user=None, within=(), stdin=None, **environment):
        wrapper = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if user else []
        return subprocess.run(
            [str(a) for a in [*within, *wrapper, place / "caisson", "--policies", place / "policies", "run", *options, "--", *argv]],
            input=stdin,
            text=True,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
            timeout=60,
            env={"PATH": os.environ["PATH"], **environment},
        )

    run.program, run.policies = place / "caisson", place / "policies"
    return run


USERS = [None, 65534]


def need_namespaces(user):
    if user is not None:
        done = subprocess.run(
            [
                "setpriv",
                f"--reuid={user}",
                f"--regid={user}",
                "--clear-groups",
                "--",
                "unshare",
                "--user",
                "--mount",
                "--pid",
                "--fork",
                "true",
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            pytest.skip(f"this kernel gives users no namespaces: {done.stderr.strip()}")


@pytest.fixture(params=USERS, ids=["root", "user"])
def user(request):
    need_namespaces(request.param)
    return request.param


@pytest.fixture
def user_namespaces():
    need_namespaces(65534)


@pytest.mark.parametrize("code", [0, 1, 42, 125, 255])
def test_the_exit_code_is_the_commands(run, user, code):
    assert run("sh", "-c", f"exit {code}", user=user).returncode == code


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV"])
def test_a_signal_is_128_and_its_number(run, user, name):
    assert run("sh", "-c", f"kill -{name} $$", user=user).returncode == 128 + getattr(signal, f"SIG{name}")


@pytest.mark.parametrize(
    "argv, options, told",
    [
        (["no-such-program"], [], "ENOENT"),
        (["/etc/passwd"], [], "EACCES"),
        (["true"], ["--cwd", "/no/such"], "chdir"),
        (["true"], ["--policy", "nobody"], "nobody"),
        (["true"], ["--grant", "/no/such"], "/no/such"),
        (["true"], ["--grant", "/srv:rwxx"], "rwxx"),
        (["true"], ["--env", "LD_PRELOAD=x"], "LD_PRELOAD"),
        (["true"], ["--env", "novalue"], "novalue"),
        (["true"], ["--unknown"], "--unknown"),
        ([], [], "no command"),
    ],
)
def test_what_cannot_start_is_125_and_says_why(run, argv, options, told):
    done = run(*argv, options=options)
    assert done.returncode == 125 and done.stdout == "" and told in done.stderr


def test_an_argument_may_be_as_long_as_a_request(run):
    assert run("sh", "-c", 'echo ${#1}', "sh", "x" * 110_000).stdout == "110000\n"
    done = run("true", "x" * 70_000, "x" * 70_000)
    assert done.returncode == 125 and "over 131072 bytes" in done.stderr


def test_streams_pass_through(run, user):
    done = run("sh", "-c", "cat; echo err >&2", user=user, stdin="in\n" * 5000)
    assert (done.stdout, done.stderr, done.returncode) == ("in\n" * 5000, "err\n", 0)


def test_the_environment_is_the_policys_and_what_was_asked_for(run, user):
    done = run("env", options=["-e", "ADDED=x y", "--env", "EMPTY="], user=user, LEAKED="1")
    assert (
        "ADDED=x y\n" in done.stdout
        and "EMPTY=\n" in done.stdout
        and "HOME=/home/gem\n" in done.stdout
        and "LEAKED" not in done.stdout
    )


def test_the_working_directory_is_the_home_or_what_was_asked_for(run, user):
    assert run("pwd", user=user).stdout + run("pwd", options=["-C", "/usr"], user=user).stdout == "/home/gem\n/usr\n"


def test_the_command_is_confined(run, user):
    done = run(
        "sh",
        "-c",
        "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status; ls /root /etc/shadow; cat /proc/1/comm; ls /proc/self/fd",
        user=user,
    )
    assert (
        done.stdout.count("0000000000000000") == 5
        and "NoNewPrivs:\t1" in done.stdout
        and "Seccomp:\t2" in done.stdout
        and "caisson-init" in done.stdout
    )
    assert done.stderr.count("No such file or directory") == 2


def test_a_leaked_descriptor_does_not_reach_the_command(place):
    with open("/etc/passwd", "rb") as leaked:
        done = subprocess.run(
            [place / "caisson", "--policies", place / "policies", "run", "--", "sh", "-c", "ls /proc/self/fd"],
            pass_fds=[leaked.fileno()],
            capture_output=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
    assert done.stdout.split() == [b"0", b"1", b"2", b"3"], "3 is the directory that ls reads"


@pytest.fixture
def data(place):
    """A directory for grants, writable by everybody; /tmp is covered inside, so it lies elsewhere."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-", dir="/srv"))
    base.chmod(0o777)
    (base / "file").write_text("content\n")
    yield base
    shutil.rmtree(base)


def test_a_read_only_grant_can_be_read_and_not_written(run, user, data):
    done = run(
        "sh", "-c", f"cat {data}/file; echo x > {data}/new; echo x > {data}/file", options=["--grant", f"{data}:ro"], user=user
    )
    assert done.stdout == "content\n" and done.stderr.count("Read-only file system") == 2 and not (data / "new").exists()


def test_a_writable_grant_can_be_written(run, user, data):
    done = run("sh", "-c", f"echo written > {data}/new", options=["-g", f"{data}:rw"], user=user)
    assert done.returncode == 0 and (data / "new").read_text() == "written\n"


@pytest.mark.parametrize("mode, code", [("rw", 126), ("rwx", 0), ("ro", 126), ("rx", 0)])
def test_a_program_in_a_grant_runs_only_with_x(run, user, data, mode, code):
    (data / "program").write_text("#!/bin/sh\nexit 0\n")
    (data / "program").chmod(0o755)
    assert run("sh", "-c", f"{data}/program", options=["--grant", f"{data}:{mode}"], user=user).returncode == code


def test_nothing_is_granted_that_was_not_asked_for(run, user, data):
    assert "No such file" in run("cat", f"{data}/file", user=user).stderr


def test_what_is_written_to_the_home_is_gone_afterwards(run, user):
    assert run("sh", "-c", "echo x > ~/left; echo x > /tmp/left", user=user).returncode == 0
    assert run("sh", "-c", "ls -A ~ /tmp", user=user).stdout == "\n".join(["/home/gem:", *SKEL, "", "/tmp:", ""])


def test_the_report_names_mechanisms_and_their_state(run, user, data):
    assert run("true", options=["--report", str(data / "report.json")], user=user).returncode == 0
    report = json.loads((data / "report.json").read_text())
    states = {m["name"]: m["state"] for m in report["mechanisms"]}
    assert (
        report["schema"] == 1 and states["landlock"] == states["seccomp"] == states["mount_ns"] == states["pid_ns"] == "enforced"
    )
    assert int(report["facts"]["CapEff"], 16) == 0 and report["timings_us"] and report["grants"]


def test_a_daemon_ends_with_the_command(run, user):
    mark = f"1{os.getpid()}.5"
    assert run("sh", "-c", f"(setsid sleep {mark} &) ; exit 3", user=user).returncode == 3
    assert not marked(mark, "sleep")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_to_it_reaches_the_command(place, name):
    child = subprocess.Popen(
        [
            place / "caisson",
            "--policies",
            place / "policies",
            "run",
            "--",
            "sh",
            "-c",
            f"trap 'echo got; exit 7' {name[3:]}; echo ready; while :; do sleep 0.1; done",
        ],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    child.send_signal(getattr(signal, name))
    assert child.communicate(timeout=60)[0] == "got\n" and child.returncode == 7


def test_its_end_by_sigkill_is_the_end_of_the_command(place):
    mark = f"2{os.getpid()}.5"
    child = subprocess.Popen(
        [place / "caisson", "--policies", place / "policies", "run", "--", "sleep", mark], stdin=subprocess.DEVNULL
    )
    eventually(lambda: marked(mark, "sleep"))
    child.kill()
    child.wait()
    eventually(lambda: not marked(mark, "sleep"))


def test_on_a_terminal_the_command_gets_one_of_its_own(place):
    pid, master = pty.fork()
    if pid == 0:
        os.execv(
            place / "caisson",
            ["caisson", "--policies", str(place / "policies"), "run", "--", "sh", "-c", "tty; stty size; exit 5"],
        )
    text = b""
    while chunk := read(master):
        text += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5 and text.startswith(b"/dev/pts/0\r\n")


def read(fd):
    try:
        return os.read(fd, 1000)
    except OSError:  # EIO: the other end is closed
        return b""


def test_errors_are_json_when_asked(place):
    done = subprocess.run(
        [place / "caisson", "--json", "--policies", place / "policies", "run", "--", "no-such-program"],
        capture_output=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    answer = json.loads(done.stdout)
    assert answer["ok"] is False and answer["error"]["errno"] == "ENOENT" and done.returncode == 125


# What the engines make of a container, without one: root has three capabilities, none of them CAP_SYS_PTRACE, and a covered file
# in /proc keeps every other user namespace from a fresh one.
FEW_CAPABILITIES = ["setpriv", "--bounding-set=-all,+setuid,+setgid,+kill", "--inh-caps=-all", "--"]
COVERED_PROC = ["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null /proc/version && exec "$@"', "sh"]


@pytest.mark.parametrize("proc, tier", [([], "T3"), (COVERED_PROC, "T2")], ids=["T3", "T2"])
def test_flaw_17_it_works_with_the_capabilities_of_a_container(run, user, place, proc, tier):
    within = [*proc, *([] if user else FEW_CAPABILITIES)]
    if subprocess.run([*within, "true"], check=False, timeout=60).returncode != 0:
        pytest.skip("this host lets root neither cover a file in /proc nor give up capabilities")
    report = place / f"flaw-17-{tier}-{user}"
    report.touch()
    report.chmod(0o666)
    for _ in range(10):  # what is read while the child goes on is read in time, or not
        done = run("sh", "-c", "grep CapBnd /proc/self/status; exit 7", options=["--report", report], user=user, within=within)
        assert (done.returncode, done.stderr) == (7, ""), done.stdout
        assert tier == "T2" or "0000000000000000" in done.stdout
    said = json.loads(report.read_text())
    states = {m["name"]: m for m in said["mechanisms"]}
    assert said["tier"] in (tier, "T3")  # a kernel that mounts /proc under masks (7.2) makes more of it
    assert {"user", "mnt", "ipc", "uts", "net"} <= set(said["facts"]["ns"]), "they were looked at"
    assert "mountinfo" in said["facts"] and "covers" in said["facts"]
    assert ("pid" in said["facts"]["ns"]) == (said["tier"] == "T3")
    assert states["denial_audit"]["state"] == "unavailable" and "nobody listens" in states["denial_audit"]["detail"]


def test_flaw_17_a_policy_that_requires_a_listener_is_refused_and_not_begun(run, place):
    """Nobody listens to what one command is refused: where a policy insists, that is said, whatever walls the place permits."""
    require = [*json.loads((place / "policies" / "base.json").read_text())["require"], "denial_audit"]
    (place / "policies" / "heard.json").write_text(
        json.dumps({"description": "Heard", "extends": "run", "require": require, "why": {"/require": "for this test"}})
    )
    try:
        for within in ([], COVERED_PROC):
            done = run("true", options=["--policy", "heard"], within=within)
            assert done.returncode == 125 and "requires denial_audit" in done.stderr and "nobody listens" in done.stderr
    finally:
        (place / "policies" / "heard.json").unlink()


@pytest.mark.parametrize("own", [0, 65534], ids=["root", "user"])
def test_flaw_17_the_group_of_its_own_that_an_engine_lists_is_no_other(run, user_namespaces, own):
    as_listed = ["setpriv", f"--reuid={own}", f"--regid={own}", f"--groups={own}", "--"]
    done = run("id", "-G", within=as_listed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")


def test_flaw_17_who_cannot_leave_another_group_gets_no_session_that_has_it(run, user_namespaces):
    for groups in ("4", "4,65534", "65534,4"):
        done = run("id", "-G", within=["setpriv", "--reuid=65534", "--regid=65534", f"--groups={groups}", "--"])
        assert done.returncode == 125 and done.stdout == ""


def forged(cached):
    """A kept policy whose filter allows every call: what a session can make of any such file that it can read."""
    sizes = [n for n in range(8, len(cached) - 16, 8) if struct.unpack_from("<Q", cached, len(cached) - 16 - n)[0] == n]
    (size,) = sizes
    body = bytearray(cached[:-8])
    for at in range(len(body) - size, len(body), 8):
        if body[at] | body[at + 1] << 8 == 0x06:  # BPF_RET
            struct.pack_into("<I", body, at + 4, 0x7FFF0000)  # SECCOMP_RET_ALLOW
    digest = 0xCBF29CE484222325
    for byte in body:
        digest = (digest ^ byte) * 0x100000001B3 % (1 << 64)
    return bytes(body) + struct.pack("<Q", digest)


@pytest.fixture(scope="module")
def kept(place):
    """(name, bytes) of what a run of root's keeps, and its directory."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-test-"))
    argv = [place / "caisson", "--policies", place / "policies", "run", "--", "true"]

    def stored():
        subprocess.run(argv, check=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, "CAISSON_CACHE_DIR": str(base)})
        return list(base.iterdir())

    eventually(stored)  # nothing is kept of policy files that are younger than two seconds
    (file,) = base.iterdir()
    yield file.name, file.read_bytes(), base
    shutil.rmtree(base)


NEW_USER_NS = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); print(c.unshare(0x10000000), ctypes.get_errno())"
REFUSED = "-1 1\n"


def filter_made(run, data, **how):
    assert run("true", options=["--report", str(data / "report.json")], **how).returncode == 0
    rows = {m["name"]: m for m in json.loads((data / "report.json").read_text())["mechanisms"]}
    assert {"by": "step", "what": "seccomp", "result": "done"} in rows["seccomp"]["verified"]
    return [v["what"].split()[1] for v in rows["seccomp"]["verified"] if v["by"] == "construction"]


@pytest.mark.parametrize("how", ["granted", "made by the session", "its parent granted", "linked", "XDG_CACHE_HOME", "HOME"])
@pytest.mark.parametrize("user", USERS[1:], ids=["user"], indirect=True)
def test_flaw_05_what_a_session_wrote_into_the_cache_is_never_believed(run, user, data, kept, how):
    """Of everybody but root, whose sessions have another uid: the next test."""
    name, cached, _ = kept
    os.chown(data, user, user)
    cache = data / "caisson" if how == "XDG_CACHE_HOME" else data / ".cache/caisson" if how == "HOME" else data / "cache"
    own = data / "own" if how == "linked" else cache
    script = f"umask 077; mkdir -p {own}; cat > {own}/{name}; [ {own} = {cache} ] || ln -s {own} {cache}"
    grant = data
    if how == "granted":
        cache.mkdir(0o700)
        os.chown(cache, user, user)
        grant, script = cache, f"umask 077; cat > {cache}/{name}"
    wrote = subprocess.run(
        ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", run.program, "--policies", run.policies, "run",
         "--grant", f"{grant}:rw", "--", "sh", "-c", script],
        input=forged(cached), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert wrote.returncode == 0 and (own / name).read_bytes() == forged(cached), wrote.stderr
    variable = {how: str(data)} if how.isupper() else {"CAISSON_CACHE_DIR": str(cache)}
    assert run("/usr/bin/python3", "-c", NEW_USER_NS, user=user, **variable).stdout == REFUSED
    assert filter_made(run, data, user=user, **variable) == ["compiled"]


def test_flaw_05_roots_cache_is_believed_only_where_nobody_else_could_have_put_it(run, data, kept):
    name, cached, base = kept
    assert filter_made(run, data, CAISSON_CACHE_DIR=str(base)) == ["kept"]
    assert "Permission denied" in run("sh", "-c", f": > {base}/{name}", options=["-g", f"{base}:rw"]).stderr
    movable = data / "movable"  # data is everybody's: a session could have renamed another directory to this name
    shutil.copytree(base, movable)
    (movable / name).write_bytes(forged(cached))
    (data / "link").symlink_to(base)
    theirs = base / "theirs"
    theirs.mkdir(0o700)
    (theirs / name).write_bytes(forged(cached))
    os.chown(theirs, 20000, 20000)  # the uid of the sessions
    for cache in (movable, data / "link", theirs, theirs / "..", pathlib.Path(os.path.relpath(base))):
        assert run("/usr/bin/python3", "-c", NEW_USER_NS, CAISSON_CACHE_DIR=str(cache)).stdout == REFUSED, cache
        assert filter_made(run, data, CAISSON_CACHE_DIR=str(cache)) == ["compiled"], cache
    shutil.rmtree(theirs)
