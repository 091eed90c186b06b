"""Two workspaces in one container cannot see, reach, signal or fill each other; each attack is first shown to work inside one."""

import os
import re

import pytest
from harness import FORKS, PRELUDE, SKEL, Launcher, Refused, descendants, edit, inside, processes

MIB = 1 << 20


@pytest.fixture(scope="module")
def both(here, tmp_path_factory):
    """A launcher with the workspaces a and b: (launcher, control)"""
    one = Launcher(tmp_path_factory.mktemp("workspaces")).start("--agent", "/usr/bin/true", CAISSON_WORKSPACE_PROCESSES="200")
    control = one.control()
    if control.hello["tier"] != "T3":
        one.stop()
        pytest.skip(f"this host gives tier {control.hello['tier']}: workspaces are refused there")
    for name in "ab":
        control.call("workspace_create", name=name, disk_bytes=8 * MIB)
    yield one, control
    one.stop()


@pytest.fixture
def control(both):
    return both[1]


@pytest.fixture
def make(control):
    """make(workspace, **arguments): a session that ends with the test."""
    made = []

    def create(workspace, domain="shell", **arguments):
        made.append(control.create(domain, workspace=workspace, **arguments))
        return made[-1]

    yield create
    for session in made:
        control.end(session)


def holds(control, session, code):
    """Starts Python that prints a line when it is in place and then stays: that line."""
    name, fds = control.start(session, "/usr/bin/python3", "-I", "-c", code + "\nprint('ready', flush=True); sys.stdin.read()")
    assert os.read(fds[1], 100) == b"ready\n", os.read(fds[2], 4000)
    return fds


@pytest.mark.parametrize("place", ["/home/gem", "/tmp", "/dev/shm"])
def test_a_file_of_one_is_not_there_in_the_other(control, make, place):
    attacker, victim = make("a"), make("b")
    control.output(victim, "sh", "-c", f"echo secret > {place}/only-here && cat {place}/only-here")
    found = inside(control, attacker, f"out = tried(open, '{place}/only-here')")
    assert found == "ENOENT"


@pytest.mark.parametrize("place", ["/home/gem", "/tmp"])
def test_sessions_of_one_share_its_files(control, make, place):
    first, second = make("a"), make("a")
    control.output(first, "sh", "-c", f"echo here > {place}/shared")
    assert control.output(second, "cat", f"{place}/shared") == "here\n"


def test_the_default_workspaces_home_is_not_the_others(both, control, make):
    (both[0].home / "of-default").write_text("x")
    assert control.output(make("default"), "cat", "/home/gem/of-default") == "x"
    assert inside(control, make("a"), "out = tried(open, '/home/gem/of-default')") == "ENOENT"


CONNECTS = {
    "abstract": ("s.bind('\\0caisson-test'); s.listen()", "s.connect('\\0caisson-test')", "AF_UNIX"),
    "pathname": ("s.bind('/tmp/sock'); s.listen()", "s.connect('/tmp/sock')", "AF_UNIX"),
    "loopback": ("s.bind(('127.0.0.1', 7777)); s.listen()", "s.connect(('127.0.0.1', 7777))", "AF_INET"),
    "loopback6": ("s.bind(('::1', 7778)); s.listen()", "s.connect(('::1', 7778))", "AF_INET6"),
}


@pytest.mark.parametrize("kind", CONNECTS)
def test_a_server_of_one_cannot_be_reached_from_the_other(control, make, kind):
    listen, connect, family = CONNECTS[kind]
    victim = make("b")
    fds = holds(control, victim, f"import socket, sys\ns = socket.socket(socket.{family})\n{listen}")
    attack = f"s = socket.socket(socket.{family})\nout = tried(lambda: {connect})"
    # From its own session, for abstract names need Landlock's leave from another.
    assert inside(control, victim, attack) == "ok"
    assert inside(control, make("a"), attack) in ("ECONNREFUSED", "ENOENT", "EPERM")
    close(fds)


def close(fds):
    for fd in fds:
        os.close(fd)


IPC = {
    # System V shared memory, message queue, semaphores by key; the syscall numbers of x86-64.
    "shm": "call(29, 0x5eed, 4096, 0o1666)",
    "msg": "call(68, 0x5eed, 0o1666)",
    "sem": "call(64, 0x5eed, 1, 0o1666)",
}


@pytest.mark.parametrize("kind", IPC)
def test_ipc_objects_of_one_do_not_exist_in_the_other(control, make, kind):
    get = IPC[kind].replace("0o1666", "0o666")
    victim, attacker = make("b"), make("a")
    made = inside(control, victim, f"out = [{IPC[kind]}, {get}]")
    if not isinstance(made[0], int):
        pytest.skip(f"System V {kind} is refused in every session: {made[0]}")
    assert made[0] == made[1], "found in its own session"
    assert inside(control, attacker, f"out = {get}") == "ENOENT"


def test_posix_shared_memory_of_one_does_not_exist_in_the_other(control, make):
    victim, attacker = make("b"), make("a")
    control.output(victim, "sh", "-c", "echo x > /dev/shm/object; cat /dev/shm/object")
    assert inside(control, attacker, "out = os.listdir('/dev/shm')") == []


def test_processes_of_one_are_invisible_in_the_other(control, make):
    victim, attacker = make("b"), make("a")
    fds = holds(control, victim, "import sys")
    listing = "out = [open(f'/proc/{p}/comm').read().strip() for p in os.listdir('/proc') if p.isdigit()]"
    assert inside(control, victim, listing).count("python3") == 2
    assert inside(control, attacker, listing).count("python3") == 1
    close(fds)


@pytest.mark.parametrize("attack", ["os.kill(pid, 0)", "os.kill(pid, 9)", "call(101, 16, pid, 0, 0)", "os.setpriority(0, pid, 19)",
                                    "call(434, pid, 0)", "os.sched_setaffinity(pid, {0})"])
def test_numbers_of_the_hosts_processes_reach_nothing(both, control, make, attack):
    """kill, ptrace, setpriority, pidfd_open, sched_setaffinity with every number that a process of the other has outside."""
    victim, attacker = make("b"), make("a")
    fds = holds(control, victim, "import sys")
    table = processes()
    uid = next(w["uid"] for w in control.call("workspace_list")[0]["workspaces"] if w["name"] == "b")
    targets = [p for p in descendants(both[0].pid) if table.get(p, (0, "", 0))[2] == uid]
    assert len(targets) >= 2, "init and python3 of the victim"
    call = attack if attack.startswith("call") else re.sub(r"^(\S+?)\((.*)\)$", r"tried(\1, \2)", attack)
    got = inside(control, attacker, f"inner = set(map(int, filter(str.isdigit, os.listdir('/proc'))))\nout = [{call} for pid in {targets} if pid not in inner]")
    assert got and set(got) <= {"ESRCH", "EPERM", "ENOSYS"}
    assert set(targets) <= set(processes())
    close(fds)


def test_a_full_home_is_enospc_and_the_others_has_room(control, make):
    attacker, victim = make("a"), make("b")
    ended, _, err = control.run(attacker, "dd", "if=/dev/zero", "of=/home/gem/big", "bs=1M", "count=20")
    assert ended["exit_code"] == 1 and "No space left" in err
    control.output(victim, "dd", "if=/dev/zero", "of=/home/gem/some", "bs=1M", "count=6", "status=none")
    shown = {w["name"]: w for w in control.call("workspace_list")[0]["workspaces"]}
    assert shown["a"]["disk"]["bytes"] == 8 * MIB > shown["b"]["disk"]["bytes"]
    assert shown["a"]["disk"]["limit"] == 8 * MIB and shown["a"]["disk"]["enforced_by"] == "tmpfs"
    for session in (attacker, victim):
        control.output(session, "sh", "-c", "rm -f ~/* ; true", env={"HOME": "/home/gem"})


def test_no_inode_left_in_one_is_no_affair_of_the_other(control, make):
    attacker, victim = make("a"), make("b")
    spent = inside(control, attacker, "def fill():\n  for i in range(100000): os.mkdir(f'/home/gem/{i}')\nout = tried(fill)")
    assert spent == "ENOSPC"
    control.output(victim, "mkdir", "/home/gem/one-more")
    control.output(attacker, "sh", "-c", "cd /home/gem && rm -rf -- *")


def test_a_fork_bomb_stops_at_its_workspaces_limit_and_the_other_forks_on(control, make):
    attacker, victim = make("a"), make("b")
    bomb = PRELUDE + FORKS.replace("MOST", "1000") + "print(error, len(pids), flush=True); sys.stdin.read()"
    _, fds = control.start(attacker, "/usr/bin/python3", "-I", "-c", bomb)
    error, count = os.read(fds[1], 100).decode().split()
    assert error == "EAGAIN" and 100 < int(count) < 200
    # While they all stand:
    free = FORKS.replace("MOST", "100") + "out = [error, len(pids)]\nfor pid in pids: os.kill(pid, 9)"
    assert inside(control, victim, free) == [None, 100]
    control.destroy(attacker)
    close(fds)


def test_memory_of_one_workspace_ends_its_own_sessions_only(here, tmp_path):
    launcher = Launcher(tmp_path).start("--agent", "/usr/bin/true", CAISSON_WORKSPACE_MEMORY_MIB="300")
    try:
        control = launcher.control()
        control.call("workspace_create", name="a"), control.call("workspace_create", name="b")
        bombs, victim = [control.create("shell", workspace="a") for _ in range(2)], control.create("shell", workspace="b")
        for bomb in bombs:  # each within its own limit, together beyond the workspace's
            control.start(bomb, "/usr/bin/python3", "-I", "-c", "x = bytearray(250 << 20)\nimport time; time.sleep(1000)")
        ended = control.event("session_end")
        assert ended["session"] in bombs and ended["reason"] in ("memory", "oom")
        assert control.output(victim, "echo", "alive") == "alive\n"
    finally:
        launcher.stop()


def test_a_private_session_shares_nothing_with_its_workspace(control, make):
    shared, private = make("a"), make("a", isolation="private")
    control.output(shared, "sh", "-c", "echo x > /tmp/of-a; echo x > /home/gem/of-a")
    fds = holds(control, shared, "import socket, sys\ns = socket.socket()\ns.bind(('127.0.0.1', 7779)); s.listen()")
    assert inside(control, private, "out = [os.listdir('/tmp'), sorted(os.listdir('/home/gem'))]") == [[], SKEL]
    attack = "s = socket.socket()\nout = tried(lambda: s.connect(('127.0.0.1', 7779)))"
    assert inside(control, shared, attack) == "ok"
    assert inside(control, private, attack) == "ECONNREFUSED"
    close(fds)


def test_a_private_session_does_not_claim_that_its_loopback_is_shared(control, make):
    def residual(session):
        return {r["id"] for r in control.call("session_report", session=session)[0]["report"]["residual"]}

    assert "loopback-shared" in residual(make("a"))
    assert not {"loopback-shared", "home-quota"} & residual(make("a", isolation="private"))


def test_isolation_and_workspace_are_attested_and_on_record(both, control, make):
    for name, isolation in (("default", "shared"), ("a", "private"), ("b", "shared")):
        session = make(name, isolation=isolation)
        said = control.call("attest", session=session)[0]["statement"]["session"]
        assert (said["workspace"], said["isolation"]) == (name, isolation)
        shown = next(s for s in control.call("session_list")[0]["sessions"] if s["session"] == session)
        assert (shown["workspace"], shown["isolation"]) == (name, isolation)
        first = both[0].records(session)[0]
        assert (first["event"], first["workspace"], first["isolation"]) == ("session_request", name, isolation)
        control.destroy(session)
        assert next(r for r in both[0].records()[::-1] if r.get("session") == session)["workspace"] == name


def test_a_private_session_is_narrowed_and_never_widened(control, make):
    """What a request narrows besides stays narrowed."""
    session = make("a", isolation="private", narrow={"limits": {"processes": 7}})
    assert control.call("session_stat", session=session)[0]["limits"]["processes"] == 7
    with pytest.raises(Refused) as refused:
        control.create("shell", workspace="a", isolation="private", narrow={"home": "workspace"})
    assert refused.value.error["code"] in ("invalid_argument", "permission_denied")


def test_private_sessions_count_among_their_workspaces_processes(here, tmp_path):
    """In user namespaces of their own no kernel counter has them together."""
    launcher = Launcher(tmp_path).start("--agent", "/usr/bin/true", CAISSON_WORKSPACE_PROCESSES="100")
    try:
        control = launcher.control()
        control.call("workspace_create", name="a")
        sessions = [control.create("shell", workspace="a", isolation="private") for _ in range(2)]
        for session in sessions:
            control.start(session, "/usr/bin/python3", "-I", "-c", FORKS.replace("import sys", "import errno, os, sys").replace("MOST", "70") + "time.sleep(1000)")
        if launcher.cgroup:
            pytest.skip("with cgroup v2 the workspace's node refuses the forks")
        assert control.event("session_end")["reason"] == "processes"
    finally:
        launcher.stop()


def test_each_workspace_has_a_uid_of_its_own(control):
    uids = [w["uid"] for w in control.call("workspace_list")[0]["workspaces"]]
    assert len(uids) == len(set(uids)) and 0 not in uids


BAD = {
    "upper case": ({"name": "Abc"}, "invalid_argument"),
    "empty": ({"name": ""}, "invalid_argument"),
    "dots first": ({"name": "../x"}, "invalid_argument"),
    "64 bytes": ({"name": "x" * 64}, "invalid_argument"),
    "a NUL": ({"name": "a\0b"}, "invalid_argument"),
    "no name": ({}, "invalid_argument"),
    "too large": ({"name": "x", "disk_bytes": 1 << 50}, "invalid_argument"),
    "too small": ({"name": "x", "disk_bytes": 1}, "invalid_argument"),
    "for ever": ({"name": "x", "idle_seconds": 1 << 40}, "invalid_argument"),
    "at once": ({"name": "x", "idle_seconds": 0}, "invalid_argument"),
    "a misspelt limit": ({"name": "x", "disk": 1}, "invalid_argument"),
    "there already": ({"name": "a"}, "already_exists"),
    "the default": ({"name": "default"}, "already_exists"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_workspace_is_refused(control, what):
    body, code = BAD[what]
    with pytest.raises(Refused) as refused:
        control.call("workspace_create", **body)
    assert refused.value.error["code"] == code


def test_the_count_is_limited(here, tmp_path):
    launcher = Launcher(tmp_path).start("--agent", "/usr/bin/true", "--max-workspaces", "3")
    try:
        control = launcher.control()
        control.call("workspace_create", name="a"), control.call("workspace_create", name="b")
        with pytest.raises(Refused) as refused:
            control.call("workspace_create", name="c")
        assert refused.value.error["code"] == "limit" and "3 workspaces" in refused.value.error["what"]
    finally:
        launcher.stop()


def test_the_default_cannot_be_destroyed(control):
    with pytest.raises(Refused) as refused:
        control.call("workspace_destroy", workspace="default")
    assert refused.value.error["code"] == "permission_denied"


@pytest.mark.parametrize("op", ["session_create", "workspace_destroy"])
def test_an_unknown_workspace_is_not_found(control, op):
    with pytest.raises(Refused) as refused:
        control.call(op, workspace="nowhere", **({"domain": "bash"} if op == "session_create" else {}))
    assert refused.value.error["code"] == "not_found"


def test_isolation_is_one_of_two_words(control):
    with pytest.raises(Refused) as refused:
        control.create(isolation="none")
    assert refused.value.error["code"] == "invalid_argument"


def test_destroying_one_ends_its_sessions_and_answers_when_nothing_is_left(both, control):
    uid = control.call("workspace_create", name="short")[0]["workspace"]["uid"]
    sessions = [control.create("shell", workspace="short") for _ in range(3)]
    control.start(sessions[0], "sh", "-c", "setsid sleep 1000 & sleep 1000")
    control.call("workspace_destroy", workspace="short")
    assert {control.event("session_end", session=s)["reason"] for s in sessions} == {"workspace_end"}
    assert not [p for p, (_, _, owner) in processes().items() if owner == uid]
    assert "short" not in {w["name"] for w in control.call("workspace_list")[0]["workspaces"]}


def test_one_that_is_made_again_is_empty(control):
    control.call("workspace_create", name="again")
    control.output(control.create("shell", workspace="again"), "sh", "-c", "echo x > /home/gem/left; echo x > /tmp/left")
    control.call("workspace_destroy", workspace="again")
    control.call("workspace_create", name="again")
    session = control.create("shell", workspace="again")
    assert inside(control, session, "out = os.listdir('/tmp') + sorted(os.listdir('/home/gem'))") == SKEL
    control.call("workspace_destroy", workspace="again")


def test_an_idle_one_ends_by_itself_and_one_with_a_session_does_not(control):
    control.events.clear()
    control.call("workspace_create", name="used", idle_seconds=5)  # in which the session must be asked for
    session = control.create("shell", workspace="used")
    control.call("workspace_create", name="idle", idle_seconds=5)
    assert control.event("workspace_end")["workspace"] == "idle"
    assert "used" in {w["name"] for w in control.call("workspace_list")[0]["workspaces"]}
    control.destroy(session)
    assert control.event("workspace_end")["workspace"] == "used"


def test_the_log_has_its_beginning_and_end_and_each_session_names_it(both, control):
    control.call("workspace_create", name="logged", idle_seconds=77)
    session = control.create("shell", workspace="logged")
    assert control.call("session_stat", session=session)[0]["workspace"] == "logged"
    control.call("workspace_destroy", workspace="logged", reason="the test is over")
    created = [r for r in both[0].records() if r["event"] == "workspace_create" and r["workspace"]["name"] == "logged"]
    ended = [r for r in both[0].records() if r["event"] == "workspace_end" and r["workspace"] == "logged"]
    mine = created + ended
    assert [r["event"] for r in mine] == ["workspace_create", "workspace_end"]
    assert mine[0]["workspace"]["idle_seconds"] == 77 and mine[1]["reason"] == "the test is over"
    assert both[0].records(session)[0]["workspace"] == "logged"


def test_a_policy_that_gives_up_a_wall_is_refused_in_a_workspace_and_serves_the_default(here, tmp_path):
    launcher = Launcher(tmp_path)
    edit(launcher.policies / "bash.json", disable=["net_ns"], weaken=[{"field": "/disable", "why": "the test"}])
    launcher.start("--agent", "/usr/bin/true")
    try:
        control = launcher.control()
        control.create("bash")
        control.call("workspace_create", name="a")
        with pytest.raises(Refused) as refused:
            control.create("bash", workspace="a")
        assert refused.value.error["code"] == "unavailable" and "net_ns" in refused.value.error["what"]
        with pytest.raises(Refused) as refused:
            control.create("bash", isolation="private")
        assert refused.value.error["code"] == "unavailable"
        control.create("shell", workspace="a")
    finally:
        launcher.stop()
