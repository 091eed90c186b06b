"""Policies: a broken one starts nothing and replaces nothing, a good one is taken at SIGHUP, a request can only narrow."""

import json
import os
import signal
import subprocess

import pytest
from harness import CLI, LAUNCHER, Refused, cli, copy_policies, edit, eventually, inside


def write_broken(policies):
    (policies / "bash.json").write_text('{\n  "extends": "base",\n  "limits": {"procesess": 64},\n  "umask": "9"\n}\n')
    (policies / "shell.json").write_text('{\n  "extends": "base",\n  "grants": [{"path": "/srv/../etc"}]\n}\n')


def test_a_broken_policy_starts_nothing_and_every_error_is_told_at_once(fresh):
    write_broken(fresh.policies)
    assert fresh.spawn().process.wait(20) == 2 and not fresh.socket.exists()
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
    assert fresh.spawn().process.wait(20) == 2 and b"bash.json:1" in fresh.log.read_bytes()


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
    assert fresh.spawn().process.wait(20) == 2 and "bash.json" in fresh.log.read_text()


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
    assert fresh.spawn().process.wait(20) == 2 and "bash.json" in fresh.log.read_text()


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
    assert fresh.process.wait(20) == 0


def test_a_domain_that_went_away_at_sighup_is_refused(fresh):
    control = fresh.start().control()
    (fresh.policies / "shell.json").unlink()
    fresh.process.send_signal(signal.SIGHUP)
    eventually(lambda: "policies reloaded" in fresh.log.read_text())
    with pytest.raises(Refused) as refused:
        control.create("shell")
    assert refused.value.error["code"] == "not_found"


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
    assert control.output(narrowed, "ls", "-A", path) == ""
    control.output(narrowed, "touch", f"{path}/private-file")
    assert "private-file" not in control.output(session, "ls", "-A", path)


def test_a_narrowed_session_has_a_digest_of_its_own(launcher, control, session):
    narrowed = control.create(narrow={"limits": {"processes": 8}})
    digests = [launcher.records(s)[0]["policy_digest"] for s in (session, narrowed)]
    assert digests[0] != digests[1] and launcher.records(narrowed)[0]["narrow"] == {"limits": {"processes": 8}}


def test_the_launcher_tells_a_wrong_option(tmp_path):
    done = subprocess.run([LAUNCHER, "--polices", tmp_path], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2 and "'--polices'" in done.stderr
