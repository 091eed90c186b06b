"""scripts/test on a machine where nothing is installed: which packages it would install for the legs that are asked for."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def packages(*legs):
    done = subprocess.run([ROOT / "scripts/test", "--packages", *legs], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("leg, needed", [
    ("container", {"podman", "runc", "netavark", "mmdebstrap"}), ("guest", {"qemu-system-x86", "e2fsprogs", "mmdebstrap"}),
    ("api", {"chromium", "nodejs"}), ("unit", {"libgtest-dev", "cmake"}),
])
def test_a_leg_gets_what_it_needs(leg, needed):
    assert needed <= packages(leg)


@pytest.mark.parametrize("leg", ["api", "container"])
def test_legs_with_a_client_in_typescript_get_npm_where_there_is_none(leg):
    script = f'. {ROOT}/scripts/lib/common.sh; for part in packages legs; do . {ROOT}/scripts/lib/$part.sh; done; have() {{ false; }}; ' \
             f'for one in $(sets_of {leg}); do packages_for "$one"; done'
    assert "npm" in subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_a_leg_gets_nothing_that_only_others_need():
    assert not {"podman", "qemu-system-x86", "npm"} & packages("unit", "session", "hostile", "escape")


def test_all_legs_get_everything():
    assert packages() == packages("all") == packages("unit", "session", "hostile", "escape", "api", "container", "guest")
