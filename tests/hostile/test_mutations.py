"""Each wall left out in turn (launcher/common/kernel/faults.h): somebody must notice, and who does is said in a table at the end.

First the launcher itself, which must refuse: by a step that cannot be done, by verification, by the canary. Then, with a launcher
that goes on although it has noticed, a program inside and a look from outside."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import fingerprint
import pytest
from faults import STEPS, TABLE, UID, FaultyLauncher, folder, of_this_build
from harness import TESTS, Refused, edit, eventually

MUTATIONS = [
    "user_ns", "net_ns", "mount_ns", "open_grants.read_only", "open_grants.nosuid", "open_grants.noexec", "make_files", "attach_grants",
    "template_proc", "hide_paths", "pivot_root", "pivot_root.read_only", "landlock_rules", "namespaces", "namespaces.mnt", "namespaces.ipc",
    "namespaces.uts", "namespaces.cgroup", "pid_ns", "proc", "devices", "devices.max", "private_mounts", "hostname", "stdio", "close_fds",
    "rlimits", "uid", "capabilities", "no_new_privs", "landlock", "seccomp", "denial_listener", "protect_names",
]  # fmt: skip
# What is built or started there is itself what would be missing: test_faults.py has them fail.
NOTHING_TO_LEAVE_OUT = ["root_tmpfs", "root_ns", "exec_init", "done"]
CHANGES = object()
# What no program inside is needed for: the launcher reads it back, or its canary tries.
BY_THE_LAUNCHER = [
    "open_grants.read_only", "open_grants.nosuid", "open_grants.noexec", "attach_grants", "hide_paths", "pivot_root.read_only", "proc",
    "stdio", "close_fds", "rlimits", "devices", "devices.max", "private_mounts", "protect_names",
]  # fmt: skip
# Nor can any see it: without these the kernel itself refuses a later step, and there is no session to look at, however blind the launcher.
NO_SESSION_WITHOUT = [
    "user_ns", "attach_grants", "template_proc", "pivot_root", "namespaces", "namespaces.uts", "pid_ns", "uid", "no_new_privs",
]  # fmt: skip
# Not with what these mutations take away: the escape program would be unbounded, or speak to the network.
NO_ESCAPE = ("rlimits", "net_ns")


def test_every_step_is_left_out_here():
    assert sorted({m.split(".")[0] for m in MUTATIONS} | set(NOTHING_TO_LEAVE_OUT)) == sorted(STEPS)


class Escape:
    """The escape program (tests/escape), where it is: the attacks that were not stopped."""

    FOLDER = pathlib.Path(os.environ.get("CAISSON_ESCAPE") or TESTS / "escape")

    def __init__(self, base):
        sys.path.insert(0, str(self.FOLDER))
        import decoys

        self.program = base / "escape"
        command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-static", "-o", self.program, *sorted(self.FOLDER.glob("*.c"))]
        subprocess.run(command, check=True, timeout=120)
        self.decoys = decoys.Decoys(base, self.program, UID)
        listed = subprocess.run([self.program, "--list"], capture_output=True, check=True, timeout=60).stdout.splitlines()
        # Not those that exhaust something (seconds each), nor those that would end their own session.
        self.chosen = [r["id"] for r in map(json.loads, listed) if r["area"] != "resources" and not {"alone", "spare"} & set(r["flags"])]

    def run(self, control, session):
        arguments = {**self.decoys.places("/home/gem", self.launcher, self.launcher.pid), "victim": self.launcher.pid}
        words = [f"{k}={v}" for k, v in arguments.items() if v not in ("", None)]
        try:
            _, out, _ = control.run(session, "/home/gem/escape", "--only", ",".join(self.chosen), *words, cwd="/")
        except Refused as e:
            return {"program": e.error["what"]}
        found = {}
        for line in out.splitlines():
            row = json.loads(line)
            found[row["id"]] = "open" if row["verdict"] == "open" else "not open"
        return found


@pytest.fixture(scope="module")
def base(tier):
    with folder("/var/tmp") as made:
        yield made


@pytest.fixture(scope="module")
def escape(base):
    one = None
    if list(Escape.FOLDER.glob("*.c")) and shutil.which("cc"):
        (base / "escape-program").mkdir(mode=0o755)
        one = Escape(base / "escape-program")
    yield one
    if one:
        one.decoys.close()


def mutant(base, fault, escape):
    """A launcher with that fault from its very start."""
    one = FaultyLauncher(pathlib.Path(tempfile.mkdtemp(dir=base)))
    one.base.chmod(0o755)
    for name in ("ro", "rw"):
        (one.base / name).mkdir()
        (one.base / name / "file").write_text("x")
        (one.base / name / "protected").write_text("x")
        for path in (one.base / name, one.base / name / "file", one.base / name / "protected"):
            os.chown(path, UID, UID)
    policy = json.loads((one.policies / "base.json").read_text())
    grants = [{"path": "/srv/ro", "source": str(one.base / "ro"), "access": "read"}]
    grants += [{"path": "/srv/rw", "source": str(one.base / "rw"), "access": "read-write"}]
    # In mounts that are not the session's caisson-protect finds no place, and there would be no session to look at.
    protect = [] if fault.endswith(":mount_ns") else ["protected"]
    edit(one.policies / "base.json", grants=policy["grants"] + grants, hide=[*policy["hide"], "/usr/share/doc"], protect=protect)
    if escape:
        escape.launcher = one
        shutil.copy(escape.program, one.home / "escape")
    one.fault.set(fault)
    # Of what a careless parent leaves open it inherits a descriptor (harness.Launcher).
    one.spawn()
    eventually(lambda: one.process.poll() is not None or one.answers(), what="the launcher answers or ends")
    return one


def refusal(one):
    """Why the launcher does not give a session, or None."""
    if one.process.poll() is not None:
        return "does not start: " + (one.log.read_text().strip().splitlines() or ["without a word"])[-1].removeprefix("caisson-launcher: ")
    control = one.control()
    if "bash" in control.hello["refused_domains"]:
        return "domain refused: " + control.hello["refused_domains"]["bash"]
    try:
        for narrow in (None, {"home": "private", "tmp": "private"}):
            control.destroy(control.create(narrow=narrow))
    except Refused as e:
        return "session refused: " + e.error["what"]
    return None


@pytest.fixture(scope="module")
def sound(base, escape):
    """The facts of a session whose walls all stand, seen twice: what changes by itself says nothing."""
    one = mutant(base, "", escape)
    try:
        assert refusal(one) is None
        first, second = fingerprint.of(one, escape), fingerprint.of(one, escape)
        return {name: value if second.get(name) == value else CHANGES for name, value in first.items()}
    finally:
        one.stop()


def test_no_fault_is_nothing_to_notice(sound):
    wrong = [n for n in ("write the root", "write a read-only grant", "read a policy", "a new user namespace") if sound[n] == "ok"]
    assert not wrong and sound["namespaces shared with the launcher"] == [] and sound["capabilities"] == ["0" * 16] * 5


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_wall_that_is_left_out_is_noticed(base, escape, sound, mutation):
    escape = None if mutation in NO_ESCAPE else escape
    running, cases, blind = set(of_this_build()), [], None
    one = mutant(base, f"skip:{mutation}", escape)
    try:
        noticed = refusal(one)
    finally:
        one.stop()
    one = mutant(base, f"blind,skip:{mutation}", escape)
    try:
        if (blind := refusal(one)) is None:
            facts = fingerprint.of(one, escape)
            # A fact that could not be had any more is no case: what says so is ("the probe itself").
            cases = [name for name, value in facts.items() if sound.get(name) is not CHANGES and sound.get(name) != value]
    finally:
        one.stop()
    TABLE.append((mutation, noticed, cases))
    eventually(lambda: set(of_this_build()) <= running, what="nothing runs any more")
    assert (blind is not None) if mutation in NO_SESSION_WITHOUT else cases, f"no case fails; a launcher that goes on: {blind}"
    assert noticed or cases, "nobody notices"
    assert noticed or mutation not in BY_THE_LAUNCHER, "the launcher does not notice"
