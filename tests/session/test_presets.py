"""Presets, domains that are first used, expectations tried for real, and policies asked for and reloaded over the socket."""

import json
import os
import signal

import pytest
from harness import Refused, cli, copy_policies, edit, eventually, inside

@pytest.fixture
def policies(tmp_path):
    return copy_policies(tmp_path / "policies")


def explained(policies, *argv):
    done = cli("--policies", policies, "policy", "explain", "--json", *argv)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


# Expectations.


def test_every_shipped_expectation_holds(policies, launcher):
    done = cli("--policies", policies, "policy", "test", "--json", timeout=900)
    document = json.loads(done.stdout)
    wrong = [row for row in document["results"] if row["state"] != "ok"]
    assert done.returncode == 0 and not wrong and document["hold"] > 300
    assert {row["preset"] for row in document["results"]} == {"", "research", "finance", "medical", "legal"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"can": "read", "path": "/etc/shadow"},
        {"cannot": "read", "path": "/etc/passwd"},
        {"cannot": "read", "path": "/etc/shadow", "errno": "EPERM"},
        {"can": "see", "path": "/root"},
        {"cannot": "write", "path": "/home/gem/x"},
        {"cannot": "run", "argv": ["true"]},
        {"can": "run", "argv": ["false"]},
        {"cannot": "run", "argv": ["false"]},
        {"can": "connect", "to": "1.1.1.1:53"},
        {"cannot": "listen", "at": "127.0.0.1:0"},
        {"cannot": "call", "syscall": "getpid"},
        {"can": "call", "syscall": "mount"},
    ],
    ids=json.dumps,
)
def test_an_expectation_that_is_not_so_fails(policies, launcher, tmp_path, wrong):
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"domain": "bash", "expect": [wrong]}))
    done = cli("--policies", policies, "policy", "test", file)
    assert done.returncode == 22 and b"FAIL  bash: " in done.stdout and b"0 hold, 1 fail, 0 not tried" in done.stdout


def test_a_policy_that_changes_fails_its_expectations(policies, launcher):
    edit(policies / "file.json", exec_writable=True)
    done = cli("--policies", policies, "policy", "test", "file")
    assert done.returncode == 22 and b"cannot run /home/gem/program" in done.stdout


def test_expectations_of_a_session_that_cannot_be_built_are_not_tried(policies, launcher, tmp_path):
    edit(policies / "bash.json", require=["capabilities", "no_new_privs", "landlock", "seccomp", "rlimits", "fds", "env", "cgroup"])
    done = cli("--policies", policies, "policy", "test", "--json", tmp_path / "none.json")
    assert done.returncode == 21
    done = cli("--policies", policies, "policy", "test", "--json", policies / "tests" / "bash.json")
    document = json.loads(done.stdout)
    assert done.returncode == 6 and document["hold"] == 0 and "cgroup" in document["results"][0]["found"]


def test_an_argument_is_no_shell_text(policies, launcher, tmp_path):
    file = tmp_path / "words.json"
    argv = ["test", "$(touch /tmp/x); a b", "=", "$(touch /tmp/x); a b"]
    file.write_text(json.dumps({"domain": "bash", "expect": [{"can": "run", "argv": argv}, {"cannot": "see", "path": "/tmp/x"}]}))
    assert cli("--policies", policies, "policy", "test", file).returncode == 0


def test_broken_expectations_are_found_by_check(policies):
    (policies / "tests" / "bad.json").write_text('{"domain": "bash",\n"expect": [{"can": "reed", "path": "/x"}]}')
    done = cli("policy", "check", policies)
    assert done.returncode == 21 and b"bad.json:2 /expect/0: " in done.stdout and b"meant 'read'?" in done.stdout


def test_a_broken_preset_is_found_by_check(policies):
    (policies / "presets" / "bad.json").write_text('{"limits": {"processes": 4096}}')
    done = cli("policy", "check", policies)
    assert done.returncode == 21 and b"presets/bad.json:1 /limits/processes: gives more than base" in done.stdout


# Explain and diff.


def test_explain_takes_the_preset_and_counts_its_points(policies):
    plain, finance = explained(policies, "bash"), explained(policies, "bash", "--preset", "finance")
    assert plain["score"]["value"] < finance["score"]["value"] and finance["preset"] == "finance"
    for e in (plain, finance):
        assert e["score"]["value"] == 100 - sum(d["points"] for d in e["score"]["deductions"])


def test_a_difference_is_said_in_the_terms_of_explain(policies):
    document = explained(policies, "--diff", "bash", "bash@finance")["bash -> bash@finance"]
    rows = {(d["topic"], d["name"]): (d["before"], d["after"]) for d in document["differences"]}
    assert rows["reaches", "network"] == ("loopback of its workspace only", "nothing: no internet sockets")
    assert rows["uses", "session_seconds"] == ("1 day", "8 h") and all(d["why"] for d in document["differences"][:3])


def test_two_directories_are_compared_domain_by_domain(policies, tmp_path):
    other = copy_policies(tmp_path / "other")
    edit(other / "mcp.json", limits={"processes": 8})
    (other / "code.json").unlink()
    document = explained(policies, "--diff", str(policies), str(other))
    assert document["code"] == {"only_in": str(policies)} and document["bash"]["differences"] == []
    assert [(d["name"], d["before"], d["after"]) for d in document["mcp"]["differences"]] == [("processes", "64", "8")]


# Import.


def test_what_is_imported_passes_the_check_and_runs(policies, launcher, tmp_path):
    file = tmp_path / "expect.json"
    file.write_text(json.dumps({"domain": "agent", "expect": [{"cannot": "read", "path": "/usr/share/doc/x"}, {"can": "write", "path": "/home/gem/x"}]}))
    # What goes out is not tried: the way out is made by a launcher alone.
    for network, status in (({}, 0), ({"allowedDomains": ["a.b"]}, 6)):
        (tmp_path / "srt.json").write_text(json.dumps({"filesystem": {"allowWrite": ["."], "denyRead": ["/usr/share/doc"]}, "network": network}))
        done = cli("--policies", policies, "policy", "import", "srt", tmp_path / "srt.json")
        assert done.returncode == 0 and (b"allowedDomains" in done.stderr) == bool(network)
        (policies / "agent.json").write_bytes(done.stdout)
        assert cli("policy", "check", policies).returncode == 0
        assert cli("--policies", policies, "policy", "test", file).returncode == status


def test_an_imported_profile_is_a_set_that_programs_run_under(policies, launcher, tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = cli("--policies", policies, "policy", "import", "seccomp", "--name", "team", os.path.join(root, "image", "seccomp.json"))
    assert done.returncode == 0 and b"left out" in done.stderr
    (policies / "seccomp" / "team.json").write_bytes(done.stdout)
    why = [{"field": "/syscalls/allow", "why": "imported for a test"}]
    (policies / "team.json").write_text(json.dumps({"extends": "base", "home": "private", "tmp": "private", "syscalls": {"allow": ["team"]}, "weaken": why}))
    assert cli("policy", "check", policies).returncode == 0
    done = cli("--policies", policies, "run", "-p", "team", "--", "python3", "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, b"42\n"), done.stderr


# The launcher.


def test_a_preset_holds_for_every_session_and_is_on_record(fresh):
    control = fresh.start(CAISSON_PRESET="medical").control()
    session = control.create()
    assert control.hello["preset"] == "medical"
    assert control.output(session, "sh", "-c", "umask; cp /usr/bin/true x; ./x || echo refused") == "0077\nrefused\n"
    assert inside(control, session, "out = tried(socket.socket, socket.AF_INET)") == "EPERM"
    report = control.call("session_report", session=session)[0]["report"]
    assert report["preset"] == "medical" and fresh.records(session)[0]["preset"] == "medical"
    assert [r["preset"] for r in fresh.records() if r["event"] == "boot"] == ["medical"]


def test_a_domain_cannot_undo_the_preset(fresh):
    edit(fresh.policies / "bash.json", limits={"processes": 900}, weaken=[{"field": "/limits/processes", "why": "for a test of it"}])
    control = fresh.start("--preset", "legal").control()
    policy = control.call("policy", domain="bash")[0]["policy"]
    assert policy["limits"]["processes"] == 128 and "/limits/processes" not in policy["weaken"] and policy["network"] == "none"


def test_a_preset_that_is_not_there_starts_nothing(fresh):
    assert fresh.spawn("--preset", "finanse").process.wait(60) == 2 and "meant 'finance'?" in fresh.log.read_text()


def test_a_domain_is_made_ready_at_its_first_use(fresh):
    control = fresh.start().control()

    def ready():
        return {name for name, d in control.call("policy")[0]["domains"].items() if d["ready"]}

    assert ready() == {"bash", "shell"} and {"code", "mcp", "browser"} <= set(control.hello["domains"])
    session = control.create("code")
    assert control.output(session, "sh", "-c", "echo here") == "here\n" and ready() == {"bash", "shell", "code"}
    report = control.call("session_report", session=session)[0]["report"]
    assert report["domain"] == "code" and [m["state"] for m in report["mechanisms"] if m["name"] == "seccomp"] == ["enforced"]


def test_every_domain_starts_a_session(fresh):
    control = fresh.start().control()
    for domain in control.hello["domains"]:
        session = control.create(domain)
        assert control.output(session, "sh", "-c", "echo $HOME") == "/home/gem\n", domain
        control.destroy(session)


def test_policies_are_listed_with_digests_and_refusals(fresh):
    edit(fresh.policies / "mcp.json", require=["capabilities", "no_new_privs", "landlock", "seccomp", "rlimits", "fds", "env", "cgroup"])
    control = fresh.start().control()
    answer = control.call("policy")[0]
    assert len(answer["digest"]) == 64 and answer["preset"] == "" and len(answer["domains"]["bash"]["digest"]) == 64
    if "mcp" not in answer["domains"]:
        assert "cgroup" in answer["refused"]["mcp"]
    one = control.call("policy", domain="bash")[0]["policy"]
    assert one["digest"] == answer["domains"]["bash"]["digest"] and one["network"] == "loopback" and one["why"]["/network"]
    with pytest.raises(Refused) as refused:
        control.call("policy", domain="../bash")
    assert refused.value.error["code"] == "not_found"


def test_a_reload_over_the_socket_is_as_sighup_and_on_record(fresh):
    control = fresh.start().control()
    old = control.create()
    before = control.call("policy")[0]["digest"]
    edit(fresh.policies / "bash.json", umask="077")
    answer = control.call("policy_reload")[0]
    assert answer["accepted"] and answer["old"] == before and answer["new"] != before and answer["problems"] == []
    assert [control.output(s, "sh", "-c", "umask") for s in (old, control.create())] == ["0022\n", "0077\n"]
    (fresh.policies / "bash.json").write_text('{"extends": "base", "umask": "9"}')
    broken = control.call("policy_reload")[0]
    assert not broken["accepted"] and broken["old"] == broken["new"] == answer["new"] and "/umask" in broken["problems"][0]
    records = [r for r in fresh.records() if r["event"] == "policy_reload"]
    assert [(r["accepted"], r["by"], r["old"], r["new"]) for r in records] == [
        (True, "operator", before, answer["new"]),
        (False, "operator", answer["new"], answer["new"]),
    ]
    fresh.process.send_signal(signal.SIGHUP)
    eventually(lambda: [r for r in fresh.records() if r["event"] == "policy_reload" and r["by"] == "SIGHUP"])


def test_what_was_ready_stays_so_after_a_reload(fresh):
    control = fresh.start().control()
    control.destroy(control.create("file"))
    control.call("policy_reload")
    assert control.call("policy")[0]["domains"]["file"]["ready"] and control.create("file")


def test_attested_is_what_was_built_and_named_what_was_not(fresh):
    control = fresh.start(CAISSON_PRESET="finance").control()
    statement = control.call("attest")[0]["statement"]
    states = {p["domain"]: p["state"] for p in statement["policies"]}
    assert statement["preset"] == "finance" and states["bash"] == "ready" and states["browser"] == "unused"
    for domain in control.hello["domains"]:
        control.destroy(control.create(domain))
    assert {p["state"] for p in control.call("attest")[0]["statement"]["policies"]} == {"ready"}
