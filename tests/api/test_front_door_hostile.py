"""The front door under hostile requests (hostile_table.py): each gets its one answer, the server still answers others, and nothing is
leaked. The same against the server built with ASan and UBSan (target front_server of the preset asan), where that is built."""
import contextlib
import os
import pathlib
import secrets
import select
import subprocess
import time

import pytest
from conftest import Api, eventually
from hostile_table import GET, HIDDEN, ROWS, WS, Row
from launcher_process import ROOT, free_port

SANITIZED = pathlib.Path(os.environ.get("CAISSON_FRONT_SERVER", ROOT / "build/asan/tests/unit/front_server"))

# What an answer may not contain, beside the key: parts of our source tree, of the launcher's protocol, of files, of a command's output.
SECRETS = [b"smugg", b"root:x:", b"/agent/", b".cc:", b"std::", b"boost", b"SANDBOX_API_KEY", b"caisson-launcher"]


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """The server under ASan and UBSan, which end it at their first finding."""
    if not SANITIZED.is_file():
        pytest.skip("not built, which takes over six minutes on two cores: cmake --preset asan && cmake --build build/asan --target front_server && "
                    "build/venv/bin/python -m pytest tests/api/test_front_door_hostile.py")
    key, port, log = secrets.token_hex(24), free_port(), tmp_path_factory.mktemp("sanitized") / "log"
    with log.open("w") as said:
        process = subprocess.Popen([SANITIZED, str(port), key], stderr=said, env={"UBSAN_OPTIONS": "halt_on_error=1", "PATH": os.environ["PATH"]})
    one = Api(f"http://127.0.0.1:{port}", key)
    try:
        def answers():
            with contextlib.suppress(OSError):
                one.raw().socket.close()
                return True
        eventually(answers)
        yield one
        assert process.poll() is None, log.read_text()[-4000:]
    finally:
        process.kill()
        process.wait()


def test_the_sanitized_server_answers(sanitized):
    """Skipped where it is not built, once for all rows below."""
    assert sanitized.http.get("/v1/ping").status_code == 200


@pytest.fixture(params=["launcher", *(["sanitized"] if SANITIZED.is_file() else [])])
def api(request):
    return request.getfixturevalue("api" if request.param == "launcher" else "sanitized")


def filled(api, raw, text: str) -> bytes:
    return text.replace("{key}", api.key).replace("{host}", raw.host).encode("latin-1")


def check_nothing_leaked(api, received: bytes):
    assert api.key.encode() not in received
    for secret in SECRETS:
        assert secret not in received


def test_the_table_is_long_and_its_names_are_unique():
    assert len(ROWS) >= 80 and len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_hostile_request_gets_its_one_answer(api, row: Row):
    if "X-Caisson-Workspace" in row.data and api.contract is None:
        pytest.skip("the double of the launcher keeps no workspaces")
    with api.raw() as raw:
        raw.send(filled(api, raw, row.data))
        answers = [raw.answer() for _ in row.statuses]
        assert tuple(answer.status for answer in answers) == row.statuses, answers
        if row.ends:
            assert raw.closed()
        else:  # the connection is still in step: the next request is answered as what it is
            raw.send(f"GET /v1/ping HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode())
            assert raw.answer().json()["data"] == "pong"
    for answer in answers:
        if answer.status != 200:
            check_nothing_leaked(api, repr(answer.headers).encode() + answer.body)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "x" not in answer.headers, "a header of the attacker's"
    assert api.http.get("/v1/ping").json()["data"] == "pong"


def test_the_right_hidden_request_would_have_been_seen(api):
    """The mark of HIDDEN is real: sent openly, its answer shows it."""
    with api.raw() as raw:
        raw.send(filled(api, raw, HIDDEN))
        assert b"smugg" in raw.answer().body


def test_slow_senders_are_cut_and_hinder_nobody(api):
    """A byte a second, in the request line, in a header, between two requests' line breaks."""
    slow = [api.raw(timeout=20) for _ in range(3)]
    starts = [b"GET /v1/pi", GET.encode() + b"X: ", b"GET /v1/ping HTTP/1.1\r\nHost: x\r\n\r"]
    for raw, start in zip(slow, starts):
        raw.send(start)
    began = time.monotonic()
    while not all(raw.socket.fileno() < 0 or select.select([raw.socket], [], [], 0)[0] for raw in slow):
        assert time.monotonic() - began < 60
        for raw in slow:
            with contextlib.suppress(OSError):
                raw.send(b"a")
        asked = time.monotonic()
        assert api.http.get("/v1/ping").status_code == 200 and time.monotonic() - asked < 20
        time.sleep(1)
    for raw in slow:
        raw.socket.close()


FRAMES = {
    "not masked": b"\x81\x02{}", "reserved bits": b"\xf1\x80\0\0\0\0", "reserved opcode": b"\x83\x80\0\0\0\0",
    "continuation of nothing": b"\x80\x80\0\0\0\0", "control frame in two parts": b"\x09\x80\0\0\0\0",
    "ping past 125 bytes": b"\x89\xfe\x00\x7e\0\0\0\0" + b"a" * 126, "length past 63 bits": b"\x81\xff" + b"\xff" * 8 + b"\0\0\0\0",
    "length of 4 GiB": b"\x81\xff\0\0\0\1\0\0\0\0" + b"\0\0\0\0", "length in more bytes than needed": b"\x81\xfe\x00\x05\0\0\0\0hello",
    "text that is not UTF-8": b"\x81\x82\0\0\0\0\xff\xfe", "surrogate in a text": b"\x81\x83\0\0\0\0\xed\xa0\x80",
    "close with one byte": b"\x88\x81\0\0\0\0\x03", "close with a reserved code": b"\x88\x82\0\0\0\0\x03\xec",
    "close reason that is not UTF-8": b"\x88\x83\0\0\0\0\x03\xe8\xff", "a binary frame": b"\x82\x82\0\0\0\0{}",
    "two texts that begin before one ends": b"\x01\x81\0\0\0\0a\x81\x81\0\0\0\0b"}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_hostile_frame_ends_its_websocket_and_no_other(api, frame):
    with api.raw() as raw:
        raw.send(filled(api, raw, WS) + b"\r\n")
        assert raw.answer().status == 101
        raw.send(frame + b"\x88\x82\0\0\0\0\x03\xe8")  # and a proper end, for a server that waits for one
        while raw.more():
            assert len(raw.bytes) < 1 << 20
        check_nothing_leaked(api, raw.bytes)
    assert api.http.get("/v1/ping").json()["data"] == "pong"


def test_text_frames_without_meaning_hurt_nobody(api):
    with api.raw() as raw:
        raw.send(filled(api, raw, WS) + b"\r\n")
        assert raw.answer().status == 101
        for text in (b"{", b"[]", b"null", b'{"type":1}', b'{"type":"resize","data":{"cols":-1,"rows":1e99}}', b"[" * 100):
            raw.send(bytes([0x81, 0x80 | len(text)]) + b"\0\0\0\0" + text)
        raw.send(b"\x88\x82\0\0\0\0\x03\xe8")
        while raw.more():
            assert len(raw.bytes) < 1 << 20
    assert api.http.get("/v1/ping").json()["data"] == "pong"
