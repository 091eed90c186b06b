"""caisson-gate with door and dialer: what each is told, that they are started again, and what of what they say reaches the launcher."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct

import pytest
import stage
import world
from harness import ended, eventually, state_of
from opening import AUTHORITY, SECRET, TO_OPENER
from stage import DROPPED, LIST, OPEN, READY, RECORD, TO_CLOSE, TO_PEER, answer_of, opened


SEED, TO_DIALER = 12, 15  # egress_protocol.h
HASH = b"0123abcd\n"
CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"


def content(fd):
    return os.pread(fd, 100, 0)


def test_each_gets_what_it_needs_and_no_more(gate, place):
    gate.open(place, workspace=7, list_=b"the list", generation=3)
    services = gate.services()
    door, dialer = services["door"], services["dialer"]
    assert (door.uid, dialer.uid) == (993, 994)
    for_door, for_dialer = dict(door.orders(2)), dict(dialer.orders(2))
    assert {order for order, _, _ in for_door} == {order for order, _, _ in for_dialer} == {OPEN, TO_PEER}
    sockets, lists = for_door[(OPEN, 3, 7)], for_dialer[(OPEN, 3, 7)]
    assert [len(sockets), len(lists)] == [4, 1] and content(sockets[0]) == content(lists[0]) == b"the list"
    kinds = []
    for fd in sockets[1:]:
        s = socket.socket(fileno=fd)
        kinds.append((s.family, s.type, bool(s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))))
    assert kinds == [
        (socket.AF_INET, socket.SOCK_STREAM, True),
        (socket.AF_INET6, socket.SOCK_STREAM, True),
        (socket.AF_INET6, socket.SOCK_DGRAM, False),
    ]


def pair_works(door, dialer):
    ends = []
    for service in (door, dialer):
        orders = service.orders(1)
        while orders[-1][0][0] != TO_PEER:
            orders = service.orders(1)
        ends.append(socket.socket(fileno=orders[-1][1][0]))
    ends[0].send(b"dial")
    return ends[1].recv(10) == b"dial"


def test_door_and_dialer_have_a_pair(gate, place):
    gate.open(place)
    services = gate.services()
    assert pair_works(services["door"], services["dialer"])


def test_nobody_is_answered_before_both_serve(gate, place):
    waiting = gate.open(place)
    services = gate.services()
    services["door"].say(READY)
    waiting.settimeout(0.3)
    with pytest.raises(TimeoutError):
        waiting.recv(100)
    waiting.settimeout(60)
    services["dialer"].say(READY)
    assert answer_of(waiting) == "made"


def test_one_that_does_not_come_to_serve_is_an_error(gate, place):
    waiting = gate.open(place)
    gate.services()["dialer"].say(READY)
    assert answer_of(waiting) == "door does not come to serve: ETIMEDOUT"


def test_a_second_workspace_needs_no_second_door(gate, place):
    door, _, dialer = opened(gate, place)
    other = stage.Namespaces()
    assert answer_of(gate.open(other, workspace=2, name="other")) == "made"
    assert door.order()[0] == (OPEN, 1, 2) and [o for o, _ in dialer.orders(3)][-1] == (OPEN, 1, 2)
    other.close()


def test_a_newer_list_comes_to_both_without_sockets(gate, place):
    door, _, dialer = opened(gate, place)
    dialer.orders(2)
    file = stage.memory_file(b"newer")
    gate.order(LIST, 1, generation=2, fds=[file])
    for service in (door, dialer):
        order, fds = service.order()
        assert order == (OPEN, 2, 1) and [content(fd) for fd in fds] == [b"newer"]


@pytest.mark.parametrize("which", ["door", "dialer"])
def test_one_that_ends_is_started_again_and_told_all(gate, place, which):
    door, _, dialer = opened(gate, place)
    dialer.orders(2)
    file = stage.memory_file(b"newer")
    gate.order(LIST, 1, generation=2, fds=[file])
    gone, other = (door, dialer) if which == "door" else (dialer, door)
    other.order()
    os.kill(gone.pid, signal.SIGKILL)
    record = gate.told_until("exit")
    assert record == {"process": which, "pid": gone.pid, "how": "signal 9"}
    again = gate.services(1)[which]
    orders = dict(again.orders(2))
    fds = orders[(OPEN, 2, 1)]
    assert content(fds[0]) == b"newer" and len(fds) == (4 if which == "door" else 1)
    assert again.pid != gone.pid and other.order()[0] == (TO_PEER, 0, 0)
    assert gate.told_until("start") == {"process": which, "pid": again.pid}


def test_what_was_asked_meanwhile_waits_for_the_next_door(gate, place):
    door, fds, _ = opened(gate, place)
    for fd in fds:
        os.close(fd)
    os.kill(door.pid, signal.SIGKILL)
    connected = "s = socket.socket()\ns.settimeout(60)\nout = tried(s.connect, ('93.184.216.34', 80))"
    assert place.run(connected) == "ok"
    again = gate.services(1)["door"]
    fds = dict(again.orders(2))[(OPEN, 1, 1)]
    assert socket.socket(fileno=fds[1]).accept()[0].getsockname() == ("93.184.216.34", 80)


@pytest.mark.parametrize(
    "message", [b"", b"short", struct.pack("IIQ", 0, 0, 1), struct.pack("IIQ", 99, 0, 1), struct.pack("IIQ", RECORD, 5, 1) + b"{}"]
)
def test_one_that_says_what_is_no_message_is_ended(gate, place, message):
    door, _, _ = opened(gate, place)
    door.socket.send(message)
    if message == b"":  # an empty message cannot be told from the end
        os.kill(door.pid, signal.SIGKILL)
    record = gate.told_until("exit")
    assert record["process"] == "door" and (record.get("why", "").startswith("said") or message == b"")
    ended([door.pid])


def test_records_say_which_workspace_they_are_of(gate, place):
    door, _, dialer = opened(gate, place)
    door.say(RECORD, {"name": "example.org", "workspace": "forged", "seq": 1, "hash": "forged", "event": "boot"}, workspace=1)
    assert gate.told_until("connection") == {"name": "example.org", "workspace": "default"}
    dialer.say(RECORD, {"name": "example.org", "refusal": "rule"}, workspace=1)
    assert gate.told_until("refused") == {"name": "example.org", "refusal": "rule", "workspace": "default"}
    door.say(DROPPED, {"count": 7}, workspace=1)
    assert gate.told_until("dropped") == {"count": 7, "workspace": "default"}


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff", b'{"a":1,"a":2}', b'{"a":' * 9 + b"1" + b"}" * 9])
def test_a_record_that_is_no_object_is_marked(gate, place, text):
    door, _, _ = opened(gate, place)
    door.say(RECORD, text, workspace=1)
    assert gate.told_until("connection") == {"malformed": True, "workspace": "default"}


def test_what_is_said_of_no_workspace_is_not_passed_on(gate, place):
    door, _, _ = opened(gate, place)
    door.say(RECORD, {"name": "none"}, workspace=2)
    door.say(RECORD, {"name": "one"}, workspace=1)
    assert gate.told_until("connection")["name"] == "one"


def test_a_flood_of_records_is_counted(gate, place):
    door, _, _ = opened(gate, place)
    passed = counted = 0

    def hear():
        nonlocal passed, counted
        kind, record = gate.told()
        passed += kind == "connection"
        counted += record["count"] if kind == "dropped" else 0

    for at in range(3000):
        door.say(RECORD, {"at": at}, workspace=1)
        gate.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                hear()
    gate.socket.settimeout(60)
    while passed + counted < 3000:
        hear()
    assert passed + counted == 3000 and counted > 0


def test_a_launcher_that_reads_nothing_stops_nobody(gate, place):
    door, fds, _ = opened(gate, place)
    for at in range(900):
        door.say(RECORD, {"padding": "x" * 8000}, workspace=1)
    other = stage.Namespaces()
    assert answer_of(gate.open(other, workspace=2, name="other")) == "made"
    other.close()


def test_a_workspace_that_ends_is_told_to_both(gate, place):
    door, _, dialer = opened(gate, place)
    dialer.orders(2)
    gate.order(stage.CLOSE, 1)
    assert door.order()[0] == dialer.order()[0] == (TO_CLOSE, 1, 1)


def test_door_and_dialer_end_with_the_gate_and_the_gate_with_the_launcher(gate, place):
    door, _, dialer = opened(gate, place)
    gate.socket.shutdown(socket.SHUT_RDWR)
    eventually(lambda: gate.process.poll() is not None, 5, "the gate ends")
    ended([door.pid, dialer.pid])
    assert b"the launcher is gone" in gate.process.stderr.read()


@pytest.mark.parametrize("data", [b"x", struct.pack("IIQ", 9, 0, 1), struct.pack("IIQ", stage.MAKE, 0, 1), struct.pack("IIQ", LIST, 0, 5), struct.pack("IIQ", 0, 0, 1), b"x" * 500])
def test_what_is_no_order_ends_the_gate(gate, data):
    stage.send(gate.socket, data)
    eventually(lambda: state_of(gate.process.pid) in (None, "Z"), 5, "the gate ends")


def test_a_list_that_binds_a_secret_gets_an_opener(gate, place, tmp_path):
    """It alone is handed the secret, as a file that nobody changes; the path is the list's, what is wrong there on record."""
    (tmp_path / "secret").write_text("the-secret-of-the-api\n")
    (tmp_path / "short").write_text("short")
    bindings = [world.binding(name, f"placeholder-of-{name}", "api.test", file=str(tmp_path / name)) for name in ("secret", "short", "absent")]
    lists = world.list_of(world.rule("api.test"), bindings=bindings)
    waiting = gate.open(place, workspace=7, list_=lists)
    services = gate.services(3)
    opener = services["opener"]
    assert opener.uid == 995
    messages = [stage.receive(opener.socket) for _ in range(5)]
    (_, (end,)), (_, (_,)), (_, (seed,)), (_, (own,)), (secret, (file,)) = messages
    orders = [(TO_PEER, 0, 0), (TO_DIALER, 0, 0), (SEED, 0, 0), (OPEN, 1, 7), (SECRET, 1, 7)]
    assert [struct.unpack("IIQ", data[:16]) for data, _ in messages] == orders
    assert len(content(seed)) == 64
    assert os.pread(own, 65536, 0) == lists
    assert secret[16:] == b"bash secret" and content(file) == b"the-secret-of-the-api"
    with pytest.raises(PermissionError):
        os.pwrite(file, b"x", 0)
    why = [gate.told_until("exit")["why"] for _ in range(2)]
    assert "no secret" in why[0] and "ENOENT" in why[1] and "short" not in why[0].replace(str(tmp_path / "short"), "").replace("secret short", "")
    services["dialer"].say(READY), services["door"].say(READY)
    waiting.settimeout(0.3)
    with pytest.raises(TimeoutError):
        answer_of(waiting)
    opener.say(READY)
    opener.say(AUTHORITY, HASH + CERTIFICATE)
    waiting.settimeout(60)
    assert answer_of(waiting) == "made"
    orders = dict(services["door"].orders(3))
    socket.socket(fileno=orders[(TO_OPENER, 0, 0)][0]).send(b"a connection")
    assert socket.socket(fileno=end).recv(20) == b"a connection"


def test_sessions_believe_the_authority_that_the_opener_says(gate, place, tmp_path):
    """The opener's certificate is added to the store that the list names. Another process's is not, nor is malformed text."""
    store = tmp_path / "trust" / "opened"
    store.mkdir(parents=True)
    (store / "ca-certificates.crt").write_text("of a launcher before")
    (store / "00000000.0").symlink_to("of-a-launcher-before.pem")
    bindings = [world.binding("one", "placeholder-of-one", "api.test", file=str(tmp_path / "absent"))]
    waiting = gate.open(place, list_=world.list_of(world.rule("api.test"), bindings=bindings, trust=str(store)))
    services = gate.services(3)
    services["door"].say(AUTHORITY, HASH + CERTIFICATE.replace(b"QUJD", b"REVG"))
    for service in services.values():
        service.say(READY)
    for wrong in (HASH + CERTIFICATE + CERTIFICATE, CERTIFICATE, b"../../up\n" + CERTIFICATE, b"0123ABCD\n" + CERTIFICATE, HASH, b""):
        services["opener"].say(AUTHORITY, wrong)
        assert "no certificate" in gate.told_until("exit", process="opener")["why"]
    services["opener"].say(AUTHORITY, HASH + CERTIFICATE)
    assert answer_of(waiting) == "made"
    believed = (store / "ca-certificates.crt").read_bytes()
    assert believed.endswith(CERTIFICATE) and believed.count(b"QUJD") == 1 and b"REVG" not in believed and b"before" not in believed
    assert believed.startswith(pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes())
    assert (store / "0123abcd.0").read_bytes() == CERTIFICATE and not (store / "00000000.0").is_symlink()
    assert b"ABC" in (store / "java" / "cacerts").read_bytes() and json.loads((store / "chromium.json").read_bytes()) == {"CACertificates": ["QUJD"]}
    seed = next(content(fds[0]) for data, fds in (stage.receive(services["opener"].socket) for _ in range(3)) if data[0] == SEED)
    os.kill(services["opener"].pid, signal.SIGKILL)
    again = gate.services(1)["opener"]
    assert seed == next(content(fds[0]) for data, fds in (stage.receive(again.socket) for _ in range(3)) if data[0] == SEED)


def test_who_binds_nothing_does_not_believe_it(gate, place, tmp_path):
    stores = {name: tmp_path / "trust" / name for name in ("opened", "system")}
    for store in stores.values():
        store.mkdir(parents=True)
    bindings = [world.binding("one", "placeholder-of-one", "api.test", file=str(tmp_path / "absent"))]
    lists = world.list_of(world.rule("api.test"), bindings=bindings, trust=str(stores["opened"]))
    lists += world.list_of(world.rule("api.test"), domain="other", trust=str(stores["system"]))
    waiting = gate.open(place, list_=lists)
    services = gate.services(3)
    for service in services.values():
        service.say(READY)
    services["opener"].say(AUTHORITY, HASH + CERTIFICATE)
    assert answer_of(waiting) == "made"
    system, opened = (set(os.listdir(stores[name])) for name in ("system", "opened"))
    assert opened - system == {"0123abcd.0"} and b"QUJD" not in (stores["system"] / "ca-certificates.crt").read_bytes()
    assert json.loads((stores["system"] / "chromium.json").read_bytes()) == {"CACertificates": []}


def test_what_is_no_store_is_not_made_one(gate, place, tmp_path):
    """All else in a store goes: what a list names must be one."""
    (tmp_path / "log.ndjson").write_text("kept")
    bindings = [world.binding("one", "placeholder-of-one", "api.test", file=str(tmp_path / "absent"))]
    gate.open(place, list_=world.list_of(world.rule("api.test"), bindings=bindings, trust=str(tmp_path)))
    services = gate.services(3)
    for service in services.values():
        service.say(READY)
    assert "no store" in gate.told_until("exit", workspace="default")["why"]
    assert (tmp_path / "log.ndjson").read_text() == "kept"


def test_without_one_there_is_none(gate, place):
    waiting = gate.open(place, list_=world.list_of(world.rule("api.test")))
    services = gate.services()
    for service in services.values():
        service.say(READY)
    assert answer_of(waiting) == "made" and set(services) == {"door", "dialer"}
    gate.stage.setblocking(False)
    with pytest.raises(BlockingIOError):
        gate.stage.accept()
