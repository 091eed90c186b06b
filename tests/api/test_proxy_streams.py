"""The preview proxy passes streams on as they come: events, bodies both ways at once, WebSockets. A slow end slows the other, and an
endless or silent server costs only its own workspace."""
import asyncio
import concurrent.futures
import os
import time

import httpx
import pytest
from conftest import Api, eventually
from proxied import SAYS, app, saying

websockets = pytest.importorskip("websockets")

STREAMS = r'''
import http.server, sys, threading, time
GO = threading.Semaphore(0)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    def begin(self, kind, *more):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        for name, value in more: self.send_header(name, value)
        self.end_headers()
    def do_GET(self):
        what, _, count = self.path.strip("/").partition("/")
        if what == "events":
            self.begin("text/event-stream", ("Transfer-Encoding", "chunked"))
            for i in range(int(count)):
                self.chunk(b"data: %d\n\n" % i)
                time.sleep(0.3)
            self.chunk(b"")
        elif what == "gated":  # each event waits until the one before has come
            self.begin("text/event-stream", ("Transfer-Encoding", "chunked"))
            for i in range(int(count)):
                self.chunk(b"data: %d\n\n" % i)
                GO.acquire()
            self.chunk(b"")
        elif what == "go":
            GO.release()
            self.begin("text/plain", ("Content-Length", "0"))
        elif what == "bytes":
            self.begin("application/octet-stream", ("Content-Length", count))
            piece = bytes(range(256)) * 256
            for i in range(int(count) // len(piece)): self.wfile.write(piece)
        elif what == "endless":
            self.begin("application/octet-stream", ("Transfer-Encoding", "chunked"))
            while True: self.chunk(b"x" * 65536)
        elif what == "silent":
            time.sleep(60)
        elif what == "stalls":
            self.begin("application/octet-stream", ("Content-Length", "10"))
            self.wfile.write(b"abc")
            time.sleep(60)
        elif what == "small":
            self.begin("text/plain", ("Content-Length", "2"))
            self.wfile.write(b"ok")
    def do_POST(self):  # each chunk comes back at once
        if self.path == "/refuse":
            self.send_response(413)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            return
        self.begin("application/octet-stream", ("Transfer-Encoding", "chunked"))
        while size := int(self.rfile.readline(), 16):
            self.chunk(self.rfile.read(size).upper())
            self.rfile.readline()
        self.rfile.readline()
        self.chunk(b"")
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 512
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening")
server.serve_forever()
'''

SOCKETS = r'''
import asyncio, sys, websockets
async def echo(socket):
    path = getattr(socket, "path", None) or socket.request.path
    if path.startswith("/bye"):
        await socket.close(4001, "bye")
    if path.startswith("/flood"):
        while True: await socket.send("x" * 60000)
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, "127.0.0.1", int(sys.argv[1]), max_size=None, subprotocols=["chat"], ping_interval=None):
        print("listening")
        await asyncio.Future()
asyncio.run(main())
'''

# Begins an answer to every connection and ends none.
HOLDS = r'''
import socket, sys
server, kept = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512), []
print("listening")
while True:
    kept.append(server.accept()[0])
    kept[-1].sendall(b"HTTP/1.1 200 OK\r\n\r\n")
'''


@pytest.fixture(scope="module")
def streams(api):
    with app(api, STREAMS) as port:
        yield port


@pytest.fixture(scope="module")
def sockets(api):
    if api.bash("/usr/bin/python3 -c 'import websockets'")["exit_code"] != 0:
        pytest.skip("python3-websockets is not installed")
    with app(api, SOCKETS) as port:
        yield port


@pytest.fixture(scope="module")
def hasty(launch, contract):
    """A server whose proxy waits for a second only, and a port of its workspace."""
    launcher = launch(CAISSON_PREVIEW_SECONDS="1")
    one = Api(launcher.url, launcher.key, contract)
    with app(one, STREAMS) as port:
        one.port = port
        yield one


def get(api, path, **options):
    return httpx.get(api.url + path, headers={"X-AIO-API-Key": api.key}, trust_env=False, timeout=120, **options)


def test_events_come_one_by_one(api, streams):
    with httpx.stream("GET", f"{api.url}/proxy/{streams}/gated/4", headers={"X-AIO-API-Key": api.key}, trust_env=False, timeout=60) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        came = (line.rstrip() for line in answer.iter_lines() if line.startswith("data: "))
        for i in range(4):
            assert next(came) == f"data: {i}"
            assert get(api, f"/proxy/{streams}/go").status_code == 200
        assert next(came, None) is None


def test_a_body_comes_back_while_it_is_still_sent(api, streams):
    with api.raw() as raw:
        raw.send(api.request(f"POST /proxy/{streams}/", "", "Transfer-Encoding: chunked"))
        raw.send(b"3\r\nabc\r\n")
        assert raw.head().status == 200 and raw.chunk() == b"ABC"
        raw.send(b"2\r\nde\r\n")
        assert raw.chunk() == b"DE"
        raw.send(b"0\r\n\r\n")
        assert raw.chunk() == b""
        raw.send(api.request("GET /v1/ping"))
        assert raw.answer().json()["data"] == "pong"


def test_a_client_that_expects_100_gets_it(api, streams):
    with api.raw() as raw:
        raw.send(api.request(f"POST /proxy/{streams}/", "", "Transfer-Encoding: chunked", "Expect: 100-continue"))
        assert raw.head().status == 100
        raw.send(b"1\r\na\r\n0\r\n\r\n")
        assert raw.answer().body == b"A"


def test_an_answer_before_the_end_of_the_body_arrives(api, streams):
    with api.raw() as raw:
        raw.send(api.request(f"POST /proxy/{streams}/refuse", "", "Transfer-Encoding: chunked"))
        assert raw.head().status == 413


def test_a_large_answer_arrives_whole(api, streams):
    size = 64 << 20
    body = get(api, f"/proxy/{streams}/bytes/{size}").content
    assert body == bytes(range(256)) * (size // 256)


def test_http_1_0_gets_a_body_until_the_end(api, streams):
    with api.raw() as raw:
        raw.send(f"GET /proxy/{streams}/events/1 HTTP/1.0\r\nX-AIO-API-Key: {api.key}\r\n\r\n".encode())
        head = raw.head()
        while raw.more():
            pass
        assert "transfer-encoding" not in head.headers and raw.bytes == b"data: 0\n\n"


def test_endless_answers_to_stalled_clients_cost_little_memory(native, api, streams):
    def resident():
        with open(f"/proc/{native.agent_pid}/status") as status:
            return int(status.read().split("VmRSS:")[1].split()[0])

    before = resident()
    raws = [api.raw() for _ in range(40)]
    for raw in raws:
        raw.send(api.request(f"GET /proxy/{streams}/endless"))
        assert raw.head().status == 200
    time.sleep(2)
    grown = resident() - before
    began = time.monotonic()
    assert get(api, f"/proxy/{streams}/small").text == "ok" and time.monotonic() - began < 60
    for raw in raws:
        raw.socket.close()
    assert grown < 40 * 512, f"{grown} KiB"


def test_a_silent_server_is_504(hasty):
    began = time.monotonic()
    answer = get(hasty, f"/proxy/{hasty.port}/silent")
    assert (answer.status_code, answer.json()["success"]) == (504, False) and time.monotonic() - began < 30


def test_an_answer_that_stalls_does_not_look_whole(hasty):
    def cut() -> bool:
        try:
            answer = get(hasty, f"/proxy/{hasty.port}/stalls")
        except httpx.RemoteProtocolError:
            return True
        assert answer.status_code == 504  # on a slow machine its head may come too late
        return False

    eventually(cut)


def test_a_client_that_leaves_frees_its_place(api, streams):
    for _ in range(300):
        with api.raw() as raw:
            raw.send(api.request(f"GET /proxy/{streams}/endless"))
            assert raw.head().status == 200
    assert eventually(lambda: get(api, f"/proxy/{streams}/small").status_code == 200)


def test_a_workspace_has_a_share_of_the_requests(api, named):
    one = named()
    with app(one, HOLDS) as port:
        where = f"/proxy/{port}/"
        raws = [one.raw() for _ in range(260)]
        for raw in raws:
            raw.send(one.request(f"GET {where}", "", f"X-Caisson-Workspace: {one.workspace}"))
        answers = [raw.head().status for raw in raws]
        assert (answers.count(200), answers.count(503)) == (256, 4)
        with app(api, STREAMS) as other:
            assert get(api, f"/proxy/{other}/small").text == "ok"
        for raw in raws:
            raw.socket.close()


def ws(api, path, **options):
    port = api.url.rsplit(":", 1)[1]
    return websockets.connect(f"ws://{options.pop('name', '127.0.0.1')}:{port}{path}", host="127.0.0.1", port=int(port), max_size=None, open_timeout=60,
                              extra_headers={"X-AIO-API-Key": api.key} | options.pop("headers", {}), **options)


@pytest.mark.parametrize("way", ["/proxy/PORT/", "/absproxy/PORT/", "header", "host"])
def test_a_websocket_works_each_way(api, sockets, way):
    async def main():
        headers = {"X-AIO-Proxy-Port": str(sockets)} if way == "header" else {}
        name = f"{sockets}-x.example" if way == "host" else "127.0.0.1"
        path = way.replace("PORT", str(sockets)) if way.startswith("/") else "/socket"
        async with ws(api, path, headers=headers, name=name, subprotocols=["chat"]) as socket:
            assert socket.subprotocol == "chat" and socket.response_headers["sec-websocket-extensions"].startswith("permessage-deflate")
            for message in ("hello", "", "ä" * 100_000, os.urandom(1 << 20), b""):
                await socket.send(message)
                assert await socket.recv() == message

    asyncio.run(main())


def test_a_close_passes_with_its_reason(api, sockets):
    async def main():
        async with ws(api, f"/proxy/{sockets}/bye") as socket:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await socket.recv()
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "bye")

    asyncio.run(main())


def test_a_foreign_page_opens_no_websocket(api, sockets):
    async def main():
        with pytest.raises(websockets.InvalidStatusCode) as refused:
            async with ws(api, f"/proxy/{sockets}/", origin="https://evil.example"):
                pass
        assert refused.value.status_code == 403

    asyncio.run(main())


UPGRADE = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


@pytest.mark.parametrize("lines", [
    ["Upgrade: websocket", "Connection: Upgrade"], ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: wrong"],
    ["Connection: Upgrade", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="], ["Upgrade: h2c", "Connection: Upgrade", "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]])
def test_a_wrong_switch_is_502(api, says, lines):
    text = "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""]).encode()
    with api.raw() as raw:
        raw.send(api.request(f"GET {saying(says, text)}", "", *UPGRADE))
        assert raw.answer().status == 502


@pytest.fixture(scope="module")
def says(api):
    with app(api, SAYS) as port:
        yield port


def test_a_right_switch_is_a_tunnel_of_bytes(api, says):
    text = b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nbytes"
    with api.raw() as raw:
        raw.send(api.request(f"GET {saying(says, text)}", "", *UPGRADE))
        assert raw.head().status == 101 and raw.exactly(5) == b"bytes" and raw.closed()


def test_a_refused_upgrade_is_a_plain_answer(api, says):
    with api.raw() as raw:
        raw.send(api.request(f"GET {saying(says, b'HTTP/1.1 403 No' + bytes([13, 10]) + b'Content-Length: 2' + bytes([13, 10, 13, 10]) + b'no')}", "", *UPGRADE))
        answer = raw.answer()
        assert (answer.status, answer.body) == (403, b"no")


def test_a_reader_that_stalls_slows_the_server(native, api, sockets):
    async def main():
        with open(f"/proc/{native.agent_pid}/status") as status:
            before = int(status.read().split("VmRSS:")[1].split()[0])
        # Without compression: 60,000 equal letters would become 100 bytes, and the kernel's buffers would hold gigabytes of them.
        opened = [await ws(api, f"/proxy/{sockets}/flood", max_queue=1, compression=None) for _ in range(10)]
        await asyncio.sleep(2)
        with open(f"/proc/{native.agent_pid}/status") as status:
            assert int(status.read().split("VmRSS:")[1].split()[0]) - before < 10 * 512
        for socket in opened:
            socket.transport.abort()

    asyncio.run(main())


def test_many_requests_at_once_are_all_answered(api, streams):
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda _: get(api, f"/proxy/{streams}/small").text, range(400)))
    assert answers == ["ok"] * 400
