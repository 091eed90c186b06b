"""What one workspace asks of caisson-gate leaves some for the others."""

import contextlib
import json
import struct
import subprocess
from errno import EAGAIN, ECONNREFUSED

import stage
from stage import answer_of, ask, line_to, opened
from test_orders import heard, served, without_namespaces

SAY_INSIDE, INSIDE, PROBE = 9, 8, 10  # egress_protocol.h
FULL = """
import socket, time
server = socket.socket()
server.bind(("127.0.0.1", 3000))
server.listen(0)
clients = [socket.socket() for _ in range(8)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", 3000))
print("full", flush=True)
time.sleep(600)
"""


def asked(stack, gate, op, workspace, **members):
    line = stack.enter_context(line_to(gate.socket, workspace))
    line.send(json.dumps({"op": op, **members}).encode())
    return line


def answered(line):
    answer = json.loads(line.recv(1 << 17))
    return answer.get("error", "result")


def test_diagnoses_that_wait_keep_nobody_from_asking(gate):
    with contextlib.ExitStack() as stack:
        builders = [stack.enter_context(without_namespaces(gate, number)) for number in (1, 2)]
        services = served(gate, builders)
        dialer = services["dialer"]
        lines = [asked(stack, gate, "diagnose", 1, url="https://api.test/") for _ in range(80)]
        assert [answered(line) for line in lines[32:]] == ["limit"] * 48
        assert [heard(dialer)[0] for _ in range(32)] == [(PROBE, 1, 1)] * 32
        for workspace in (1, 2):
            assert "port" in ask(gate.socket, "get", workspace)
        asked(stack, gate, "diagnose", 2, url="https://api.test/")
        assert heard(dialer)[0] == (PROBE, 1, 2)


def test_lines_that_are_silent_keep_no_other_workspace_from_asking(gate):
    with contextlib.ExitStack() as stack:
        kept = served(gate, [stack.enter_context(without_namespaces(gate, number)) for number in (1, 2)])
        for _ in range(100):
            stack.enter_context(line_to(gate.socket, 1))
        error, what = ask(gate.socket, "get", 1)
        assert error == "limit" and "try again" in what
        assert kept and "port" in ask(gate.socket, "get", 2)


def test_a_server_that_accepts_nobody_keeps_no_other_workspace_from_its_own(gate, place):
    door, _, _ = opened(gate, place)
    other = stage.Namespaces()
    assert answer_of(gate.open(other, workspace=2, name="other"), other) == "made"
    for workspace in (1, 2):
        ask(gate.socket, "add_mapping", workspace, source="a.test", target="3000")
    full = subprocess.Popen(["/usr/bin/python3", "-I", "-c", FULL], preexec_fn=place.enter, stdout=subprocess.PIPE)
    try:
        assert full.stdout.readline() == b"full\n"
        for number in range(96):
            door.say(SAY_INSIDE, struct.pack("IHH", number, 3000, 0), workspace=1)
        door.say(SAY_INSIDE, struct.pack("IHH", 1000, 3000, 0), workspace=2)
        told = {}
        while 1000 not in told or len(told) < 65:
            (order, _, _), text = heard(door)
            if order == INSIDE:
                number, _, told[number] = struct.unpack("IHH", text)
        assert told.pop(1000) == ECONNREFUSED, "nobody listens there: it was tried"
        assert list(told.values()).count(EAGAIN) == 64
    finally:
        full.kill()
        full.wait()
        full.stdout.close()
        other.close()
