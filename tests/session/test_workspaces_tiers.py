"""Workspaces below T3: between two of them nothing crosses that their statement does not name; each attack is first shown to work
inside one, where it can be."""

import contextlib
import json
import os
import pathlib
import signal
import urllib.request

import places
import pytest
from over_http import OverHttp
from harness import AGENT, API_KEY, FORKS, PRELUDE, SKEL, Launcher, Refused, edit, eventually, inside, processes, state_of

MIB = 1 << 20
TIERS = ("T2", "T0", "few capabilities", "no mounts")


class Container:
    """A launcher in a tier (places.py), with the workspaces a and b."""

    def __init__(self, base, tier, **environment):
        self.tier = places.tier(tier)
        self.launcher = Launcher(base)
        environment = {"CAISSON_WORKSPACE_PROCESSES": "200", **environment}
        options = () if tier == "T2" else ("--home", "/home/gem")  # by a path that its owner may go
        self.launcher.start("--agent", "/usr/bin/true", *options, wrapper=places.wrapper(tier, self.launcher.home), **environment)
        self.control = self.launcher.control()
        assert self.control.hello["tier"] == self.tier
        self.made = {name: self.control.call("workspace_create", name=name, disk_bytes=8 * MIB)[0]["workspace"] for name in "ab"}

    def uid(self, name):
        return self.made[name]["uid"]

    def session(self, workspace, domain="shell", **arguments):
        return self.control.create(domain, workspace=workspace, **arguments)

    def home(self, session):
        return self.control.output(session, "sh", "-c", "echo $HOME").strip()

    def residual(self, session):
        return {r["id"] for r in self.control.call("session_report", session=session)[0]["report"]["residual"]}

    def holds(self, session, code):
        """Python that prints a line when it is in place and then stays: its descriptors, and that line."""
        name, fds = self.control.start(session, "/usr/bin/python3", "-I", "-c", f"{PRELUDE}\n{code}\nsys.stdin.read()")
        said = os.read(fds[1], 1000)
        assert said, os.read(fds[2], 4000)
        return fds, said.decode().strip()


@pytest.fixture(scope="module", params=TIERS)
def both(request, here, tmp_path_factory):
    # Not below pytest's own folder, which is root's alone: without mounts a tenant goes there by the path.
    box = Container(tmp_path_factory.mktemp(request.param.replace(" ", "-")), request.param)
    yield box
    box.launcher.stop()


@pytest.fixture
def pair(both):
    """A session of each."""
    made = [both.session("a"), both.session("b")]
    yield made
    for session in made:
        both.control.end(session)


def close(fds):
    for fd in fds:
        os.close(fd)


def own_pids(both, name):
    """The numbers of a workspace's processes, as its sessions see them."""
    found = {}
    for pid, (_, comm, uid) in processes().items():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, StopIteration):  # it ended meanwhile
            if uid != both.uid(name):
                continue
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            found[int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[2])] = comm
    return found


def only_processes(both, name, *programs):
    """own_pids, once these are all: a process of a session before may still be ending."""

    def found():
        of_it = own_pids(both, name)
        return of_it if sorted(of_it.values()) == sorted(programs) else None

    return eventually(found, what=f"{name} has {programs} alone")


def test_a_workspace_is_used_and_its_home_is_its_own(both, pair):
    for session, name in zip(pair, "ab", strict=True):
        home = both.home(session)
        got = inside(both.control, session, f"s = os.stat({home!r})\nout = [os.getuid(), s.st_uid, s.st_mode & 0o777]")
        assert got[0] == got[1] and got[2] == (0o755 if both.tier == "T2" else 0o700)
        assert both.control.output(session, "sh", "-c", f"echo of-{name} > ~/file; cat ~/file; pwd").split() == [f"of-{name}", home]
    assert both.uid("a") != both.uid("b")


def test_a_file_of_one_cannot_be_read_listed_or_changed_from_the_other(both, pair):
    attacker, victim = pair
    home = both.home(victim)
    both.control.output(victim, "sh", "-c", "umask 0; mkdir -p ~/open; chmod 777 ~/open; echo secret > ~/open/file; chmod 666 ~/open/file")
    assert inside(both.control, victim, f"out = [open('{home}/open/file').read(), tried(os.listdir, '{home}')]")[0] == "secret\n"
    code = f"""out = [tried(open, '{home}/open/file'), tried(open, '{home}/open/file', 'a'), tried(os.unlink, '{home}/open/file'),
      tried(os.chmod, '{home}/open/file', 0o777), tried(os.link, '{home}/open/file', os.environ['HOME'] + '/link')]"""
    if both.tier == "T2":
        code += f"\nout += [tried(open, f'/proc/{{p}}/root{home}/open/file') for p in {list(own_pids(both, 'b'))}]"
    assert set(inside(both.control, attacker, code)) <= {"EACCES", "ENOENT", "EPERM", "EXDEV"}
    if both.tier == "T0":
        assert inside(both.control, attacker, f"out = [tried(os.listdir, '{home}'), tried(os.listdir, os.path.dirname(os.path.dirname('{home}')))]") == ["EACCES"] * 2


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "/var/tmp", "/run"])
def test_no_place_for_everybody_leads_from_one_to_the_other(both, pair, place):
    attacker, victim = pair
    left = inside(both.control, victim, f"out = tried(lambda: open('{place}/of-b', 'w').close() or os.chmod('{place}/of-b', 0o666))")
    got = inside(both.control, attacker, f"out = tried(open, '{place}/of-b')")
    assert got in ("ENOENT", "EACCES")
    assert left == "ok" if both.tier == "T2" and place != "/run" else left in ("EACCES", "ENOENT", "EROFS")


def test_temporary_files_have_a_place_of_the_workspaces_own(both, pair):
    attacker, victim = pair
    code = "import tempfile\nwith tempfile.NamedTemporaryFile(delete=False) as f: pass\nout = f.name"
    name = json.loads(both.control.output(victim, "/usr/bin/python3", "-c", f"import json\n{code}\nprint(json.dumps(out))"))
    if both.tier == "T0":
        assert name.startswith(both.home(victim) + "/.tmp/")
        assert both.control.output(victim, "bash", "-c", "cat <<< here; dirname $(mktemp)") == f"here\n{both.home(victim)}/.tmp\n"
    assert inside(both.control, attacker, f"out = tried(open, '{name}')") in ("EACCES", "ENOENT")


ATTACKS = ["tried(os.kill, pid, 0)", "tried(os.kill, pid, 9)", "call(101, 16, pid, 0, 0)", "tried(os.setpriority, 0, pid, 19)",
           "tried(os.sched_setaffinity, pid, {0})", "tried(open, f'/proc/{pid}/environ')", "tried(open, f'/proc/{pid}/mem', 'rb')",
           "tried(os.listdir, f'/proc/{pid}/fd')", "tried(os.readlink, f'/proc/{pid}/cwd')", "tried(open, f'/proc/{pid}/maps')",
           "call(310, pid, 0, 0, 0, 0, 0)", "call(302, pid, 7, 0, 0)"]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_processes_of_one_are_reached_by_nothing_from_the_other(both, pair, attack):
    attacker, victim = pair
    fds, _ = both.holds(victim, "print('ready', flush=True)")
    targets = only_processes(both, "b", "caisson-init", "python3")
    got = inside(both.control, attacker, f"out = [{attack} for pid in {list(targets)}]")
    assert got and set(got) <= {"EPERM", "EACCES", "ESRCH", "ENOSYS"}, got
    assert set(targets) <= set(own_pids(both, "b"))
    close(fds)


def test_a_signal_to_everybody_reaches_the_own_workspace_alone(both, pair):
    attacker, victim = pair
    fds, _ = both.holds(victim, "print('ready', flush=True)")
    _, sent = both.control.start(attacker, "/usr/bin/python3", "-I", "-c", "import os; os.kill(-1, 9); print('sent')")
    os.read(sent[1], 100)  # or nothing, where the signal ended its session as well
    eventually(lambda: "python3" not in own_pids(both, "a").values(), what="the attacker has ended")
    assert both.control.output(victim, "echo", "there") == "there\n"
    assert "python3" in own_pids(both, "b").values()
    close([*fds, *sent])


def test_an_abstract_socket_of_one_cannot_be_connected_to_from_the_other(both, pair):
    attacker, victim = pair
    fds, _ = both.holds(victim, "s = socket.socket(socket.AF_UNIX); s.bind('\\0caisson-tier'); s.listen(); print('ready', flush=True)")
    attack = "s = socket.socket(socket.AF_UNIX)\nout = tried(lambda: s.connect('\\0caisson-tier'))"
    assert inside(both.control, victim, attack) == "ok"
    got = inside(both.control, attacker, attack)
    assert got in ("ECONNREFUSED", "EPERM") or "landlock-no-scopes" in both.residual(attacker)
    close(fds)


def test_no_socket_with_a_port_leads_from_one_to_the_other(both, pair):
    attacker, victim = pair
    listen = "s = socket.socket(); s.bind(('127.0.0.1', 7791)); s.listen()"
    if both.tier == "T0":
        assert inside(both.control, victim, f"def f():\n  {listen}\nout = tried(f)") == "EPERM"
    else:
        fds, _ = both.holds(victim, f"{listen}; print('ready', flush=True)")
        connect = "s = socket.socket()\nout = tried(lambda: s.connect(('127.0.0.1', 7791)))"
        assert inside(both.control, victim, connect) == "ok"
        assert inside(both.control, attacker, connect) == "ECONNREFUSED"
        close(fds)


# By key or name; the numbers of x86-64: shmget, msgget, semget, mq_open, add_key.
OBJECTS = {
    "shm": ("call(29, 0x5eed, 4096, 0o1666)", "call(29, 0x5eed, 4096, 0o666)"),
    "msg": ("call(68, 0x5eed, 0o1666)", "call(68, 0x5eed, 0o666)"),
    "sem": ("call(64, 0x5eed, 1, 0o1666)", "call(64, 0x5eed, 1, 0o666)"),
    "mqueue": ("call(240, b'tier', 0o102, 0o666, 0)", "call(240, b'tier', 2, 0, 0)"),
    "keyring": ("call(248, b'user', b'tier', b'x', 1, -4)", "call(250, 10, -4, b'user', b'tier', 0)"),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_ipc_objects_of_one_do_not_exist_in_the_other(both, pair, kind):
    make, get = OBJECTS[kind]
    attacker, victim = pair
    made = inside(both.control, victim, f"out = {make}")
    assert isinstance(made, int) or made in ("EPERM", "EACCES", "ENOSYS"), made
    if both.tier == "T0":
        assert made in ("EPERM", "ENOSYS")
    assert inside(both.control, attacker, f"out = {get}") in ("ENOENT", "EPERM", "EACCES", "ENOSYS", "ENOKEY")


def test_a_terminal_of_one_cannot_be_opened_from_the_other(both, pair):
    attacker, victim = pair
    fds, name = both.holds(victim, "m, s = os.openpty(); print(os.ttyname(s), flush=True)")
    code = f"out = [tried(os.open, {name!r}, os.O_RDWR | os.O_NOCTTY), tried(os.open, {name!r}, os.O_WRONLY | os.O_NOCTTY)]"
    assert set(inside(both.control, attacker, code)) <= {"EACCES", "ENOENT"}
    close(fds)


INOTIFY = """
made = []
while len(made) < 4000 and isinstance(got := call(294, 0), int):
    made.append(got)
print(got, len(made), flush=True)"""
PIPES = """
import fcntl
ends = []
def grow():
    for _ in range(200):
        ends.append(os.pipe())
        fcntl.fcntl(ends[-1][0], fcntl.F_SETPIPE_SZ, 1 << 20)
print(tried(grow), len(ends), flush=True)"""


def test_room_in_pipes_is_not_counted_for_the_other(both, pair):
    fds, said = both.holds(pair[0], PIPES)
    assert said.startswith("EPERM "), "the limit of a uid's pages in pipes"
    grow = "import fcntl\nr, w = os.pipe()\nout = tried(fcntl.fcntl, r, fcntl.F_SETPIPE_SZ, 1 << 20)"
    assert inside(both.control, pair[0], grow) == "EPERM"
    assert inside(both.control, pair[1], grow) == 1 << 20
    close(fds)


def test_without_user_namespaces_watches_are_not_counted_for_the_other(both, pair):
    if both.tier != "T0":
        pytest.skip("with user namespaces the kernel counts inotify instances for their creator, in every tier that has them")
    fds, said = both.holds(pair[0], INOTIFY)
    assert said.split()[0] in ("EMFILE", "ENFILE")
    assert inside(both.control, pair[0], "out = call(294, 0)") == "EMFILE"
    assert isinstance(inside(both.control, pair[1], "out = call(294, 0)"), int)
    close(fds)


def test_a_fork_bomb_stops_at_its_workspaces_limit_and_the_other_forks_on(both, pair):
    attacker, victim = pair
    fds, said = both.holds(attacker, FORKS.replace("MOST", "1000") + "print(error, len(pids), flush=True)")
    error, count = said.split()
    assert error == "EAGAIN" and 100 < int(count) <= 400
    free = FORKS.replace("MOST", "100") + "out = [error, len(pids)]\nfor pid in pids: os.kill(pid, 9)"
    assert inside(both.control, victim, free) == [None, 100]
    close(fds)


def test_a_full_home_stops_its_workspace_and_no_other(both):
    both.control.call("workspace_create", name="full", disk_bytes=2 * MIB)
    attacker, victim = both.session("full"), both.session("b")
    ended, _, err = both.control.run(attacker, "sh", "-c", "dd if=/dev/zero of=$HOME/big bs=1M count=5; sync")
    if both.tier == "T2":
        assert ended["exit_code"] != 0 or "No space left" in err
    else:
        assert both.control.event("session_end", session=attacker)["reason"] == "disk"
        with pytest.raises(Refused) as refused:
            both.session("full")
        assert refused.value.error["code"] == "limit"
    both.control.output(victim, "sh", "-c", "dd if=/dev/zero of=$HOME/some bs=1M count=4 status=none; rm $HOME/some")
    both.control.call("workspace_destroy", workspace="full")


def test_what_a_tier_leaves_open_is_in_the_statement(both, pair):
    named = both.residual(pair[0])
    assert {"proc-shared", "peers-tunable", "namespaces-shared"} <= named
    assert "tmp-shared" not in named
    assert ({"names-visible", "metadata-changeable", "path-sockets", "terminals-shared", "home-quota"} <= named) == (both.tier == "T0")
    said = both.control.call("attest", session=pair[0])[0]["statement"]
    assert said["tier"] == both.tier and said["session"]["workspace"] == "a"
    assert {r["id"] for r in said["confinement"]["residual"]} == named


def used(uid):
    """What each process of that user's sessions has used of a processor. No process of theirs: one that has ended, which its parent takes
    away in a pause, too, and the launcher's that counts the files of a home as its user."""
    found = {}
    for pid in [p for p, (_, name, u) in processes().items() if u == uid and name != "caisson-homes"]:
        with contextlib.suppress(OSError):  # it ended meanwhile
            if state_of(pid) != "Z":
                found[pid] = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    return found


@pytest.mark.parametrize("how", ["while :; do :; done", "setsid sh -c 'while :; do :; done' & exit"], ids=["a loop", "an orphan"])
def test_a_paused_one_stands_still_and_the_other_runs_on(both, pair, how):
    both.control.start(pair[0], "sh", "-c", how)
    first = used(both.uid("a"))
    eventually(lambda: used(both.uid("a")) != first)
    assert both.control.call("workspace_pause", workspace="a")[0]["state"] == "paused"
    still = used(both.uid("a"))
    assert still and both.control.output(pair[1], "echo", "on") == "on\n"
    assert used(both.uid("a")) == still
    with pytest.raises(Refused, match="is paused"):
        both.control.output(pair[0], "true")
    assert both.control.call("workspace_resume", workspace="a")[0]["state"] == "ready"
    eventually(lambda: used(both.uid("a")) != still)
    assert both.control.output(pair[0], "echo", "on") == "on\n"


def test_a_session_that_is_built_while_its_workspace_is_paused_is_not_given(both, pair):
    launcher = first_launcher(both)
    os.kill(launcher, signal.SIGSTOP)  # so that both are there before it can have built the session
    try:
        asked = both.control.send("session_create", domain="shell", workspace="a")
        paused = both.control.send("workspace_pause", workspace="a")
    finally:
        os.kill(launcher, signal.SIGCONT)
    answers = both.control.until(asked, paused)
    try:
        assert answers[paused]["ok"], answers
        # A process that is being built may be stopped, too; then it is late.
        assert answers[asked]["error"]["code"] in ("unavailable", "timeout")
    finally:
        both.control.call("workspace_resume", workspace="a")
    assert both.control.output(both.session("a"), "echo", "on") == "on\n"


def test_the_end_of_a_session_ends_nothing_that_is_done_for_a_workspace(both):
    for i in range(10):
        sessions = [both.control.create("shell") for _ in range(6)]
        making = both.control.send("workspace_create", name=f"made-{i}", disk_bytes=MIB)
        answers = both.control.until(*[both.control.send("session_destroy", session=one) for one in sessions], making)
        assert all(answer["ok"] for answer in answers.values() if "id" in answer), answers
        both.control.call("workspace_destroy", workspace=f"made-{i}")


def test_the_end_leaves_no_process_and_no_file(both):
    made = both.control.call("workspace_create", name="short")[0]["workspace"]
    sessions = [both.session("short") for _ in range(2)]
    home = both.home(sessions[0])
    # Names, depth and modes are the tenant's; so is whom a process belongs to.
    both.control.output(sessions[0], "sh", "-c", "cd; mkdir -p a/b/c d/e; echo x > a/b/c/f; echo y > d/e/g; chmod 0 a/b/c; chmod 0 a; chmod 555 d/e d")
    both.control.start(sessions[0], "sh", "-c", "setsid sleep 1000 & sleep 1000")
    both.control.start(sessions[1], "/usr/bin/python3", "-c", "import os, time; [os.setsid() if os.fork() == 0 else os._exit(0) for _ in '12']; time.sleep(1000)")
    eventually(lambda: len([u for _, _, u in processes().values() if u == made["uid"]]) >= 4)
    both.control.call("workspace_destroy", workspace="short")
    assert not [p for p, (_, _, uid) in processes().items() if uid == made["uid"]]
    if both.tier == "T0":
        place = pathlib.Path(f"/proc/{first_launcher(both)}/root{home}").parent
        assert place.parent.is_dir() and not place.exists()
    again = both.control.call("workspace_create", name="short")[0]["workspace"]
    assert again["uid"] > made["uid"], "never given to two"
    session = both.session("short")
    assert set(inside(both.control, session, "out = os.listdir(os.environ['HOME'])")) - {".tmp"} == set(SKEL)
    both.control.call("workspace_destroy", workspace="short")


def first_launcher(both):
    """The launcher behind its wrapper."""
    return next(p for p, (parent, _, _) in processes().items() if parent == both.launcher.pid)


@pytest.mark.parametrize("mode", ["0", "0600", "0300", "7634"])  # closed; listed and not searched; the reverse; of a random call
def test_a_home_is_measured_behind_directories_that_are_closed(here, tmp_path, mode):
    box = Container(tmp_path, "T0")
    try:
        box.control.call("workspace_create", name="hides", disk_bytes=2 * MIB)
        session = box.session("hides")
        fill = f"mkdir ~/shut && exec 3>~/shut/big && chmod {mode} ~/shut && dd if=/dev/zero bs=1M count=5 >&3; sleep 1000"
        box.control.start(session, "sh", "-c", fill)
        ended = box.control.event("session_end", session=session)
        assert ended["reason"] == "disk" and ended["hit"]["figure"] > 2 * MIB, ended  # all of it behind the closed directory
    finally:
        box.launcher.stop()


def test_what_an_earlier_launcher_left_is_removed(here, tmp_path):
    box = Container(tmp_path, "T0")
    try:
        sweep = "mkdir -p -m 711 /home/workspaces && mkdir -p /home/workspaces/40001-0ld/x /home/workspaces/.closed"
        assert os.system(f"nsenter -t {first_launcher(box)} -m sh -c '{sweep}'") == 0
        homes = Launcher.program.parent / "caisson-homes"
        place = pathlib.Path(f"/proc/{first_launcher(box)}/root/home/workspaces")
        kept = {p.name for p in place.iterdir() if p.name.startswith("4") and not p.name.endswith("-0ld")}
        tag = next(iter(kept)).split("-")[1]
        os.rmdir(place / "40001-0ld/x")
        assert os.system(f"nsenter -t {first_launcher(box)} -m {homes} sweep {tag} > /dev/null") == 0
        assert {p.name for p in place.iterdir()} == kept | {".closed"}
    finally:
        box.launcher.stop()


class Tenant:
    """The API as one workspace uses it."""

    def __init__(self, launcher, name):
        self.url, self.name = f"http://127.0.0.1:{launcher.port}", name

    def post(self, path, body):
        headers = {"X-AIO-API-Key": API_KEY, "Content-Type": "application/json", "X-Caisson-Workspace": self.name}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)["data"]


@pytest.mark.parametrize("tier", ["T2", "T0"])
def test_the_api_serves_a_workspace_in_its_own_home(here, tmp_path, tier):
    if not AGENT.exists():
        pytest.skip("the agent is not built: scripts/test session builds it")
    with Launcher(tmp_path) as launcher:
        launcher.start(wrapper=places.wrapper(tier, launcher.home))
        http = eventually(lambda: connected(launcher))
        made = {name: http.request("/v1/workspaces", {"name": name}) for name in ("alice", "bob")}
        assert made["alice"]["home"] == "/home/gem" if tier == "T2" else made["alice"]["home"].startswith("/home/workspaces/")
        alice, bob = Tenant(launcher, "alice"), Tenant(launcher, "bob")
        assert alice.post("/v1/bash/exec", {"command": "pwd; echo mine > ~/file"})["stdout"].strip() == made["alice"]["home"]
        assert alice.post("/v1/file/read", {"file": "file"})["content"] == "mine\n"
        alice.post("/v1/file/write", {"file": f"{made['alice']['home']}/other", "content": "x"})
        assert alice.post("/v1/shell/exec", {"command": "ls"})["output"].split() == ["file", "other"]
        assert bob.post("/v1/bash/exec", {"command": f"ls; cat {made['alice']['home']}/file"})["exit_code"] != 0
        # The slot of one that has ended serves the next, which has another home.
        delete = urllib.request.Request(alice.url + "/v1/workspaces/alice", method="DELETE", headers={"X-AIO-API-Key": API_KEY})
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(delete, timeout=60).close()
        again = http.request("/v1/workspaces", {"name": "alice"})
        assert alice.post("/v1/bash/exec", {"command": "pwd; ls"})["stdout"].strip() == again["home"]


def connected(launcher):
    try:
        return OverHttp(launcher)
    except (OSError, Refused):
        return None


def test_one_uid_for_all_is_refused_with_the_reason(here, one_user):
    with pytest.raises(Refused) as refused:
        one_user[1].request("/v1/workspaces", {"name": "a"})
    assert "a uid for each" in refused.value.error["what"] and "T1" in refused.value.error["what"]


def test_a_policy_that_gives_up_a_wall_is_refused_in_a_workspace(here, tmp_path):
    launcher = Launcher(tmp_path)
    edit(launcher.policies / "base.json", require=["capabilities", "no_new_privs", "seccomp"])
    edit(launcher.policies / "bash.json", disable=["landlock"], weaken=[{"field": "/disable", "why": "the test"}])
    launcher.start("--agent", "/usr/bin/true", wrapper=places.wrapper("T0", launcher.home))
    try:
        control = launcher.control()
        control.create("bash")
        control.call("workspace_create", name="a")
        with pytest.raises(Refused) as refused:
            control.create("bash", workspace="a")
        assert refused.value.error["code"] == "unavailable" and "landlock" in refused.value.error["what"]
        control.create("shell", workspace="a")
    finally:
        launcher.stop()


def test_a_policy_can_require_more(here, tmp_path):
    launcher = Launcher(tmp_path)
    edit(launcher.policies / "bash.json", require=["capabilities", "no_new_privs", "landlock", "seccomp", "rlimits", "fds", "env", "pid_ns"])
    launcher.start("--agent", "/usr/bin/true", wrapper=places.wrapper("T2", launcher.home))
    try:
        control = launcher.control()
        control.call("workspace_create", name="a")
        with pytest.raises(Refused) as refused:
            control.create("bash", workspace="a")
        assert refused.value.error["code"] == "unavailable" and "pid_ns" in refused.value.error["what"]
    finally:
        launcher.stop()
