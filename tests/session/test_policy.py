"""Policies: a broken one starts nothing and replaces nothing, a good one is taken at SIGHUP, a request can only narrow."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from harness import CLI, LAUNCHER, SKEL, Refused, blocked, c_compiler, cli, copy_policies, edit, eventually, inside, marked


def write_broken(policies):
    (policies / "bash.json").write_text('{\n  "extends": "base",\n  "limits": {"procesess": 64},\n  "umask": "9"\n}\n')
    (policies / "shell.json").write_text('{\n  "extends": "base",\n  "grants": [{"path": "/srv/../etc"}]\n}\n')


def test_a_broken_policy_starts_nothing_and_every_error_is_told_at_once(fresh):
    write_broken(fresh.policies)
    assert fresh.spawn().process.wait(60) == 2 and not fresh.socket.exists()
    text = fresh.log.read_text()
    assert all(
        found in text
        for found in (
            "bash.json:3 /limits/procesess: ",
            "meant 'processes'?",
            "bash.json:4 /umask: ",
            "shell.json:3 /grants/0/path: ",
            "meant '/etc'?",
        )
    )


def test_policy_check_tells_the_same(tmp_path):
    policies = copy_policies(tmp_path / "policies")
    write_broken(policies)
    done = cli("policy", "check", policies)
    assert done.returncode == 21 and [done.stdout.count(b"bash.json:"), done.stdout.count(b"shell.json:")] == [2, 1]


def test_the_policies_of_this_tree_are_well(tmp_path):
    done = cli("policy", "check", copy_policies(tmp_path / "policies"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"extends": "base",}',
        '{"extends": "base", "extends": "base"}',
        '{"extends": "other"}',
        "{}",
        '{"extends": "base", "umask": 22}',
        "\xff",
    ],
)
def test_a_file_that_is_no_policy_starts_nothing(fresh, text):
    (fresh.policies / "bash.json").write_text(text, encoding="latin-1")
    assert fresh.spawn().process.wait(60) == 2 and b"bash.json:1" in fresh.log.read_bytes()


def write_by_others(path):
    path.chmod(0o666)


def belong_to_others(path):
    os.chown(path, 1000, 1000)


def link(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


@pytest.mark.parametrize("change", [write_by_others, belong_to_others, link])
def test_a_policy_that_others_could_change_starts_nothing(fresh, change):
    change(fresh.policies / "bash.json")
    assert fresh.spawn().process.wait(60) == 2 and "bash.json" in fresh.log.read_text()


@pytest.mark.parametrize(
    "more",
    [
        {"limits": {"processes": 100000}},
        {"hide": []},
        {"min_tier": "T1", "require": []},
        {"syscalls": {"allow": ["basic-io", "debug"]}},
        {"devices": ["null", "tty", "kvm"]},
        {"grants": [{"path": "/root"}]},
        {"grants": [{"path": "/usr", "access": "read-write", "execute": True}]},
        {"disable": ["seccomp"]},
        {"env": {"client_deny": []}},
    ],
    ids=json.dumps,
)
def test_a_domain_that_adds_without_a_reason_starts_nothing(fresh, more):
    edit(fresh.policies / "bash.json", **more)
    assert fresh.spawn().process.wait(60) == 2 and "bash.json" in fresh.log.read_text()


# SIGHUP.


def test_a_broken_policy_at_sighup_keeps_the_old_one_and_says_so(fresh):
    control = fresh.start().control()
    write_broken(fresh.policies)
    fresh.process.send_signal(signal.SIGHUP)
    eventually(lambda: "the old ones stay" in fresh.log.read_text())
    reload = eventually(lambda: [r for r in fresh.records() if r["event"] == "policy_reload"])[0]
    assert (
        reload["accepted"] is False and len(reload["problems"]) == 3 and "bash.json:3 /limits/procesess" in fresh.log.read_text()
    )
    assert control.output(control.create(), "sh", "-c", "umask") == "0022\n"


def test_a_good_policy_at_sighup_is_that_of_new_sessions(fresh):
    control = fresh.start().control()
    old = control.create()
    edit(fresh.policies / "bash.json", umask="077", hostname="changed")
    fresh.reload()
    new = control.create()
    assert [control.output(s, "sh", "-c", "umask; uname -n") for s in (old, new)] == ["0022\ncaisson\n", "0077\nchanged\n"]
    assert [r["accepted"] for r in fresh.records() if r["event"] == "policy_reload"] == [True]


def test_sessions_that_a_reload_ends_while_they_are_built_are_gone(fresh):
    fresh.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="8")
    for _ in range(5):
        fresh.reload()
    fresh.process.terminate()
    assert fresh.process.wait(60) == 0


def test_a_domain_that_went_away_at_sighup_is_refused(fresh):
    control = fresh.start().control()
    (fresh.policies / "shell.json").unlink()
    fresh.process.send_signal(signal.SIGHUP)
    eventually(lambda: "policies reloaded" in fresh.log.read_text())
    with pytest.raises(Refused) as refused:
        control.create("shell")
    assert refused.value.error["code"] == "not_found"


# The program that reads the files for the launcher, when it is none.

# What a process of a session, or a broken disk, could never put in its place; each is given the directory and the preset.
STRANGERS = {
    "absent": (None, "No such file"),
    "dies": ("abort();", "was ended by signal 6"),
    "fails": ("return 3;", "ended with status 3"),
    "says nothing": ("return 0;", "not policies of this version"),
    "says something else": ('puts("ready");', "not policies of this version"),
    "writes without end": ("static char zeros[65536]; while (write(1, zeros, sizeof zeros) > 0);", "not policies of this version"),
    "hangs": ("for (;;) pause();", "did not answer in time"),
}


@pytest.fixture
def put_stranger(fresh, tmp_path):
    """A launcher of its own programs, and a way to replace the one that reads: by what does this, or by nothing."""
    compiler, programs = c_compiler(), fresh.own_programs(tmp_path / "programs")

    def put(body):
        (programs / "caisson-policies").unlink()
        if body is not None:
            source = f"#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char **argv) {{ {body} }}\n"
            argv = [compiler, "-w", "-x", "c", "-o", programs / "caisson-policies", "-"]
            subprocess.run(argv, input=source.encode(), check=True, timeout=60)

    return put


@pytest.fixture(params=STRANGERS)
def replaced(request, put_stranger):
    """A way to replace it, and what is said of it then."""
    body, said = STRANGERS[request.param]
    return lambda: put_stranger(body), said


def test_without_an_answer_of_the_reader_a_reload_keeps_the_old_policies_and_says_so(fresh, replaced):
    replace, said = replaced
    control = fresh.start("--agent", "/usr/bin/true").control()
    before = control.call("policy_reload")[0]["new"]
    edit(fresh.policies / "bash.json", umask="077")
    replace()
    answer = control.call("policy_reload")[0]
    assert answer["accepted"] is False and answer["new"] == answer["old"] == before
    assert len(answer["problems"]) == 1 and answer["problems"][0].startswith(f"{fresh.policies}: cannot be read: caisson-policies: ")
    assert said in answer["problems"][0]
    record = [r for r in fresh.records() if r["event"] == "policy_reload"][-1]
    assert record["accepted"] is False and record["problems"] == answer["problems"] and record["old"] == record["new"] == before
    assert control.output(control.create(), "sh", "-c", "umask") == "0022\n"
    eventually(lambda: not marked(str(fresh.policies), "caisson-policie"), what="the program has ended")


def test_without_a_filter_a_narrowed_session_does_not_start_and_others_do(fresh, replaced):
    """What was compiled before is kept, by what was asked: this narrowing is the first of its kind."""
    replace, _ = replaced
    control = fresh.start("--agent", "/usr/bin/true").control()
    first = control.create()
    replace()
    with pytest.raises(Refused) as refused:
        control.create(narrow={"network": "none"})
    assert refused.value.error["what"].startswith("caisson-policies: ")
    with pytest.raises(Refused):  # what takes long is not asked again at once
        control.create(narrow={"network": "none"})
    assert control.output(control.create(), "echo", "on") == control.output(first, "echo", "on") == "on\n"
    assert len(control.call("session_list")[0]["sessions"]) == 2


def test_sessions_that_end_while_they_are_built_cost_no_new_plan(fresh, put_stranger):
    """Their domain's tree is as good as before: a client that comes and goes would have it made anew each time."""
    control = fresh.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0").control()
    control.create()
    put_stranger("return 3;")
    for _ in range(20):
        leaving = fresh.control()
        leaving.send("session_create", domain="bash")
        leaving.close()
    eventually(lambda: len(control.call("session_list")[0]["sessions"]) == 1, what="they have ended")
    assert control.output(control.create(), "echo", "on") == "on\n"


def test_after_a_failed_question_nobody_is_asked_for_a_while(fresh, put_stranger, tmp_path):
    """Where it hangs, the launcher waits for it: a client that asks again and again must not keep it from its work."""
    control = fresh.start("--agent", "/usr/bin/true").control()
    put_stranger(f'fputs("asked\\n", fopen("{tmp_path}/asked", "a")); sleep(argc - 1); return 1;')
    begin = time.monotonic()
    while time.monotonic() < begin + 2.5:
        with pytest.raises(Refused):
            control.create(narrow={"network": "none"})
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_a_reload_for_which_no_filter_is_compiled_is_refused_whole(fresh, put_stranger, tmp_path):
    """Also in the time in which nobody is asked: a domain in use is not dropped for it."""
    reader = tmp_path / "programs/caisson-policies"
    control = fresh.start("--agent", "/usr/bin/true").control()
    reader.rename(tmp_path / "programs/reads")
    reader.touch()
    put_stranger(f'if (argc > 2) execv("{tmp_path}/programs/reads", argv); sleep(2); return 1;')  # for three times as long nobody is asked
    edit(fresh.policies / "bash.json", syscalls={"deny": ["getpriority"]})
    for said in ("ended with status 1", "failed a moment ago"):
        answer = control.call("policy_reload")[0]
        assert answer["accepted"] is False and answer["new"] == answer["old"]
        assert any(said in problem for problem in answer["problems"]), answer
    assert control.output(control.create(), "echo", "on") == "on\n"


def test_without_an_answer_of_the_reader_nothing_starts(fresh, replaced):
    replace, said = replaced
    replace()
    assert fresh.spawn("--agent", "/usr/bin/true").process.wait(60) == 2 and not fresh.socket.exists()
    text = fresh.log.read_text()
    assert "the policies have problems, nothing is started:" in text and said in text


@pytest.mark.parametrize("other", ["absent", "says nothing", "says something else"])
def test_without_an_answer_of_the_probe_nothing_starts(fresh, tmp_path, other):
    """What is permitted here is not known then, and nothing is guessed."""
    programs = fresh.own_programs(tmp_path / "programs")
    (programs / "caisson-probe").unlink()
    if other != "absent":
        shutil.copy({"says nothing": "/bin/true", "says something else": "/bin/echo"}[other], programs / "caisson-probe")
    assert fresh.spawn("--agent", "/usr/bin/true").process.wait(60) != 0 and not fresh.socket.exists()
    assert "caisson-probe: " in fresh.log.read_text()


def test_the_reader_has_given_up_what_reading_does_not_need(tmp_path):
    """Looked at while nobody takes its answer, which is more than a pipe holds."""
    policies = copy_policies(tmp_path / "policies")
    with subprocess.Popen([LAUNCHER.parent / "caisson-policies", policies, "", ""], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as reader:
        eventually(lambda: blocked(reader.pid, "write", 1), what="the reader waits for who takes its answer")
        facts = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{reader.pid}/status").read_text().splitlines())
        assert int(facts["CapEff"], 16) == int(facts["CapPrm"], 16) and int(facts["CapEff"], 16) & ~0b110 == 0
        assert facts["NoNewPrivs"] == "1" and facts["Seccomp"] == "2"
        assert len(reader.stdout.read()) > 65536
    assert reader.returncode == 0


# Demands. In a user namespace that allows no further one there is no tier above T1.


def in_weaker_place(*argv):
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" "$@"'
    return ["unshare", "--user", "--map-root-user", "--", "sh", "-c", limit, *map(str, argv)]


@pytest.fixture
def tier_below():
    """Skips where no weaker place can be made."""
    done = subprocess.run(in_weaker_place(CLI, "probe", "--json"), capture_output=True, text=True, check=False, timeout=60)
    tier = json.loads(done.stdout)["tier"] if done.returncode == 0 else None
    if tier not in ("T0", "T1"):
        pytest.skip(f"no weaker place can be made here: probe gives {tier} {done.stderr.strip()}")
    return tier


@pytest.mark.parametrize(
    "demand",
    [
        {"min_tier": "T3"},
        {"require": ["capabilities", "no_new_privs", "landlock", "seccomp", "rlimits", "fds", "env", "mount_ns"]},
    ],
    ids=["min_tier", "require"],
)
def test_a_demand_that_cannot_be_met_starts_no_command(tmp_path, tier_below, demand):
    policies = copy_policies(tmp_path / "policies")
    edit(policies / "run.json", **demand)
    done = subprocess.run(
        in_weaker_place(CLI, "--policies", policies, "run", "--", "echo", "ran"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = "needs tier T3" if "min_tier" in demand else "requires mount_ns"
    assert done.returncode == 125 and done.stdout == "" and told in done.stderr


def test_a_required_mechanism_that_the_host_lacks_refuses_the_domain_only(fresh):
    edit(
        fresh.policies / "shell.json",
        require=["capabilities", "no_new_privs", "landlock", "seccomp", "rlimits", "fds", "env", "cgroup"],
    )
    control = fresh.start().control()
    if "shell" in control.hello["domains"]:
        pytest.skip("this host has cgroup v2 to give: nothing to refuse")
    with pytest.raises(Refused) as refused:
        control.create("shell")
    assert refused.value.error["code"] == "unavailable" and "cgroup" in refused.value.error["what"] and control.create("bash")


def test_a_disabled_mechanism_is_reported_as_disabled(fresh):
    edit(fresh.policies / "bash.json", disable=["net_ns"], weaken=[{"field": "/disable", "why": "a test of the report"}])
    control = fresh.start().control()
    report = control.call("session_report", session=control.create())[0]["report"]
    assert [m["state"] for m in report["mechanisms"] if m["name"] == "net_ns"] == ["disabled_by_policy"]


# Narrowing.


def test_smaller_limits_hold(control):
    session = control.create(narrow={"limits": {"open_files": 64, "cpu_seconds": 100}})
    assert inside(
        control,
        session,
        "import resource; out = [resource.getrlimit(r)[0] for r in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)]",
    ) == [64, 100]


def test_larger_limits_are_refused_by_name(control):
    with pytest.raises(Refused) as refused:
        control.create(narrow={"limits": {"processes": 513}})
    assert refused.value.error["code"] == "permission_denied" and "/limits/processes" in refused.value.error["what"]


@pytest.mark.parametrize("what, path", [("home", "/home/gem"), ("tmp", "/tmp")])
def test_a_private_directory_is_empty_and_nobody_elses(control, session, what, path):
    control.output(session, "touch", f"{path}/shared-file")
    narrowed = control.create(narrow={what: "private"})
    assert control.output(narrowed, "ls", "-A", path).split() == (SKEL if what == "home" else [])
    control.output(narrowed, "touch", f"{path}/private-file")
    assert "private-file" not in control.output(session, "ls", "-A", path)


def test_a_narrowed_session_has_a_digest_of_its_own(launcher, control, session):
    narrowed = control.create(narrow={"limits": {"processes": 8}})
    digests = [launcher.records(s)[0]["policy_digest"] for s in (session, narrowed)]
    assert digests[0] != digests[1] and launcher.records(narrowed)[0]["narrow"] == {"limits": {"processes": 8}}


def test_the_launcher_tells_a_wrong_option(tmp_path):
    done = subprocess.run([LAUNCHER, "--polices", tmp_path], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "'--polices'" in done.stderr
