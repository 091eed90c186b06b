"""A thousand sessions and a hundred workspaces, created, used and destroyed, leave nothing behind."""

import contextlib
import os
import pathlib
import re
import time

import pytest
from harness import Launcher, descendants, eventually

SESSIONS = int(os.environ.get("CAISSON_TEST_SESSIONS", "1000"))
WORKSPACES = int(os.environ.get("CAISSON_TEST_WORKSPACES", "100"))
NAMESPACES = ("mnt", "net", "pid", "user", "ipc", "uts")


def namespaces():
    found = set()
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        for kind in NAMESPACES:
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                pass
    return found


def cgroups():
    return sum(bool(re.fullmatch(r"[sw]-[0-9a-f]{16}", name)) for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)


def counts(launcher):
    proc = pathlib.Path(f"/proc/{launcher.pid}")
    return {
        "processes": len(descendants(launcher.pid)),
        "mounts": len(launcher.mounts()),
        "descriptors": len(os.listdir(proc / "fd")),
        "own namespaces": len(namespaces() & {n for p in descendants(launcher.pid) for n in own(p)}),
        "cgroups": cgroups(),
        "threads": len(os.listdir(proc / "task")),
    }


def own(pid):
    for kind in NAMESPACES:
        try:
            yield os.readlink(f"/proc/{pid}/ns/{kind}")
        except OSError:
            pass


def resident_kib(launcher):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{launcher.pid}/status").read_text())[1])


def use(control, number):
    for i in range(number):
        session = control.create("shell" if i % 2 else "bash")
        control.output(session, "true")
        if i % 10 == 0:
            control.start(session, "sh", "-c", "setsid sleep 1000 & sleep 1000")
        if i % 10 == 5:
            name, (master,) = control.start(session, "cat", pty={"cols": 80, "rows": 24})
            os.close(master)
        control.destroy(session)
        control.events.clear()


def close_all(keep):
    for fd in {int(f) for f in os.listdir("/proc/self/fd")} - keep:
        try:
            os.close(fd)
        except OSError:
            pass


@pytest.fixture(scope="module")
def after_a_thousand(here, tmp_path_factory):
    """(launcher, counts before, KiB before, counts after, KiB after)"""
    launcher = Launcher(tmp_path_factory.mktemp("leaks"))
    launcher.start("--agent", "/usr/bin/true", wrapper=launcher.in_own_mounts())
    control = launcher.control()
    keep = {int(f) for f in os.listdir("/proc/self/fd")}
    use(control, 50)  # what is made once, such as allocator arenas, is not a leak
    close_all(keep)
    settled = eventually(lambda: steady(launcher), what="the counts stay as they are")
    kib = resident_kib(launcher)
    use(control, SESSIONS)
    close_all(keep)
    yield settled, kib, back(launcher, settled), resident_kib(launcher)
    launcher.stop()


def steady(launcher):
    """The counts, once the ready sessions are there again, which a busy machine builds slowly; those of ten looks that are alike."""
    looks = [counts(launcher)]
    while len(looks) < 10 and looks[-1] == looks[0]:
        time.sleep(0.2)
        looks.append(counts(launcher))
    return looks[0] if looks.count(looks[0]) == 10 and looks[0]["processes"] >= 4 else None


def back(launcher, settled):
    """The counts of the look that found them as they were; else the last ones: the tests name what is left."""
    seen = []

    def as_before():
        seen.append(counts(launcher))
        return seen[-1] == settled

    with contextlib.suppress(AssertionError):
        eventually(as_before)
    return seen[-1]


@pytest.mark.parametrize("what", ["processes", "mounts", "descriptors", "own namespaces", "cgroups", "threads"])
def test_count_is_back_to_its_baseline(after_a_thousand, what):
    before, _, after, _ = after_a_thousand
    assert after[what] == before[what]


def test_the_launchers_memory_stays_within_a_mebibyte(after_a_thousand):
    _, before, _, after = after_a_thousand
    assert after - before < 1024, f"{before} KiB before, {after} KiB after {SESSIONS} sessions"


@pytest.fixture(scope="module")
def after_workspaces(here, tmp_path_factory):
    """(counts before, counts after) of workspaces made, used and destroyed."""
    launcher = Launcher(tmp_path_factory.mktemp("workspaces"))
    launcher.start("--agent", "/usr/bin/true", wrapper=launcher.in_own_mounts())
    control = launcher.control()
    if control.hello["tier"] != "T3":
        launcher.stop()
        pytest.skip("workspaces are refused here")
    keep = {int(f) for f in os.listdir("/proc/self/fd")}
    use_workspaces(control, 5)
    close_all(keep)
    settled = eventually(lambda: steady(launcher), what="the counts stay as they are")
    use_workspaces(control, WORKSPACES)
    close_all(keep)
    yield settled, back(launcher, settled)
    launcher.stop()


def use_workspaces(control, number):
    for i in range(number):
        control.call("workspace_create", name=f"w{i}", disk_bytes=1 << 20)
        session = control.create("shell" if i % 2 else "bash", workspace=f"w{i}")
        control.output(session, "sh", "-c", "echo x > /home/gem/x")
        if i % 4 == 0:
            control.start(session, "sh", "-c", "setsid sleep 1000 & sleep 1000")
        if i % 4 == 1:
            control.output(control.create("bash", workspace=f"w{i}", isolation="private"), "true")
        control.call("workspace_destroy", workspace=f"w{i}")
        control.events.clear()


@pytest.mark.parametrize("what", ["processes", "mounts", "descriptors", "own namespaces", "cgroups", "threads"])
def test_workspaces_leave_nothing(after_workspaces, what):
    before, after = after_workspaces
    assert after[what] == before[what]
