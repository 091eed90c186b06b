"""Bytes on the wire: whatever two HTTP parsers could read differently is refused, and nobody can hold a connection for free."""
import json
import socket
import time

import pytest
from conftest import eventually

ECHO = json.dumps({"command": "echo x"})
SMUGGLED = "GET /v1/sandbox HTTP/1.1\r\nHost: x\r\n\r\n"


def post(api, *headers: str, body="") -> bytes:
    return "\r\n".join(["POST /v1/bash/exec HTTP/1.1", "Host: x", f"X-AIO-API-Key: {api.key}", *headers, "", body]).encode("latin-1")


@pytest.mark.parametrize("headers", [
    ["Content-Length: 4", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding: chunked", "Content-Length: 4"],
    ["Content-Length: 4", "Content-Length: 4"],
    ["Content-Length: 4", "Content-Length: 5"],
    ["Content-Length: 4, 4"], ["Content-Length: +4"], ["Content-Length: -1"], ["Content-Length: 0x4"], ["Content-Length: 4 4"],
    ["Content-Length: "], ["Content-Length: 99999999999999999999"], ["Content-Length: 4."], ["Content-Length : 4"],
    ["Transfer-Encoding: xchunked"], ["Transfer-Encoding: chunked, identity"], ["Transfer-Encoding: identity"],
    ["Transfer-Encoding: gzip, chunked"], ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    ["Transfer-Encoding:\x0bchunked"], ["Transfer-Encoding : chunked"], ["Transfer-Encoding: \"chunked\""],
    ["X: a\r\n folded"], ["X: a\r\n\tfolded"], [" X: a"], ["X\0: a"], ["X: a\0b"], ["X: a\rb"], ["X"], [": a"], ["X Y: a"],
    ["X: a\x7f"], ["\xe9: a"], ["Host: y"], ["Host: x"], ["Expect: 200-ok"], ["Origin: a", "Origin: b"], ["Authorization: Bearer a"] * 2])
def test_an_ambiguous_head_is_400_and_closes(api, headers):
    with api.raw() as raw:
        raw.send(post(api, *headers, body="0\r\n\r\n" + SMUGGLED))
        answer = raw.answer()
        assert (answer.status, answer.headers["connection"], raw.closed()) == (400, "close", True)


@pytest.mark.parametrize("line", ["GET /v1/sandbox", "GET  /v1/sandbox HTTP/1.1", "GET /v1/sandbox HTTP/1.1 ", "GET /v1/sandbox HTTP/2.0",
                                  "GET /v1/sandbox HTTP/0.9", "get /v1/sandbox HTTP/1.1", "G\0T /v1/sandbox HTTP/1.1", " GET / HTTP/1.1",
                                  "GET\t/v1/sandbox\tHTTP/1.1", "GET http://x/v1/sandbox HTTP/1.1", "GET /v1/sand\x01box HTTP/1.1",
                                  "GET /v1/\xe9 HTTP/1.1", "GET /v1/a b HTTP/1.1", "\x16\x03\x01\x02", "PRI * HTTP/2.0"])
def test_a_malformed_request_line_is_400_and_closes(api, line):
    with api.raw() as raw:
        raw.send(f"{line}\r\nHost: x\r\nX-AIO-API-Key: {api.key}\r\n\r\n".encode("latin-1"))
        assert (raw.answer().status, raw.closed()) == (400, True)


@pytest.mark.parametrize("head", ["GET /v1/ping HTTP/1.1\nHost: x\n\n", "GET /v1/ping HTTP/1.1\r\nHost: x\n\r\n",
                                  "GET /v1/ping HTTP/1.1\nHost: x\r\n\r\n"])
def test_a_bare_line_feed_is_400(api, head):
    with api.raw() as raw:
        raw.send(head.encode())
        assert (raw.answer().status, raw.closed()) == (400, True)


@pytest.mark.parametrize("host", ["", "Host:\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: a,b\r\n", "Host: x\r\nHost: x\r\n"])
def test_http_1_1_needs_one_proper_host(api, host):
    with api.raw() as raw:
        raw.send(f"GET /v1/ping HTTP/1.1\r\n{host}\r\n".encode())
        assert raw.answer().status == 400


@pytest.mark.parametrize("chunks", ["x\r\n", "-1\r\n", "1\r\nab\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n", "ffffffffffffffffff\r\n",
                                    "0x5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n"])
def test_a_malformed_chunk_is_400_and_closes(api, chunks):
    with api.raw() as raw:
        raw.send(post(api, "Transfer-Encoding: chunked", body=chunks + SMUGGLED))
        answer = raw.answer()
        assert (answer.status, raw.closed()) == (400, True)


def test_a_body_after_its_length_is_the_next_request(api):
    with api.raw() as raw:
        raw.send(post(api, f"Content-Length: {len(ECHO)}", body=ECHO) + b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.answer().json()["data"]["stdout"] == "x\n"
        assert raw.answer().json()["data"] == "pong"


def test_nothing_is_served_after_a_refusal(api):
    with api.raw() as raw:
        raw.send(b"POST /v1/bash/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /v1/ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (raw.answer().status, raw.closed()) == (401, True)


def test_a_chunked_body_is_read(api):
    with api.raw() as raw:
        half = len(ECHO) // 2
        body = f"{half:x};ext=1\r\n{ECHO[:half]}\r\n{len(ECHO) - half:X}\r\n{ECHO[half:]}\r\n0\r\nTrailer: x\r\n\r\n"
        raw.send(post(api, "Transfer-Encoding: chunked", body=body))
        assert raw.answer().json()["data"]["stdout"] == "x\n"


def test_a_head_in_single_bytes_is_read(api):
    with api.raw() as raw:
        for byte in post(api, f"Content-Length: {len(ECHO)}", body=ECHO):
            raw.send(bytes([byte]))
        assert raw.answer().status == 200


def test_expect_100_continue_is_answered_before_the_body(api):
    with api.raw() as raw:
        raw.send(post(api, f"Content-Length: {len(ECHO)}", "Expect: 100-continue"))
        assert raw.answer().status == 100
        raw.send(ECHO.encode())
        assert raw.answer().status == 200


# --- connections ---

def test_a_connection_serves_many_requests(api):
    with api.raw() as raw:
        for _ in range(50):
            raw.send(api.request("GET /v1/sandbox"))
            assert raw.answer().status == 200


def test_pipelined_requests_are_answered_in_order(api):
    with api.raw() as raw:
        for n in range(10):
            raw.send(api.request("POST /v1/bash/exec", json.dumps({"command": f"echo {n}"})))
        assert [raw.answer().json()["data"]["stdout"] for _ in range(10)] == [f"{n}\n" for n in range(10)]


def test_connection_close_is_obeyed(api):
    with api.raw() as raw:
        raw.send(api.request("GET /v1/ping", "", "Connection: close"))
        answer = raw.answer()
        assert (answer.status, answer.headers["connection"], raw.closed()) == (200, "close", True)


def test_http_1_0_closes_unless_asked_to_keep(api):
    with api.raw() as raw:
        raw.send(b"GET /v1/ping HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert raw.answer().status == 200
        raw.send(b"GET /v1/ping HTTP/1.0\r\n\r\n")
        assert (raw.answer().status, raw.closed()) == (200, True)


def test_a_client_that_only_half_closes_gets_its_answer(api):
    with api.raw() as raw:
        raw.send(api.request("POST /v1/bash/exec", json.dumps({"command": "read -t 0.3 x; echo late"})))
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.answer().json()["data"]["stdout"] == "late\n"


def test_a_head_that_never_ends_is_cut_off(api):
    with api.raw() as raw:
        began = time.monotonic()
        raw.send(b"GET /v1/ping HTTP/1.1\r\n")
        try:
            while not raw.closed(within=0.5):
                raw.send(b"X: y\r\n")
                assert time.monotonic() - began < 60
        except OSError:  # reset
            pass
        assert 5 < time.monotonic() - began < 60


@pytest.mark.parametrize("head", [b"GET /v1/ping HTTP/1.1\r\n" + b"X: y\r\n" * 200, b"GET /v1/ping HTTP/1.1\r\nX: " + b"y" * 20000])
def test_a_head_that_is_too_large_is_400(api, head):
    with api.raw() as raw:
        raw.send(head + b"\r\n\r\n")
        assert raw.answer().status == 400


def test_200_idle_connections_hinder_nobody(api):
    idle = [api.raw() for _ in range(200)]
    try:
        assert api.bash("echo x")["stdout"] == "x\n"
        assert all(connection.silent(0) for connection in idle)
    finally:
        for connection in idle:
            connection.socket.close()


def test_connections_that_are_reset_leave_nothing(api, native):
    def descriptors():
        import os
        return len(os.listdir(f"/proc/{native.agent_pid}/fd"))
    before = descriptors()
    for _ in range(100):
        with api.raw() as raw:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.send(api.request("POST /v1/bash/exec", "{")[:-30])
    eventually(lambda: descriptors() <= before + 3)


def test_random_bytes_are_refused_and_hurt_nobody(api):
    import random
    seeded = random.Random(7)
    for _ in range(200):
        with api.raw() as raw:
            raw.send(seeded.randbytes(seeded.randrange(1, 400)) + b"\r\n\r\n")
            raw.socket.shutdown(socket.SHUT_WR)
            while raw.more():
                pass
            assert not raw.bytes or raw.bytes.startswith(b"HTTP/1.1 400 "), raw.bytes
    assert api.http.get("/v1/ping").status_code == 200
