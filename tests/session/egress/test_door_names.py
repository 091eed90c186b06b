"""The names socket: what a session learns of names, and that nothing of its questions leaves."""

import socket
import struct

import pytest
from names import AAAA, HTTPS, PTR, addresses_in, question
from world import PUBLIC, rule

NO_ERROR, NO_SUCH_NAME, REFUSED = 0, 3, 5


@pytest.fixture
def asked(internet):
    return internet.open(rule("api.test"), rule(suffix="pkg.test"), rule("evil.pkg.test", deny=True))


def test_a_name_has_one_address_of_the_reserved_block(asked):
    (code, first), again = asked.ask("api.test"), asked.ask("API.Test")
    assert code == NO_ERROR and first[0].startswith("198.18.") and again == (code, first)
    assert asked.ask("a.pkg.test")[1] not in ([], first)


def test_an_undecided_name_has_one_so_that_its_refusal_can_be_told(asked):
    assert asked.ask("unknown.test")[1][0].startswith("198.18.")


def test_a_denied_name_does_not_exist_and_that_is_on_record(asked):
    assert asked.ask("evil.pkg.test") == (NO_SUCH_NAME, [])
    assert asked.record(event="refusal", via="dns")["host"] == "evil.pkg.test"


def test_other_types_of_a_name_are_empty(asked):
    assert [asked.ask("api.test", t) for t in (AAAA, HTTPS, 64, 16, 255)] == [(NO_ERROR, [])] * 5


def test_the_address_leads_back_to_the_name(asked):
    address = asked.ask("api.test")[1][0]
    back = ".".join(reversed(address.split("."))) + ".in-addr.arpa"
    assert asked.ask(back, PTR) == (NO_ERROR, ["api.test"])
    assert asked.ask("9.255.18.198.in-addr.arpa", PTR) == (NO_SUCH_NAME, [])


def test_the_answer_comes_from_whichever_server_was_asked(asked):
    for server, family in (("8.8.8.8", socket.AF_INET), ("2001:4860:4860::8888", socket.AF_INET6)):
        with asked.workspace.socket(family, socket.SOCK_DGRAM) as asker:
            asker.sendto(question("api.test"), (server, 53))
            message, peer = asker.recvfrom(4096)
        assert peer[:2] == (server, 53) and addresses_in(message)[1]


def test_no_question_leaves(asked):
    for name in ("api.test", "secret-in-a-name.unknown.test", "evil.pkg.test"):
        asked.ask(name)
    assert asked.names.asked == []


@pytest.mark.parametrize("message", [b"", b"\0" * 5, question("api.test", flags=0x8000), b"\xff" * 512], ids=range(4))
def test_what_is_no_question_gets_no_answer_and_harms_nobody(asked, message):
    with asked.workspace.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.sendto(message, ("127.0.0.53", 53))
        asker.settimeout(0.2)
        with pytest.raises(TimeoutError):
            asker.recv(4096)
    assert asked.ask("api.test")[1]


def test_another_opcode_is_refused(asked):
    with asked.workspace.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.sendto(question("api.test", flags=0x2800), ("127.0.0.53", 53))
        assert addresses_in(asker.recv(4096))[0] != NO_ERROR


def test_a_flood_of_questions_is_refused_and_counted(asked):
    with asked.workspace.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.connect(("127.0.0.53", 53))
        codes = []
        for i in range(400):
            asker.send(question(f"n{i}.pkg.test"))
            codes.append(addresses_in(asker.recv(4096))[0])
    assert codes[:150] == [NO_ERROR] * 150 and REFUSED in codes
    assert asked.record(refusal="rate", via="dns")


def test_names_by_tcp(internet):
    internet.open(rule("api.test"), port=53)
    for server in ("127.0.0.53", PUBLIC):
        client = internet.connect(server, 53)
        message = question("api.test")
        for part in (struct.pack(">H", len(message)), message[:7], message[7:]):
            client.sendall(part)
        answer = client.recv(4096)
        assert struct.unpack(">H", answer[:2])[0] == len(answer) - 2
        assert addresses_in(answer[2:])[1][0].startswith("198.18.")


def test_a_newer_list_decides(asked):
    asked.set_list(rule("api.test", deny=True), generation=2)
    assert asked.ask("api.test") == (NO_SUCH_NAME, [])
    assert asked.record(refusal="rule")["generation"] == 2


def test_an_address_stays_with_its_name_over_lists(asked):
    before = asked.ask("api.test")
    asked.set_list(rule("other.test"), generation=2)
    assert asked.ask("api.test") == before and asked.ask("other.test") != before
