"""Every step by which a session is built fails once: whoever asked is told which, nobody else notices, and nothing stays behind."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from faults import ALONE, FAULTY, FAULTY_CLI, NAMES, PACKAGES, SESSION, STEPS, TEMPLATE, WORKSPACE, Fault, FaultyLauncher, of_this_build, same_again, settle
from harness import LAUNCHER, Refused, copy_policies, edit, eventually
from seat import serves

HOOK = b"CAISSON_FAULT"


def test_the_program_of_everyday_has_no_such_hook():
    assert HOOK in FAULTY.read_bytes(), "the control: the test's own build has it"
    assert HOOK not in LAUNCHER.read_bytes() and HOOK not in LAUNCHER.with_name("caisson").read_bytes()


def test_every_step_has_its_case_here():
    assert sorted(STEPS) == sorted([*WORKSPACE, *TEMPLATE, *SESSION, *ALONE, *PACKAGES, *NAMES])


@pytest.fixture(scope="module")
def faulty(tier, tmp_path_factory):
    if not FAULTY.exists():
        pytest.skip("no launcher with faults: target faulty-programs of the build")
    one = FaultyLauncher(tmp_path_factory.mktemp("faulty"))
    one.start()
    yield one
    one.stop()


@pytest.fixture(scope="module")
def at_rest(faulty):
    """What it has when nothing goes on, and will have after each failure."""
    serves(faulty)
    return settle(faulty)


@pytest.fixture
def settled_before(faulty, at_rest):
    yield faulty, at_rest
    faulty.fault.set()


def fails_once(launcher, before, step, **narrow):
    logs = set(launcher.audit.iterdir())
    control = launcher.control()
    launcher.fault.set(f"fail:{step}")
    with pytest.raises(Refused) as refused:
        control.create(**narrow)
    assert launcher.fault.text == "", "the fault did not happen"
    error = refused.value.error
    assert error["errno"] == "ENOSPC" and re.search(rf"\b{step}\b", error["what"]), error
    # The next one is served, and so is everybody else.
    control.destroy(control.create(**narrow))
    control.close()
    launcher.controls.remove(control)
    serves(launcher)
    same_again(launcher, before)
    return [p for p in launcher.audit.iterdir() if p not in logs]


@pytest.mark.parametrize("step", SESSION)
def test_a_step_of_a_session_fails(settled_before, step):
    launcher, before = settled_before
    logs = fails_once(launcher, before, step)
    kinds = [[r["event"] for r in launcher.records(p.stem)] for p in logs]
    assert ["session_request", "session_refused", "session_end"] in kinds, kinds


@pytest.mark.parametrize("step", PACKAGES)
def test_a_step_of_a_session_that_installs_packages_fails(tier, tmp_path, step):
    launcher = FaultyLauncher(tmp_path)
    weaken = [{"field": "/system_packages", "why": "the step that only they have"}]
    edit(launcher.policies / "bash.json", system_packages=True, weaken=weaken)
    launcher.start()
    try:
        serves(launcher)
        fails_once(launcher, settle(launcher), step)
    finally:
        launcher.stop()


@pytest.mark.parametrize("step", NAMES)
def test_a_step_of_a_session_with_protected_names_fails(tier, tmp_path, step):
    launcher = FaultyLauncher(tmp_path)
    edit(launcher.policies / "bash.json", protect=[".git/config"], protect_home=True)
    launcher.start()
    try:
        serves(launcher)
        fails_once(launcher, settle(launcher), step)
    finally:
        launcher.stop()


@pytest.mark.parametrize("step", TEMPLATE)
def test_a_step_of_a_narrowed_policy_fails(settled_before, step):
    """A narrowed session has a tree of its own, built when it is asked for."""
    launcher, before = settled_before
    fails_once(launcher, before, step, narrow={"tmp": "private"})
    refusals = [r["what"] for r in launcher.records() if r["event"] == "request_refused"]
    assert re.search(rf"\b{step}\b", refusals[-1]), refusals


@pytest.mark.parametrize("step", TEMPLATE)
def test_a_reload_whose_policy_cannot_be_prepared_keeps_the_old(settled_before, step):
    launcher, before = settled_before
    reloads = len([r for r in launcher.records() if r["event"] == "policy_reload"])
    launcher.fault.set(f"fail:{step}")
    launcher.process.send_signal(signal.SIGHUP)
    last = eventually(lambda: [r for r in launcher.records() if r["event"] == "policy_reload"][reloads:], what="it is on record")[-1]
    assert not last["accepted"] and any(step in p and "ENOSPC" in p for p in last["problems"]), last
    serves(launcher)
    same_again(launcher, before)


def test_a_session_that_nobody_has_asked_for_fails(tier, tmp_path):
    """One of those that are kept ready: it is on record, and the next request builds its own."""
    one = FaultyLauncher(tmp_path)
    try:
        one.start(CAISSON_READY_SESSIONS="1")
        control = one.control()

        def refused():
            # A request takes the ready session, and the next one is built. Where none was ready yet, the request itself meets the fault;
            # then the domain is made anew first, without a fault: otherwise its canary would meet the next one.
            one.fault.set()
            serves(one)
            settle(one)
            one.fault.set("fail:landlock")
            with contextlib.suppress(Refused):
                control.destroy(control.create())
            eventually(lambda: one.fault.text == "", what="the fault has happened")
            return [r for r in one.records() if r["event"] == "session_refused" and r.get("ready")]

        assert "landlock" in eventually(refused, what="it is on record")[0]["what"]
        one.fault.set()
        serves(one)
    finally:
        one.stop()


# Where nothing is served yet, there is nothing to go on with: the launcher ends, says why, and takes everything with it.


@pytest.mark.parametrize("step", WORKSPACE + ["pivot_root", "landlock_rules", "pid_ns", "uid", "seccomp", "exec_init"])
def test_a_step_at_the_launchers_start_fails(tier, tmp_path, step):
    one = FaultyLauncher(tmp_path)
    try:
        running = set(of_this_build())
        one.fault.set(f"fail:{step}")
        one.spawn()
        assert one.process.wait(60) != 0
        said = one.log.read_text()
        assert re.search(rf"\b{step}\b", said) and "No space left" in said, said
        assert not (one.run / "control.sock").exists()
        eventually(lambda: set(of_this_build()) <= running, what="nothing runs any more")
        mounted = open("/proc/self/mountinfo").read()
        assert str(tmp_path) not in mounted
    finally:
        one.stop()


# It is cloned into its namespaces: then there is either no child at all, or one that has them.
CLONED = ("user_ns", "mount_ns", "pid_ns", "done")
NOBODY_LISTENS = ("denial_listener",)  # there is no launcher whose log it would be


@pytest.mark.parametrize("step", [s for s in STEPS if s not in CLONED + NOBODY_LISTENS + PACKAGES])
def test_a_step_of_a_command_of_its_own_fails(tier, tmp_path, step):
    """`caisson run`: every step in one child, and no launcher that could clean up after it."""
    fault = Fault(tmp_path / "fault")
    running = set(of_this_build())
    try:
        fault.set(f"fail:{step}")
        policies = copy_policies(tmp_path / "policies")
        edit(policies / "run.json", protect=[".git/config"], protect_home=True)
        argv = [FAULTY_CLI, "--policies", policies, "run", "--", "/bin/echo", "ran"]
        environment = {"PATH": os.environ["PATH"], "CAISSON_FAULT": str(fault.path)}
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert fault.text == "", "the fault did not happen"
        assert done.returncode != 0 and "ran" not in done.stdout
        assert re.search(rf"\b{step}\b", done.stderr) and "No space left" in done.stderr, done.stderr
        eventually(lambda: set(of_this_build()) <= running, what="nothing runs any more")
    finally:
        fault.close()
