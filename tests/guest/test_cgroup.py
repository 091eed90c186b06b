"""Sessions in cgroups of their own, on the only host that has them: what is set, what a bomb hits, what stays behind."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from harness import Launcher, cli, edit, eventually

MIB = 1 << 20
EAT = f"import signal; x = bytearray(300 * {MIB}); x[::4096] = b'x' * len(x[::4096]); signal.pause()"
FORK = """
import errno, os, signal
made, error = 0, 0
while made < 500:
    try:
        if os.fork() == 0: signal.pause()
        made += 1
    except OSError as e:
        error = e.errno
        break
print(made, errno.errorcode.get(error), flush=True)
os.kill(0, signal.SIGKILL)
"""


@pytest.fixture
def group(launcher):
    """group(session): the folder of its cgroup."""
    return lambda session: launcher.cgroup / "caisson-sessions" / session


def read(group, name):
    return (group / name).read_text().strip()


def end_record(launcher, session):
    def last():
        found = launcher.records(session)[-1]
        return found if found["event"] == "session_end" else None

    return eventually(last, what="session_end is on record")


def test_the_limits_of_the_policy_are_the_cgroups(control, group):
    limits = {"memory_bytes": 96 * MIB, "processes": 50, "cpu_percent": 40}
    made = group(control.create(narrow={"limits": limits}))
    files = ("memory.max", "memory.oom.group", "pids.max", "cpu.max", "memory.swap.max")
    assert [read(made, f) for f in files] == [str(96 * MIB), "1", "50", "40000 100000", "0"]


@pytest.fixture
def on_disk(guest):
    """A launcher whose home is on the guest's disk; /tmp is memory."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    one = Launcher(pathlib.Path(folder))
    yield one
    one.stop()
    shutil.rmtree(folder)


def test_limits_of_the_disk_are_the_cgroups_and_attested(on_disk):
    control = on_disk.start().control()
    session = control.create(narrow={"limits": {"io_write_bytes_per_second": MIB, "io_read_bytes_per_second": 2 * MIB}})
    number = os.stat(on_disk.home).st_dev
    limits = read(on_disk.cgroup / "caisson-sessions" / session, "io.max")
    assert limits.startswith(f"{os.major(number)}:{os.minor(number)} rbps={2 * MIB} wbps={MIB} ")
    mechanism = next(m for m in control.call("attest", session=session)[0]["statement"]["confinement"]["mechanisms"] if m["name"] == "io")
    assert mechanism["state"] == "enforced" and [v["what"] for v in mechanism["verified"]] == ["io.max"]


def test_a_policy_without_limits_of_disks_has_none(control, group, session):
    assert read(group(session), "io.max") == ""


def test_empty_leaves_of_a_killed_launcher_are_removed_by_the_next_and_no_others(fresh):
    fresh.start()
    sessions, old = fresh.cgroup / "caisson-sessions", fresh.control().create()
    fresh.process.kill()
    fresh.process.wait()
    kept = [sessions / name for name in ("s-populated", "another")]
    for path in kept:
        path.mkdir()
    sleeper = subprocess.Popen(["sleep", "1000"])
    try:
        (kept[0] / "cgroup.procs").write_text(str(sleeper.pid))
        assert (sessions / old).is_dir()
        eventually(lambda: "populated 0" in (sessions / old / "cgroup.events").read_text(), what="the old session is empty")
        fresh.cgroup = fresh.cgroup / "caisson-launcher"  # where a service manager starts it again
        fresh.start()
        assert not (sessions / old).exists() and all(path.is_dir() for path in kept)
    finally:
        sleeper.kill()
        sleeper.wait()
        for path in kept:
            path.rmdir()


def test_nodes_of_workspaces_of_a_killed_launcher_are_removed_by_the_next(fresh):
    fresh.start()
    control = fresh.control()
    control.call("workspace_create", name="a")
    control.create("shell", workspace="a")
    sessions = fresh.cgroup / "caisson-sessions"
    (node,) = sessions.glob("w-*")
    assert list(node.glob("s-*"))
    fresh.process.kill()
    fresh.process.wait()
    # Not within seconds on an emulated machine that builds a session ahead at the same time.
    eventually(lambda: "populated 0" in (node / "cgroup.events").read_text(), what="the old workspace is empty")
    fresh.cgroup = fresh.cgroup / "caisson-launcher"
    fresh.start()
    assert list(sessions.glob("w-*")) == []


def test_private_sessions_are_within_their_workspaces_node(fresh):
    fresh.start()
    control = fresh.control()
    control.call("workspace_create", name="a")
    session = control.create("shell", workspace="a", isolation="private")
    (node,) = (fresh.cgroup / "caisson-sessions").glob("w-*")
    assert (node / session).is_dir()


def test_a_session_is_in_its_cgroup_and_the_launcher_is_not(launcher, control, session, group):
    control.start(session, "sleep", "1000")
    inside = read(group(session), "cgroup.procs").split()
    assert len(inside) == 2 and str(launcher.pid) not in inside
    assert str(launcher.pid) in read(launcher.cgroup / "caisson-launcher", "cgroup.procs").split()
    assert read(launcher.cgroup, "cgroup.procs") == ""


def test_what_a_session_starts_stays_in_its_cgroup(control, session, group):
    control.start(session, "sh", "-c", "(setsid setsid sleep 1000 &) ; (setsid sh -c 'sleep 1000 & sleep 1000') & wait")
    eventually(lambda: len(read(group(session), "cgroup.procs").split()) >= 6, what="six members")


def test_a_session_sees_no_cgroup_but_the_root_of_its_own_namespace(control, session):
    assert control.output(session, "cat", "/proc/self/cgroup").strip() == "0::/"
    assert control.run(session, "ls", "/sys/fs/cgroup")[0]["exit_code"] != 0


def test_the_report_says_that_the_cgroup_was_verified(control, session):
    report = control.call("session_report", session=session)[0]["report"]
    assert report["facts"]["cgroup"] == session
    assert [m["state"] for m in report["mechanisms"] if m["name"] == "cgroup"] == ["enforced"]
    assert "watchdog-limits" not in json.dumps(report["residual"])


def test_a_memory_bomb_ends_its_own_session_as_out_of_memory(launcher, control, session):
    bombed = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(bombed, "/usr/bin/python3", "-c", EAT)
    assert control.exit(bombed, name)["reason"] == "oom"
    assert control.event("session_end", session=bombed)["reason"] == "oom"
    end = end_record(launcher, bombed)
    assert end["reason"] == "oom" and end["oom_kills"] >= 1 and end["memory_peak_bytes"] >= 60 * MIB
    assert [r["limit"] for r in launcher.records(bombed) if r["event"] == "limit_hit"] == ["memory"]
    assert [r["reason"] for r in launcher.records(bombed) if r["event"] == "exec_exit"] == ["oom"]
    assert control.output(session, "echo", "on") == "on\n"


def test_a_child_that_eats_the_memory_takes_the_session_with_it(control):
    session = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(session, "sh", "-c", '/usr/bin/python3 -c "$0" & sleep 1000', EAT)
    assert control.exit(session, name)["reason"] == "oom"


HELD = {
    "a file in memory": "import os, signal\nfd = os.memfd_create('held')\nfor _ in range(300): os.write(fd, bytes(1 << 20))\nsignal.pause()",
    "sockets": """import signal, socket
pairs = [socket.socketpair() for _ in range(400)]
for end in [end for pair in pairs for end in pair]:
    end.setblocking(False)
    try:
        while True: end.send(bytes(65536))
    except BlockingIOError: pass
signal.pause()
""",
}


@pytest.mark.parametrize("what", HELD)
def test_flaw_12_what_is_held_and_not_mapped_ends_a_session_as_out_of_memory(control, session, what):
    holding = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(holding, "/usr/bin/python3", "-I", "-c", HELD[what])
    assert control.exit(holding, name)["reason"] == "oom"
    assert control.event("session_end", session=holding)["reason"] == "oom"
    assert control.output(session, "echo", "on") == "on\n"


@pytest.mark.parametrize("directory", ["/tmp", "/dev/shm"])
def test_files_in_memory_count(control, session, directory):
    bombed = control.create(narrow={"tmp": "private", "limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(bombed, "dd", "if=/dev/zero", f"of={directory}/big", "bs=1M", "count=200")
    ended = control.exit(bombed, name)
    # Out of memory, or the tmpfs is smaller than the session's memory and full before.
    assert ended["reason"] == "oom" or ended["exit_code"] != 0
    assert control.output(session, "echo", "on") == "on\n"


def test_a_fork_bomb_is_refused_its_forks_and_nobody_else(launcher, control, session):
    bombed = control.create(narrow={"limits": {"processes": 32}})
    out = control.run(bombed, "/usr/bin/python3", "-S", "-c", FORK)[1].split()
    assert out[1] == "EAGAIN" and int(out[0]) < 32
    assert control.output(session, "echo", "on") == "on\n"
    control.destroy(bombed)
    assert end_record(launcher, bombed)["forks_refused"] >= 1


def test_a_thread_bomb_is_refused_its_threads(control, session):
    bombed = control.create(narrow={"limits": {"processes": 32}})
    code = "import threading, time\nmade = 0\ntry:\n  while made < 500: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start(); made += 1\nexcept RuntimeError: pass\nprint(made, flush=True)\nimport os; os._exit(0)"
    assert int(control.output(bombed, "/usr/bin/python3", "-S", "-c", code)) < 32
    assert control.output(session, "echo", "on") == "on\n"


def test_processor_time_is_capped(control, group):
    session = control.create(narrow={"limits": {"cpu_percent": 20}})
    control.start(session, "sh", "-c", "while :; do :; done")

    def throttled():
        stat = dict(line.split() for line in read(group(session), "cpu.stat").splitlines())
        return int(stat["nr_throttled"]) > 2

    eventually(throttled, what="the session is throttled")
    control.destroy(session)


def test_destroy_leaves_no_cgroup(control, group):
    session = control.create()
    control.start(session, "sh", "-c", "(setsid sleep 1000 &); sleep 1000")
    assert group(session).is_dir()
    control.destroy(session)
    assert not group(session).exists()


def test_fifty_sessions_leave_no_cgroup(fresh):
    fresh.start(CAISSON_READY_SESSIONS="0")
    control = fresh.control()
    sessions = [control.create() for _ in range(50)]
    for session in sessions:
        control.start(session, "sleep", "1000")
    folder = fresh.cgroup / "caisson-sessions"
    assert {p.name for p in folder.iterdir() if p.is_dir()} == set(sessions)
    for session in sessions:
        control.destroy(session)
    assert [p.name for p in folder.iterdir() if p.is_dir()] == []


def test_the_last_record_says_what_a_session_used(launcher, control, guest):
    session = control.create()
    control.output(session, "sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo on >/tmp/file")
    control.destroy(session)
    end = end_record(launcher, session)
    assert end["memory_peak_bytes"] > 0 and end["cpu_us"] > 0 and end["oom_kills"] == end["forks_refused"] == 0
    assert set(end["pressure"]) == {"memory_us", "cpu_us", "io_us"}, end
    # pids.peak came with Linux 6.1.
    assert end["processes_peak"] >= 2, end


def test_a_running_session_says_what_it_uses(control, session):
    control.start(session, "sleep", "1000")
    now = control.call("session_stat", session=session)[0]
    assert now["processes"] == 2 and now["memory_bytes"] > 0 and now["memory_peak_bytes"] >= now["memory_bytes"]


def test_a_policy_may_require_the_cgroup(control, fresh):
    base = json.loads((fresh.policies / "base.json").read_text())
    edit(fresh.policies / "base.json", require=[*base["require"], "cgroup"])
    fresh.start()
    assert fresh.control().create()


def test_a_launcher_that_shares_its_cgroup_says_so_and_moves_nobody(fresh):
    fresh.cgroup.rmdir()
    fresh.cgroup = None  # pytest's own
    fresh.start()
    boot = fresh.records()[0]
    assert "other processes share our cgroup" in json.dumps(boot["why_not_higher"])
    control = fresh.control()
    session = control.create(narrow={"limits": {"memory_bytes": 64 * MIB}})
    name, _ = control.start(session, "/usr/bin/python3", "-c", EAT)
    assert control.exit(session, name)["reason"] == "oom", "the watchdog stands in"


def test_a_second_launcher_in_the_same_tree_starts(fresh, launcher):
    fresh.cgroup.rmdir()
    fresh.cgroup = launcher.cgroup / "caisson-launcher"
    fresh.start()
    control = fresh.control()
    session = control.create()
    assert (launcher.cgroup / "caisson-sessions" / session).is_dir()
    assert control.output(session, "echo", "on") == "on\n"


def test_caisson_run_claims_no_cgroup(tmp_path):
    report = tmp_path / "report.json"
    done = cli("run", "--policies", "/opt/caisson/policies", "--report", report, "--", "true")
    assert done.returncode == 0, done
    states = {m["name"]: m["state"] for m in json.loads(report.read_text())["mechanisms"]}
    assert states["cgroup"] == "unavailable"
