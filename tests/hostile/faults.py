"""Launchers whose confinement steps can be made to fail or to do nothing (launcher/common/kernel/faults.h): compiled for this alone (CMakeLists.txt)."""

import contextlib
import os
import pathlib
import re
import shutil
import tempfile
import time

import pytest
from harness import BUILD, ROOT, Launcher, descendants

FAULTY_BUILD = pathlib.Path(os.environ.get("CAISSON_FAULTS_BUILD") or BUILD / "faults")
FAULTY, FAULTY_CLI = (FAULTY_BUILD / "launcher" / name for name in ("caisson-launcher", "caisson"))
PAGE = 4096
# Of its sessions (the home's owner). Not the other tests': a T0 launcher of theirs ends a session by ending all of its uid.
UID = 39001
TABLE = []  # of test_mutations.py: mutation, how the launcher noticed, failing cases; printed by conftest.py

# Every step that steps.h knows, in the order in which they are done.
STEPS = re.findall(r'\{Step::\w+, "(\w+)", Mechanism', (ROOT / "launcher" / "common" / "wire" / "steps.h").read_text())
# Which child reports which, where everything is to be had (T3). `caisson run` does all of them in one.
WORKSPACE = ["user_ns", "net_ns", "mount_ns"]
TEMPLATE = ["open_grants", "root_tmpfs", "make_files", "attach_grants", "template_proc", "hide_paths", "pivot_root", "landlock_rules", "done"]
SESSION = ["namespaces", "pid_ns", "proc", "devices", "hostname", "close_fds", "rlimits", "stdio", "uid", "capabilities",
           "no_new_privs", "landlock", "seccomp", "denial_listener", "exec_init"]  # fmt: skip
ALONE = ["private_mounts"]
PACKAGES = ("root_ns",)  # where the policy has system_packages
NAMES = ("protect_names",)  # where it has `protect`


@contextlib.contextmanager
def folder(where):
    """A folder below `where` for launchers of the build with faults; skips without that build."""
    if not FAULTY.exists():
        pytest.skip("no launcher with faults: target faulty-programs of the build")
    made = pathlib.Path(tempfile.mkdtemp(prefix="caisson-mutants-", dir=where))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Fault:
    """The page that the launcher and all its children have mapped."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(PAGE))
        self.fd = os.open(path, os.O_RDWR)

    def set(self, text=""):
        os.pwrite(self.fd, text.encode().ljust(PAGE, b"\0"), 0)

    @property
    def text(self):
        return os.pread(self.fd, PAGE, 0).split(b"\0")[0].decode()

    def close(self):
        os.close(self.fd)


class FaultyLauncher(Launcher):
    program = FAULTY

    def __init__(self, base):
        super().__init__(base)
        os.chown(self.home, UID, UID)
        self.fault = Fault(base / "fault")

    def spawn(self, *options, **arguments):
        arguments.setdefault("wrapper", self.in_own_mounts())
        arguments.setdefault("CAISSON_READY_SESSIONS", "0")
        return super().spawn("--agent", "/usr/bin/true", *options, CAISSON_FAULT=str(self.fault.path), **arguments)

    def stop(self):
        self.fault.set()
        super().stop()
        self.fault.close()

    def belongings(self):
        """What a failure must leave as it was; namespaces by what holds them."""
        proc = pathlib.Path(f"/proc/{self.pid}")
        spaces = set()
        for pid in (self.pid, *descendants(self.pid)):
            try:
                spaces |= {os.readlink(f"/proc/{pid}/ns/{n}") for n in os.listdir(f"/proc/{pid}/ns")}
            except OSError:
                pass
        links = []
        for fd in os.listdir(proc / "fd"):
            try:
                links.append(re.sub(r"\d+", "N", os.readlink(proc / "fd" / fd)))
            except OSError:
                pass
        return {
            "processes": sorted(descendants(self.pid)),
            "descriptors": sorted(links),
            "mounts": self.mounts(),
            "namespaces": sorted(spaces),
            "cgroups": sum(n.startswith("s-") for _, names, _ in os.walk("/sys/fs/cgroup") for n in names),
            "run": sorted(str(p.relative_to(self.run)) for p in self.run.rglob("*")),
        }


def settle(launcher, seconds=60):
    """What it has when that no longer changes: six looks that are alike, for a busy machine may do nothing for some of them."""
    end, before, alike = time.monotonic() + seconds, None, 0
    while alike < 6 and time.monotonic() < end:
        now = launcher.belongings()
        before, alike = now, alike + 1 if now == before else 1
        time.sleep(0.1)
    return before


def same_again(launcher, before):
    def changed():
        now = launcher.belongings()
        return {k: (before[k], now[k]) for k in now if now[k] != before[k]}

    end = time.monotonic() + 60
    while (difference := changed()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not difference, f"before and after: {difference}"


def of_this_build():
    """Processes that run a program of it, whoever's children they are by now."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(str(FAULTY_BUILD)):
                found.append(int(pid))
        except OSError:
            pass
    return found
