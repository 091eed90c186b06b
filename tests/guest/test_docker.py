"""Which tier each set of Docker's flags gives on a host with AppArmor and cgroup v2, and what the report says is in the way."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from docker_engine import Container, Engine, docker, make_image
from harness import BUILD, ROOT

CAPABILITIES = ["--cap-drop=ALL", "--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL"]
SECCOMP = ["--security-opt", f"seccomp={ROOT}/image/seccomp.json"]

# name: flags, the tier, AppArmor's label, what the report must name
CELLS = {
    "plain": ([], "T0", "docker-default (enforce)", ["no user namespaces", "image/seccomp.json"]),
    "floor": (
        ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "1000"],
        "T1",
        "docker-default (enforce)",
        ["no user namespaces", "one uid for everything"],
    ),
    "shipped": ([*CAPABILITIES, *SECCOMP, "--security-opt", "apparmor=caisson"], "T2", "caisson (enforce)", ["no fresh /proc"]),
    "no-apparmor-profile": (
        [*CAPABILITIES, *SECCOMP],
        "T0",
        "docker-default (enforce)",
        ["no private mounts", "EACCES", "image/apparmor.profile"],
    ),
    "privileged": (["--privileged"], "T3", "unconfined", ["never use unmasked /proc"]),
}


@pytest.fixture(scope="module")
def engine(guest, tmp_path_factory):
    folder = tmp_path_factory.mktemp("docker")
    one = Engine(folder).wait()
    make_image(folder)
    subprocess.run(["apparmor_parser", "-r", ROOT / "image" / "apparmor.profile"], check=True, timeout=400)
    yield one
    one.stop()


@pytest.fixture(scope="module", params=CELLS)
def cell(request, engine):
    """(container, expected tier, label, reasons), one container for all tests of the cell."""
    flags, *expected = CELLS[request.param]
    container = Container(request.param, flags)
    yield container, *expected
    container.remove()


def test_the_engine_confines_with_apparmor_on_cgroup_v2(engine):
    info = docker("info", "-f", "{{.SecurityOptions}} {{.CgroupVersion}}").stdout
    assert "name=apparmor" in info and info.split()[-1] == "2"


def test_reports_the_tier_that_the_flags_give(cell):
    container, tier, label, _ = cell
    assert container.probe["outer"]["lsm"] == label
    assert container.probe["tier"] == tier, container.probe
    assert f": tier {tier} (" in container.logs(), container.logs()


def test_says_what_keeps_it_from_a_higher_tier(cell):
    container, _, _, reasons = cell
    said = "\n".join(container.probe["why_not_higher"])
    assert [r for r in reasons if r not in said] == [], said


def test_says_why_there_is_no_cgroup(cell):
    container, tier, _, _ = cell
    found = container.probe["works"]["cgroup"]
    # Docker mounts it read-only but for a privileged container.
    reason = {"T3": "", "T1": "not delegated to us"}.get(tier, "read-only")
    assert found["works"] if tier == "T3" else reason in found["reason"], found


def test_the_api_answers_in_that_tier(cell):
    done = cell[0].bash("echo $((6 * 7)); id -u; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status")
    assert done["exit_code"] == 0, done
    answer, uid, *status = done["stdout"].split()
    assert answer == "42" and uid != "0"
    assert " ".join(status) == "CapEff: 0000000000000000 NoNewPrivs: 1 Seccomp: 2"


def test_what_is_not_granted_stays_out_of_reach(cell):
    for path in ("/etc/shadow", "/var/log/caisson/audit", "/proc/1/environ", "/run/caisson/control.sock"):
        done = cell[0].bash(f"cat {path}")
        assert done["exit_code"] != 0 and not done["stdout"], (path, done)


def test_the_session_report_says_the_same(cell):
    container, tier, _, _ = cell
    if tier == "T1":
        pytest.skip("T1 has no control socket: sessions have the launcher's uid and could use it")
    control = container.control()
    report = control.call("session_report", session=control.create())[0]["report"]
    control.close()
    states = {m["name"]: m["state"] for m in report["mechanisms"]}
    assert report["tier"] == tier
    assert {states[m] for m in ("uid", "capabilities", "no_new_privs", "landlock", "seccomp", "rlimits")} == {"enforced"}
    assert states["mount_ns"] == states["net_ns"] == ("enforced" if tier >= "T2" else "unavailable")
    assert states["cgroup"] == ("enforced" if tier == "T3" else "unavailable")


# Landlock governs truncation from Linux 6.2 on, ioctl of devices from 6.10; before, seccomp stands in where no mount is read-only.
CUTS = ["FS-04.truncate", "FS-04.open-for-nothing", "FS-04.openat2", "FS-02.truncate", "FS-02.open-for-reading", "FS-02.open-for-nothing", "FS-02.openat2"]
IOCTL = "FS-04.open-for-ioctl"


def test_no_session_cuts_a_file_that_it_may_not_write(cell):
    container, tier, _, _ = cell
    root = pathlib.Path(f"/proc/{container.pid}/root")
    shutil.copy(BUILD / "tests" / "escape" / "escape", root / "usr/bin/escape")
    files = [root / "srv/kept/file", root / "usr/share/kept/file"]
    for file in files:
        file.parent.mkdir()
        file.write_text("kept")
        file.chmod(0o666)
    told = container.bash(f"/usr/bin/escape --only {','.join([*CUTS, IOCTL])} outside=/srv/kept ro=/usr/share/kept")["stdout"]
    assert [file.read_text() for file in files] == ["kept", "kept"], told
    verdicts = {row["id"]: row["verdict"] for row in map(json.loads, told.splitlines())}
    # From Linux 6.10 on it is Landlock that stops the ioctl of a device, and not the open.
    release = tuple(int(number) for number in os.uname().release.split(".")[:2])
    assert verdicts.pop(IOCTL) == ("open" if tier < "T2" and release >= (6, 10) else "stopped"), told
    assert verdicts == dict.fromkeys(CUTS, "stopped"), told


def test_files_are_written_and_found_by_name_in_every_tier(cell):
    def ask(operation, **body):
        done = cell[0].http(f"/v1/file/{operation}", body)
        assert done.returncode == 0, (operation, done)
        return json.loads(done.stdout)["data"]

    ask("write", file="/home/gem/by/name/file.txt", content="longer")
    ask("write", file="/home/gem/by/name/file.txt", content="short")
    assert ask("read", file="/home/gem/by/name/file.txt")["content"] == "short"
    assert ask("find", path="/home/gem/by", glob="*.txt")["files"] == ["/home/gem/by/name/file.txt"]
    done = cell[0].bash("cd /home/gem/by/name && echo more > file.txt && cat file.txt")
    assert done["stdout"] == "more\n", done


def test_a_session_ends_processes_of_another_only_where_its_report_says_so(cell):
    container, tier, _, _ = cell
    if tier == "T1":
        pytest.skip("T1 has no control socket: sessions have the launcher's uid and could use it")
    control = container.control()
    one, other = control.create(), control.create()
    victim = control.call("session_exec", session=one, argv=["/usr/bin/sleep", "100"], stdin=False)[0]["pid"]
    control.run(other, "/bin/sh", "-c", f"kill -9 {victim}")
    # kill(2) finds a process that has ended until its parent has asked for it.
    look = f"for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 {victim} || {{ echo gone; exit; }}; sleep 0.1; done; echo alive"
    left = control.output(one, "/bin/sh", "-c", look)
    said = " ".join(one["what"] for one in control.call("session_report", session=other)[0]["report"]["residual"])
    control.close()
    assert (left == "gone\n") == ("can end and stop processes of others" in said), (left, said)
