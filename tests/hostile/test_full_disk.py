"""Directories that take nothing more, each on a small tmpfs of the launcher's own mount namespace: what cannot be recorded is
refused with that reason, what cannot be written is the program's error, nothing stays behind, and with room all goes on."""

import json
import os
import pathlib
import subprocess

import pytest
from harness import CLI, SESSION_UID, Refused, eventually
from seat import Seat, counts, opened, settled


def on_tmpfs(launcher, program, place, options):
    """Starts the launcher with a tmpfs mounted on `place`."""
    place.mkdir(exist_ok=True)
    own = launcher.in_own_mounts(f"mount -t tmpfs -o {options} none {place}")
    launcher.start("--agent", program, wrapper=own, CAISSON_READY_SESSIONS="0")
    return launcher


def remount(launcher, place, options):
    enter = ["nsenter", "-t", str(launcher.pid), "-m", "--"]
    subprocess.run([*enter, "mount", "-o", f"remount,{options}", str(place)], check=True, timeout=60)


def seen(launcher, place):
    return pathlib.Path(f"/proc/{launcher.pid}/root{place}")


def fill(path):
    """Writes to a file until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


@pytest.fixture
def without_files(fresh, compiled):
    """No room for another log: the audit directory has inodes for itself and the launcher's own."""
    program = compiled("seat")
    on_tmpfs(fresh, program, fresh.audit, "mode=0700,nr_inodes=2")
    fresh.seat = Seat(fresh, program)
    opened(fresh.seat)
    yield fresh
    fresh.seat.close()


@pytest.mark.parametrize("narrow", [None, {"tmp": "private"}], ids=["as it is", "narrowed"])
def test_a_session_without_a_log_is_refused_and_nothing_stays(without_files, narrow):
    before = settled(without_files)
    control, seat = without_files.control(), without_files.seat
    for ask in (lambda: control.call("session_create", domain="bash", narrow=narrow), lambda: seat.create(narrow=narrow)):
        for _ in range(5):
            with pytest.raises(Refused) as refused:
                ask()
            assert refused.value.error["errno"] == "ENOSPC" and "audit log" in refused.value.error["what"]
    eventually(lambda: seat.ask("session_list")["sessions"] == [])
    # Each request has one answer: none comes to a number that nobody asked with.
    assert [m for m in seat.unread if m.get("id") == 0] == []
    control.close()
    eventually(lambda: counts(without_files) == before, what=f"{counts(without_files)} is {before} again")


def test_sessions_start_again_when_there_is_room(without_files):
    with pytest.raises(Refused):
        without_files.seat.create()
    remount(without_files, without_files.audit, "nr_inodes=100")
    session = without_files.seat.create()
    log = seen(without_files, without_files.audit) / f"{session}.ndjson"
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["session_request", "session_start"]


def test_a_session_whose_log_is_full_ends_and_the_launcher_goes_on(fresh, compiled):
    on_tmpfs(fresh, compiled("seat"), fresh.audit, "mode=0700,size=2m")
    before = settled(fresh)
    control = fresh.control()
    session = control.create()
    assert control.output(session, "echo", "on") == "on\n"
    audit = seen(fresh, fresh.audit)
    fill(audit / "filler")
    # The record that does not fit is that of a request, which is then refused, or that of its start or end: then the session
    # ends beneath the command.
    try:
        ended = next((e for e in (control.run(session, "true")[0] for _ in range(100)) if e.get("exit_code") != 0), None)
        assert ended and ended["reason"] == "session_end", ended
    except Refused as refused:
        error = refused.error
        full = error.get("errno") == "ENOSPC" and "audit log" in error["what"]
        assert full or error["code"] == "not_found" or "ended" in error["what"], error
    assert control.event("session_end", session=session)["reason"] == "audit_failed"
    with pytest.raises(Refused):
        control.create()
    eventually(lambda: control.call("session_list")[0]["sessions"] == [])
    (audit / "filler").unlink()
    again = control.create()
    assert control.output(again, "echo", "on") == "on\n"
    control.destroy(again)
    control.close()
    eventually(lambda: counts(fresh)["processes"] == before["processes"])


def test_a_command_that_cannot_be_recorded_has_one_answer(fresh, compiled):
    program = compiled("seat")
    on_tmpfs(fresh, program, fresh.audit, "mode=0700,size=2m")
    seat = Seat(fresh, program)
    opened(seat)
    session, other = seat.create(), seat.create()
    fill(seen(fresh, fresh.audit) / "filler")
    answer = seat.ask("session_exec", session=session, argv=["/usr/bin/touch", "/home/gem/ran", "x" * 30_000])
    assert answer["ok"] is False and answer["error"]["errno"] == "ENOSPC" and "audit log" in answer["error"]["what"]
    eventually(lambda: session not in [s["session"] for s in seat.ask("session_list")["sessions"]], what="the session has ended")
    # Each request has one answer, else the agent would break off, and end the sessions of all.
    assert [m for m in seat.unread if "id" in m] == []
    assert [s["session"] for s in seat.ask("session_list")["sessions"]] == [other]
    assert not (seen(fresh, fresh.home) / "ran").exists()
    seat.close()


def test_with_stderr_a_session_goes_on_and_the_log_says_what_went_there(fresh, compiled):
    base = json.loads((fresh.policies / "base.json").read_text())
    base["audit"]["on_full"] = "stderr"
    (fresh.policies / "base.json").write_text(json.dumps(base))
    on_tmpfs(fresh, compiled("seat"), fresh.audit, "mode=0700,size=2m")
    control = fresh.control()
    session = control.create()
    audit = seen(fresh, fresh.audit)
    fill(audit / "filler")
    for _ in range(100):
        assert control.output(session, "echo", "on") == "on\n"
    other = control.create()
    assert control.output(other, "echo", "on") == "on\n"
    (audit / "filler").unlink()
    control.destroy(session)
    control.destroy(other)
    said = [json.loads(line) for line in fresh.log.read_text().splitlines() if line.startswith('{"log":')]
    for id in (session, other):
        lines = [json.loads(line) for path in sorted(audit.glob(f"{id}*.ndjson")) for line in path.read_bytes().splitlines()
                 if line.endswith(b'"}')]
        numbers = [r["seq"] for r in lines] + [r["record"]["seq"] for r in said if r["log"] == id]
        assert sorted(numbers) == list(range(1, len(numbers) + 1)) and any(r.get("spilled") for r in lines)
    done = subprocess.run([CLI, "--audit", audit, "audit", "verify", session, other], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0 and b"stderr and on record" in done.stdout, done.stdout


def test_a_full_home_is_the_programs_error(fresh, compiled):
    on_tmpfs(fresh, compiled("seat"), fresh.home, f"size=64k,nr_inodes=16,uid={SESSION_UID},gid={SESSION_UID}")
    before = settled(fresh)
    control = fresh.control()
    session = control.create()
    ended, _, err = control.run(session, "sh", "-c", "head -c 1000000 /dev/zero > big")
    assert ended["exit_code"] != 0 and "No space left" in err
    ended, _, err = control.run(session, "sh", "-c", "rm big; for i in $(seq 100); do : > $i || exit 1; done")
    assert ended["exit_code"] != 0 and "No space left" in err
    # A home without room is one to start in, and to end in.
    for name in (session, control.create(), control.create(narrow={"tmp": "private"})):
        assert control.output(name, "echo", "on") == "on\n"
        control.destroy(name)
    assert len(os.listdir(seen(fresh, fresh.home))) == 15
    control.events.clear()
    control.close()
    eventually(lambda: counts(fresh)["descriptors"] <= before["descriptors"] and counts(fresh)["processes"] == before["processes"])


def test_a_session_that_has_no_process_yet_tells_nothing_of_others(hostile):
    """Its first process is known a moment later: until then its usage is none, not that of everything that runs here."""
    opened(hostile)
    for _ in range(20):
        hostile.say("session_create", domain="bash", narrow={"tmp": "private"})
        sessions = hostile.ask("session_list")["sessions"]
        building = [s for s in sessions if s["state"] == "building"]
        assert all(s["cpu_us"] < 1_000_000 and s["processes"] < 10 for s in building), building
