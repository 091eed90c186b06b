"""The profiles of the outer container: the seccomp profile is moby's plus one list, the AppArmor profile compiles."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT, sh

IMAGE = ROOT / "image"


def generator():
    loader = importlib.machinery.SourceFileLoader("gen_seccomp", str(ROOT / "scripts" / "gen-seccomp"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gen_seccomp", loader))
    loader.exec_module(module)
    return module


def upstream_record() -> dict:
    return dict(line.split(" ", 1) for line in (IMAGE / "seccomp.upstream").read_text().splitlines())


@pytest.fixture(scope="module")
def upstream() -> pathlib.Path:
    """moby's own file: named by CAISSON_MOBY_PROFILE, or fetched as a Go module where Go is installed."""
    if path := os.environ.get("CAISSON_MOBY_PROFILE"):
        return pathlib.Path(path)
    if not shutil.which("go"):
        pytest.skip("moby's profile is not at hand: set CAISSON_MOBY_PROFILE, or install Go")
    record = upstream_record()
    done = subprocess.run(["go", "mod", "download", "-json", f"{record['module']}@{record['version']}"], cwd="/",
                          capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        pytest.skip(f"moby's profile cannot be fetched: {done.stderr.strip()[:120]}")
    return pathlib.Path(json.loads(done.stdout)["Dir"]) / record["file"]


def rules() -> list[dict]:
    return json.loads((IMAGE / "seccomp.json").read_text())["syscalls"]


def test_profile_is_what_the_generator_derives(upstream):
    sh(ROOT / "scripts" / "gen-seccomp", "--upstream", upstream, "--check")


def test_the_difference_is_exactly_the_list(upstream):
    theirs = json.loads(upstream.read_text())
    ours = json.loads((IMAGE / "seccomp.json").read_text())
    added = [rule for rule in ours["syscalls"] if rule not in theirs["syscalls"]]
    removed = [rule for rule in theirs["syscalls"] if rule not in ours["syscalls"]]
    assert [sorted(rule["names"]) for rule in added] == [sorted(generator().ADDED)]
    assert [rule["names"] for rule in removed] == [["clone3"]]
    assert {k: v for k, v in ours.items() if k != "syscalls"} == {k: v for k, v in theirs.items() if k != "syscalls"}


def test_dangerous_calls_stay_refused():
    refused = {"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "io_uring_setup", "io_uring_enter", "userfaultfd",
               "fanotify_init", "open_by_handle_at", "kexec_load", "init_module", "quotactl", "syslog", "reboot", "swapon"}
    always = {name for rule in rules() if rule["action"] == "SCMP_ACT_ALLOW" and not rule.get("includes") for name in rule["names"]}
    assert refused & always == set()


def test_refused_in_a_running_container(served):
    """io_uring_setup has number 425 on every architecture; the launcher's own processes are filtered too, not only sessions."""
    line = "import ctypes as c; l = c.CDLL(None, use_errno=True); print(l.syscall(425, 8, 0), c.get_errno())"
    assert served.exec("python3", "-c", line).stdout.split() == ["-1", "1"]


def test_apparmor_profile_compiles():
    parser = shutil.which("apparmor_parser", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not parser:
        pytest.skip("apparmor_parser is not installed")
    done = subprocess.run([parser, "-Q", "-K", "-S", IMAGE / "apparmor.profile"], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
