"""The escape program on a kernel of Debian's own with pure cgroup v2: every attack in a session of the native launcher, and unconfined,
against what that launcher signs. The rule is that of tests/escape: nothing is open that is not named, nothing undecided."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

import pytest

ESCAPE = pathlib.Path(__file__).parents[1] / "escape"
sys.path.insert(0, str(ESCAPE))
import catalogue  # noqa: E402
import verdicts  # noqa: E402

# What an emulated processor cannot show. The calls take more than the two seconds of processor time that sessions of this leg have; the
# race, unconfined, is lost.
NOT_DECIDED = {"KS-20.random", "RS-22.fork-race"}
# That limit counts timer ticks, some of which never come here: it comes late, and the attack may be through before it.
LATE = {"RS-05.cpu", "RS-06.cpu-ignored"}
PART_SECONDS = 1000  # emulated, two machines at once


@pytest.fixture(scope="module")
def seen(guest, tmp_path_factory):
    # Beside loopback the guest has no address, and an attack needs one to speak to.
    for argv in (["link", "add", "escape0", "type", "dummy"], ["address", "add", "192.0.2.1/24", "dev", "escape0"], ["link", "set", "escape0", "up"]):
        subprocess.run(["ip", *argv], check=True)
    # The machine is young: a process of the session would have the number that the launcher has outside, and be taken for it.
    pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text("30000")
    out = tmp_path_factory.mktemp("parts")
    program = catalogue.program(out)

    def part(name):
        file = out / f"{name}.json"
        done = subprocess.run([sys.executable, ESCAPE / "run.py", name, program, file], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PART_SECONDS, check=False)  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return json.loads(file.read_text())

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        confined, controls = pool.map(part, ("T3", "controls"))
    tier = verdicts.Tier(f"kernel {guest}", catalogue.cases(program), confined, controls["controls"])
    print(verdicts.counts_line(tier))
    for id in tier.those("undecided"):
        print(id, tier.verdicts[id])
    return tier


def test_the_tier_is_native(seen):
    assert seen.tier == "T3" and "cgroup" in seen.enforced


def test_nothing_is_open_that_the_statement_does_not_name(seen):
    assert {id: seen.verdicts[id] for id in seen.those("open") if id not in LATE} == {}


def test_nothing_is_undecided(seen):
    assert {id: seen.verdicts[id] for id in seen.those("undecided") if id not in NOT_DECIDED} == {}


def test_enough_attacks_are_proven(seen):
    assert seen.counts()["stopped"] >= 400


def test_what_a_watchdog_would_only_see_afterwards_is_not_open_here(seen):
    assert "watchdog-limits" not in seen.stated
