"""What one session, server or process says keeps the others of door and dialer neither from being heard nor from being served."""

import errno
import json
import os
import socket
import struct
import threading

import pytest
import stage
from harness import ended, eventually
from names import question
from world import PUBLIC, client_hello, echo, read_all, rule

PORT = 2222


@pytest.fixture
def served(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    internet.serve(PUBLIC, PORT, echo)
    return internet.open(rule("api.test", ports=[PORT]), mode=1, port=PORT)


def works(internet, net=None):
    with internet.connect("api.test", PORT, net=net) as client:
        client.sendall(b"hello")
        return client.recv(100) == b"hello"


def dial(line, number, port):
    line.send(struct.pack("QIHH", 1, number, port, 8) + b"api.testbash")
    data, fds = stage.receive(line)
    for fd in fds:
        os.close(fd)
    return struct.unpack("IiiI", data[:16])


def test_port_0_is_refused_and_ends_nothing(served):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stage.send(served.dialer.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    theirs.close()
    ours.settimeout(60)
    assert dial(ours, 1, 0)[:2] == (1, errno.EACCES)
    assert dial(ours, 2, PORT)[:2] == (2, 0), "the one that came before ended the line"


@pytest.mark.parametrize("name", ["door", "dialer"])
def test_who_finds_its_peer_saying_what_it_may_not_ends_so_that_they_are_joined_anew(served, name):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    service = getattr(served, name)
    stage.send(service.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    ours.send(b"x")
    ended([service.pid])


def test_a_session_that_asks_for_names_as_fast_as_it_is_answered_keeps_nobody_waiting(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    internet.serve(PUBLIC, PORT, echo)
    internet.open(rule("api.test", ports=[PORT]), port=53)
    message = question("api.test", 1)
    framed = (struct.pack(">H", len(message)) + message) * 200
    beside, over = internet.beside(rule("api.test", ports=[PORT]), port=PORT), threading.Event()
    floods = [internet.workspace.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(2)]

    def repeat(act):
        while not over.is_set():
            try:
                act()
            except OSError:
                return

    threads = []
    for flood in floods:
        flood.connect(("192.0.2.1", 53))
        threads += [threading.Thread(target=repeat, args=[act], daemon=True) for act in (lambda one=flood: one.sendall(framed), lambda one=flood: one.recv(1 << 20))]
    for thread in threads:
        thread.start()
    try:
        assert works(internet, beside)
    finally:
        over.set()
        for flood in floods:
            flood.close()


def test_methods_of_a_rule_hold_at_every_port(internet):
    internet.names.zone["api.test"] = [PUBLIC]
    seen = []

    def answer(connection):
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    internet.serve(PUBLIC, 8080, answer)
    internet.open(rule("api.test", ports=[8080], read_only=True), port=8080)
    for method, status in (("GET", b"HTTP/1.1 200"), ("POST", b"HTTP/1.1 403"), ("DELETE", b"HTTP/1.1 403")):
        with internet.connect("api.test", 8080) as client:
            client.sendall(f"{method} / HTTP/1.1\r\nHost: api.test:8080\r\nConnection: close\r\n\r\n".encode())
            assert read_all(client).startswith(status), method
    tunnel = internet.connect("127.0.0.1", 8080)
    tunnel.sendall(b"CONNECT api.test:8080 HTTP/1.1\r\nHost: api.test:8080\r\n\r\n")
    assert tunnel.recv(1000).startswith(b"HTTP/1.1 200")
    tunnel.sendall(b"POST / HTTP/1.1\r\nHost: api.test:8080\r\nContent-Length: 0\r\n\r\n")
    assert read_all(tunnel).startswith(b"HTTP/1.1 403")
    assert [data.split()[0] for data in seen] == [b"GET"]


@pytest.mark.parametrize("head", [b"\x16\x03\x09", b"\x16\x03\xff", b"\x16\x02\x00", b"\x16\x0f\x00"], ids=range(4))
def test_another_server_name_is_refused_whatever_the_records_version(served, head):
    with served.connect("api.test", PORT) as client:
        client.sendall(head + client_hello("denied.test")[3:])
        assert b"hello" not in read_all(client)
    assert served.record(event="refusal")["refusal"] == "sni"


@pytest.mark.parametrize("more", [b"\x16\x03\x01\x00\x06\x00\x00\x00\x00\x00\x00", b"\x16\x03\x01\x00\x05hello"], ids=["another message first", "no message"])
def test_what_a_server_may_take_for_tls_is_refused_where_it_cannot_be_read(served, more):
    with served.connect("api.test", PORT) as client:
        client.sendall(more)
        read_all(client)
    assert served.record(event="refusal")["refusal"] == "not_tls"


ANNOUNCE, WITHDRAW = 1, 2  # common/egress/connector.h


def test_what_a_connector_announces_counts_until_it_came_or_is_late(internet):
    internet.serve(PUBLIC, PORT, echo)
    internet.start_dialer(), internet.start_door(), internet.join()
    listener = internet.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0)), listener.listen(100)
    internet.set_list(rule(address=PUBLIC, ports=[PORT]), sockets=[listener], connections=2)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stage.send(internet.door.socket, struct.pack("IIQ", stage.CONNECTOR, 1, 1) + b"s-1 bash", [theirs.fileno()])
    ours.settimeout(60)

    def tell(wish, number, port=0):
        ours.send(struct.pack("IIHHBB2x16s", wish, number, number, port, 0, 1, socket.inet_aton(PUBLIC)))
        return struct.unpack("Ii", ours.recv(100))[1] if wish == ANNOUNCE else None

    assert [tell(ANNOUNCE, number, PORT) for number in (40001, 40002, 40003)] == [0, 0, errno.ECONNREFUSED]
    assert internet.record(event="refusal")["refusal"] == "limit"
    tell(WITHDRAW, 40001)
    assert [tell(ANNOUNCE, number, PORT) for number in (40003, 40004)] == [0, errno.ECONNREFUSED]
    assert tell(ANNOUNCE, 40005, 0) == errno.ECONNREFUSED
    eventually(lambda: tell(ANNOUNCE, 40006, PORT) == 0, 120, "those that never came are over")
    listener.close()


def test_who_is_over_before_it_is_met_raises_no_alarm(internet):
    internet.start_dialer(), internet.start_door(), internet.join()
    listener = internet.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0)), listener.listen(100)
    for linger in (1, 0):
        client = internet.workspace.socket(socket.AF_INET, socket.SOCK_STREAM)
        client.connect(listener.getsockname())
        if linger:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    internet.set_list(rule(address=PUBLIC, ports=[PORT]), sockets=[listener])
    figures = {"accepted": 0}
    while figures["accepted"] < 2:
        said, _, text = internet.door.hear()
        figures = json.loads(text) if said == stage.FIGURES else figures
    assert figures["refused"] == {"unregistered": 1}
    listener.close()
