"""Runs the parts of the leg side by side, two at a time, once for all tests."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE)]
import catalogue  # noqa: E402
import harness  # noqa: E402
import places  # noqa: E402
import policies  # noqa: E402
import verdicts  # noqa: E402

TIERS = ("T3", "T2", "T0", "T1")
PLACES = (*TIERS, "no mounts", *(places.BETWEEN + tier for tier in ("T3", "T2", "T0")))
PART_SECONDS = 900  # some ninety, on a machine that does nothing else


def part(name, program, out):
    with open(out.with_suffix(".log"), "w") as log:
        argv = [sys.executable, str(HERE / "run.py"), name, str(program), str(out)]
        one = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            status = one.wait(PART_SECONDS)
        except subprocess.TimeoutExpired:
            one.terminate()  # it ends its launcher and what it started
            status = one.wait(60)
    assert status == 0 and out.exists(), f"{name}: status {status}\n{out.with_suffix('.log').read_text()[-3000:]}"
    return json.loads(out.read_text())


@pytest.fixture(scope="session")
def native():
    if os.geteuid() != 0:
        pytest.skip("the escape tests build real sessions: they need root")
    assert harness.LAUNCHER.exists(), f"{harness.LAUNCHER} is not built: scripts/test escape builds it"
    done = harness.cli("probe", "--json", timeout=60)
    tier = json.loads(done.stdout)["tier"]
    if tier != "T3":
        pytest.skip(f"this host gives tier {tier}: here no tier but its own can be made")


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return catalogue.program(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="session")
def cases(program):
    return catalogue.cases(program)


@pytest.fixture(scope="session")
def parts(native, program, tmp_path_factory):
    """name -> what the part found."""
    out = tmp_path_factory.mktemp("parts")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(part, name, program, out / f"{name}.json") for name in ("controls", *PLACES, *policies.KINDS)}
    return {name: one.result() for name, one in running.items()}


@pytest.fixture(scope="session")
def packages(parts, cases):
    return verdicts.Tier("T3 with system_packages", cases, parts["packages"], parts["controls"]["controls"])


@pytest.fixture(scope="session", params=("nested-sandbox", "nested"))
def nested(request, parts, cases):
    return request.param, verdicts.Tier(f"T3, {request.param}", cases, parts[request.param], parts["controls"]["controls"])


@pytest.fixture(scope="session")
def judged(parts, cases):
    """name of a place -> verdicts.Tier."""
    between = [case for case in cases if case.id not in verdicts.NOT_BETWEEN]
    chosen = {name: between if name.startswith(places.BETWEEN) else cases for name in PLACES}
    found = {name: verdicts.Tier(name, chosen[name], parts[name], parts["controls"]["controls"]) for name in PLACES}
    assert [one.tier for one in found.values()] == [places.tier(name) for name in PLACES]
    return found


@pytest.fixture(scope="session")
def tiers(judged):
    """name -> verdicts.Tier."""
    found = {name: judged[name] for name in TIERS}
    if kept := os.environ.get("CAISSON_ESCAPE_OUT"):
        pathlib.Path(kept, "escape.json").write_text(verdicts.as_json(list(found.values())))
        pathlib.Path(kept, "escape.txt").write_text(verdicts.readable(list(found.values())))
    return found


@pytest.fixture(params=PLACES)
def tier(request, judged):
    return judged[request.param]
