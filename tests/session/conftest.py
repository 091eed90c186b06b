"""One launcher for the tests that only look, a fresh one for those that break it."""

import os
import sys
import pathlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402
from fixtures import control, session  # noqa: E402, F401


@pytest.fixture(scope="session", autouse=True)
def here():
    if os.geteuid() != 0:
        pytest.skip("session tests build real sessions: they need root")
    assert harness.LAUNCHER.exists(), f"{harness.LAUNCHER} is not built: scripts/test session builds it"


@pytest.fixture(scope="session")
def launcher(here, tmp_path_factory):
    """Shared; its policies, agent and files stay as they are."""
    with harness.Launcher(tmp_path_factory.mktemp("shared")).start() as one:
        tier = one.control().hello["tier"]
        if tier != "T3":
            pytest.skip(f"this host gives tier {tier}: the container leg tests the lower tiers")
        yield one


@pytest.fixture
def fresh(here, tmp_path):
    """A launcher that is not started yet."""
    with harness.Launcher(tmp_path) as one:
        yield one
