"""Bounds of the audit log: segments, room, age, signatures, restarts; and its export."""

import json
import os
import time

import pytest
from harness import Refused, cli, edit, eventually


def bounded(launcher, **audit):
    """max_bytes etc. are made smaller in base.json, where it needs no reason."""
    edit(launcher.policies / "base.json", audit=audit)
    return launcher.start("--agent", "/usr/bin/true", CAISSON_READY_SESSIONS="0")


def verified(launcher, *arguments):
    done = cli("--audit", launcher.audit, "--json", "audit", "verify", *arguments)
    return done.returncode, {os.path.basename(log["file"]): log for log in json.loads(done.stdout)["logs"]}


def write_much(control, session, megabytes):
    for _ in range(megabytes * 16):
        with pytest.raises(Refused):
            control.run(session, "/no/such", *["x" * 8000] * 7)


def test_a_long_log_is_bounded_and_what_went_is_on_record(fresh):
    control = bounded(fresh, max_bytes=1 << 20).control()
    session = control.create()
    write_much(control, session, 3)
    control.destroy(session)
    files = sorted(fresh.audit.glob(f"{session}*"))
    assert 2 < len(files) < 10 and sum(f.stat().st_size for f in files) <= 1 << 20
    status, logs = verified(fresh)
    assert status == 0 and logs[f"{session}.ndjson"]["removed"] > 0 and logs[f"{session}.ndjson"]["verdict"] == "intact"
    files[1].unlink()
    assert verified(fresh)[0] == 20


def test_an_old_log_is_deleted_and_the_launcher_says_so(fresh):
    control = bounded(fresh, keep_days=2).control()
    old, new = control.create(), control.create()
    control.destroy(old)
    control.destroy(new)
    fresh.stop()
    then = time.time() - 3 * 86400
    os.utime(fresh.audit / f"{old}.ndjson", (then, then))
    fresh.start("--agent", "/usr/bin/true")
    deleted = eventually(lambda: [r for r in fresh.records() if r["event"] == "log_deleted"])
    assert [(r["file"], r["why"]) for r in deleted] == [(f"{old}.ndjson", "age")]
    assert not (fresh.audit / f"{old}.ndjson").exists() and (fresh.audit / f"{new}.ndjson").exists()
    status, logs = verified(fresh)
    assert status == 0 and logs[f"{old}.ndjson"]["verdict"] == "deleted"
    (fresh.audit / f"{new}.ndjson").unlink()
    assert verified(fresh)[0] == 20


def test_the_oldest_logs_go_when_there_is_no_room(fresh):
    edit(fresh.policies / "base.json", audit={"max_bytes": 1 << 20})
    fresh.start("--agent", "/usr/bin/true", "--audit-max-bytes", 1 << 20, CAISSON_READY_SESSIONS="0")
    control, made = fresh.control(), []
    for _ in range(6):
        made.append(control.create())
        write_much(control, made[-1], 1)
        control.destroy(made[-1])
    gone = eventually(lambda: [r["file"] for r in fresh.records() if r["event"] == "log_deleted" and r["why"] == "room"])
    assert gone[0] == f"{made[0]}.ndjson" and verified(fresh)[0] == 0


def test_the_root_of_an_ended_session_is_signed(fresh, tmp_path):
    control = bounded(fresh).control()
    session = control.create()
    control.destroy(session)
    key = tmp_path / "key.json"
    key.write_text(json.dumps(control.call("attest")[0]["key"]))
    status, logs = verified(fresh, "--key", key)
    assert status == 0 and logs[f"{session}.ndjson"]["signature"] == "good"
    jwk = json.loads(key.read_text())
    key.write_text(json.dumps({**jwk, "x": jwk["x"][:5] + ("A" if jwk["x"][5] != "A" else "B") + jwk["x"][6:]}))
    status, logs = verified(fresh, "--key", key)
    assert status == 20 and "BAD" in logs[f"{session}.ndjson"]["signature"] or status != 0


def test_the_launchers_own_logs_are_one_chain_over_restarts(fresh):
    for _ in range(3):
        bounded(fresh)
        fresh.stop()
    earlier = sorted(fresh.audit.glob("launcher-*.ndjson"))
    assert len(earlier) == 2 and verified(fresh)[0] == 0
    earlier[1].unlink()
    assert verified(fresh)[0] == 20


def test_a_client_gets_a_descriptor_for_reading_and_never_of_the_launchers_log(launcher, control):
    session = control.create()
    reply, (fd,) = control.call("audit_open", session=session)
    assert reply["running"] is True and json.loads(os.read(fd, 65536).splitlines()[0])["event"] == "session_request"
    with pytest.raises(OSError):
        os.write(fd, b"x")
    os.close(fd)
    for name in ("launcher", "../audit/launcher", "s-0000000000000000", ""):
        with pytest.raises(Refused) as refused:
            control.call("audit_open", session=name)
        assert refused.value.error["code"] == "not_found"
    listed = control.call("audit_list", limit=500)[0]["sessions"]
    assert {"session": session, "running": True} in listed
    assert [s["session"] for s in listed] == sorted((s["session"] for s in listed), reverse=True)


def test_stats_and_export(launcher, control):
    session = control.create()
    control.run(session, "sh", "-c", "exit 3")
    control.destroy(session)
    stats = json.loads(cli("--audit", launcher.audit, "--json", "audit", "stats", session).stdout)
    assert stats["total"]["exit_codes"] == {"3": 1} and stats["logs"][session]["execs"] == 1
    lines = cli("--audit", launcher.audit, "audit", "export", "--format", "ocsf", "--session", session).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    assert [e["metadata"]["sequence"] for e in events] == list(range(1, 7)) and events[4]["exit_code"] == 3
    assert {e["class_uid"] for e in events} == {1007, 6003}


def test_tail_follows_over_segments(fresh):
    control = bounded(fresh, max_bytes=1 << 20).control()
    session = control.create()
    write_much(control, session, 1)
    control.destroy(session)
    shown = cli("--audit", fresh.audit, "--json", "audit", "tail", "-n", "100000", session).stdout.splitlines()
    numbers = [json.loads(line)["seq"] for line in shown]
    assert numbers == sorted(numbers) and len(sorted(fresh.audit.glob(f"{session}*"))) > 2
    assert json.loads(shown[-1])["event"] == "session_end"
