"""Runs inside a virtual machine only (scripts/test guest): the launcher on a host with pure cgroup v2."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "session"))
import harness  # noqa: E402
from fixtures import control, session  # noqa: E402, F401

CMDLINE = pathlib.Path("/proc/cmdline").read_text().split()


@pytest.fixture(scope="session", autouse=True)
def guest():
    """The kernel series that was asked for."""
    found = [word.removeprefix("caisson.guest=") for word in CMDLINE if word.startswith("caisson.guest=")]
    if not found:
        pytest.skip("for the guest only: scripts/test guest boots it")
    return found[0]


@pytest.fixture(scope="session")
def launcher(guest, tmp_path_factory):
    """Shared; its policies, agent and files stay as they are."""
    with harness.Launcher(tmp_path_factory.mktemp("shared")).start() as one:
        yield one


@pytest.fixture
def fresh(guest, tmp_path):
    """A launcher that is not started yet."""
    with harness.Launcher(tmp_path) as one:
        yield one
