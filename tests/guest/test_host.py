"""What the launcher makes of this kernel on a host with pure cgroup v2 and no container around it."""

import json
import os

import harness

LANDLOCK_ABI = {"6.1": 2, "6.12": 6}


def probe():
    """As a launcher in a cgroup of its own finds it."""
    cgroup = harness.own_cgroup()
    done = harness.cli("probe", "--json", preexec_fn=lambda: (cgroup / "cgroup.procs").write_text("0"))
    cgroup.rmdir()
    return json.loads(done.stdout)


def test_runs_the_kernel_that_was_asked_for(guest):
    assert os.uname().release.startswith(f"{guest}.")


def test_probe_reports_the_full_tier_with_cgroup_and_the_kernels_landlock(guest):
    found = probe()
    assert found["tier"] == "T3", found
    assert found["works"]["cgroup"]["works"], found
    assert found["landlock_abi"] == LANDLOCK_ABI[guest], found


def test_session_runs_and_reports_every_mechanism(control):
    session = control.create()
    assert control.output(session, "echo", "on") == "on\n"
    report = control.call("session_report", session=session)[0]["report"]
    states = {m["name"]: m["state"] for m in report["mechanisms"]}
    assert states.pop("io") == "disabled_by_policy"  # the shipped policies limit no disk
    assert report["tier"] == "T3" and set(states.values()) == {"enforced"}, report["mechanisms"]


def test_the_report_names_what_landlock_lacks_in_this_kernel(control, guest):
    report = control.call("session_report", session=control.create())[0]["report"]
    residual = {r["id"] for r in report["residual"]}
    # Scopes (abstract sockets, signals) came with ABI 6, Linux 6.12.
    assert ("landlock-no-scopes" in residual) == (LANDLOCK_ABI[guest] < 6), residual
    landlock = next(m for m in report["mechanisms"] if m["name"] == "landlock")
    assert landlock == {**landlock, "state": "enforced", "detail": f"ABI {LANDLOCK_ABI[guest]}"}


def test_caisson_run_runs_a_command():
    done = harness.cli("run", "--policies", "/opt/caisson/policies", "--", "sh", "-c", "echo $((6 * 7))")
    assert done.stdout == b"42\n", done
