"""/v1/shell/ws: a terminal for a person. Server: session_id, ready, output, ping. Client: input, resize, pong."""
import asyncio
import json

import pytest
from conftest import NOT_FOUND, Api

websockets = pytest.importorskip("websockets")
PONGS = [{"type": "pong", "timestamp": 1}, {"type": "pong", "data": {"timestamp": 1}}, {"type": "pong"},
         {"type": "pong", "data": 1}, {"type": "pong", "timestamp": "x", "data": None}]
UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]


class Terminal:
    """One connection; use as `async with Terminal(api) as t`."""

    def __init__(self, api: Api, query=""):
        self.address = api.url.replace("http", "ws", 1) + f"/v1/shell/ws?api_key={api.key}{query}"
        self.text = ""

    async def __aenter__(self):
        self.ws = await websockets.connect(self.address, max_size=None, open_timeout=60, ping_interval=None)
        return self

    async def __aexit__(self, *_):
        await self.ws.close()

    async def message(self) -> dict:
        frame = await asyncio.wait_for(self.ws.recv(), 60)
        assert isinstance(frame, str)  # trap 20: text frames
        return json.loads(frame)

    async def send(self, **message):
        await self.ws.send(json.dumps(message))

    async def until(self, wanted: str) -> str:
        while wanted not in self.text:
            message = await self.message()
            if message["type"] == "output":
                self.text += message["data"]
        return self.text

    async def begin(self) -> str:
        """The session's id, once the prompt is there."""
        first, second = await self.message(), await self.message()
        assert (first["type"], second["type"]) == ("session_id", "ready")
        await self.until("$ ")
        return first["data"]


def in_terminal(api, use, query=""):
    async def main():
        async with Terminal(api, query) as terminal:
            return await use(terminal)
    return asyncio.run(main())


def test_trap_20_the_order_is_session_id_ready_output(api):
    async def use(t):
        return [await t.message() for _ in range(3)]
    first, second, third = in_terminal(api, use)
    assert first["type"] == "session_id" and isinstance(first["data"], str)
    assert second == {"type": "ready", "data": "Terminal ready"}
    assert third["type"] == "output" and isinstance(third["data"], str)


def test_input_is_typed_and_its_output_comes_back(api):
    async def use(t):
        await t.begin()
        await t.send(type="input", data="echo sum-$((40+2))\r")
        return await t.until("sum-42")
    assert "sum-42" in in_terminal(api, use)


def test_keys_are_sent_as_they_are(api):
    async def use(t):
        await t.begin()
        await t.send(type="input", data="bash -c 'echo go-$((1+1)); exec sleep 60'\r")
        await t.until("go-2")
        await t.send(type="input", data="\x03")
        await t.until("^C\r\n")
        await t.send(type="input", data="echo code-$?\r")
        return await t.until("code-130")
    assert in_terminal(api, use)


@pytest.mark.parametrize("message", [{"data": {"cols": 133, "rows": 41}}, {"cols": 133, "rows": 41}])
def test_resize_reaches_the_terminal(api, message):
    async def use(t):
        await t.begin()
        await t.send(type="resize", **message)
        await t.send(type="input", data="echo size-$(stty size)-\r")
        return await t.until("size-41 133-")
    assert in_terminal(api, use)


@pytest.mark.parametrize("pong", PONGS)
def test_trap_20_every_shape_of_pong_is_taken(api, pong):
    async def use(t):
        await t.begin()
        await t.send(**pong)
        await t.send(type="input", data="echo on-$((1+1))\r")
        return await t.until("on-2")
    assert in_terminal(api, use)


@pytest.mark.parametrize("odd", ["", "{", "[]", "null", "1", '{"type":1}', '{"type":"input"}', '{"type":"input","data":7}',
                                 '{"type":"resize","data":{"cols":-1,"rows":99999999}}', '{"type":"resize","data":"x"}',
                                 '{"type":"unheard-of"}', '{"type":"input","data":"\\u0000"}', "[" * 500])
def test_an_odd_message_does_not_end_the_terminal(api, odd):
    async def use(t):
        await t.begin()
        await t.ws.send(odd)
        await t.send(type="input", data="echo on-$((1+1))\r")
        return await t.until("on-2")
    assert in_terminal(api, use)


def test_a_second_connection_has_its_own_session(api):
    async def use(t):
        async with Terminal(api) as other:
            first, second = await t.begin(), await other.begin()
            await t.send(type="input", data="cd /usr; echo in-$PWD\r")
            await t.until("in-/usr")
            await other.send(type="input", data="echo in-$PWD-\r")
            await other.until("-\r\n")
            return first, second, other.text
    first, second, text = in_terminal(api, use)
    assert first != second and "in-/usr" not in text


def test_a_session_id_in_the_query_attaches_to_that_session(api, shell):
    api.shell("cd /usr", id=shell)

    async def use(t):
        assert (await t.message())["data"] == shell
        await t.send(type="input", data="echo in-$PWD-\r")
        return await t.until("in-/usr-")
    assert in_terminal(api, use, f"&session_id={shell}")


def test_an_unknown_session_id_is_told_and_closed(api):
    async def use(t):
        told = await t.message()
        with pytest.raises(websockets.ConnectionClosed):
            await t.message()
        return told
    assert in_terminal(api, use, "&session_id=unheard-of") == {"type": "error", "data": NOT_FOUND["message"]}


def test_the_session_of_a_terminal_is_listed_and_can_be_used(api):
    async def use(t):
        session = await t.begin()
        listed = await asyncio.to_thread(api.data, "/v1/shell/sessions", None, "GET")
        return session in listed["sessions"]
    assert in_terminal(api, use)


def test_exit_closes_the_connection_in_order(api):
    async def use(t):
        await t.begin()
        await t.send(type="input", data="exit\r")
        with pytest.raises(websockets.ConnectionClosed):
            while True:
                await t.message()
        return t.ws.close_code
    assert in_terminal(api, use) == 1000


def test_a_character_is_never_split_between_messages(api):
    async def use(t):
        await t.begin()
        await t.send(type="input", data="python3 -c \"print('\u20ac' * 50000 + 'end')\"\r")
        return await t.until("\u20acend")
    text = in_terminal(api, use)
    assert "\ufffd" not in text and text.count("\u20ac") >= 50_000


def test_a_flood_arrives_in_order_and_input_still_works(api):
    async def use(t):
        await t.begin()
        await t.send(type="input", data="seq 200000; echo end-$((1+1))\r")
        return await t.until("end-2")
    assert "199999\r\n200000\r\n" in in_terminal(api, use)


def handshake(api, *headers, key=True, path="/v1/shell/ws"):
    with api.raw() as raw:
        lines = [f"GET {path} HTTP/1.1", f"Host: {raw.host}", *headers, *([f"X-AIO-API-Key: {api.key}"] if key else []), "", ""]
        raw.send("\r\n".join(lines).encode())
        answer = raw.head()
        return answer.status


def test_an_upgrade_without_the_key_is_401(api):
    assert handshake(api, *UPGRADE, key=False) == 401


def test_an_upgrade_with_a_key_in_a_header_is_101(api):
    assert handshake(api, *UPGRADE) == 101


def test_an_upgrade_from_a_foreign_origin_is_403(api):
    assert handshake(api, *UPGRADE, "Origin: http://evil.example") == 403


def test_an_upgrade_from_the_own_origin_is_101(api):
    assert handshake(api, *UPGRADE, f"Origin: {api.url}") == 101


def test_a_plain_get_is_told_to_upgrade(api):
    assert handshake(api) == 426


def test_an_upgrade_of_another_path_is_an_ordinary_request(api):
    assert handshake(api, *UPGRADE, path="/v1/sandbox") == 200


@pytest.mark.parametrize("frame", [b"\x81\x05hello", b"\xf1\x80\0\0\0\0", b"\x83\x80\0\0\0\0", b"\x81\xff" + b"\x7f" * 8 + b"\0" * 4,
                                   b"\x89\xfe\x00\x80\0\0\0\0" + b"x" * 128, b"\x80\x80\0\0\0\0", b"\x81\x82\0\0\0\0\xff\xff"])
def test_a_frame_against_the_protocol_ends_only_its_connection(api, frame):
    with api.raw() as raw:
        lines = ["GET /v1/shell/ws HTTP/1.1", f"Host: {raw.host}", *UPGRADE, f"X-AIO-API-Key: {api.key}", "", ""]
        raw.send("\r\n".join(lines).encode())
        assert raw.head().status == 101
        raw.send(frame)
        while raw.more():  # the close frame, then the end
            pass
    assert api.http.get("/v1/ping").status_code == 200
