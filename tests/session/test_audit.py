"""The audit log: what is on record, that a change is found, that no session runs without it."""

import json
import subprocess

import pytest
from harness import Refused, cli, eventually


@pytest.fixture
def ended(launcher, control):
    """Name and records of a session that ran one command and was destroyed."""
    session = control.create(label="audited")
    control.run(session, "sh", "-c", "exit 3", cwd="/tmp", env={"ADDED": "value"})
    control.destroy(session)
    return session, launcher.records(session)


def one(records, event):
    found = [r for r in records if r["event"] == event]
    assert len(found) == 1, f"{len(found)} records {event}"
    return found[0]


def test_the_records_of_a_session_come_in_order(ended):
    assert [r["event"] for r in ended[1]] == [
        "session_request",
        "session_start",
        "exec_request",
        "exec_start",
        "exec_exit",
        "session_end",
    ]
    assert [r["seq"] for r in ended[1]] == [1, 2, 3, 4, 5, 6]


def test_the_request_is_on_record(ended):
    request = one(ended[1], "session_request")
    assert (request["domain"], request["label"], len(request["policy_digest"])) == ("bash", "audited", 64)


def test_the_start_names_every_mechanism_and_its_state(ended):
    report = one(ended[1], "session_start")["report"]
    assert report["tier"] == "T3" and {m["state"] for m in report["mechanisms"]} <= {
        "enforced",
        "unavailable",
        "disabled_by_policy",
    }
    enforced = {m["name"] for m in report["mechanisms"] if m["state"] == "enforced"}
    assert {
        "user_ns",
        "mount_ns",
        "pid_ns",
        "net_ns",
        "landlock",
        "seccomp",
        "capabilities",
        "no_new_privs",
        "rlimits",
        "fds",
        "env",
    } <= enforced


def test_a_mechanism_that_is_not_enforced_says_why(ended):
    report = one(ended[1], "session_start")["report"]
    assert [m["name"] for m in report["mechanisms"] if m["state"] != "enforced" and not m.get("detail")] == []


def test_the_start_has_verified_facts_and_times_of_each_step(ended):
    report = one(ended[1], "session_start")["report"]
    assert int(report["facts"]["CapEff"], 16) == 0 and {"seccomp", "landlock", "uid", "pid_ns"} <= set(report["timings_us"])


def test_a_command_is_on_record_before_and_after(ended):
    request, start, end = (one(ended[1], e) for e in ("exec_request", "exec_start", "exec_exit"))
    assert (request["argv"], request["cwd"]) == (["sh", "-c", "exit 3"], "/tmp") and "ADDED" in request["env"]
    assert request["exec"] == start["exec"] == end["exec"] and end["exit_code"] == 3 and end["reason"] == "exit"
    assert set(end["rusage"]) == {"user_us", "sys_us", "max_rss_bytes"}


def test_values_of_variables_are_not_on_record(ended):
    assert '"value"' not in json.dumps(ended[1]) and "ADDED=value" not in json.dumps(ended[1])


def test_the_end_says_why(ended):
    assert one(ended[1], "session_end")["reason"] == "destroyed"


def test_a_command_that_cannot_start_is_on_record(launcher, control):
    session = control.create()
    with pytest.raises(Refused):
        control.run(session, "/no/such/program")
    refused = one(launcher.records(session), "exec_refused")
    assert refused["step"] == "exec" and "ENOENT" in refused["what"]


def test_a_signal_and_a_hard_timeout_are_on_record(launcher, control):
    session = control.create()
    name, _ = control.start(session, "sleep", "60", hard_timeout_ms=60000)
    control.call("exec_signal", session=session, exec=name, signal="SIGHUP")
    control.exit(session, name)
    name, _ = control.start(session, "sleep", "60", hard_timeout_ms=1)
    control.exit(session, name)
    records = launcher.records(session)
    assert one(records, "exec_signal")["signal"] == "SIGHUP" and [r["reason"] for r in records if r["event"] == "exec_exit"] == [
        "signal",
        "hard_timeout",
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ["curl", "-H", "Authorization: Bearer hunter2hunter2hunter2"],
        ["mysql", "--password=hunter2hunter2hunter2"],
        ["env", "API_TOKEN=hunter2hunter2hunter2"],
        ["bash", "-c", "export AWS_SECRET_ACCESS_KEY=hunter2hunter2hunter2; true"],
        ["git", "clone", "https://u:hunter2hunter2hunter2@example.org/x"],
    ],
)
def test_a_secret_is_redacted(launcher, control, argv):
    session = control.create()
    try:
        control.run(session, *argv)
    except Refused:
        pass  # the program need not exist
    assert (
        "hunter2" not in (launcher.audit / f"{session}.ndjson").read_text()
        and one(launcher.records(session), "exec_request")["argv"][0] == argv[0]
    )


def test_the_log_is_for_root_alone(launcher, ended):
    assert (
        launcher.audit.stat().st_mode & 0o777 == 0o700 and (launcher.audit / f"{ended[0]}.ndjson").stat().st_mode & 0o777 == 0o600
    )


# Verification.


def verify(path):
    done = cli("audit", "verify", path)
    return done.returncode, done.stdout.decode()


def test_a_log_as_it_was_written_is_intact(launcher, ended):
    status, text = verify(launcher.audit / f"{ended[0]}.ndjson")
    assert status == 0 and "intact, 6 records, count and head as in the launcher's log" in text


def test_all_logs_verify_at_once(launcher, ended):
    done = cli("--audit", launcher.audit, "audit", "verify")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_flipped_byte_is_found(launcher, ended, tmp_path):
    original = (launcher.audit / f"{ended[0]}.ndjson").read_bytes()
    copy = tmp_path / "copy.ndjson"
    for at in range(0, len(original), max(1, len(original) // 40)):
        copy.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        assert verify(copy)[0] == 20, f"byte {at}"


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[1:],
        lambda lines: lines[:2] + lines[3:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [*lines, lines[-1]],
    ],
    ids=["first removed", "one removed", "two swapped", "last repeated"],
)
def test_a_changed_order_is_found(launcher, ended, tmp_path, change):
    copy = tmp_path / "copy.ndjson"
    copy.write_text("".join(change((launcher.audit / f"{ended[0]}.ndjson").read_text().splitlines(keepends=True))))
    assert verify(copy)[0] == 20


def test_an_end_that_was_cut_off_is_found(launcher, ended, tmp_path):
    for name in (f"{ended[0]}.ndjson", "launcher.ndjson"):
        (tmp_path / name).write_bytes((launcher.audit / name).read_bytes())
    log = tmp_path / f"{ended[0]}.ndjson"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-2]))
    assert verify(log)[0] == 20


# A disk that is full. The tmpfs is mounted in the launcher's own mount namespace and reached through /proc/<pid>/root.


@pytest.fixture
def small_disk(fresh):
    fresh.audit.mkdir()
    fresh.start("--agent", "/usr/bin/true", wrapper=fresh.in_own_mounts(f"mount -t tmpfs -o size=256k,mode=0700 none {fresh.audit}"))
    fresh.disk = f"/proc/{fresh.pid}/root{fresh.audit}"
    return fresh


def fill(launcher):
    subprocess.run(["dd", "if=/dev/zero", f"of={launcher.disk}/full", "bs=1k"], capture_output=True, check=False, timeout=60)


def test_no_session_starts_when_the_disk_of_the_log_is_full(small_disk):
    control = small_disk.control()
    fill(small_disk)
    with pytest.raises(Refused) as refused:
        for _ in range(10):
            control.create()
    assert "audit log" in refused.value.error["what"] and refused.value.error["errno"] == "ENOSPC"


def test_no_command_starts_when_the_disk_of_the_log_is_full_and_its_session_ends(small_disk):
    control = small_disk.control()
    session = control.create()
    fill(small_disk)
    with pytest.raises((Refused)) as refused:
        for i in range(100):
            control.run(session, "echo", "x" * 3000)
    assert "audit log" in refused.value.error["what"] or refused.value.error["code"] == "not_found"
    assert control.event("session_end", session=session)["reason"] == "audit_failed"


def test_sessions_start_again_when_there_is_room(small_disk):
    control = small_disk.control()
    fill(small_disk)
    with pytest.raises(Refused):
        for _ in range(10):
            control.create()
    subprocess.run(["rm", f"{small_disk.disk}/full"], check=True, timeout=60)
    session = control.create()
    assert eventually(lambda: control.output(session, "echo", "on")) == "on\n"
