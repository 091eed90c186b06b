"""A launcher whose policies go out: which sessions reach what, what stands in its log, and that it goes on when a process of it ends."""

import json
import os
import signal
import subprocess

import pytest
from harness import CLI, Refused, below, edit, eventually
from outgoing import RULES, handle, reach, reaches_what_the_rules_permit, records
from world import OTHER, PUBLIC, echo

@pytest.fixture
def outside(fresh, internet):
    """A launcher, not yet started, that stands where the internet is; its bash goes out, its shell does not."""
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER]})
    internet.serve(PUBLIC, 80, handle)
    internet.elsewhere = internet.serve(OTHER, 80, echo)
    edit(fresh.policies / "bash.json", **RULES)
    return fresh


@pytest.fixture
def out(outside, internet):
    outside.start(wrapper=internet.wrapper())
    control = outside.control()
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace there is no way out")
    return outside


def test_a_session_reaches_what_its_list_permits_and_nothing_else(out, internet):
    reaches_what_the_rules_permit(out, internet)
    eventually(lambda: records(out, "egress_connection", host="api.test", workspace="default"), 10, "the connection is on record")
    eventually(lambda: records(out, "egress_refused", refusal="canary"), 10, "the refusal is on record")


def test_a_domain_with_the_loopback_alone_has_no_way_out(out):
    control = out.control()
    assert reach(control, control.create(), "api.test") == "served"
    for session in (control.create("shell"), control.create(narrow={"network": "none"}), control.create(isolation="private")):
        assert reach(control, session, PUBLIC) in ("ENETUNREACH", "EPERM", "EACCES", "EAFNOSUPPORT")


def test_reports_say_which_network_a_session_has(out):
    control = out.control()
    networks = [control.call("session_stat", session=control.create(*a, **k))[0]["network"] for a, k in (([], {}), (["shell"], {}), ([], {"isolation": "private"}))]
    assert networks == ["allowlist", "loopback", "loopback"]


def test_a_workspace_has_a_way_of_its_own(out):
    control = out.control()
    control.call("workspace_create", name="other", disk_bytes=1 << 22)
    session = control.create(workspace="other")
    assert reach(control, session, "api.test") == "served"
    eventually(lambda: records(out, "egress_connection", workspace="other"), 10, "the connection is on record")
    control.call("workspace_destroy", workspace="other")
    assert reach(control, control.create(), "api.test") == "served"


@pytest.mark.parametrize("which", ["caisson-gate", "door", "dialer"])
def test_sessions_go_on_when_a_process_of_the_way_ends(out, which):
    control = out.control()
    session = control.create()
    assert reach(control, session, "api.test") == "served"
    started = records(out, "egress_start", process=which.removeprefix("caisson-"))
    os.kill(started[-1]["pid"], signal.SIGKILL)
    eventually(lambda: records(out, "egress_exit", process=which.removeprefix("caisson-")), 10, "its end is on record")
    eventually(lambda: reach(control, session, "api.test") == "served", 20, "the next one serves")
    assert len(records(out, "egress_start", process=which.removeprefix("caisson-"))) == len(started) + 1


def test_a_reload_changes_the_list_of_sessions_that_run(out):
    control = out.control()
    session = control.create()
    assert reach(control, session, "api.test") == "served"
    edit(out.policies / "bash.json", egress=[{"host": "api.test", "deny": True, "why": "not any more, a test says"}])
    out.reload()
    eventually(lambda: reach(control, session, "api.test") == "no name", 10, "the newer list counts")


def test_a_reload_that_takes_the_way_out_away_closes_it(out):
    control = out.control()
    session = control.create()
    assert reach(control, session, "api.test") == "served"
    edit(out.policies / "bash.json", network="loopback", egress=[], weaken=[])
    out.reload()
    eventually(lambda: reach(control, session, PUBLIC) == "ECONNREFUSED", 10, "nothing answers any more")
    assert reach(control, control.create(), PUBLIC) == "ENETUNREACH"


def test_nothing_of_it_runs_where_no_policy_goes_out(fresh):
    fresh.start()
    fresh.control().create()
    assert not records(fresh, "egress_start") and below(fresh.pid, "caisson-gate") is None


def test_without_its_programs_such_a_domain_is_refused_and_says_why(outside, internet):
    (outside.own_programs(outside.base / "programs") / "caisson-egress").unlink()
    outside.start("--agent", "/usr/bin/true", wrapper=internet.wrapper())
    control = outside.control()
    with pytest.raises(Refused, match="the way out"):
        control.create()
    assert control.output(control.create("shell"), "echo", "on") == "on\n"


def learn_names(launcher, *argv, status=0):
    ran = subprocess.run([CLI, "--policies", launcher.policies, "--audit", launcher.audit, "policy", "learn", *argv], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran


def test_names_that_a_session_asked_for_become_rules_that_let_it_go_on(out, internet):
    control = out.control()
    session = control.create()
    internet.names.zone["unknown.test"] = [PUBLIC]
    for host in ("unknown.test", "169.254.169.254", "denied.test", "api.test"):
        reach(control, session, host)
    eventually(lambda: records(out, "egress_refused", refusal="canary", alarm=True), 10, "the alarm is on record")
    eventually(lambda: records(out, "egress_connection", host="api.test"), 10, "the connection is on record")
    ran = learn_names(out, "--records", "launcher", "--policy", "bash")
    learnt = json.loads(ran.stdout)
    assert [rule["host"] for rule in learnt["egress"]] == ["api.test", "unknown.test"] and learnt["extends"] == "bash"
    assert learnt["egress"][1]["ports"] == [80] and "once in the records of launcher" in learnt["egress"][1]["why"]
    assert "+ egress unknown.test: 80" in ran.stderr and "169.254.169.254: an address" in ran.stderr
    # Where sessions are told apart its own log has the same.
    own = json.loads(learn_names(out, "--records", session).stdout)
    known = bool(records(out, "egress_connection", host="api.test", session=session))
    assert [rule["host"] for rule in own.get("egress", [])] == (["api.test", "unknown.test"] if known else [])
    assert "by --policy" in learn_names(out, "--records", "launcher", status=2).stderr
    learn_names(out, "--records", session, "--seconds", "5", status=2)
    edit(out.policies / "bash.json", egress=[*learnt["egress"], RULES["egress"][1]])
    out.reload()
    eventually(lambda: reach(control, session, "unknown.test") == "served", 10, "the learnt rule counts")
    assert reach(control, session, "denied.test") == "no name"


def test_the_processes_of_the_way_have_users_of_their_own(out):
    control = out.control()
    assert reach(control, control.create(), "api.test") == "served"
    for name, uid in (("door", 993), ("dialer", 994)):
        pid = records(out, "egress_start", process=name)[-1]["pid"]
        status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
        assert status["Uid"].split() == [str(uid)] * 4 and int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
