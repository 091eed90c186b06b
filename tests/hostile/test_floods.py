"""An agent that floods, stops, closes, dies or forks: the launcher's memory stays bounded, others are served, ended programs are
reaped, and what the agent had goes with it."""

import json
import pathlib
import signal
import socket
import threading
import time

import pytest
from harness import eventually
from seat import STATES, Seat, counts, killed_for, opened, resident_kib, running, serves, settled

MIB = 1024
NAMED = [pytest.param(state, id=state.__name__) for state in STATES]


@pytest.fixture
def others(fresh):
    """Another client all the while: longest time that it waited for an answer, and whether its programs were reaped."""

    class Others:
        def __init__(self):
            self.longest, self.rounds, self.error, self.over, self.begin = 0.0, 0, None, threading.Event(), time.monotonic()
            self.control = fresh.control()
            self.session = self.control.create()
            self.thread = threading.Thread(target=self.work)
            self.thread.start()

        def work(self):
            try:
                while not self.over.is_set():
                    begin = time.monotonic()
                    assert self.control.output(self.session, "echo", "on") == "on\n"
                    self.longest = max(self.longest, time.monotonic() - begin)
                    self.rounds += 1
            except Exception as e:  # shown by check()
                self.error = e

        def check(self):
            most = max(15, (time.monotonic() - self.begin) / 2)  # who is served only after the flood waits for all of it
            self.over.set()
            self.thread.join(120)
            assert self.error is None and self.rounds > 0 and self.longest < most, (self.error, self.rounds, self.longest, most)

    made = []

    def start():
        made.append(Others())
        return made[-1]

    yield start
    for one in made:
        one.over.set()
        one.thread.join(120)


def flood(seat, message, number, seconds=60):
    """Sends without reading a single answer, for as long as the launcher takes it: how many."""
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    seat.socket.settimeout(30)  # one that takes nothing for half a second may wait for a processor
    end = time.monotonic() + seconds
    for sent in range(number):
        try:
            seat.socket.send(data)
        except OSError:
            return sent
        if time.monotonic() > end:
            return sent
    return number


FLOODS = {
    "session_list": {"id": 1000, "op": "session_list"},
    "a refused request": {"id": 1000, "op": "session_stat", "session": "s-0000000000000000"},
    "refused requests of 60000 bytes": {"id": 1000, "op": "session_create", "domain": "x" * 60000},
    "refused grants": {"id": 1000, "op": "session_create", "domain": "bash", "narrow": {"grants": [{"path": "/etc"}] * 200}},
    "session_create": {"id": 1000, "op": "session_create", "domain": "bash"},
}


@pytest.mark.parametrize("what", FLOODS)
def test_a_flood_without_reading_is_bounded_and_ends_the_agent(fresh, hostile, others, what):
    opened(hostile)
    client, before = others(), resident_kib(fresh.pid)
    taken = flood(hostile, FLOODS[what], 100000)
    most = resident_kib(fresh.pid)
    assert taken < 100000 and most - before < 48 * MIB, f"{taken} messages taken, {before} KiB before, {most} KiB after"
    assert len(killed_for(fresh, hostile)) == 1
    client.check()
    serves(fresh)


@pytest.mark.parametrize("what", ["session_list", "a refused request"])
def test_a_flood_of_answered_requests_leaves_time_for_others(fresh, hostile, others, what):
    opened(hostile)
    client, before = others(), resident_kib(fresh.pid)
    message = json.dumps(FLOODS[what]).encode()
    for _ in range(2000):
        for _ in range(10):
            hostile.socket.send(message.replace(b"1000", str(hostile.next_id).encode(), 1))
            hostile.next_id += 1
        for _ in range(10):
            assert hostile.hear()["id"]
    assert hostile.alive() and resident_kib(fresh.pid) - before < 16 * MIB
    client.check()


def test_a_flood_of_refusals_is_counted_and_does_not_fill_the_audit_log(fresh, hostile):
    opened(hostile)
    begin, number = time.monotonic(), 3000
    for _ in range(number):
        assert not hostile.ask("session_stat", session="s-0000000000000000")["ok"]
    hostile.raw(b"broken")
    killed_for(fresh, hostile)
    found = [r for r in fresh.records() if r["event"] == "request_refused"]
    # 64 at once, one a second, and the counts every ten seconds and at the end.
    assert len(found) <= 64 + 1.2 * (time.monotonic() - begin) + 2 and sum(r.get("dropped", 1) for r in found) == number


def test_an_agent_has_a_bounded_amount_of_memory(hostile):
    limits = pathlib.Path(f"/proc/{hostile.pid}/limits").read_text()
    assert next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max data size")) == [str(1 << 30)] * 2


def test_a_flood_of_sessions_stops_at_the_limit(fresh, compiled, others):
    program = compiled("seat")
    fresh.start("--agent", program, wrapper=fresh.in_own_mounts(), CAISSON_READY_SESSIONS="0", CAISSON_MAX_SESSIONS="12")
    before = settled(fresh)
    seat = Seat(fresh, program)
    opened(seat)
    client = others()
    numbers = [seat.say("session_create", domain="bash", narrow={"tmp": "private"}) for _ in range(60)]
    answers = []
    while len(answers) < len(numbers):
        message = seat.hear()
        if message.get("id") in numbers:
            answers.append(message)
    made, codes = [a["ok"] for a in answers].count(True), [a["error"]["code"] for a in answers if not a["ok"]]
    late = codes.count("timeout")  # a busy machine may not build all eleven in the time that each has
    assert made > 0 and made + late == 11 and set(codes) - {"timeout"} == {"limit"}, codes
    client.check()
    seat.raw(b"broken")
    killed_for(fresh, seat)
    client.control.destroy(client.session)
    for control in fresh.controls:
        control.close()
    fresh.controls.clear()
    serves(fresh)
    eventually(lambda: counts(fresh)["processes"] == before["processes"], what="the sessions are gone")


def test_a_flood_of_destructions_is_answered_or_ends_the_agent(fresh, hostile):
    running(hostile)
    for _ in range(3000):
        hostile.say("session_destroy", session=hostile.sessions[0])
    hostile.raw(b"broken")
    killed_for(fresh, hostile)
    serves(fresh)


def test_commands_beyond_the_limit_are_refused_and_their_descriptors_closed(fresh, hostile):
    opened(hostile)
    session = hostile.create()
    before = settled(fresh, 1)["descriptors"]
    answers = [hostile.ask("session_exec", session=session, argv=["sleep", "1000"]) for _ in range(100)]
    assert {a["error"]["code"] for a in answers if not a["ok"]} == {"limit"} and sum(a["ok"] for a in answers) == 64
    assert settled(fresh, 1)["descriptors"] == before


@pytest.mark.parametrize("number, size", [(60, 3_000), (40, 20_000), (8, 60_000), (60, 100)])
def test_commands_all_at_once_are_started_or_refused_one_by_one(fresh, hostile, number, size):
    """More than the socket to caisson-init holds: what is refused is a command, not the session."""
    opened(hostile)
    session = hostile.create()
    before = settled(fresh, 1)["descriptors"]
    asked = [hostile.say("session_exec", session=session, argv=["true", "x" * size], stdin=False) for _ in range(number)]
    answers = [next((m for m in hostile.unread if m.get("id") == id), None) or hostile.answer(id) for id in asked]
    assert {a["error"]["code"] for a in answers if not a["ok"]} <= {"limit"} and sum(a["ok"] for a in answers) >= 1
    assert hostile.ask("session_exec", session=session, argv=["true"], stdin=False)["ok"]
    assert settled(fresh, 1)["descriptors"] == before


def test_a_stopped_agent_keeps_nobody_waiting(fresh, hostile, others):
    running(hostile)
    hostile.signal(signal.SIGSTOP)
    client, before = others(), resident_kib(fresh.pid)
    eventually(lambda: client.rounds > 20)
    assert resident_kib(fresh.pid) - before < 16 * MIB
    client.check()
    hostile.raw(b"broken")  # a process that stands still is killed all the same
    killed_for(fresh, hostile)


def kill(seat):
    seat.signal(signal.SIGKILL)


def close(seat):
    seat.signal(signal.SIGUSR1)


def shut(seat):
    seat.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("how", [kill, close, shut], ids=lambda f: f.__name__)
@pytest.mark.parametrize("state", NAMED)
def test_an_agent_that_goes_away_leaves_nothing(fresh, hostile, compiled, state, how):
    before = settled(fresh)
    state(hostile)
    how(hostile)
    killed_for(fresh, hostile)
    Seat(fresh, compiled("seat")).close()
    control = fresh.control()
    eventually(lambda: control.call("session_list")[0]["sessions"] == [])
    control.close()
    serves(fresh)
    eventually(lambda: counts(fresh) == before, what=f"{counts(fresh)} is {before} again")


def test_an_agent_that_does_not_listen_loses_its_answers_only(fresh, hostile):
    opened(hostile)
    session = hostile.create()
    hostile.socket.shutdown(socket.SHUT_RD)
    before = settled(fresh, 1)["descriptors"]
    for _ in range(20):
        hostile.say("session_exec", session=session, argv=["true"])
    serves(fresh)
    eventually(lambda: counts(fresh)["descriptors"] == before, what="no descriptor waits for it")


def test_a_sealed_agent_cannot_fork(fresh, hostile):
    hostile.signal(signal.SIGWINCH)
    ended = eventually(lambda: next((r for r in fresh.records() if r["event"] == "agent_exit"), None))
    assert (ended["signaled"], ended["status"]) == (False, 1), "fork must fail with EPERM"


def test_an_agent_cannot_fork_before_it_is_sealed_either(fresh, hostile):
    before = settled(fresh)
    hostile.signal(signal.SIGUSR2)
    ended = eventually(lambda: next((r for r in fresh.records() if r["event"] == "agent_exit"), None))
    assert (ended["signaled"], ended["status"]) == (False, 1), "fork must fail with EPERM"
    eventually(lambda: counts(fresh)["processes"] == before["processes"], what="it left no child")


def test_the_end_of_an_agent_is_the_end_of_its_connection(fresh, hostile):
    """Even when its end of the socket is held by somebody else, who must not speak in its name beside the next agent."""
    running(hostile)
    hostile.signal(signal.SIGKILL)
    while hostile.hear() is not None:
        pass
    control = fresh.control()
    eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="its sessions are gone")


def test_an_agent_that_starts_and_dies_again_and_again_is_started_ever_more_slowly(fresh):
    fresh.start("--agent", "/usr/bin/true")
    serves(fresh)

    def starts():
        return [r["mono_us"] for r in fresh.records() if r["event"] == "agent_start"]

    eventually(lambda: len(starts()) > 5, what="five are started again")
    gaps = [b - a for a, b in zip(starts(), starts()[1:])]
    # 50 ms, and each time twice as long; what a busy machine adds makes none shorter.
    assert all(gap >= 50_000 << i for i, gap in enumerate(gaps[:5])), gaps
