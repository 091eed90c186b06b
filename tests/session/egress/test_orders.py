"""What caisson-gate tells door and dialer waits for one that is slow, in order and up to a bound, and is the newest that there is."""

import os
import signal
import socket
import struct

import stage
from stage import MAKE, OPEN, READY, TO_CLOSE, answer_of, ask, opened
from world import list_of, rule

CONNECTOR, MAPPINGS = 5, 9  # egress_protocol.h
STUCK = "does not take its orders"
LISTS = list_of(rule("api.test"))


def heard(service):
    """(order, generation, workspace), its text; its descriptors are closed."""
    data, fds = stage.receive(service.socket)
    for fd in fds:
        os.close(fd)
    return struct.unpack("IIQ", data[:16]), data[16:]


def there(service):
    """What it can read at once."""
    service.socket.setblocking(False)
    try:
        while True:
            yield heard(service)
    except BlockingIOError:
        pass
    finally:
        service.socket.settimeout(60)


def changes(gate, count):
    """About 12 KiB of mappings, and the first of them changed again and again."""
    for at in range(22):
        ask(gate.socket, "add_mapping", source=f"{at}.test/" + "x" * 480, target="3000")
    for at in range(count):
        ask(gate.socket, "add_mapping", source="0.test", target=str(4000 + at))


def test_a_door_that_is_slow_is_told_the_newest(gate, place):
    door, _, _ = opened(gate, place)
    changes(gate, 64)
    assert ask(gate.socket, "health")["door"]
    orders = []
    while not orders or b"\n4063\n" not in orders[-1][1]:
        orders.append(heard(door))
    told = [text for (order, _, _), text in orders if order == MAPPINGS]
    assert len(told) < 60 and told == sorted(told, key=len), "what was waiting is told once"
    assert heard(door)[0] == (OPEN, 1, 1)
    gate.order(stage.CLOSE, 1)
    assert heard(door)[0] == (TO_CLOSE, 1, 1)


def test_one_that_never_reads_is_ended(gate, place):
    door, _, _ = opened(gate, place)
    changes(gate, 64)
    assert gate.told_until("exit") == {"process": "door", "pid": door.pid, "how": "signal 9", "why": STUCK}


def without_namespaces(gate, workspace, lists=LISTS):
    """A workspace for whose sessions connectors connect: the builder's end of its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    file = stage.memory_file(lists)
    gate.order(MAKE, workspace, fds=[file, theirs.fileno()])
    theirs.close()
    os.close(file)
    return ours


def served(gate, builders, services=None):
    """Door and dialer that serve; what they were told is read."""
    services = services or gate.services()
    for service in services.values():
        service.say(READY)
    for builder in builders:
        assert answer_of(builder) == "made"
        for service in services.values():
            list(there(service))
    return services


def test_one_that_is_started_again_is_told_of_any_number_of_workspaces(gate):
    count = 400
    builders = [without_namespaces(gate, 1)]
    services = served(gate, builders)
    for number in range(2, count + 1):
        builders.append(without_namespaces(gate, number))
        served(gate, builders[-1:], services)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stage.send(builders[-1], b"session bash", [theirs.fileno()])
    assert len(ours.recv(100)) > 0, "the connector is the gate's"
    assert ask(gate.socket, "add_mapping", workspace=count, source="a.test", target="api.test:443")["mappings"]
    for name in ("door", "dialer"):
        os.kill(services[name].pid, signal.SIGKILL)
        again = gate.services(1)[name]
        told, last = [], {"door": (MAPPINGS, 1, count), "dialer": (OPEN, 1, count)}[name]
        while last not in told:
            told.append(heard(again)[0])
        assert [workspace for order, _, workspace in told if order == OPEN] == list(range(1, count + 1))
        assert name == "dialer" or told[-3:] == [(OPEN, 1, count), (CONNECTOR, 1, count), last]
    for one in (*builders, ours, theirs):
        one.close()


def test_where_connectors_tell_sessions_apart_lists_may_differ(gate):
    lists = LISTS + list_of(rule("other.test"), domain="code")
    with without_namespaces(gate, 1, lists) as builder:
        kept = served(gate, [builder])
        assert kept and ask(gate.socket, "health") == {"door": True, "dialer": True, "consistent": True, "inconsistencies": []}
