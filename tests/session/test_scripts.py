"""scripts/test: which packages it would install for the legs that are asked for, what runs beside what, and what it says of failures.
scripts/run: settings."""

import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from harness import eventually, marked

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
    assert packages() == packages("all") == packages(*LEGS)


LEGS = ["unit", "session", "hostile", "escape", "api", "browser", "container", "guest"]
PARTS = f"set -eu; cd {ROOT}; . scripts/lib/common.sh; for part in guest_images guest legs lanes; do . scripts/lib/$part.sh; done; "


def told(script):
    return subprocess.run(["bash", "-c", PARTS + script], capture_output=True, text=True, check=True, timeout=60).stdout


def test_every_leg_is_in_one_lane():
    assert sorted(told(f"lanes_of {' '.join(LEGS)}").split()) == sorted([*LEGS, "image"])


def test_legs_whose_sessions_have_the_same_uids_are_in_one_lane():
    assert told("lanes_of escape session hostile").split() == ["session", "hostile", "escape"]


def test_the_image_is_built_beside_others_only_for_the_leg_that_needs_it():
    assert "image" in told("lanes_of container").split() and "image" not in told("lanes_of unit api guest").split()


@pytest.mark.parametrize("host, full, booted", [("6.18.1", "", "6.1"), ("6.6.30", "", "6.1 6.12"), ("6.18.1", "1", "6.1 6.12")])
def test_a_kernel_between_the_oldest_and_the_hosts_is_not_booted_unless_all_is_asked_for(host, full, booted):
    assert told(f"uname() {{ echo {host}; }}; CAISSON_TEST_FULL={full}; guest_kernels").split() == booted.split()


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_legs_and_what_they_started(tmp_path, number, status):
    (tmp_path / "scripts").mkdir()
    part = tmp_path / "scripts/test"
    part.write_text(f"#!/bin/bash\necho begun\n(sleep 1000; : {tmp_path}) & timeout 1000 sh -c 'sleep 1000; : {tmp_path}'\n")
    part.chmod(0o755)
    script = f"LEGS=(unit api session); ROOT={tmp_path} STATE={tmp_path} RESULTS={tmp_path}/results; run_lanes unit api session"
    argv = ["env", "--default-signal=INT", "bash", "-c", PARTS + script]  # what runs in the background begins with the interrupt ignored
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as one:
        logs = [tmp_path / f"logs/leg-{leg}.log" for leg in ("unit", "api", "session")]
        eventually(lambda: all(log.exists() and log.read_text() == "begun\n" for log in logs), what="all legs run")
        assert len(marked(str(tmp_path))) >= 3
        one.send_signal(number)
        one.communicate(timeout=180)
    assert one.returncode == status
    eventually(lambda: not marked(str(tmp_path)), what="nothing of them is left")


def test_a_part_that_begins_while_all_is_ended_does_not_run(tmp_path):
    """Such a part was not ended, and was waited for until it ended by itself."""
    (tmp_path / "scripts").mkdir()
    part = tmp_path / "scripts/test"
    part.write_text("#!/bin/bash\necho begun\n")
    part.chmod(0o755)
    script = f"LEGS=(unit); ROOT={tmp_path} STATE={tmp_path} RESULTS={tmp_path} RUNNING={tmp_path}; mkdir {tmp_path}/logs; run_part unit"
    log = tmp_path / "logs/leg-unit.log"
    told(script)
    assert log.read_text() == "begun\n"
    (tmp_path / "stop").touch()
    told(script.replace("mkdir", "ls"))
    assert log.read_text() == ""


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
    said = results_of(tmp_path, "slowest", "import time\ndef test_one(): pass\ndef test_two(): time.sleep(2)\n")
    first, second = said.splitlines()
    assert first.endswith("test_it.test_two") and float(first.split()[0]) >= 2
    assert second.endswith("test_it.test_one")


def test_every_setting_of_the_agent_passes_into_a_container():
    script = f'set -eu; . {ROOT}/scripts/lib/serve.sh; echo "${{PASSED[@]}}"'
    passed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    settings = re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "agent/README.md").read_text(), re.MULTILINE)
    kept = {"CAISSON_BIND", "CAISSON_PORT", "CAISSON_SHUTDOWN_SECONDS",  # the launcher's
            "USER", "ARK_API_KEY", "OPENAI_API_KEY"}  # which may be the caller's own, for other programs
    assert len(settings) > 20 and set(settings) - kept <= set(passed)
    assert not kept & set(passed)
    assert {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TIMEOUT"} <= set(passed), "the courier's"
    assert not {"SSL_CERT_FILE", "SSL_CERT_DIR", "RES_OPTIONS"} & set(passed), "which name what this host has"


# Some names of each table, as a second list would have them.
SECOND_LISTS = {
    "policy fields": '"home", "tmp", "hostname", "exec_writable", "network", "umask"',
    "mechanisms": '"user_ns mount_ns pid_ns ipc_ns uts_ns"',
    "IPC operations": '"session_list", "session_destroy", "workspace_create", "workspace_list"',
    "agent variables": '"MAX_BASH_SESSIONS", "MAX_CODE_SESSIONS", "CAISSON_HOOK_SECONDS", "TZ"',
    "calls that name files": "SYS_openat, SYS_unlinkat, SYS_renameat2, SYS_linkat, SYS_symlinkat",
    "ways to end": '"destroyed", "client_gone", "shutdown", "oom", "init_died"',
    "operations of the file worker": '"watch_start", "watch_stop", "upload_begin", "upload_part", "upload_end"',
    "steps": '"open_grants", "root_tmpfs", "attach_grants", "make_files", "pivot_root"',
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What scripts/tables.py reads, to be changed."""
    copy = tmp_path_factory.mktemp("sources")
    for top in ("launcher", "agent"):
        shutil.copytree(ROOT / top, copy / top, ignore=lambda folder, names: [
            n for n in names if (pathlib.Path(folder) / n).is_file() and not n.endswith((".cc", ".h"))])
    return copy


def tables(sources, planted=""):
    """What scripts/tables.py says of the sources with one file more."""
    file = sources / "launcher/pid1/session/planted.cc"
    file.write_text(planted)
    done = subprocess.run([sys.executable, ROOT / "scripts/tables.py", sources], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "" and (done.returncode == 0) == (done.stdout == "")
    return done.stdout


def test_every_fact_that_has_a_table_stands_there_alone(sources):
    assert tables(sources) == ""


@pytest.mark.parametrize("table", SECOND_LISTS)
def test_a_second_list_of_what_has_a_table_is_found(sources, table):
    said = tables(sources, "// names\nconstexpr auto kNames = {" + SECOND_LISTS[table].replace(", ", ",\n") + "};\n")
    assert said.startswith(f"launcher/pid1/session/planted.cc:2: a second list of {table} (") and said.count("\n") == 1


@pytest.mark.parametrize("saying", ['session.end("bored")', 'end_broken("bored", why)', 'exec.reason = "bored"'])
def test_a_way_to_end_that_is_in_no_list_is_found(sources, saying):
    assert tables(sources, saying + ";\n") == "launcher/pid1/session/planted.cc:1: 'bored' is no way to end of launcher/common/base/ends.h\n"
