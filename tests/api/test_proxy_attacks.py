"""Hostile requests to the preview proxy, and servers that answer with what is not HTTP: each has one answer, nothing of ours leaks, and
the next request is served."""
import socket
import threading

import httpx
import pytest
from proxied import ECHO, SAYS, app, saying

SECRET = b"a port that is not the workspace's"


@pytest.fixture(scope="module")
def echo(api):
    with app(api, ECHO) as port:
        yield port


@pytest.fixture(scope="module")
def says(api):
    with app(api, SAYS) as port:
        yield port


@pytest.fixture(scope="module")
def outside():
    """A server of the host's own, which no request may reach."""
    server = socket.create_server(("127.0.0.1", 0))
    reached = []

    def serve():
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            reached.append(1)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(SECRET), SECRET))
            peer.close()

    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.close()
    assert not reached


# OWN: the agent's port. OUT: another port of the host. {echo}: a server of the workspace.
PATHS = {
    "/proxy/OWN/": 502, "/proxy/OUT/": 502, "/absproxy/OUT/": 502, "/absproxy/OWN/v1/sandbox": 502,
    "/proxy/0/": 400, "/proxy/00/": 400, "/proxy/65536/": 400, "/proxy/99999/": 400, "/proxy/4294967376/": 400, "/proxy/18446744073709551696/": 400,
    "/proxy/0OUT/": 400, "/proxy/+OUT/": 400, "/proxy/-OUT/": 400, "/proxy/%20OUT/": 400, "/proxy/OUT%20/": 400, "/proxy/OUT%2f/": 400,
    "/proxy/OUT%2Fx": 400, "/proxy/OUT;x/": 400, "/proxy/OUT.0/": 400, "/proxy/0x50/": 400, "/proxy/8e3/": 400, "/proxy/OUT,80/": 400,
    "/proxy/%EF%BC%98%EF%BC%90/": 400, "/proxy/%D9%A8%D9%A0/": 400, "/proxy/%38%30/": 400, "/proxy/localhost:OUT/": 400,
    "/proxy/127.0.0.1:OUT/": 400, "/proxy/[::1]:OUT/": 400, "/proxy/[::ffff:127.0.0.1]:OUT/": 400, "/proxy/@OUT/": 400, "/proxy/OUT@/": 400,
    "/proxy/http:%2F%2F127.0.0.1:OUT/": 400, "/proxy/none/": 400, "/proxy/%00/": 400, "/proxy//OUT/": 400, "/proxy/OUT//": 400,
    "//proxy/OUT/": 400, "/proxy/../proxy/OUT/": 400, "/proxy/./OUT/": 400, "/proxy/%2e%2e/v1/sandbox": 400, "/proxy/OUT/..": 400,
    "/proxy/OUT/%2e%2e/": 400, "/proxy/OUT/%2e%2E/%2e%2e/v1/sandbox": 400, "/proxy": 404, "/proxy/": 400, "/absproxy": 404, "/absproxy/": 400,
    "/PROXY/OUT/": 404, "/%70roxy/OUT/": 404, "/proxy%2fOUT/": 404, "/proxy%2FOUT/": 404, "/v1/proxy/OUT/": 404, "/x/proxy/OUT/": 404,
    "/absproxy/0/": 400, "/absproxy/08/": 400, "/absproxy/OUT%00/": 400, "/proxy/OUT/%": 400, "/proxy/OUT/%zz": 400, "/proxy/OUT/a\\b": 502,
    "/proxy/ＯUT/": 400,
}
PORTS = {"0": 400, "65536": 400, "+80": 400, "-1": 400, "080": 400, " 80 80": 400, "80,81": 400, "80;": 400, "0x50": 400, "8e1": 400, "": 400,
         "localhost:80": 400, "127.0.0.1:80": 400, "[::1]:80": 400, "99999999999999999999": 400, "80.0": 400, "eighty": 400, "%38%30": 400,
         "OUT": 502, "OWN": 502}
HOSTS = {"OUT-x": 502, "OWN-x.example": 502, "OUT-x.example.": 502,
         "OUT-x:OWN": 502, "OUT-127.0.0.1": 502, "OUT-localhost": 502, "OUT-@evil": 400, "OUT-x/": 400, "OUT-x, a": 400,
         # Not names of ports: ours.
         "0-x": 404, "65536-x": 404, "08091-x": 404, "99999999999-x": 404, "10-1-2-3.ns.pod.cluster.local": 404, "2001-db8--1.nip.io": 404,
         "OUT-": 404, "-OUT-x": 404, "xOUT-x": 404, "x.OUT-x": 404, "OUT.x": 404, "OUTx-": 404, "127.0.0.1": 404, "[::1]:OUT": 404}


def ask(api, outside, line: str, *headers: str, host="test", key=True):
    def filled(text):
        return text.replace("OUT", str(outside)).replace("OWN", api.url.rsplit(":", 1)[1])

    given = [f"X-AIO-API-Key: {api.key}"] if key else []
    head = [filled(line) + " HTTP/1.1", f"Host: {filled(host)}", *given, *map(filled, headers), "", ""]
    with api.raw() as raw:
        raw.send("\r\n".join(head).encode())
        answer = raw.answer()
    assert SECRET not in answer.body and api.key.encode() not in answer.body
    assert httpx.get(f"{api.url}/v1/ping", trust_env=False).json()["data"] == "pong"
    return answer


@pytest.mark.parametrize("path", PATHS)
def test_a_path_reaches_nothing_else(api, outside, path):
    answer = ask(api, outside, f"GET {path}")
    assert answer.status == PATHS[path], answer
    assert b'"success":false' in answer.body


@pytest.mark.parametrize("port", PORTS)
def test_a_header_reaches_nothing_else(api, outside, port):
    assert ask(api, outside, "GET /nowhere", f"X-AIO-Proxy-Port: {port}").status == PORTS[port]


def test_the_header_is_given_once(api, outside):
    assert ask(api, outside, "GET /", "X-AIO-Proxy-Port: 80", "X-AIO-Proxy-Port: 80").status == 400


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_reaches_nothing_else(api, outside, host):
    assert ask(api, outside, "GET /nowhere", host=host).status == HOSTS[host]


@pytest.mark.parametrize("line", ["GET /v1/ping", "GET /healthz", "GET /", "GET /x.js?x=.js", "GET /v1/sandbox"])
def test_a_name_of_a_port_is_never_public(api, outside, line):
    assert ask(api, outside, line, host="80-x", key=False).status == 401


SMUGGLED = "GET /v1/sandbox HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("headers", [
    ["Content-Length: 4", "Transfer-Encoding: chunked"], ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: chunked, identity"],
    ["Content-Length: 4", "Content-Length: 4"], ["Content-Length: +4"], ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["X: a\r\n folded"], ["X : a"], ["Host: y"]])
def test_an_ambiguous_request_does_not_reach_the_server(api, echo, headers):
    with api.raw() as raw:
        head = [f"POST /proxy/{echo}/ HTTP/1.1", "Host: x", f"X-AIO-API-Key: {api.key}", *headers, "", "0\r\n\r\n" + SMUGGLED]
        raw.send("\r\n".join(head).encode())
        assert (raw.answer().status, raw.closed()) == (400, True)


def test_connection_cannot_name_what_we_set(api, echo):
    answer = httpx.get(f"{api.url}/proxy/{echo}/", trust_env=False, headers={
        "X-AIO-API-Key": api.key, "Connection": "host, x-forwarded-for, x-aio-api-key, content-length, close"})
    headers = {k.lower(): v for k, v in answer.json()["headers"]}
    assert (headers["host"], headers["x-forwarded-for"]) == (f"localhost:{echo}", "127.0.0.1") and api.key not in answer.text


OK = b"HTTP/1.1 200 OK\r\n"
ANSWERS = {
    "nothing": b"", "no status line": b"hello\r\n\r\n", "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/2": b"HTTP/2 200 OK\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\n\r\n", "status 999": b"HTTP/1.1 999 x\r\n\r\n", "status 000": b"HTTP/1.1 000 x\r\n\r\n",
    "no end of the head": OK + b"A: b\r\n", "bare line feeds": b"HTTP/1.1 200 OK\nA: b\n\n", "a folded header": OK + b"A: b\r\n c\r\n\r\n",
    "a header without colon": OK + b"A\r\n\r\n", "a space before the colon": OK + b"Content-Length : 1\r\n\r\na", "NUL": OK + b"A: \0\r\n\r\n",
    "a carriage return": OK + b"A: b\rSet-Cookie: c=d\r\n\r\n", "an empty name": OK + b": b\r\n\r\n",
    "both lengths": OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "one length twice": OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "a negative length": OK + b"Content-Length: -1\r\n\r\n", "a length that overflows": OK + b"Content-Length: 99999999999999999999\r\n\r\n",
    "lengths in a list": OK + b"Content-Length: 1, 1\r\n\r\na", "gzip, chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "xchunked": OK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a size that is none": OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", "a switch that nobody asked for":
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "many interim answers": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100 + OK + b"\r\n",
    "too many headers": OK + b"A: b\r\n" * 1000 + b"\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_not_http_is_502(api, outside, says, name):
    answer = ask(api, outside, "GET " + saying(says, ANSWERS[name]))
    assert (answer.status, b"is not HTTP" in answer.body) == (502, True), answer


def test_an_endless_head_is_502(api, outside, says):
    assert ask(api, outside, "GET " + saying(says, OK + b"A: " + b"b" * 1000, "s1000")).status == 502


@pytest.mark.parametrize("body", [b"Content-Length: 10\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                                  b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n"])
def test_a_body_that_is_cut_does_not_look_whole(api, says, body):
    try:
        answer = httpx.get(api.url + saying(says, OK + body), headers={"X-AIO-API-Key": api.key}, trust_env=False)
        assert answer.status_code == 502
    except httpx.RemoteProtocolError:
        pass


@pytest.mark.parametrize("text, body", [
    (OK + b"\r\nuntil the end", b"until the end"), (b"HTTP/1.0 200\r\n\r\nold", b"old"), (OK + b"Content-Length: 3\r\n\r\nabcdef", b"abc"),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", b"abc"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\na", b"a"),
    (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde", b""), (b"HTTP/1.1 304 Not Modified\r\n\r\nabc", b"")])
def test_bodies_end_where_they_end(api, says, text, body):
    with api.raw() as raw:
        raw.send(api.request(f"GET {saying(says, text)}"))
        if text[9:12] in (b"204", b"304"):
            assert raw.answer(bodiless=True).status == int(text[9:12])
        else:
            assert raw.answer().body == body
        raw.send(api.request("GET /v1/ping"))
        assert raw.answer().json()["data"] == "pong"


def headers_of(api, says, *lines: bytes, path="") -> httpx.Headers:
    where = saying(says, OK + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: 0\r\n\r\n")
    answer = httpx.get(api.url + where, headers={"X-AIO-API-Key": api.key}, trust_env=False)
    assert answer.status_code == 200, answer.text
    return answer.headers


@pytest.mark.parametrize("line", [b"Service-Worker-Allowed: /", b'Clear-Site-Data: "*"', b"Strict-Transport-Security: max-age=1", b"Alt-Svc: h3",
                                  b"Public-Key-Pins: x", b"Keep-Alive: x", b"NEL: {}", b"Report-To: {}", b"X-Mine: 1\r\nConnection: X-Mine"])
def test_a_header_that_acts_on_our_whole_origin_is_dropped(api, says, line):
    assert line.split(b":")[0].decode().lower() not in headers_of(api, says, line)


def test_the_opener_policy_is_not_the_servers(api, says):
    assert headers_of(api, says, b"Cross-Origin-Opener-Policy: same-origin")["cross-origin-opener-policy"] == "unsafe-none"


@pytest.mark.parametrize("given, told", [
    ("a=b", "a=b; Path=PREFIX/"), ("a=b; Path=/", "a=b; Path=PREFIX/"), ("a=b; path = /x; Secure", "a=b; Path=PREFIX/x; Secure"),
    ("a=b; Domain=example.com; HttpOnly", "a=b; HttpOnly; Path=PREFIX/"), ("a=b; Path=PREFIX/x", "a=b; Path=PREFIX/x"),
    ("a=b; Path=x", "a=b; Path=PREFIX/"), ("a=b; Path=PREFIX2/x", "a=b; Path=PREFIXPREFIX2/x"), ("caisson_login=x", None),
    ("CAISSON_x=y; Path=/", None), ("=caisson_login=x", None), (" = caisson_login=x", None), ("caisson_login", None)])
def test_cookies_stay_below_the_prefix(api, says, given, told):
    prefix = f"/proxy/{says}"
    assert headers_of(api, says, b"Set-Cookie: " + given.replace("PREFIX", prefix).encode()).get("set-cookie") == \
        (told and told.replace("PREFIX", prefix))


@pytest.mark.parametrize("given, told", [
    ("/x?y", "PREFIX/x?y"), ("x", "x"), ("?x", "?x"), ("PREFIX/x", "PREFIX/x"), ("PREFIX2/x", "PREFIXPREFIX2/x"), ("http://localhost:PORT/x", "PREFIX/x"),
    ("http://localhost:PORT", "PREFIX/"), ("https://127.0.0.1:PORT/x", "PREFIX/x"), ("http://localhost:1/x", "http://localhost:1/x"),
    ("//evil/x", "//evil/x"), ("/\\evil", "/\\evil"), ("http://localhost:PORT//evil/x", "http://localhost:PORT//evil/x"),
    ("https://example.com/x", "https://example.com/x"), ("http://localhost:PORT@evil/", "http://localhost:PORT@evil/")])
def test_redirects_stay_below_the_prefix(api, says, given, told):
    def filled(text):
        return text.replace("PREFIX", f"/proxy/{says}").replace("PORT", str(says))

    assert headers_of(api, says, b"Location: " + filled(given).encode())["location"] == filled(told)
