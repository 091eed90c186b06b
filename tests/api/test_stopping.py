"""SIGTERM: the server says that it stops, serves for a moment more, closes the port, lets requests end, and ends streams properly."""
import asyncio
import json
import os
import signal
import socket
import threading
import time

import httpx
import pytest
from conftest import Api, eventually

websockets = pytest.importorskip("websockets")
PHASE_MS = 1500


@pytest.fixture
def ending(launch):
    return launch(CAISSON_DRAIN_MS=str(PHASE_MS))


@pytest.fixture
def ending_late(launch):
    """One whose port is open for longer than a few requests take on a slow machine."""
    return launch(CAISSON_DRAIN_MS="6000")


def accepts(launcher) -> bool:
    try:
        socket.create_connection(("127.0.0.1", launcher.port), 2).close()
        return True
    except OSError:
        return False


def stopping(launcher) -> bool:
    return httpx.get(launcher.url + "/readyz").status_code == 503


def begun_exec(launcher, api, raw, rest: str):
    """A command that has begun, and whose request waits."""
    raw.send(api.request("POST /v1/bash/exec", json.dumps({"command": "echo begun > begun; " + rest})))
    eventually(lambda: (launcher.dir / "home/begun").exists())


def test_readiness_is_503_with_its_reason_before_the_port_closes(ending_late):
    ending = ending_late
    api = Api(ending.url, ending.key)
    ending.process.send_signal(signal.SIGTERM)
    eventually(lambda: stopping(ending))
    seen = httpx.get(ending.url + "/readyz").json()["data"]
    assert seen["checks"][0] == {"name": "serving", "passed": False, "why": "the server is stopping"}
    assert httpx.get(ending.url + "/healthz").status_code == 200
    served = api.http.post("/v1/bash/exec", json={"command": "echo served"})  # on a connection of its own
    assert served.json()["data"]["stdout"] == "served\n" and served.headers["connection"] == "close"
    eventually(lambda: not accepts(ending))
    assert ending.process.wait(60) == 0


def test_the_phase_can_be_left_out(launch):
    launcher = launch(CAISSON_DRAIN_MS="0")
    began = time.monotonic()
    launcher.process.send_signal(signal.SIGTERM)
    assert launcher.process.wait(60) == 0 and time.monotonic() - began < 15


def test_a_phase_that_the_launcher_would_not_wait_for_is_cut(launch):
    launcher = launch(CAISSON_DRAIN_MS="60000", CAISSON_SHUTDOWN_SECONDS="1")
    began = time.monotonic()
    launcher.process.send_signal(signal.SIGTERM)
    eventually(lambda: not accepts(launcher))
    assert 1 < time.monotonic() - began < 20
    assert launcher.process.wait(60) == 0
    assert '"signaled":false,"status":0' in (launcher.dir / "audit/launcher.ndjson").read_text().split('"agent_exit"')[-1]


def test_a_command_under_way_is_answered_after_the_port_has_closed_and_a_second_signal_changes_nothing(ending_late):
    ending = ending_late
    api = Api(ending.url, ending.key)
    agent = ending.agent_pid
    with api.raw() as busy:
        begun_exec(ending, api, busy, "read -t 8 x; echo done")  # the port closes before, and what runs is ended later
        ending.process.send_signal(signal.SIGTERM)
        eventually(lambda: stopping(ending))
        ending.process.send_signal(signal.SIGTERM)
        os.kill(agent, signal.SIGTERM)
        eventually(lambda: not accepts(ending))
        os.kill(agent, signal.SIGTERM)
        answer = busy.answer()
        assert answer.json()["data"]["stdout"] == "done\n" and answer.headers["connection"] == "close"
    assert ending.process.wait(60) == 0


def test_an_endless_event_stream_ends_with_the_mark_of_its_end(ending):
    api = Api(ending.url, ending.key)
    watcher = api.data("/v1/file/watch", {"path": "/home/gem"})["watcher_id"]
    with api.raw() as stream:
        stream.send(api.request(f"GET /v1/file/watch/{watcher}/events", "", "Accept: text/event-stream"))
        assert stream.head().headers["transfer-encoding"] == "chunked" and b"watch_started" in stream.chunk()
        began = time.monotonic()
        ending.process.send_signal(signal.SIGTERM)
        assert stream.chunk() == b"" and stream.closed()
        assert PHASE_MS / 1000 - 0.5 < time.monotonic() - began < PHASE_MS / 1000 + 4  # when the port closes, not when the grace is over
    assert ending.process.wait(60) == 0


def test_the_event_stream_of_a_command_ends_with_its_result(ending):
    api = Api(ending.url, ending.key)
    with api.raw() as stream:
        stream.send(api.request("POST /v1/shell/exec", json.dumps({"command": "echo begun > begun; sleep 3; echo finished", "exec_dir": "/home/gem"}),
                                "Accept: text/event-stream"))
        assert stream.head().status == 200
        eventually(lambda: (ending.dir / "home/begun").exists())
        ending.process.send_signal(signal.SIGTERM)
        events = b""
        while piece := stream.chunk():
            events += piece
    assert b"finished" in events and b"event: done" in events
    assert ending.process.wait(60) == 0


def test_a_websocket_is_closed_as_going_away(ending):
    async def closed() -> int:
        async with websockets.connect(f"ws://127.0.0.1:{ending.port}/v1/shell/ws?api_key={ending.key}", max_size=None, open_timeout=60) as ws:
            await ws.recv()
            ending.process.send_signal(signal.SIGTERM)
            try:
                while True:
                    await asyncio.wait_for(ws.recv(), 60)
            except websockets.ConnectionClosed as end:
                return end.rcvd.code
    assert asyncio.run(closed()) == 1001
    assert ending.process.wait(60) == 0


def test_requests_without_a_pause_until_the_port_closes_are_all_answered(ending):
    """Each on a connection of its own, as a load balancer's."""
    api = Api(ending.url, ending.key)
    results = []

    def ask():
        while True:
            try:
                with api.raw() as raw:
                    raw.send(api.request("GET /v1/ping"))
                    results.append(raw.answer().status)
            except ConnectionRefusedError:
                return
            except (EOFError, ConnectionError) as why:  # accepted by the kernel, not by the server: the port was closing
                results.append(repr(why))

    asking = threading.Thread(target=ask)
    asking.start()
    ending.process.send_signal(signal.SIGTERM)
    asking.join(60)
    assert len(results) > 10 and results[:-1] == [200] * (len(results) - 1)
    assert ending.process.wait(60) == 0
