"""Requests that are wrong: each is answered with an error or ends the connection, and the launcher goes on."""

import array
import json
import socket
import tempfile

import pytest
from harness import Refused, cli, eventually, open_files

CREATE = {"op": "session_create", "domain": "bash"}


@pytest.fixture(autouse=True)
def launcher_goes_on(launcher):
    yield
    control = launcher.control()
    assert control.output(control.create(), "echo", "on") == "on\n"
    control.close()


@pytest.mark.parametrize(
    "members",
    [
        {"unknown": 1},
        {"domain": "nobody"},
        {"domain": 7},
        {"domain": ""},
        {"domain": "../bash"},
        {"label": 7},
        {"narrow": []},
        {"narrow": {"unknown": 1}},
        {"narrow": {"home": "workspace"}},
        {"narrow": {"network": "loopback"}},
        {"narrow": {"limits": {"processes": 0}}},
        {"narrow": {"limits": {"processes": "8"}}},
        {"narrow": {"limits": {"processes": 1.5}}},
        {"narrow": {"limits": {"unknown": 1}}},
        {"narrow": {"limits": {"processes": -1}}},
        {"narrow": {"grants": [{"path": 7}]}},
        {"narrow": {"grants": {}}},
        {"narrow": {"hide": []}},
        {"narrow": {"syscalls": {"allow": ["debug"]}}},
        {"narrow": {"env": {}}},
    ],
    ids=json.dumps,
)
def test_a_wrong_creation_is_refused(control, members):
    with pytest.raises(Refused):
        control.call("session_create", **{"domain": "bash", **members})


@pytest.mark.parametrize(
    "members",
    [
        {"unknown": 1},
        {"argv": []},
        {"argv": "true"},
        {"argv": [1]},
        {"argv": None},
        {"argv": ["true\0x"]},
        {"argv": ["true"] * 5000},
        {"cwd": "relative"},
        {"cwd": ""},
        {"cwd": 7},
        {"cwd": "/a\0b"},
        {"cwd": "/" + "x" * 5000},
        {"env": []},
        {"env": {"A": 1}},
        {"env": {"": "x"}},
        {"env": {"A=B": "x"}},
        {"env": {"A\0B": "x"}},
        {"env": {"A": "x\0y"}},
        {"stdin": 1},
        {"pty": 1},
        {"pty": {"cols": 0, "rows": 1}},
        {"pty": {"cols": 80, "rows": "24"}},
        {"pty": {"cols": 1 << 40, "rows": 24}},
        {"hard_timeout_ms": 0},
        {"hard_timeout_ms": -1},
        {"hard_timeout_ms": "1"},
        {"hard_timeout_ms": 1 << 62},
        {"session": "s-0000000000000000"},
        {"session": ""},
        {"session": 7},
        {"session": "../launcher"},
    ],
    ids=lambda m: json.dumps(m)[:40],
)
def test_a_wrong_command_is_refused_and_the_session_goes_on(control, session, members):
    with pytest.raises(Refused):
        control.call("session_exec", **{"session": session, "argv": ["true"], **members})
    assert control.output(session, "echo", "on") == "on\n"


BROKEN = {
    "no JSON": b"hello",
    "an array": b"[]",
    "a string": b'"x"',
    "half an object": b'{"id": 1, "op": "session_list"',
    "two objects": b'{"id":1,"op":"session_list"}{}',
    "a member twice": b'{"id": 1, "id": 2, "op": "session_list"}',
    "not UTF-8": b'{"id": 1, "op": "session_list", "x": "\xff"}',
    "a NUL": b'{"id":1,"op":"session_list"}\0',
    "too deep": b'{"id":1,"op":"session_list","x":' + b"[" * 20000 + b"]" * 20000 + b"}",
    "NaN": b'{"id": NaN, "op": "session_list"}',
    "1e400": b'{"id": 1e400, "op": "session_list"}',
    "a comment": b'{"id": 1, /* x */ "op": "session_list"}',
    "a lone surrogate": b'{"id": 1, "op": "session_list", "x": "\\ud800"}',
    "no id": b'{"op": "session_list"}',
    "id 0": b'{"id": 0, "op": "session_list"}',
    "a negative id": b'{"id": -1, "op": "session_list"}',
    "a text as id": b'{"id": "1", "op": "session_list"}',
    "a fraction as id": b'{"id": 1.5, "op": "session_list"}',
    "a huge id": b'{"id": 99999999999999999999, "op": "session_list"}',
    "no op": b'{"id": 1}',
    "an unknown op": b'{"id": 1, "op": "shutdown"}',
    "a number as op": b'{"id": 1, "op": 1}',
    "hello again": b'{"id": 1, "op": "hello", "protocol": 1}',
    "too long": b'{"id": 1, "op": "session_list", "x": "' + b"x" * 70000 + b'"}',
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_message_ends_the_connection_that_is(control, what):
    control.socket.send(BROKEN[what])
    with pytest.raises((EOFError, ConnectionResetError)):
        control.receive()


@pytest.mark.parametrize("count", [1, 4, 5, 253])
def test_attached_descriptors_end_the_connection_and_are_closed(launcher, control, count):
    with tempfile.NamedTemporaryFile() as decoy:
        fds = array.array("i", [decoy.fileno()] * count)
        control.socket.sendmsg([b'{"id": 1, "op": "session_list"}'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        with pytest.raises((EOFError, ConnectionResetError)):
            control.receive()
        # By name, not by count: the launcher opens others meanwhile, for the sessions that it keeps ready.
        eventually(lambda: decoy.name not in open_files(launcher.pid), what="no copy of the decoy in the launcher")


@pytest.mark.parametrize("first", [{"op": "session_list"}, CREATE, {"op": "unknown"}], ids=lambda m: m["op"])
def test_an_operation_before_hello_ends_the_connection(launcher, first):
    control = launcher.control(hello=False)
    control.socket.send(json.dumps({"id": 1, **first}).encode())
    with pytest.raises((EOFError, ConnectionResetError)):
        control.receive()


@pytest.mark.parametrize("protocol", [0, 2, "1", None])
def test_another_protocol_is_refused(launcher, protocol):
    control = launcher.control(hello=False)
    with pytest.raises((Refused, EOFError)):
        control.call("hello", protocol=protocol)


def test_a_client_that_takes_no_replies_is_dropped(launcher):
    control = launcher.control()
    control.socket.settimeout(60)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        for _ in range(100000):
            control.send("session_list")


LABEL = 'x\n{"seq": 1}\x1b[2J\x07\u2028\u202e"'


def test_a_hostile_label_stays_one_record(launcher, control):
    session = control.create(label=LABEL)
    control.destroy(session)
    assert [r["event"] for r in launcher.records(session)] == ["session_request", "session_start", "session_end"]
    assert launcher.records(session)[0]["label"] == LABEL


def test_a_hostile_label_and_argument_are_shown_escaped(launcher, control):
    session = control.create(label=LABEL)
    control.output(session, "echo", LABEL)
    shown = cli("audit", "show", launcher.audit / f"{session}.ndjson").stdout
    assert b"\x1b" not in shown and b"\x07" not in shown and "\u202e".encode() not in shown


def test_a_session_name_cannot_lead_out_of_the_audit_directory(control):
    assert all(name not in control.create(label="../../etc/x") for name in ("/", "."))
