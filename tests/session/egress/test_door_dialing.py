"""What the dialer connects to: the addresses of names are filtered when they are resolved, and the one that was checked is the one that is used."""

import contextlib
import socket

import pytest
import stage
from world import METADATA, OTHER, OUT, PRIVATE, PUBLIC, PUBLIC6, echo, kill, list_of, rule

PORT = 2222


def echoes(client):
    client.sendall(b"hello")
    return client.recv(10) == b"hello"


@pytest.fixture
def served(internet):
    for address in (PUBLIC, OTHER, PRIVATE, METADATA, PUBLIC6, "100.64.0.9"):
        internet.serve(address, PORT, echo)
    return internet


def test_a_name_leads_to_the_address_that_the_servers_say(served):
    served.names.zone["api.test"] = [PUBLIC]
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    assert echoes(served.connect("api.test", PORT))
    assert {name for name, _ in served.names.asked} == {"api.test"}


def test_ipv6_alone_is_reached(served):
    served.names.zone["six.test"] = [PUBLIC6]
    served.open(rule("six.test", ports=[PORT]), port=PORT)
    client = served.connect("six.test", PORT)
    assert echoes(client)
    client.close()
    assert served.record(event="connection")["address"] == PUBLIC6


def test_hosts_of_the_system_are_known(served):
    served.open(rule("from-hosts.test", ports=[PORT]), port=PORT)
    assert echoes(served.connect("from-hosts.test", PORT)) and served.names.asked == []


@pytest.mark.parametrize("address", [PRIVATE, METADATA, "127.0.0.1", "100.64.0.9", OUT, "0.0.0.0", "198.18.0.1", "::1", "::ffff:10.9.9.9", "fe80::1", "64:ff9b::a09:909"])
def test_a_name_that_leads_inside_is_refused(served, address):
    served.names.zone["rebound.test"] = [address]
    served.open(rule("rebound.test", ports=[PORT]), port=PORT)
    assert served.resets("rebound.test", PORT)
    assert served.record(event="refusal")["refusal"] == ("canary" if address == METADATA else "rebinding")


def test_of_several_addresses_only_the_permitted_ones_are_tried(served):
    served.names.zone["mixed.test"] = [PRIVATE, "127.0.0.1", OTHER]
    served.open(rule("mixed.test", ports=[PORT]), port=PORT)
    client = served.connect("mixed.test", PORT)
    assert echoes(client)
    client.close()
    assert served.record(event="connection")["address"] == OTHER


def test_a_name_that_changes_its_mind_gains_nothing(served):
    turn = iter(range(1000))
    served.names.zone["flip.test"] = lambda: [PUBLIC] if next(turn) % 2 == 0 else [PRIVATE]
    inside = served.serve(PRIVATE, PORT + 1, echo)
    served.open(rule("flip.test", ports=[PORT, PORT + 1]), port=PORT)
    for _ in range(6):
        client = served.connect("flip.test", PORT)
        with client:
            client.sendall(b"x")
            read = client.recv(1)
        assert read == b"x"
    assert inside == []


def test_private_addresses_where_the_rule_says_so(served):
    served.names.zone["inside.test"] = [PRIVATE]
    served.open(rule("inside.test", ports=[PORT], private=True), port=PORT)
    assert echoes(served.connect("inside.test", PORT))


def test_an_address_is_reached_where_a_rule_names_it(served):
    served.open(rule(address="10.9.9.0", prefix=24, ports=[PORT]), port=PORT)
    client = served.connect(PRIVATE, PORT)
    assert echoes(client)
    client.close()
    assert served.record(event="connection")["unresolved"] == 1


@pytest.mark.parametrize(
    "address, refusal", [(PUBLIC, "unresolved"), (PRIVATE, "address"), (METADATA, "canary"), ("198.18.7.7", "no_such_name"), (PUBLIC6, "unresolved")]
)
def test_an_address_that_no_rule_names_is_refused(served, address, refusal):
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    assert served.resets(address, PORT)
    assert served.record(event="refusal")["refusal"] == refusal


@pytest.mark.parametrize("mode", [1, 2], ids=["monitor", "open"])
def test_modes_permit_what_is_public_and_nothing_else(served, mode):
    served.open(port=PORT, mode=mode)
    assert echoes(served.connect(PUBLIC, PORT))
    for address in (PRIVATE, METADATA):
        assert served.resets(address, PORT)


def test_what_does_not_exist_is_refused_as_that(served):
    served.open(rule("nothing.test", ports=[PORT]), port=PORT)
    assert served.resets("nothing.test", PORT)
    assert served.record(event="refusal")["refusal"] == "no_such_name"


def test_a_closed_port_is_a_failure_and_not_a_refusal(served):
    served.names.zone["api.test"] = [PUBLIC]
    served.open(rule("api.test", ports=[4444]), port=4444)
    assert served.resets("api.test", 4444)
    assert served.record(event="connection")["error"] == "ECONNREFUSED"


def test_a_long_answer_is_asked_for_by_tcp(served):
    served.names.zone["api.test"] = [PUBLIC]
    served.names.truncate = True
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    assert echoes(served.connect("api.test", PORT))


def test_an_answer_to_another_question_is_not_believed(served):
    served.names.zone["api.test"] = [PUBLIC]
    other_id = lambda answer: bytes([answer[0] ^ 1]) + answer[1:]  # noqa: E731
    other_name = lambda answer: answer.replace(b"\3api", b"\3abi")  # noqa: E731
    poisoned = lambda answer: answer[:-4] + socket.inet_aton(OTHER)  # noqa: E731
    served.names.mangle = lambda answer: [other_id(poisoned(answer)), other_name(poisoned(answer)), b"", b"\0" * 12, poisoned(answer)[:-2]]
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    client = served.connect("api.test", PORT)
    assert echoes(client)
    client.close()
    assert served.record(event="connection")["address"] == PUBLIC


def test_servers_that_change_are_asked(served):
    served.names.zone["api.test"] = [PUBLIC]
    (served.folder / "resolv.conf").write_text("nameserver 11.0.0.77\n")
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    with open(served.folder / "resolv.conf", "w") as file:  # in place: it is mounted
        file.write("search evil.test\nnameserver 11.0.0.254\noptions ndots:5\n")
    assert echoes(served.connect("api.test", PORT))
    assert {name for name, _ in served.names.asked} == {"api.test"}


def test_the_dialer_asks_its_own_list(served):
    """As if the door were somebody else's: what only the door's list permits is not dialed."""
    served.names.zone["api.test"] = [PUBLIC]
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    file = stage.memory_file(list_of(rule("other.test")))
    stage.send(served.dialer.socket, stage.struct.pack("IIQ", stage.OPEN, 2, 1), [file])
    assert served.resets("api.test", PORT)
    assert served.record(event="refusal")["refusal"] == "not_listed"


def test_without_a_dialer_what_is_new_is_refused_and_what_runs_goes_on(served):
    served.names.zone["api.test"] = [PUBLIC]
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    runs = served.connect("api.test", PORT)
    assert echoes(runs)
    kill(served.dialer)
    assert served.resets("api.test", PORT)
    assert served.record(event="refusal")["refusal"] == "dialer"
    assert echoes(runs)
    served.dialer.socket.close()
    served.start_dialer()
    served.join()
    file = stage.memory_file(list_of(rule("api.test", ports=[PORT])))
    stage.send(served.dialer.socket, stage.struct.pack("IIQ", stage.OPEN, 1, 1), [file])
    assert echoes(served.connect("api.test", PORT))


@pytest.mark.parametrize("request_", [b"", b"x", b"\0" * 16, stage.struct.pack("QIHH", 1, 1, 443, 8) + b"API.TESTbash", stage.struct.pack("QIHH", 1, 1, 443, 13) + b"api.test"], ids=range(5))
def test_a_door_that_says_what_no_door_says_is_not_heard(served, request_):
    served.open(rule("api.test", ports=[PORT]), port=PORT)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stage.send(served.dialer.socket, stage.struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    theirs.close()
    ours.settimeout(60)
    ours.send(request_)
    # It has ended; after an empty message, which is like the end of the line, it only hears no more.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, *([] if request_ else [TimeoutError])):
        ours.send(stage.struct.pack("QIHH", 1, 2, 443, 10) + b"other.testbash")
        ours.settimeout(60 if request_ else 0.3)
        assert ours.recv(100) == b"", "it was answered"
