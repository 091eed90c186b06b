"""One cell of the container matrix, as a process of its own: `cell.py SPEC PROGRAM OUT`. The image's launcher in a container with the
outer flags of SPEC; the attacks in its sessions, and what it signs. Sessions are had by the API alone.

What stands around the sessions is made in the container: servers, IPC objects and host name in its namespaces, files on a mount and in
its root. Whoever watches keeps the machine's mounts and processes, and so sees what an attack does from outside the container, too."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "session"))
import harness  # noqa: E402
import policies  # noqa: E402
import sight  # noqa: E402
from decoys import Decoys, host_address  # noqa: E402
from over_http import OverHttp  # noqa: E402
from run import PLACE  # noqa: E402

NOT_HERE = 77
GEM = 1000  # of the image: owns the home, and so gives the sessions their uid
NAMESPACES = (("ipc", 0x08000000), ("uts", 0x04000000), ("net", 0x40000000))


class ContainerLauncher:
    """The first process of a container. spec: `create` (the engine's command up to the flags), `flags`, `image`, `engine` (for other
    commands), `first_uid` (of the container's root on this machine), `binaries` (a build whose static programs replace the image's)."""

    port = 8080
    policies, run = pathlib.Path("/etc/caisson/policies"), pathlib.Path("/run/caisson")
    socket = run / "control.sock"

    def __init__(self, spec, base):
        self.spec, self.base, self.pid = spec, base, None
        self.name = f"caisson-test-cell-{os.getpid()}"

    def engine(self, *argv, check=True):
        return subprocess.run([*self.spec["engine"], *argv], capture_output=True, text=True, timeout=240, check=check).stdout.strip()

    def start(self):
        """Returns its root as it is seen from here; from now on this process is in its network, IPC and host name."""
        mounts = ["-v", f"{self.base}:{self.base}", "-v", f"{self.base}/policies:{self.policies}:ro"]
        if self.spec.get("binaries"):
            for name, place in (("caisson-launcher", "lib/caisson"), ("caisson-init", "lib/caisson"), ("caisson", "bin")):
                mounts += ["-v", f"{self.spec['binaries']}/launcher/{name}:/usr/{place}/{name}:ro"]
        argv = [*self.spec["create"], "-d", "--name", self.name, "-e", f"SANDBOX_API_KEY={harness.API_KEY}", *mounts]
        done = subprocess.run([*argv, *self.spec["flags"], self.spec["image"]], capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 0:
            print("the engine refuses these flags: " + (done.stderr.strip().splitlines() or ["without a word"])[-1])
            sys.exit(NOT_HERE)
        self.pid = int(self.engine("inspect", "-f", "{{.State.Pid}}", self.name))
        self.root = pathlib.Path(f"/proc/{self.pid}/root")
        libc = ctypes.CDLL(None, use_errno=True)
        for name, kind in NAMESPACES:
            with open(f"/proc/{self.pid}/ns/{name}", "rb") as namespace:
                if libc.setns(namespace.fileno(), kind) != 0:
                    raise OSError(ctypes.get_errno(), f"setns {name}")
        if not host_address():  # without a network: an address of its own, so that the attacks that need one mean something
            subprocess.run(["ip", "addr", "add", "192.0.2.2/24", "dev", "lo"], check=True, timeout=60)
        harness.eventually(lambda: not self.alive() or self.answers(), 60, "the container answers")
        assert self.alive(), self.engine("logs", self.name)
        return self.root

    def alive(self):
        return os.path.exists(f"/proc/{self.pid}/root/usr")

    def answers(self):
        with contextlib.suppress(OSError, harness.Refused):
            OverHttp(self)
            return True
        return False

    @property
    def home(self):
        return self.root / "home/gem"

    @property
    def audit(self):
        """As the sessions would name it. The launcher of a user without rights keeps its logs in memory."""
        own = "/dev/shm/caisson-1000/audit"
        return pathlib.Path(own if os.path.isdir(f"{self.root}{own}") else "/var/log/caisson/audit")

    def records(self):
        return [json.loads(line) for line in pathlib.Path(f"{self.root}{self.audit}/launcher.ndjson").read_text().splitlines()]

    def stop(self):
        self.engine("rm", "-f", self.name, check=False)


class Cell(sight.Sight):
    def __init__(self, spec, base, program):
        self.spec = spec
        super().__init__("", base, program)

    def surround(self):
        first = self.spec["first_uid"]
        harness.copy_policies(self.base / "policies")
        policies.write_policies(self.base / "policies", self.base)
        for path in (self.base / "policies", *(self.base / "policies").rglob("*")):
            os.chown(path, first, first)
        self.launcher = ContainerLauncher(self.spec, self.base)
        self.decoys = Decoys(self.base, self.program, first + GEM, self.launcher.start, first)

    def begin(self, _):
        self.pid, home = self.launcher.pid, self.launcher.home
        shutil.copy(self.program, home / "escape")
        self.decoys.programs(home, self.program)
        self.control = OverHttp(self.launcher)
        self.tier = self.control.hello["tier"]
        self.settle()
        if self.tier == "T3":
            self.places["launcher"] = self.pid

    def number(self, pid):
        """In a PID namespace of its own a session has processes with the small numbers of the container's: those of this machine
        are what it must not reach."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        pids = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
        return int(pids[0] if self.tier == "T3" else pids[1])


def main(spec, program, out):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what follows is cleared away
    base = pathlib.Path(tempfile.mkdtemp(prefix="caisson-cell-", dir=PLACE))
    try:
        one = Cell(json.loads(spec), base, pathlib.Path(program))
        try:
            pathlib.Path(out).write_text(json.dumps({"confined": one.confined(), "statement": one.statement}))
        finally:
            one.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
