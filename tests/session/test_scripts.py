"""scripts/test: which packages it would install for the legs that are asked for, and what it says of failures. scripts/run: settings."""

import pathlib
import re
import subprocess
import sys

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


def results_of(tmp_path, what, tests):
    """What results.py says at the end of a run of these tests."""
    (tmp_path / "test_it.py").write_text(tests)
    results = tmp_path / "results/guest-6.1/results.xml"
    subprocess.run([sys.executable, "-m", "pytest", "-q", "--junitxml", results, tmp_path], capture_output=True, check=False, timeout=60)
    return subprocess.run([sys.executable, ROOT / "scripts/lib/results.py", what, tmp_path / "results"],
                          capture_output=True, text=True, check=True, timeout=60).stderr


def test_every_failure_is_named_with_its_reason_at_the_end(tmp_path):
    said = results_of(tmp_path, "failed", "def test_good(): pass\ndef test_bad(): assert {'KS-20': 'too slow'} == {}\n")
    first, *why = said.splitlines()
    assert first.startswith("failed: ") and first.endswith("test_it.test_bad")
    assert "{'KS-20': 'too slow'}" in why[0]
    assert "test_good" not in said


def test_the_slowest_tests_come_first_in_their_list(tmp_path):
    said = results_of(tmp_path, "slowest", "import time\ndef test_one(): pass\ndef test_two(): time.sleep(0.3)\n")
    first, second = said.splitlines()
    assert first.endswith("test_it.test_two") and float(first.split()[0]) >= 0.3
    assert second.endswith("test_it.test_one")


def test_every_setting_of_the_agent_passes_into_a_container():
    script = f'set -eu; . {ROOT}/scripts/lib/serve.sh; echo "${{PASSED[@]}}"'
    passed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    settings = re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "agent/README.md").read_text(), re.MULTILINE)
    of_the_launcher = {"CAISSON_BIND", "CAISSON_PORT", "CAISSON_SHUTDOWN_SECONDS", "USER"}  # USER is the caller's own name there
    assert len(settings) > 20 and set(settings) - of_the_launcher <= set(passed)
    assert not of_the_launcher & set(passed)
