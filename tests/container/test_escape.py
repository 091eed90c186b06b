"""The escape program (tests/escape) in sessions of the built image, under the outer flags that people give: whichever tier comes of
them, every attack is stopped or named in what that launcher signs, and what it names is open. The native cells are the escape leg's.

The program's controls, the same attacks unconfined, are run once on this machine."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import ROOT, engine_run, sh

ESCAPE = ROOT / "tests" / "escape"
sys.path[:0] = [str(ROOT / "tests" / "session"), str(ESCAPE)]
import catalogue  # noqa: E402
import harness  # noqa: E402
import verdicts  # noqa: E402

CELL_SECONDS, NOT_HERE = 900, 77
LEAST = ["--cap-drop=ALL", "--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL"]
PROFILE = ["--security-opt", f"seccomp={ROOT}/image/seccomp.json"]
USER = ["--user", "1000:1000", "--cap-drop=ALL", "--security-opt", "no-new-privileges"]
# What people start, weakest walls outside last. podman's own profile permits namespaces; Docker's does not.
FLAGS = {
    "plain": [],
    "user, no capabilities": USER,
    "our profile": [*LEAST, *PROFILE],
    "our profile, remapped, unmasked": [*LEAST, *PROFILE, "REMAP"],
    "SYS_ADMIN": ["--cap-add", "SYS_ADMIN", *PROFILE],
    "Docker's profile": ["DOCKER"],
    "Docker's profile, user, no capabilities": [*USER, "DOCKER"],
}
CELLS = [f"podman: {name}" for name in FLAGS] + [f"dockerd: {name}" for name in list(FLAGS)[:5] if name != "our profile, remapped, unmasked"]
# Which tier these flags give by themselves; others depend on the engine's own defaults. From Linux 7.2 on T2 is T3.
TIERS = {
    "our profile": ("T2", "T3"), "our profile, remapped, unmasked": ("T3",), "Docker's profile": ("T0",),
    "Docker's profile, user, no capabilities": ("T1",),
}  # fmt: skip


class Engine:
    """The commands of one engine; `problem`: why it has no cells here."""

    def __init__(self, command=(), create=(), image="caisson", problem=None):
        self.command, self.create, self.image, self.problem = list(command), list(create), image, problem


def podman(image):
    if not shutil.which("podman"):
        return Engine(problem="podman is not installed (scripts/setup --run)")
    found = engine_run("podman", image, check=False)
    if found.returncode != 0:
        return Engine(problem=found.stderr.strip().splitlines()[-1])
    return Engine(["podman"], found.stdout.split(), image)


class Dockerd:
    """A daemon of our own, with nothing of the machine's: no bridge, no firewall rules, its data in a folder that goes with it. A
    container of it has a network namespace with nothing in it. Its programs may lie in CAISSON_DOCKER_BIN (a PATH)."""

    def __init__(self, folder):
        self.folder, self.process = folder, None
        self.path = ":".join(filter(None, [os.environ.get("CAISSON_DOCKER_BIN"), os.environ["PATH"], "/usr/sbin", "/sbin"]))

    def engine(self, image):
        missing = [name for name in ("dockerd", "containerd", "runc") if not shutil.which(name, path=self.path)]
        if missing:
            return Engine(problem=f"no {' and no '.join(missing)} here to start by hand; CAISSON_DOCKER_BIN says where they are")
        socket = f"unix://{self.folder}/docker.sock"
        argv = [shutil.which("dockerd", path=self.path), "-H", socket, "--data-root", self.folder / "data", "--exec-root", self.folder / "exec",
                "--pidfile", self.folder / "pid", "--bridge=none", "--iptables=false", "--ip6tables=false"]
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "PATH": self.path})
        client = [shutil.which("docker", path=self.path), "-H", socket]

        def up():
            return self.process.poll() is not None or sh(*client, "info", check=False, timeout=60).returncode == 0

        harness.eventually(up, what="dockerd answers")
        if self.process.poll() is not None:
            return Engine(problem="dockerd does not start here: " + (self.folder / "log").read_text().strip().splitlines()[-1])
        load = f"podman save {image} | {client[0]} -H {socket} load"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", load], capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            return Engine(problem=f"the image cannot be loaded into it: {done.stderr.strip()[-300:]}")
        name = done.stdout.strip().splitlines()[-1].split(": ", 1)[1]
        return Engine(client, [*client, "run"], name)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(180)


def first_of_range():
    """Where the uids of podman's --userns=auto begin: a remapped image that it made before is used again."""
    for line in pathlib.Path("/etc/subuid").read_text().splitlines():
        if line.startswith("containers:"):
            return int(line.split(":")[1])
    return 1_000_000_000


def spec(engine, name, docker_default):
    flags, first = [], 0
    for flag in FLAGS[name]:
        if flag == "REMAP":
            first = first_of_range()
            flags += ["--uidmap", f"0:{first}:70000", "--gidmap", f"0:{first}:70000", "--security-opt", "unmask=ALL"]
        elif flag == "DOCKER":
            flags += ["--security-opt", f"seccomp={docker_default}"]
        else:
            flags.append(flag)
    return {"create": engine.create, "engine": engine.command, "image": engine.image, "flags": flags, "first_uid": first,
            "binaries": os.environ.get("CAISSON_TEST_BINARIES")}


def part(argv, out):
    """One process of the matrix: what it found, or why it cannot be had here."""
    with open(out.with_suffix(".log"), "w") as log:
        one = subprocess.Popen([sys.executable, *map(str, argv), str(out)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = one.wait(CELL_SECONDS)
        except subprocess.TimeoutExpired:
            one.terminate()  # it removes its container, or ends its launcher
            status = one.wait(180)
    said = out.with_suffix(".log").read_text()
    last = (said.strip().splitlines() or ["without a word"])[-1]
    if status == NOT_HERE:
        return last
    assert status == 0 and out.exists(), f"status {status}: {last}\n{argv[1]}\n{said[-3000:]}"
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def matrix(image, docker_default, tmp_path_factory):
    """name -> verdicts.Tier, or why that cell cannot be had here."""
    probe = harness.cli("probe", "--json", timeout=180)
    if json.loads(probe.stdout)["tier"] != "T3":
        pytest.skip("the controls need a native launcher of tier T3, which this host does not give")
    out, program = tmp_path_factory.mktemp("cells"), catalogue.program(tmp_path_factory.mktemp("program"))
    daemon = Dockerd(pathlib.Path(tempfile.mkdtemp(prefix="caisson-dockerd-", dir="/var/tmp")))
    found = {}
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            controls = pool.submit(part, [ESCAPE / "run.py", "controls", program], out / "controls.json")
            engines = {"podman": podman(image), "dockerd": daemon.engine(image)}
            for number, cell in enumerate(CELLS):
                engine, name = cell.split(": ")
                found[cell] = engines[engine].problem or pool.submit(
                    part, [ESCAPE / "cell.py", json.dumps(spec(engines[engine], name, docker_default)), program], out / f"{number}.json")
        unconfined, cases = controls.result()["controls"], catalogue.cases(program)
        for cell, one in found.items():
            try:
                one = one if isinstance(one, str) else one.result()
                found[cell] = one if isinstance(one, str) else verdicts.Tier(cell, cases, one, unconfined)
            except AssertionError as e:
                found[cell] = e  # this cell's failure, not that of the others
        keep(found)
        return found
    finally:
        daemon.stop()
        shutil.rmtree(daemon.folder, ignore_errors=True)


def keep(found):
    table = verdicts.cells_table(found)
    verdicts.CELLS.append(table)
    if os.environ.get("CAISSON_UPDATE") == "1":
        path = ROOT / "tests/escape/README.md"
        path.write_text(verdicts.replaced(path.read_text(), verdicts.CELLS_BEGIN, verdicts.CELLS_END, table))


@pytest.fixture(params=CELLS)
def cell(request, matrix):
    one = matrix[request.param]
    if isinstance(one, AssertionError):
        raise one
    if isinstance(one, str):
        pytest.skip(one)
    return one


def test_the_tier_is_what_these_flags_give(cell):
    name = cell.name.split(": ")[1]
    assert cell.tier in TIERS.get(name, ("T3", "T2", "T0", "T1"))


def test_no_attack_in_a_container_is_undecided(cell):
    assert not cell.those("undecided"), cell.say("undecided")


def test_every_attack_in_a_container_is_stopped_or_stated(cell):
    assert not cell.those("open"), cell.say("open")


def test_no_mechanism_is_called_enforced_in_a_container_that_an_attack_passed(cell):
    passed = {**cell.those("open"), **cell.those("residual")}
    assert not {id: walls for id, case in passed.items() if (walls := cell.enforced.intersection(case.mechanisms))}


def test_everything_stated_as_open_in_a_container_is_open(cell):
    assert not set(cell.stated) - set(cell.shown()) - set(verdicts.NOT_SHOWN)
