"""Starts Caisson in containers through scripts/run, as a user would, one container per tier for all tests of that tier.

Every container gets its own name and port; they are removed at the end, whatever happened.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import httpx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ROOT / "scripts" / "run"


def sh(*argv, check=True, env=None, timeout=1500):
    """Runs a command; on failure its whole output is in the assertion."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})}, check=False)
    if check:
        assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Served:
    """A running container and a client that carries its key."""

    def __init__(self, engine: str, name: str, started: dict, log: str):
        self.engine, self.name, self.started, self.log = engine, name, started, log
        headers = {"X-AIO-API-Key": started["api_key"]} if started["api_key"] else {}
        self.http = httpx.Client(base_url=started["url"], headers=headers, timeout=120)

    @property
    def port(self) -> str:
        return self.started["url"].rsplit(":", 1)[1]

    def bash(self, command: str) -> dict:
        answer = self.http.post("/v1/bash/exec", json={"command": command})
        assert answer.status_code == 200 and answer.json()["success"], answer.text
        return answer.json()["data"]

    def exec(self, *argv, check=True):
        """As container root, beside the launcher: what an operator sees."""
        return sh(self.engine, "exec", self.name, *argv, check=check)

    def logs(self) -> str:
        done = sh(self.engine, "logs", self.name)
        return done.stdout + done.stderr

    def ready(self) -> bool:
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def running(self) -> bool:
        return sh(self.engine, "inspect", "-f", "{{.State.Running}}", self.name).stdout.strip() == "true"

    def eventually(self, fact, seconds=120):
        end = time.monotonic() + seconds
        while not fact():
            assert time.monotonic() < end, f"not within {seconds} s; log:\n{self.logs()[-3000:]}"
            time.sleep(0.1)


def engine_run(engine: str, image: str, check=True):
    """On stdout the words of `ENGINE run`, with what containers of this machine need to start, as scripts/run finds it."""
    library = ROOT / "scripts/lib"
    return sh("bash", "-c", f'. {library}/common.sh; . {library}/engine.sh; pick_engine {engine}; find_run_flags {image}; '
              'split_runtime "${RUN_FLAGS[*]-}"; echo ${ENGINE[@]} $RUNTIME_FLAG run --pull=never $REST_FLAGS', check=check, timeout=300)


def remove(engine: str, name: str) -> None:
    """podman may still be cleaning up a container that has just ended, and refuses to remove it (EBUSY): tries again."""
    end = time.monotonic() + 60
    while (done := sh(engine, "rm", "-f", "-t", "0", name, check=False)).returncode != 0 and "no such container" not in done.stderr.lower():
        assert time.monotonic() < end, done.stderr
        time.sleep(0.2)


@contextlib.contextmanager
def with_flags(engine: str, image: str, name: str, flags: list, key: str = "a-key-of-the-container-tests"):
    """A container that is started by the engine itself, with these flags: a Served, which may not serve yet, or have ended."""
    url = f"127.0.0.1:{free_port()}"
    remove(engine, name)
    try:
        run = engine_run(engine, image).stdout.split()
        sh(*run, "-d", "--name", name, "-p", f"{url}:8080", "-e", f"SANDBOX_API_KEY={key}", *flags, image)
        yield Served(engine, name, {"url": f"http://{url}", "api_key": key}, "")
    finally:
        remove(engine, name)


@pytest.fixture(scope="session")
def engine() -> str:
    for name in ("podman", "docker"):
        if shutil.which(name) and sh(name, "info", check=False).returncode == 0:
            return name
    pytest.skip("neither podman nor a running docker is here (scripts/setup --run installs podman)")


@pytest.fixture(scope="session")
def image(engine) -> str:
    """CAISSON_TEST_BINARIES names a build whose static programs are laid over those of the image that is here (test_escape.py):
    then it is not built anew."""
    if "CAISSON_TEST_BINARIES" not in os.environ:
        sh(RUN, "--engine", engine, "--build-only")
    return os.environ.get("CAISSON_IMAGE", "caisson")  # as scripts/run names it


def pytest_terminal_summary(terminalreporter):
    verdicts = sys.modules.get("verdicts")
    for table in verdicts.CELLS if verdicts else ():
        terminalreporter.write_line("\n" + table)
    sdk = sys.modules.get("test_sdk_image")
    if sdk and sdk.TABLE:
        terminalreporter.section("methods of the SDK against the image, what they called, and answers that were valid")
        for line in sdk.TABLE:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def start(engine, image):
    """start(*options, **environment): a Served; removed at the end of the session."""
    names = []

    def run(*options, **environment) -> Served:
        name = f"caisson-test-{os.getpid()}-{len(names)}"
        names.append(name)
        done = sh(RUN, "--engine", engine, "--json", "--name", name, "--port", free_port(), "--wait", 120, *options, env=environment)
        return Served(engine, name, json.loads(done.stdout), done.stderr)

    yield run
    for name in names:
        remove(engine, name)


@pytest.fixture(scope="session")
def docker_default(tmp_path_factory) -> pathlib.Path:
    """Moby's default profile, which Docker applies when it is told nothing: ours without our rule, with theirs for clone3.
    podman's own default permits namespaces, so that without this the floor tiers could not be seen there."""
    profile = json.loads((ROOT / "image" / "seccomp.json").read_text())
    assert "caisson" in profile["syscalls"].pop()["comment"]
    profile["syscalls"].append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38,
                                "excludes": {"caps": ["CAP_SYS_ADMIN"]}})
    path = tmp_path_factory.mktemp("seccomp") / "default.json"
    path.write_text(json.dumps(profile))
    return path


@pytest.fixture(scope="session", params=["T3", "T2", "T1", "T0"])
def tier(request, start, docker_default) -> Served:
    floor = ["--", "--security-opt", f"seccomp={docker_default}"] if request.param in ("T0", "T1") else []
    return start("--tier", request.param, *floor)


@pytest.fixture(scope="session")
def served(start) -> Served:
    """As `scripts/run` without any option starts it: the highest tier that works here."""
    return start()
