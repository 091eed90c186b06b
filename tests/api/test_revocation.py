"""What a credential opened ends with it: terminals, previews, streams, and requests whose body comes late. Limits::recheck is 5 s."""
import asyncio
import json
import secrets
import time

import pytest
import test_auth_tokens
from conftest import Api
from proxied import app
from test_auth import UPGRADE, KeyFile, entry
from test_shell_ws import Terminal

websockets = pytest.importorskip("websockets")
issuers, trusting = test_auth_tokens.issuers, test_auth_tokens.trusting  # fixtures
WITHIN = 60  # the recheck and the grace of the closing handshake take 6.5 s; a busy machine takes more
ECHOES = r'''
import base64, hashlib, socket, sys, threading
def serve(peer):
    head = b""
    while b"\r\n\r\n" not in head: head += peer.recv(65536)
    key = [line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")][0].split(b": ")[1]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    peer.sendall(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while data := peer.recv(65536): peer.sendall(data)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening")
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
'''


@pytest.fixture(scope="module")
def owner(native):
    return Api(native.url, native.key)


@pytest.fixture
def token(owner):
    """token(**bounds): a minted one; token.revoke() ends all of them."""
    made = []

    def mint(**bounds) -> str:
        made.append(owner.data("/v1/tokens", {"label": secrets.token_hex(8), "seconds": 600, **bounds}))
        return made[-1]["token"]

    def revoke():
        while made:
            owner.http.delete(f"/v1/tokens/{made.pop()['id']}")

    mint.revoke = revoke
    yield mint
    revoke()


async def code_of_end(terminal: Terminal) -> int:
    with pytest.raises(websockets.ConnectionClosed) as ended:
        async with asyncio.timeout(WITHIN):
            while True:
                await terminal.ws.recv()
    return ended.value.rcvd.code


def opened(api: Api, path: str):
    raw = api.raw()
    raw.send(api.request(f"GET {path}", "", *UPGRADE))
    assert raw.answer().status == 101
    return raw


def test_a_terminal_ends_with_its_token(owner, token):
    api = Api(owner.url, token(scopes=["shell"]))

    async def main():
        async with Terminal(api) as terminal:
            await terminal.begin()
            token.revoke()
            return await code_of_end(terminal)
    assert asyncio.run(main()) == 1008


def test_a_client_that_does_not_answer_the_close_types_no_more(owner, token):
    api = Api(owner.url, token(scopes=["shell"]))
    raw = opened(api, "/v1/shell/ws")
    token.revoke()
    raw.socket.settimeout(WITHIN)
    began = time.monotonic()
    while raw.more():  # the close frame is not answered
        pass
    assert time.monotonic() - began < WITHIN


def test_a_terminal_of_a_good_token_goes_on(owner, token):
    api = Api(owner.url, token(scopes=["shell"]))

    async def main():
        async with Terminal(api) as terminal:
            await terminal.begin()
            await asyncio.sleep(6)
            await terminal.send(type="input", data="echo sum-$((40+2))\r")
            return await terminal.until("sum-42")
    assert "sum-42" in asyncio.run(main())


def test_a_body_that_comes_after_the_revocation_runs_nothing(owner, token):
    api, mark = Api(owner.url, token(scopes=["bash"])), f"/tmp/late-{secrets.token_hex(4)}"
    body = json.dumps({"command": f"touch {mark}"}).encode()
    raw = api.raw()
    request = api.request("POST /v1/bash/exec", body, "Content-Type: application/json")
    raw.send(request[:-5])
    time.sleep(0.2)
    token.revoke()
    raw.send(request[-5:])
    answer = raw.answer()
    assert answer.status == 401 and answer.headers["www-authenticate"].startswith("Bearer"), answer
    assert owner.bash(f"ls {mark}")["exit_code"] != 0


def test_a_websocket_of_a_preview_ends_with_its_token(owner, token):
    with app(owner, ECHOES) as port:
        api = Api(owner.url, token(port=port))
        raw = opened(api, f"/proxy/{port}/")
        raw.send(b"before")
        assert raw.exactly(6) == b"before"
        token.revoke()
        assert raw.closed(WITHIN)


def test_a_websocket_of_a_preview_ends_at_the_tokens_end(owner, token):
    with app(owner, ECHOES) as port:
        raw = opened(Api(owner.url, token(port=port, seconds=8)), f"/proxy/{port}/")  # in which it must be opened
        assert raw.closed(WITHIN + 8)


def test_an_event_stream_ends_with_its_token(owner, token):
    api = Api(owner.url, token(scopes=["sandbox:read"]))
    raw = api.raw()
    raw.send(api.request("GET /v1/sandbox/observe/live?interval=1", "", "Accept: text/event-stream"))
    assert raw.head().status == 200
    raw.chunk()
    token.revoke()
    raw.socket.settimeout(WITHIN)
    began = time.monotonic()
    while raw.more():
        assert time.monotonic() - began < WITHIN
    assert not raw.bytes.endswith(b"0\r\n\r\n")


def test_what_a_key_of_the_file_opened_ends_when_the_file_has_it_no_more(launch):
    file, key = KeyFile("json"), secrets.token_hex(24)
    try:
        file.write([entry("mine", key)])
        launcher = launch(CAISSON_API_KEYS_FILE=str(file.path))
        raw = opened(Api(launcher.url, key), "/v1/shell/ws")
        file.write([])
        raw.socket.settimeout(WITHIN)
        while raw.more():
            pass
    finally:
        file.remove()


def test_what_a_jwt_opened_ends_at_its_exp(trusting, issuers):  # noqa: F811
    # The leeway between clocks (60 s) belongs to the end. It must be opened before.
    soon = issuers[0].token(exp=int(time.time()) - 52)
    raw = opened(Api(trusting.url, soon), "/v1/shell/ws")
    raw.socket.settimeout(WITHIN + 8)
    while raw.more():
        pass
