"""Raw bytes and descriptors from the agent in every state of the protocol. Whatever it says, it is killed and that is on
record, its sessions end, nothing stays behind, and others are served."""

import array
import os
import signal
import socket
import struct

import pytest
from harness import eventually
from messages import BEFORE_HELLO, EVERYWHERE, FATAL, SECOND_HELLO
from seat import STATES, Seat, counts, greeting, killed_for, opened, running, serves, settled

LIST = b'{"id": 1000000, "op": "session_list"}'
NAMED = [pytest.param(state, id=state.__name__) for state in STATES]


@pytest.fixture
def ends(fresh, hostile, compiled):
    """Checks the end of an agent that said something: what the launcher must do, and that it has lost nothing."""
    before = settled(fresh)

    def check():
        said = killed_for(fresh, hostile)
        assert len(said) == 1 and said[0], "no record says why the agent was killed"
        another = Seat(fresh, compiled("seat"))
        another.close()
        assert another.pid != hostile.pid
        control = fresh.control()
        eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="its sessions are gone")
        control.close()
        serves(fresh)
        eventually(lambda: counts(fresh) == before, what=f"{counts(fresh)} is {before} again")
        return said[0]

    return check


def matrix(everything, everywhere):
    """Everything in one state, one of each kind in the others; with CAISSON_TEST_FULL everything in each."""
    full = bool(os.environ.get("CAISSON_TEST_FULL"))
    for state in STATES:
        for what in everything if full or state is running else everywhere:
            yield pytest.param(state, what, id=f"{state.__name__}-{what}")


@pytest.mark.parametrize("state, what", matrix(FATAL, EVERYWHERE))
def test_a_broken_message_ends_the_agent(hostile, ends, state, what):
    state(hostile)
    hostile.raw(FATAL[what])
    ends()


@pytest.mark.parametrize("op", BEFORE_HELLO)
def test_an_operation_before_hello_ends_the_agent(hostile, ends, op):
    hostile.raw(BEFORE_HELLO[op])
    assert "wrong state" in ends()


@pytest.mark.parametrize("state", [s for s in NAMED if s.values[0] is not greeting])
def test_a_second_hello_ends_the_agent(hostile, ends, state):
    state(hostile)
    hostile.raw(SECOND_HELLO)
    assert "wrong state" in ends()


def attached():
    """kind -> descriptors to attach (closed by the caller)."""
    memfd = os.memfd_create("x")
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    path = os.open("/etc/shadow", os.O_PATH)
    pipe = os.pipe()
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pidfd = os.pidfd_open(1)
    one = [s.detach() for s in pair]
    return {
        "a memfd": [memfd],
        "a directory": [directory],
        "a path": [path],
        "a pipe": list(pipe),
        "a socket pair": one,
        "a pidfd": [pidfd],
        "4 descriptors": [memfd] * 4,
        "5 descriptors": [memfd] * 5,
        "64 descriptors": [memfd] * 64,
        "253 descriptors": [memfd] * 253,
        "253 directories": [directory] * 253,
    }


KINDS = [
    "a memfd", "a directory", "a path", "a pipe", "a socket pair", "a pidfd",
    "4 descriptors", "5 descriptors", "64 descriptors", "253 descriptors", "253 directories", "the socket itself",
]  # fmt: skip


@pytest.mark.parametrize("state, kind", matrix(KINDS, ["a directory", "253 descriptors", "the socket itself"]))
def test_attached_descriptors_end_the_agent_and_are_closed(hostile, ends, state, kind):
    state(hostile)
    kinds = attached()
    fds = [hostile.socket.fileno()] * 3 if kind == "the socket itself" else kinds[kind]
    hostile.raw(LIST, fds)
    for fd in {fd for fds in kinds.values() for fd in fds}:
        os.close(fd)
    assert "descriptors" in ends()


@pytest.mark.parametrize("count", [1, 253])
def test_descriptors_with_no_message_end_the_agent_and_are_closed(hostile, ends, count):
    hostile.raw(b"", [0] * count)
    ends()


def test_descriptors_in_a_cycle_of_unread_messages_are_closed(fresh, hostile, ends):
    # Sockets that travel in each other's queues are freed by the kernel's collector alone; the launcher must not hold one.
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(20):
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.fileno(), a.fileno()]))])
    hostile.raw(LIST, [a.fileno(), b.fileno(), hostile.socket.fileno()])
    a.close(), b.close()
    ends()


def test_an_id_that_waits_for_its_answer_ends_the_agent_that_uses_it_again(hostile, ends):
    hostile.ask("hello", protocol=1)
    create = b'{"id": 7, "op": "session_create", "domain": "bash"}'
    hostile.raw(create)
    hostile.raw(create)
    assert "id" in ends()


def test_credentials_that_are_not_its_own_say_nothing(fresh, hostile):
    # SCM_CREDENTIALS of another process: only a process with the capability may forge them; the launcher reads none.
    hostile.socket.sendmsg(
        [b'{"id": 1, "op": "hello", "protocol": 1}'],
        [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iII", os.getpid(), 0, 0))],
    )
    assert hostile.hear()["ok"]
    other = fresh.control().create()
    assert hostile.ask("session_stat", session=other)["error"]["code"] == "not_found"


def test_what_a_dead_agent_has_left_unread_ends_nothing(fresh, hostile):
    """Its socket is dropped with requests in it: those that are still read then are nobody's."""
    before = settled(fresh)
    opened(hostile)
    for _ in range(60):
        hostile.say("session_create", domain="bash", isolation="private")
        hostile.say("session_list")
    hostile.signal(signal.SIGKILL)
    hostile.close()
    eventually(lambda: [r for r in fresh.records() if r["event"] == "agent_exit"], what="its end is on record")
    serves(fresh)
    control = fresh.control()
    eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="its sessions are gone")
    control.close()
    eventually(lambda: counts(fresh) == before, what=f"{counts(fresh)} is {before} again")
