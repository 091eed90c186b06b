"""TLS by its server name, tunnels by CONNECT and SOCKS 5."""

import socket
import ssl
import struct
import subprocess

import pytest
from world import OTHER, PRIVATE, PUBLIC, client_hello, echo, read_all, rule

DENIED = b"\x15\x03\x03\x00\x02\x02\x31"  # a fatal alert: access_denied


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=api.test",
         "-addext", "subjectAltName=DNS:api.test", "-keyout", folder / "key", "-out", folder / "cert"],
        check=True, capture_output=True, timeout=120)  # fmt: skip
    return folder


@pytest.fixture
def tls(internet, certificate):
    internet.names.zone.update({"api.test": [PUBLIC], "lax.test": [PUBLIC], "denied.test": [OTHER], "inside.test": [PRIVATE]})
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate / "cert", certificate / "key")

    def handle(connection):
        with server.wrap_socket(connection, server_side=True) as wrapped:
            echo(wrapped)

    internet.reached = internet.serve(PUBLIC, 443, handle)
    internet.elsewhere = internet.serve(OTHER, 443, echo)
    internet.serve(PUBLIC, 2222, echo)
    internet.context = ssl.create_default_context(cafile=certificate / "cert")
    internet.rules = [rule("api.test", ports=[443, 80, 2222]), rule("lax.test", sni_optional=True), rule("denied.test", deny=True), rule("inside.test")]
    return internet.open(*internet.rules, port=443)


def connect_by(tls, target, extra=b""):
    """The answer's first line, and the client after it."""
    client = tls.connect("127.0.0.1", 443)
    client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode() + extra)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = client.recv(1)
        assert byte, head
        head += byte
    return head.split(b"\r\n")[0], client


def speaks(tls, client):
    with tls.context.wrap_socket(client, server_hostname="api.test") as wrapped:
        wrapped.sendall(b"secret")
        return wrapped.recv(10) == b"secret"


def test_tls_to_an_allowed_name(tls):
    assert speaks(tls, tls.connect("api.test", 443))
    record = tls.record(event="connection")
    assert (record["host"], record["address"], record["via"]) == ("api.test", PUBLIC, "transparent")
    assert record["up"] > 300 and record["down"] > 300


@pytest.mark.parametrize("name, refusal", [("denied.test", "sni"), ("api.test.evil.test", "sni"), (None, "sni")])
def test_another_server_name_is_refused_before_anything_is_dialed(tls, name, refusal):
    client = tls.connect("api.test", 443)
    client.sendall(client_hello(name))
    assert read_all(client) == DENIED
    assert tls.record(event="refusal")["refusal"] == refusal and tls.reached == []


def test_a_client_of_tls_is_told_access_denied(tls):
    with pytest.raises(ssl.SSLError, match="(?i)access.denied"):
        tls.context.wrap_socket(tls.connect("api.test", 443), server_hostname="denied.test")


def test_no_server_name_passes_where_the_rule_says_so(tls):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(tls.connect("lax.test", 443)) as wrapped:
        wrapped.sendall(b"x")
        assert wrapped.recv(1) == b"x"
    client = tls.connect("lax.test", 443)
    client.sendall(client_hello("api.test"))
    assert read_all(client) == DENIED


def test_where_everything_public_is_permitted_only_denied_names_are_not(tls):
    tls.set_list(rule("denied.test", deny=True), mode=1, generation=2)
    for name, passes in (("api.test", True), (None, True), ("denied.test", False)):
        client = tls.connect(PUBLIC, 443)
        client.sendall(client_hello(name))
        assert client.recv(65536).startswith(b"\x16") == passes, name


def test_a_client_hello_in_segments_of_one_byte(tls):
    for name, expected in (("api.test", b"\x16"), ("denied.test", b"\x15")):
        client = tls.connect("api.test", 443)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in client_hello(name):
            client.sendall(bytes([byte]))
        assert client.recv(1) == expected
        client.close()


def test_a_client_hello_in_records_of_one_byte(tls):
    hello = client_hello("denied.test")
    client = tls.connect("api.test", 443)
    client.sendall(b"".join(b"\x16\x03\x01\x00\x01" + bytes([byte]) for byte in hello[5:]))
    assert read_all(client) == DENIED and tls.reached == []


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x00\x05hello", b"\0" * 100, b"\x17\x03\x03\x00\x01x"])
def test_what_is_no_tls_does_not_pass_port_443(tls, first):
    client = tls.connect("api.test", 443)
    client.sendall(first)
    answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 403") if first.startswith(b"GET") else answer in (DENIED, b"RST")
    assert tls.record(event="refusal")["refusal"] == "not_tls" and tls.reached == []


def test_a_denied_name_is_told_in_tls(tls):
    client = tls.connect("unknown.test", 443)
    client.sendall(client_hello("unknown.test"))
    assert read_all(client) == DENIED
    assert tls.record(event="refusal")["refusal"] == "not_listed"


def test_connect(tls):
    status, client = connect_by(tls, "api.test:443")
    assert b" 200 " in status and speaks(tls, client)
    assert tls.record(event="connection")["via"] == "connect"


@pytest.mark.parametrize(
    "target, refusal",
    [("denied.test:443", "rule"), ("unknown.test:443", "not_listed"), ("api.test:22", "port"), ("inside.test:443", "rebinding"),
     ("127.0.0.1:22", "address"), ("[::1]:22", "address"), ("169.254.169.254:80", "canary"), ("[::ffff:169.254.169.254]:80", "canary"),
     ("0xa9fea9fe:80", "canary"), ("93.184.216.34:443", "not_listed"), ("11.0.0.1:443", "not_listed")],
)  # fmt: skip
def test_connect_to_what_is_not_permitted(tls, target, refusal):
    status, client = connect_by(tls, target)
    assert b" 403 " in status and refusal.encode() in read_all(client)
    assert tls.record(event="refusal")["refusal"] == refusal


def test_connect_to_a_closed_port_is_502(tls):
    status, client = connect_by(tls, "api.test:80")
    assert b" 502 " in status and b"ECONNREFUSED" in read_all(client)


def test_connect_then_plain_http_is_refused(tls):
    _, client = connect_by(tls, "api.test:443")
    client.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
    assert read_all(client).startswith(b"HTTP/1.1 403")
    assert tls.record(event="refusal")["refusal"] == "not_tls"


def test_connect_then_another_server_name_is_refused(tls):
    _, client = connect_by(tls, "api.test:443", client_hello("denied.test"))
    assert read_all(client) == DENIED


def test_connect_to_port_80_carries_requests_to_that_host_alone(tls):
    seen = []

    def handle(connection):
        seen.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    tls.serve(PUBLIC, 80, handle)
    _, client = connect_by(tls, "api.test:80")
    client.sendall(b"GET /1 HTTP/1.1\r\nHost: api.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: denied.test\r\n\r\n")
    answers = read_all(client)
    assert answers.startswith(b"HTTP/1.1 200 OK") and b"HTTP/1.1 403" in answers and len(seen) == 1 and b"/2" not in seen[0]


def test_tls_on_any_port_of_a_tunnel_has_to_name_its_server(tls):
    for name, expected in (("api.test", None), ("denied.test", DENIED)):
        _, client = connect_by(tls, "api.test:2222")
        hello = client_hello(name)
        client.sendall(hello)
        got = client.recv(65536)
        assert got == (expected or hello)


def socks(tls, request, greeting=b"\5\1\0"):
    client = tls.connect("127.0.0.1", 443)
    client.sendall(greeting)
    if client.recv(2) != b"\5\0":
        return None, client
    client.sendall(request)
    return client.recv(10)[1], client


def by_name(name, port):
    return b"\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack(">H", port)


def test_socks(tls):
    reply, client = socks(tls, by_name("api.test", 443))
    assert reply == 0 and speaks(tls, client)
    assert tls.record(event="connection")["via"] == "socks5"


@pytest.mark.parametrize(
    "request_, reply",
    [(by_name("denied.test", 443), 2), (by_name("api.test", 22), 2), (b"\5\1\0\1\x7f\0\0\1\0\x16", 2), (b"\5\1\0\4" + b"\0" * 15 + b"\1\0\x16", 2),
     (by_name("nothing.test", 443), 2), (by_name("api.test", 80), 5), (b"\5\2\0\1\x7f\0\0\1\0\x16", 7), (b"\5\3\0\1\x7f\0\0\1\0\x16", 7)],
    ids=range(8),
)  # fmt: skip
def test_socks_to_what_is_not_permitted(tls, request_, reply):
    assert socks(tls, request_)[0] == reply


def test_socks_without_a_method_of_ours(tls):
    assert socks(tls, b"", greeting=b"\5\1\2")[0] is None


def test_the_address_of_a_name_is_the_name_for_a_proxy_too(tls):
    address = tls.ask("api.test")[1][0]
    status, client = connect_by(tls, f"{address}:443")
    assert b" 200 " in status and speaks(tls, client)


@pytest.mark.parametrize("first", [b"\4\1\0\x16\x7f\0\0\1\0", b"\0", b"\xff" * 100, b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", client_hello("api.test")], ids=range(6))
def test_what_no_client_of_a_proxy_says_is_ended(tls, first):
    client = tls.connect("127.0.0.1", 443)
    client.sendall(first)
    client.shutdown(socket.SHUT_WR)
    read_all(client)
    assert tls.reached == [] and tls.elsewhere == []
