"""Launchers whose agent is a stand-in that the tests speak for."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "session")]
import faults  # noqa: E402
import harness  # noqa: E402
import seat  # noqa: E402


def pytest_terminal_summary(terminalreporter):
    """What noticed each wall that was left out."""
    if faults.TABLE:
        terminalreporter.section("walls left out, and who noticed")
    for name, launcher, cases in faults.TABLE:
        more = f" … {len(cases)} in all" if len(cases) > 12 else ""
        terminalreporter.write_line(f"{name:22} launcher: {launcher or 'does not notice'}")
        terminalreporter.write_line(f"{'':22} cases:    {'; '.join(cases[:12]) or '-'}{more}")


@pytest.fixture(scope="session", autouse=True)
def here():
    if os.geteuid() != 0:
        pytest.skip("these tests build real sessions: they need root")
    assert harness.LAUNCHER.exists(), f"{harness.LAUNCHER} is not built: scripts/test hostile builds it"


@pytest.fixture(scope="session")
def compiled(here, tmp_path_factory):
    """Compiles a C program of this folder: its path."""
    folder = tmp_path_factory.mktemp("programs")

    def build(name):
        program = folder / name
        if not program.exists():
            subprocess.run([harness.c_compiler(), "-O1", "-o", program, HERE / f"{name}.c"], check=True, timeout=60)
            program.chmod(0o755)
        return program

    return build


@pytest.fixture(scope="session")
def tier(here, tmp_path_factory):
    one = harness.Launcher(tmp_path_factory.mktemp("tier")).start("--agent", "/usr/bin/true")
    found = one.control().hello["tier"]
    one.stop()
    if found != "T3":
        pytest.skip(f"this host gives tier {found}: these tests are written for T3")


@pytest.fixture
def fresh(tier, tmp_path):
    """A launcher that is not started yet."""
    with harness.Launcher(tmp_path) as one:
        yield one


@pytest.fixture
def hostile(fresh, compiled):
    """A launcher without ready sessions, and its hostile agent."""
    program = compiled("seat")
    for other in ("shell", "run"):  # each domain is prepared and probed at the start, and this one is started for every message
        (fresh.policies / f"{other}.json").unlink()
    fresh.start("--agent", program, wrapper=fresh.in_own_mounts(), CAISSON_READY_SESSIONS="0")
    one = seat.Seat(fresh, program)
    yield one
    one.close()
