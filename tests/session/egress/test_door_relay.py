"""Connections once they are relayed: every byte, both ends, limits, and what is left when one of the processes goes."""

import contextlib
import errno
import json
import os
import random
import resource
import select
import socket
import struct
import threading
import time

import pytest
import stage
import world
from harness import ended, eventually
from world import PUBLIC, echo, kill, list_of, read_all, rule

PORT = 2222
RULES = [rule("api.test", ports=[PORT])]


@pytest.fixture
def served(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    internet.reached = internet.serve(PUBLIC, PORT, echo)
    return internet


@pytest.fixture
def relayed(served):
    return served.open(*RULES, port=PORT)


def works(client, data=b"hello"):
    client.sendall(data)
    return client.recv(100) == data


@pytest.mark.parametrize("size", [1, 65_536, 262_144, 262_145, 5_000_001])
def test_every_byte_arrives_both_ways(relayed, size):
    sent = random.Random(size).randbytes(size)
    client = relayed.connect("api.test", PORT)
    writer = threading.Thread(target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR)))
    writer.start()
    got = read_all(client)
    writer.join()
    assert got == sent
    record = relayed.record(event="connection")
    assert (record["up"], record["down"], record["ended"]) == (size, size, "done")


def test_a_reader_that_stops_for_a_while_loses_nothing(served):
    sent = random.Random(1).randbytes(6_000_000)
    held = threading.Event()

    def late(connection):
        held.wait(60)
        got = b""
        while data := connection.recv(10_000):
            got += data
        connection.sendall(b"same" if got == sent else b"different")

    served.serve(PUBLIC, 3333, late)
    served.open(rule("api.test", ports=[3333]), port=3333)
    client = served.connect("api.test", 3333)
    client.setblocking(False)
    at = 0
    with contextlib.suppress(BlockingIOError):
        while at < len(sent):
            at += client.send(sent[at : at + 100_000])
    assert at < len(sent), "the door has taken more than the sockets hold"
    held.set()
    client.settimeout(60)
    client.sendall(sent[at:])
    client.shutdown(socket.SHUT_WR)
    assert read_all(client) == b"same"


def test_an_end_of_one_direction_leaves_the_other(served):
    seen = []

    def after_the_end(connection):
        seen.append(read_all(connection))
        connection.sendall(b"after the end")

    served.serve(PUBLIC, 3333, after_the_end)
    served.open(rule("api.test", ports=[3333]), port=3333)
    client = served.connect("api.test", 3333)
    client.sendall(b"all")
    client.shutdown(socket.SHUT_WR)
    assert read_all(client) == b"after the end" and seen == [b"all"]


def test_a_server_may_end_first(served):
    got = []

    def ends_first(connection):
        connection.sendall(b"banner")
        connection.shutdown(socket.SHUT_WR)
        got.append(read_all(connection))

    served.serve(PUBLIC, 3333, ends_first)
    served.open(rule("api.test", ports=[3333]), port=3333)
    client = served.connect("api.test", 3333)
    assert read_all(client) == b"banner"
    client.sendall(b"still")
    client.close()
    eventually(lambda: got == [b"still"])


def test_a_reset_is_a_reset_at_the_other_end(served):
    got = []

    def answers(connection):
        first = connection.recv(1)
        connection.sendall(b"y")
        got.append(first + read_all(connection))

    served.serve(PUBLIC, 3333, answers)
    served.open(rule("api.test", ports=[3333]), port=3333)
    client = served.connect("api.test", 3333)
    client.sendall(b"x")
    assert client.recv(1) == b"y"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    eventually(lambda: got == [b"xRST"])
    assert served.record(event="connection")["ended"] == "reset"


def test_a_thousand_connections_at_once(served):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    served.open(*RULES, port=PORT, connections=2000, per_second=2000)
    address = served.ask("api.test")[1][0]
    before = served.door.memory()
    clients = [served.connect(address, PORT) for _ in range(1000)]
    for client in clients:
        client.sendall(b"hello")
    assert all(client.recv(10) == b"hello" for client in clients)
    # Copies and pipes are of those that move; who waits takes about 1 KiB of our memory; some more was needed while all of them began at once.
    assert world.UNSEALED or served.door.memory() - before < 1600
    for client in clients:
        client.close()
    eventually(lambda: len(os.listdir(f"/proc/{served.door.pid}/fd")) < 100)


def test_more_connections_than_the_limit_are_reset(served):
    served.open(*RULES, port=PORT, connections=5)
    address = served.ask("api.test")[1][0]
    clients = [served.connect(address, PORT) for _ in range(5)]
    assert all(works(client) for client in clients)
    assert not tried(served, address)
    assert served.record(event="refusal")["refusal"] == "limit"
    clients.pop().close()
    eventually(lambda: tried(served, address))


def tried(served, address):
    with contextlib.suppress(ConnectionError), served.connect(address, PORT) as client:
        return works(client)
    return False


def test_new_connections_faster_than_the_limit_are_reset(served):
    served.open(*RULES, port=PORT, per_second=2)
    address = served.ask("api.test")[1][0]
    ends = [tried(served, address) for _ in range(30)]
    assert ends[:8] == [True] * 8 and False in ends
    assert served.record(event="refusal")["refusal"] == "rate"


def test_bytes_are_limited(served):
    served.open(*RULES, port=PORT, bytes_per_second=400_000)
    client = served.connect("api.test", PORT)
    begin = time.monotonic()
    threading.Thread(target=client.sendall, args=(b"x" * 400_000,), daemon=True).start()
    got = 0
    while got < 400_000:
        got += len(client.recv(65536))
    assert time.monotonic() - begin > 1.2  # 800,000 bytes both ways, 100,000 of them at once


def test_a_connection_where_nothing_moves_ends(served):
    served.open(*RULES, port=PORT, idle=3)
    client = served.connect("api.test", PORT)
    assert works(client)
    assert read_all(client) == b"RST"
    assert served.record(event="connection")["ended"] == "idle"


@pytest.mark.parametrize("port, first", [(443, b""), (443, b"\x16\x03\x01\x02\x00\x01"), (80, b"GET / HTT"), (80, b"")], ids=range(4))
def test_who_does_not_say_what_it_wants_is_not_waited_for(internet, port, first):
    internet.names.zone["api.test"] = [PUBLIC]
    reached = internet.serve(PUBLIC, port, echo)
    internet.open(rule("api.test"), port=port)
    client = internet.connect("api.test", port, timeout=90)
    begin = time.monotonic()
    client.sendall(first)
    answer = read_all(client)
    assert time.monotonic() - begin < 60 and reached == []
    assert answer.startswith(b"HTTP/1.1 408") if first.startswith(b"GET") else answer in (b"", b"RST", b"\x15\x03\x03\x00\x02\x02\x31")


def test_a_head_that_comes_a_byte_at_a_time_has_an_end(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    internet.open(rule("api.test"), port=80)
    client = internet.connect("api.test", 80)
    begin = time.monotonic()
    with contextlib.suppress(ConnectionError, BrokenPipeError):
        while not select.select([client], [], [], 0.2)[0]:
            client.sendall(b"X")
    assert 9 < time.monotonic() - begin < 60
    assert internet.record(event="refusal")["refusal"] == "timeout"


def test_what_runs_goes_on_under_a_newer_list_and_what_is_new_does_not(relayed):
    runs = relayed.connect("api.test", PORT)
    assert works(runs)
    address = relayed.ask("api.test")[1][0]
    relayed.set_list(rule("other.test"), generation=2)
    assert relayed.resets(address, PORT)
    assert works(runs)
    runs.close()
    assert relayed.record(event="connection")["generation"] == 1


def test_a_workspace_that_is_closed(relayed):
    client = relayed.connect("api.test", PORT)
    assert works(client)
    for service in (relayed.door, relayed.dialer):
        stage.send(service.socket, struct.pack("IIQ", stage.TO_CLOSE, 0, 1))
    assert read_all(client) == b"RST"
    said = [relayed.door.hear()]
    while said[-1][0] != stage.CLOSED:
        said.append(relayed.door.hear())
    assert [json.loads(text)["ended"] for kind, _, text in said if kind == stage.RECORD] == ["closed"]
    assert relayed.dialer.hear()[:2] == (stage.CLOSED, 1)


def test_a_door_that_is_killed_ends_its_connections_and_another_one_goes_on(relayed):
    client = relayed.connect("api.test", PORT)
    assert works(client)
    kill(relayed.door)
    assert read_all(client) in (b"", b"RST")
    relayed.door.socket.close()
    relayed.start_door()
    relayed.join()
    relayed.set_list(*RULES, sockets=relayed.sockets)
    # The dialer has had its list before; that it gets it again is no fault.
    assert works(relayed.connect("api.test", PORT))


def test_figures_are_told(relayed):
    with relayed.connect("api.test", PORT) as client:
        assert works(client)
    with contextlib.suppress(AssertionError):
        relayed.connect("198.18.99.99", PORT).close()

    def figures():
        while True:
            said, workspace, text = relayed.door.hear()
            if said == stage.FIGURES:
                return workspace, json.loads(text)

    def all_of_it():
        workspace, told = figures()
        return workspace == 1 and (told["accepted"], told["ended"], told["up"], told["down"]) == (2, 1, 5, 5) and told["refused"] == {"no_such_name": 1}

    eventually(all_of_it)


def test_a_flood_of_refusals_is_counted(served):
    served.open(*RULES, port=PORT, per_second=1000)
    passed, dropped = 0, 0
    for _ in range(700):
        with served.workspace.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.connect(("198.18.99.99", PORT))
            client.send(b"x")
            read_all(client)
    while passed + dropped < 700:
        said, _, text = served.door.hear()
        passed += said == stage.RECORD
        dropped += json.loads(text)["no_such_name"] if said == stage.DROPPED else 0
    assert passed >= 500 and dropped > 0


@pytest.mark.parametrize("name", ["door", "dialer"])
@pytest.mark.parametrize(
    "message", [b"x", struct.pack("IIQ", 0, 0, 1), struct.pack("IIQ", 99, 0, 1), struct.pack("IIQ", stage.OPEN, 0, 1), struct.pack("IIQ", stage.TO_PEER, 0, 0)],
    ids=range(5),
)  # fmt: skip
def test_what_is_no_order_ends_the_process(relayed, name, message):
    service = getattr(relayed, name)
    stage.send(service.socket, message)
    ended([service.pid])


@pytest.mark.parametrize("bytes_", [b"\n", b"bash\n8\negress4\n", list_of(*RULES)[:-1], list_of(*RULES) + b"x", b"x" * 300_000], ids=range(5))
def test_a_list_that_is_none_ends_the_process(relayed, bytes_):
    stage.send(relayed.door.socket, struct.pack("IIQ", stage.OPEN, 2, 1), [stage.memory_file(bytes_)])
    ended([relayed.door.pid])


@pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
def test_both_are_sealed(relayed):
    for service, uid in ((relayed.door, "993"), (relayed.dialer, "994")):
        assert service.status("Uid").split() == [uid] * 4
        assert [service.status(name) for name in ("CapEff", "CapPrm", "CapBnd")] == ["0" * 16] * 3
        assert (service.status("NoNewPrivs"), service.status("Seccomp"), service.status("Threads")) == ("1", "2", "1")


def test_both_end_with_whoever_started_them(relayed):
    for service in (relayed.door, relayed.dialer):
        service.socket.shutdown(socket.SHUT_RDWR)
        assert service.process.wait(60) == 0
    client = relayed.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
    for made in relayed.sockets:
        made.close()
    assert client.connect_ex(("198.18.0.1", PORT)) == errno.ECONNREFUSED
