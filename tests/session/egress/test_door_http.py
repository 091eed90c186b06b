"""Plain HTTP through the door: each request on its own, to the host that the connection leads to, or that it says itself to the proxy."""

import contextlib
import socket
import threading

import pytest
import world
from world import OTHER, PRIVATE, PUBLIC, read_all, rule


class Server:
    """Keeps every request that it got, and answers with what `answers` has for its path."""

    def __init__(self, internet, address, name):
        self.requests, self.name, self.answers, self.fixed = [], name, {}, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
        self.connections = internet.serve(address, 80, self.handle)

    def handle(self, connection):
        while head := read_head(connection):
            self.requests.append(head)
            path = head.split(b" ")[1]
            answer = self.answers.get(path)
            if callable(answer):
                return answer(connection, head)
            body = f"{self.name} {path.decode()}".encode()
            connection.sendall(answer or self.fixed % (len(body), body))
        return None


def read_head(connection):
    out = b""
    while not out.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return None
        out += byte
    return out


def read_answer(client):
    """One answer with a length; (status, head, body)."""
    head = read_head(client)
    assert head is not None
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    body = b""
    while len(body) < length:
        body += client.recv(length - len(body))
    return int(head.split(b" ")[1]), head, body


def get(host, path="/", version="1.1", extra="", method="GET", target=None):
    return f"{method} {target or path} HTTP/{version}\r\nHost: {host}\r\n{extra}\r\n".encode()


def ask(client, *request, **members):
    client.sendall(get(*request, **members))
    return read_answer(client)


@pytest.fixture
def web(internet):
    internet.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER], "denied.test": [OTHER], "inside.test": [PRIVATE]})
    internet.api, internet.elsewhere = Server(internet, PUBLIC, "api"), Server(internet, OTHER, "other")
    internet.open(rule("api.test"), rule("other.test", read_only=True), rule("denied.test", deny=True, why="nobody goes there"), port=80)
    return internet


def proxy(web):
    """To the door's own port, as a client with http_proxy set connects."""
    return web.connect("127.0.0.1", 80)


def test_a_request_is_answered_by_its_server(web):
    assert ask(web.connect("api.test", 80), "api.test", "/a")[::2] == (200, b"api /a")


def test_requests_of_several_connections_share_one_to_the_server(web):
    for i in range(5):
        with web.connect("api.test", 80) as client:
            assert ask(client, "api.test", f"/{i}")[0] == ask(client, "api.test", f"/{i}")[0] == 200
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == b""
    assert len(web.api.connections) == 1 and len(web.api.requests) == 10


def test_a_request_that_changes_something_is_never_sent_over_a_used_connection(web):
    for _ in range(2):
        with web.connect("api.test", 80) as client:
            assert ask(client, "api.test", method="POST", extra="Content-Length: 0\r\n")[0] == 200
    assert len(web.api.connections) == 2


def test_a_kept_connection_that_the_server_has_closed_is_replaced(web):
    def once(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    web.api.answers[b"/once"] = once
    for _ in range(3):
        assert ask(web.connect("api.test", 80), "api.test", "/once")[2] == b"ok"


@pytest.mark.parametrize("host", ["other.test", "denied.test", "unknown.test", PUBLIC, "api.test:81", "api.test.evil.test"])
def test_another_host_than_the_connection_leads_to_is_refused(web, host):
    status, _, body = ask(web.connect("api.test", 80), host)
    assert status == 403 and b"host_differs" in body and web.api.requests == web.elsewhere.requests == []
    assert web.record(event="refusal")["refusal"] == "host_differs"


def test_keep_alive_to_another_host_is_refused(web):
    client = web.connect("api.test", 80)
    assert ask(client, "api.test")[0] == 200
    assert ask(client, "other.test")[0] == 403
    assert read_all(client) == b"" and len(web.api.requests) == 1 and web.elsewhere.requests == []


def test_pipelined_requests_are_judged_one_by_one(web):
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/1") + get("api.test", "/2") + get("other.test", "/3") + get("api.test", "/4"))
    assert [read_answer(client)[0] for _ in range(3)] == [200, 200, 403]
    assert read_all(client) == b"" and [r.split(b" ")[1] for r in web.api.requests] == [b"/1", b"/2"]


def test_a_redirect_to_a_denied_host_is_not_followed_through(web):
    web.api.answers[b"/moved"] = b"HTTP/1.1 302 Found\r\nLocation: http://denied.test/\r\nContent-Length: 0\r\n\r\n"
    status, head, _ = ask(web.connect("api.test", 80), "api.test", "/moved")
    assert status == 302 and b"denied.test" in head
    assert web.ask("denied.test")[0] == 3
    assert ask(proxy(web), "denied.test", target="http://denied.test/")[0] == 403


def test_what_is_refused_says_why(web):
    status, _, body = ask(proxy(web), "denied.test", target="http://denied.test/")
    assert status == 403 and b"denied.test:80" in body and b"nobody goes there" in body
    assert ask(web.connect("unknown.test", 80), "unknown.test")[0] == 403
    assert web.record(refusal="not_listed")["host"] == "unknown.test"


def test_a_rule_that_reads_only(web):
    assert ask(web.connect("other.test", 80), "other.test")[0] == 200
    status, _, body = ask(web.connect("other.test", 80), "other.test", method="DELETE")
    assert status == 403 and b"method" in body and len(web.elsewhere.requests) == 1
    status, _, body = ask(web.connect("other.test", 80), "other.test", extra="X-HTTP-Method-Override: DELETE\r\n")
    assert status == 403 and b"method" in body and len(web.elsewhere.requests) == 1


@pytest.mark.parametrize("proxied", [False, True])
def test_a_rule_with_paths_permits_no_others(internet, proxied):
    internet.names.zone["api.test"] = [PUBLIC]
    server = Server(internet, PUBLIC, "api")
    internet.open(rule("api.test", ports=[80, 8080], paths=["/pub", "/x/"], why="a mirror"), port=80)
    whole = "http://api.test" if proxied else ""

    def asked(path, **members):
        with internet.connect("127.0.0.1" if proxied else "api.test", 80) as client:
            return ask(client, "api.test", target=whole + path, **members)

    for path in ("/pub", "/pub/a?b=/../", "/x/"):
        assert asked(path)[0] == 200
    for path in ("/", "/public", "/x", "/pub/../y", "/pub/%2e%2e/y", "/pub%2f..%2fy", "/pub//y"):
        status, _, body = asked(path)
        assert status == 403 and b"refused: path: " in body and b": /pub, /x/ (rule 0: a mirror)" in body, path
    assert asked("/pub", extra="X-Original-URL: /y\r\n")[0] == 403
    assert len(server.requests) == 3
    assert internet.record(event="refusal")["refusal"] == "path"
    with internet.connect("api.test", 80) as client:
        assert ask(client, "api.test", "/pub/1")[0] == 200
        assert ask(client, "api.test", "/other")[0] == 403 and read_all(client) == b""


def test_a_proxy_serves_each_host_of_one_connection(web):
    client = proxy(web)
    for host in ("api.test", "other.test", "api.test"):
        assert ask(client, host, target=f"http://{host}/x")[0] == 200
    assert web.api.requests[0].startswith(b"GET /x HTTP/1.1\r\nHost: api.test\r\n")


@pytest.mark.parametrize("request_", [
    get("other.test", target="http://api.test/"),
    get("api.test"),
    get("api.test", target="https://api.test/"),
    get("api.test", target="http://user@api.test/"),
    get("api.test", extra="Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", target="http://api.test/"),
    get("api.test", extra="Content-Length: 1\r\nContent-Length: 2\r\n", target="http://api.test/"),
    get("api.test", extra="Transfer-Encoding: gzip, chunked\r\n", target="http://api.test/"),
    b"GET http://api.test/ HTTP/1.1\nHost: api.test\n\n",
    b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nHost: api.test\r\n\r\n",
    b"GET http://api.test/ HTTP/1.1\r\nHost : api.test\r\n\r\n",
    b"GET http://api.test/ HTTP/2.0\r\nHost: api.test\r\n\r\n",
    b"GET http://api.test/ HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n",
    b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n",
    b"GET http://2852039166/ HTTP/1.1\r\nHost: 2852039166\r\n\r\n",
], ids=range(15))
def test_what_is_ambiguous_or_leads_inside_reaches_no_server(web, request_):
    client = proxy(web)
    client.sendall(request_)
    assert read_answer(client)[0] in (400, 403, 431)
    assert read_all(client) == b"" and web.api.requests == []


def test_fields_of_the_connection_stay_here(web):
    extra = "Proxy-Authorization: Basic c2VjcmV0\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nX-End: 2\r\nKeep-Alive: 5\r\n"
    ask(proxy(web), "api.test", target="http://api.test/", extra=extra)
    assert web.api.requests[0].split(b"\r\n")[1:-2] == [b"Host: api.test", b"X-End: 2"]


def test_http_1_0_stays_1_0(web):
    client = web.connect("api.test", 80)
    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert read_all(client).endswith(b"api /") and web.api.requests[0].startswith(b"GET / HTTP/1.0\r\nHost: api.test\r\n")


def test_bodies_go_both_ways(web):
    body = b"".join(b"%x\r\n%s\r\n" % (n, b"z" * n) for n in (1, 5000, 70000)) + b"0\r\nX-Trailer: 1\r\n\r\n"

    def swallow(connection, _):
        got = b""
        while not got.endswith(b"0\r\nX-Trailer: 1\r\n\r\n"):
            got += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + got)

    web.api.answers[b"/body"] = swallow
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/body", method="POST", extra="Transfer-Encoding: chunked\r\nConnection: close\r\n") + body)
    got = read_all(client)
    assert got.split(b"\r\n\r\n", 1)[1] == body


def test_a_client_that_waits_for_100_gets_it(web):
    def continued(connection, _):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert connection.recv(10) == b"12345"
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    web.api.answers[b"/wait"] = continued
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/wait", method="PUT", extra="Expect: 100-continue\r\nContent-Length: 5\r\n"))
    assert read_head(client).startswith(b"HTTP/1.1 100 ")
    client.sendall(b"12345")
    assert read_answer(client)[0] == 200


def test_an_answer_that_comes_before_the_request_has_ended_is_told(web):
    def too_large(connection, _):
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    web.api.answers[b"/large"] = too_large
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/large", method="PUT", extra="Content-Length: 1000000\r\n") + b"x" * 1000)
    assert read_answer(client)[0] == 413 and read_all(client) == b""


def test_websocket_becomes_a_relay(web):
    def switch(connection, head):
        assert b"Upgrade: websocket" in head and b"Connection: Upgrade" in head
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
        connection.sendall(connection.recv(100))

    web.api.answers[b"/ws"] = switch
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/ws", extra="Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n"))
    assert b"101" in read_head(client) and client.recv(5) == b"first"
    client.sendall(b"\x81\x00frames")
    assert client.recv(100) == b"\x81\x00frames"


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", b"no HTTP at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20000,
], ids=range(5))
def test_an_answer_that_is_none_becomes_502(web, answer):
    web.api.answers[b"/bad"] = lambda connection, _: connection.sendall(answer)
    assert ask(web.connect("api.test", 80), "api.test", "/bad")[0] == 502


def test_a_server_that_ends_in_the_middle_of_an_answer_is_no_end(web):
    web.api.answers[b"/half"] = lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    client = web.connect("api.test", 80)
    client.sendall(get("api.test", "/half"))
    assert read_all(client).endswith(b"RST")


def test_what_follows_an_answer_unasked_reaches_no_other_request(web):
    web.api.answers[b"/two"] = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2"
    client = web.connect("api.test", 80)
    assert ask(client, "api.test", "/two")[2] == b"1"
    assert ask(client, "api.test", "/a")[2] == b"api /a"


def test_a_head_has_no_body(web):
    web.api.answers[b"/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    client = web.connect("api.test", 80)
    for _ in range(2):
        client.sendall(get("api.test", method="HEAD"))
        assert b"1000" in read_head(client)


def test_an_endless_answer_holds_up_nobody_and_takes_no_memory(web):
    def endless(connection, _):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(OSError):
            while True:
                connection.sendall(b"x" * 65536)
        over.set()

    over = threading.Event()
    web.api.answers[b"/endless"] = endless
    before = web.door.memory()
    flooded, stalled = web.connect("api.test", 80), web.connect("api.test", 80)
    for client in (flooded, stalled):
        client.sendall(get("api.test", "/endless"))
    for _ in range(500):
        flooded.recv(65536)
    assert ask(web.connect("other.test", 80), "other.test")[0] == 200
    assert world.UNSEALED or web.door.memory() - before < 1024
    flooded.close()
    assert over.wait(60)
