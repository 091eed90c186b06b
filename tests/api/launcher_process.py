"""A launcher of our own on this host: installed copies of the built programs in a temporary folder, a free port, its own home,
audit log and control socket. Nothing of it is left when close() returns."""
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD_DIR", ROOT / "build" / "release"))
PROGRAMS = [BUILD / "launcher/caisson-launcher", BUILD / "agent/caisson-agent", BUILD / "agent/caisson-courier"]  # and all that is beside the first
# The host's uid of the default workspace's sessions (a home's owner is), and the last that no other workspace gets. Not those of the
# other legs, which run beside this one: the kernel counts processes, pipes and watches by uid.
WORKSPACE_UID, LAST_UID = 20101, 45000
ANY_CERTIFICATE = ssl._create_unverified_context()  # its tests look at it


def free_port() -> int:
    """Not one of those that the kernel gives to clients: there are thousands of them, and one could have it before it is listened on."""
    while True:
        port = 20000 + secrets.randbelow(12000)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port


class Launcher:
    """`key=None`: none is given, the launcher makes one. `policies`: a function that changes the policies in a folder. `before`: a
    command that runs the launcher. `documents`: with markitdown, which is large. Other keywords are environment variables."""

    home_seen = None  # where the launcher sees the home, when not here

    def __init__(self, key="", policies=None, before=(), documents=False, **environment):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="caisson-api-"))
        self.dir.chmod(0o755)  # the agent's uid must reach its own program
        for name in ("bin", "home", "audit", "run"):
            (self.dir / name).mkdir(mode=0o755)
        (self.dir / "audit").chmod(0o700)
        (self.dir / "run").chmod(0o700)
        os.chown(self.dir / "home", WORKSPACE_UID, WORKSPACE_UID)
        (self.dir / "audit/.lock").write_text(json.dumps({"workspace": LAST_UID}))  # launcher/homes/last_uid.h
        for program in {*PROGRAMS, *BUILD.glob("launcher/caisson*")}:
            shutil.copy(program, self.dir / "bin")
        shutil.copytree(BUILD / "launcher/tools", self.dir / "bin/tools", ignore=None if documents else shutil.ignore_patterns("markitdown"))
        shutil.copytree(ROOT / "policies", self.dir / "policies")
        if policies:
            policies(self.dir / "policies")
        self.before = before
        self.key = secrets.token_hex(24) if key == "" else key
        self.port = free_port()
        self.url = f"{'https' if 'CAISSON_TLS_KEY' in environment else 'http'}://127.0.0.1:{self.port}"
        if self.key:
            environment["SANDBOX_API_KEY"] = self.key
        self.log = self.dir / "log"
        self.environment = environment
        self.start()

    def start(self):
        self.started = time.monotonic()
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*self.before, self.dir / "bin/caisson-launcher", "--policies", self.dir / "policies", "--audit", self.dir / "audit", "--run",
                 self.dir / "run", "--home", self.home_seen or self.dir / "home", "--port", str(self.port), "--bind", "127.0.0.1"],
                env={"PATH": os.environ["PATH"], "HOME": "/root", **self.environment}, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, cwd="/")
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise

    def wait_ready(self, seconds=120):
        end = time.monotonic() + seconds
        while True:
            try:
                urllib.request.urlopen(self.url + "/readyz", timeout=5, context=ANY_CERTIFICATE).close()
                return
            except (OSError, urllib.error.URLError) as why:
                assert self.process.poll() is None, f"the launcher ended:\n{self.log.read_text()}"
                assert time.monotonic() < end, f"not ready ({why}):\n{self.log.read_text()}"
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def agent_pid(self) -> int:
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                status = (entry / "status").read_text()
                if f"\nPPid:\t{self.pid}\n" in status and status.startswith("Name:\tcaisson-agent"):
                    return int(entry.name)
            except OSError:  # it ended meanwhile
                continue
        raise AssertionError("the launcher has no agent")

    def owns(self, pid: int) -> bool:
        """Whether a process descends from this launcher."""
        while pid > 1 and pid != self.pid:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            pid = int(status.split("\nPPid:\t")[1].split("\n")[0])
        return pid == self.pid

    def memory_peaks(self) -> dict[str, int]:
        """Peak resident bytes so far of launcher, agent, and the file workers together (0: there is none)."""
        def peak(pid):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            return int(status.split("\nVmHWM:")[1].split()[0]) * 1024

        workers = 0
        for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):  # others end meanwhile
                if comm.read_text() == "caisson-file-wo\n" and self.owns(int(comm.parent.name)):
                    workers += peak(int(comm.parent.name))
        return {"launcher": peak(self.pid), "agent": peak(self.agent_pid), "workers": workers}

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(60)

    def restart(self):
        self.stop()
        self.start()

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
