"""One launcher for the tests that only look, a fresh one for those that break it."""

import os
import sys
import pathlib
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402
from fixtures import control, session  # noqa: E402, F401

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "escape"))
import places  # noqa: E402
from over_http import OverHttp  # noqa: E402
from run import PLACE  # noqa: E402
from sight import CarelessLauncher  # noqa: E402


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


@pytest.fixture
def weakened(fresh):
    """weakened(tier, *without): a launcher in that tier (places.py) whose sessions do without these mechanisms; its control."""

    def start(tier, *without, **environment):
        required = [m for m in ("capabilities", "no_new_privs", "landlock", "seccomp") if m not in without]
        harness.edit(fresh.policies / "base.json", require=required)
        why = [{"field": "/disable", "why": "a test of tiers without it"}] if without else []
        for domain in ("bash", "shell", "run"):
            harness.edit(fresh.policies / f"{domain}.json", disable=list(without), weaken=why)
        fresh.start(wrapper=places.wrapper(tier, fresh.home), **environment)
        return fresh.control()

    return start


@pytest.fixture
def one_user(here):
    """A launcher of tier T1, where all have one user id, and its sessions by the API: it has no control socket. Not below
    pytest's own folder, which is root's alone."""
    if not harness.AGENT.exists():
        pytest.skip("the agent is not built: scripts/test session builds it")
    with tempfile.TemporaryDirectory(prefix="caisson-one-user-", dir=PLACE) as name:
        base = pathlib.Path(name)
        base.chmod(0o755)
        with CarelessLauncher(base) as one:
            for path in (base, *base.rglob("*")):
                os.chown(path, places.UID, places.UID)
            one.start(wrapper=places.wrapper("T1", one.home))
            yield one, OverHttp(one)
