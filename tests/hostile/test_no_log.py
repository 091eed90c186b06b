"""An audit directory that takes no new file: every session is refused with that reason, and the launcher goes on."""

import json
import pathlib
import subprocess

import pytest
from harness import Refused, eventually
from seat import Seat, counts, opened, settled

TMPFS = 'mount -t tmpfs -o mode=0700,nr_inodes=2 none "$0" && exec "$@"'  # room for the directory and the launcher's own log


@pytest.fixture
def without_log(fresh, compiled):
    fresh.audit.mkdir()
    program = compiled("seat")
    wrapper = ["unshare", "--mount", "--", "sh", "-c", TMPFS, str(fresh.audit)]
    fresh.start("--agent", program, wrapper=wrapper, CAISSON_READY_SESSIONS="0")
    fresh.seat = Seat(fresh, program)
    opened(fresh.seat)
    yield fresh
    fresh.seat.close()


@pytest.mark.parametrize("narrow", [None, {"tmp": "private"}], ids=["as it is", "narrowed"])
def test_a_session_without_a_log_is_refused_and_nothing_stays(without_log, narrow):
    before = settled(without_log)
    control = without_log.control()
    for ask in (lambda: control.call("session_create", domain="bash", narrow=narrow), lambda: without_log.seat.create(narrow=narrow)):
        for _ in range(5):
            with pytest.raises(Refused) as refused:
                ask()
            assert refused.value.error["errno"] == "ENOSPC" and "audit log" in refused.value.error["what"]
    # Each request has one answer: none comes to a number that nobody asked with.
    eventually(lambda: without_log.seat.ask("session_list")["sessions"] == [])
    assert [m for m in without_log.seat.unread if m.get("id") == 0] == []
    control.close()
    eventually(lambda: counts(without_log) == before, what=f"{counts(without_log)} is {before} again")


def test_sessions_start_again_when_there_is_room(without_log):
    with pytest.raises(Refused):
        without_log.seat.create()
    enter = ["nsenter", "-t", str(without_log.pid), "-m", "--"]
    subprocess.run([*enter, "mount", "-o", "remount,nr_inodes=100", str(without_log.audit)], check=True, timeout=20)
    inside = pathlib.Path(f"/proc/{without_log.pid}/root{without_log.audit}")
    session = without_log.seat.create()
    records = [json.loads(line) for line in (inside / f"{session}.ndjson").read_text().splitlines()]
    assert [r["event"] for r in records] == ["session_request", "session_start"]


def test_a_session_that_has_no_process_yet_tells_nothing_of_others(fresh, hostile):
    """Its first process is known a moment later: until then its usage is none, not that of everything that runs here."""
    opened(hostile)
    for _ in range(20):
        hostile.say("session_create", domain="bash", narrow={"tmp": "private"})
        sessions = hostile.ask("session_list")["sessions"]
        building = [s for s in sessions if s["state"] == "building"]
        assert all(s["cpu_us"] < 1_000_000 and s["processes"] < 10 for s in building), building
