"""One workspace floods the door: what it takes is bounded, and another workspace beside it is served all the while."""

import contextlib
import os
import resource
import select
import socket
import threading

import pytest
import world
from harness import eventually
from world import PUBLIC, echo, rule

PORT, FLOOD, ROOM = 2222, 10_000, 512
RULES = [rule("api.test", ports=[PORT, 80])]


@pytest.fixture
def both(internet):
    """(the internet, the network namespace of a workspace that does nothing wrong)"""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    internet.names.zone["api.test"] = [PUBLIC]
    for port in (PORT, 80):
        internet.serve(PUBLIC, port, echo)
    internet.open(*RULES, port=PORT, connections=ROOM, per_second=20_000)
    yield internet, internet.beside(*RULES, port=PORT)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def served(internet, net, at="api.test"):
    with contextlib.suppress(ConnectionError), internet.connect(at, PORT, net=net) as client:
        client.sendall(b"on")
        return client.recv(2) == b"on"
    return False


def begun(internet, address, count):
    """Connections that are not waited for."""
    out = []
    for _ in range(count):
        one = internet.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect((address, PORT))
        out.append(one)
    return out


def alive(clients):
    """Those that have not been ended."""
    poll = select.poll()
    for one in clients:
        poll.register(one, select.POLLIN)
    return len(clients) - len(poll.poll(0))


def test_ten_thousand_connections_of_one_workspace(both):
    internet, quiet = both
    address = internet.ask("api.test")[1][0]
    memory, files = internet.door.memory(), len(os.listdir(f"/proc/{internet.door.pid}/fd"))
    answers, over = [], threading.Event()
    quiet_address = internet.ask("api.test", net=quiet)[1][0]  # once: names have a limit of their own

    def beside():
        while not over.is_set():
            answers.append(served(internet, quiet, quiet_address))

    other = threading.Thread(target=beside)
    other.start()
    clients = begun(internet, address, FLOOD)
    eventually(lambda: alive(clients) <= ROOM, what="those above the limit are ended")
    # Each of those that stay has two ends, at most.
    assert len(os.listdir(f"/proc/{internet.door.pid}/fd")) - files <= 2 * ROOM + 100
    assert world.UNSEALED or internet.door.memory() - memory < 4096
    over.set()
    other.join()
    assert answers and all(answers)
    for one in clients:
        one.close()
    eventually(lambda: len(os.listdir(f"/proc/{internet.door.pid}/fd")) < files + 100, what="all of it is released")
    assert served(internet, None) and served(internet, quiet)


def test_heads_that_never_end_fill_one_workspace_alone(both):
    """As many as there may be, at the door as a proxy, each a few bytes; they end by themselves."""
    internet, quiet = both
    clients = [internet.connect("127.0.0.1", PORT) for _ in range(ROOM)]
    for number, one in enumerate(clients):
        one.sendall(b"GET http://api.test/ HTTP/1.1\r\nX: "[: number % 30 + 1])
    assert served(internet, quiet)
    assert not served(internet, None)
    eventually(lambda: alive(clients) == 0, what="each is ended")
    eventually(lambda: served(internet, None), what="there is room again, though no client has closed")
    assert served(internet, quiet)


def test_questions_without_end_are_answered_to_a_limit(both):
    internet, quiet = both
    asker = internet.workspace.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asker.connect(("127.0.0.53", 53))
    asker.setblocking(False)
    question = world.question("api.test", 1)
    over = threading.Event()

    def flood():
        while not over.is_set():
            with contextlib.suppress(OSError):
                asker.send(question)

    thread = threading.Thread(target=flood)
    thread.start()
    memory = internet.door.memory()
    assert all(served(internet, quiet) for _ in range(20))
    over.set()
    thread.join()
    asker.close()
    assert world.UNSEALED or internet.door.memory() - memory < 1024
