"""/v1/browser/screenshot, actions and config: the screen of a workspace, and what stands between it and everything else."""
import io
import os
import pathlib
import shutil
import signal
import struct
import zlib

import pytest
from conftest import eventually

pytestmark = pytest.mark.skipif(any(shutil.which(program) is None for program in ("Xvnc", "openbox")),
                                reason="not installed: Xvnc or openbox (packages tigervnc-standalone-server and openbox)")
SIZES = ((1920, 1080), (640, 480), (1360, 768), (1280, 720), (800, 600), (1024, 768), (1280, 800), (1920, 1200), (1280, 960), (1400, 1050),
         (1680, 1050), (1280, 1024), (1600, 1200))


def act(api, action, **fields):
    return api.http.post("/v1/browser/actions", json={"action_type": action, **fields})


def processes_of(native, name):
    """The pids of the programs with this name below the launcher."""
    found = []
    for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == name[:15] and native.owns(int(comm.parent.name)):
                found.append(int(comm.parent.name))
        except OSError:  # it ended meanwhile
            continue
    return found


def only_process_of(native, name):
    """None while there are more: those of a screen that has ended may still be on their way out."""
    found = processes_of(native, name)
    return found[0] if len(found) == 1 else None


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR"
    stream = io.BytesIO(data[8:])
    while header := stream.read(8):
        length, kind = struct.unpack(">I4s", header)
        body = stream.read(length)
        assert zlib.crc32(kind + body) == struct.unpack(">I", stream.read(4))[0], kind
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("query, kind", [("", "image/png"), ("?format=png", "image/png"), ("?format=jpeg", "image/jpeg"),
                                         ("?format=jpg&quality=40", "image/jpeg")])
def test_a_picture_of_the_screen_says_its_sizes(api, query, kind):
    got = api.http.get("/v1/browser/screenshot" + query)
    assert got.status_code == 200 and got.headers["content-type"] == kind
    assert {name: got.headers[name] for name in got.headers if name.startswith(("x-screen", "x-image"))} == {
        "x-screen-width": "1280", "x-screen-height": "1024", "x-image-width": "1280", "x-image-height": "1024"}
    assert png_size(got.content) == (1280, 1024) if kind == "image/png" else got.content.startswith(b"\xff\xd8\xff")


@pytest.mark.parametrize("query, where", [("format=gif", "format"), ("format=png%00", "format"), ("quality=101", "quality"), ("quality=-1", "quality"),
                                          ("quality=x", "quality")])
def test_a_picture_that_is_none_is_refused_in_words(api, query, where):
    got = api.http.get("/v1/browser/screenshot?" + query)
    assert got.status_code in (400, 422) and (got.status_code == 400 or got.json()["detail"][0]["loc"] == ["query", where])


@pytest.mark.parametrize("action, fields", [
    ("MOVE_TO", {"x": 10, "y": 20}), ("MOVE_REL", {"x_offset": 5, "y_offset": -5}), ("CLICK", {}), ("CLICK", {"x": 1, "y": 2, "button": "right", "num_clicks": 3}),
    ("MOUSE_DOWN", {"button": "left"}), ("MOUSE_UP", {"button": "left"}), ("RIGHT_CLICK", {}), ("DOUBLE_CLICK", {"x": 3.7, "y": 4}),
    ("DRAG_TO", {"x": 50, "y": 60}), ("DRAG_REL", {"x_offset": -5, "y_offset": 5}), ("SCROLL", {"dy": -3}), ("SCROLL", {}),
    ("TYPING", {"text": "Grüße, 世界 🙂", "use_clipboard": False}), ("TYPING", {"text": "x", "use_clipboard": None}), ("PRESS", {"key": "Return"}),
    ("KEY_DOWN", {"key": "shift"}), ("KEY_UP", {"key": "shift"}), ("HOTKEY", {"keys": ["ctrl", "a"]}), ("WAIT", {"duration": 0.05})])
def test_each_action_is_performed_and_named(api, action, fields):
    got = act(api, action, **fields)
    assert got.status_code == 200, got.text
    said = got.json()
    assert said["success"] and said["action_performed"] == action and said["data"] == {"status": "success", "action_performed": action}


@pytest.mark.parametrize("body, loc, told", [
    ({}, ["body"], "discriminator 'action_type'"), ({"action_type": "FLY"}, ["body"], "'FLY'"), ({"action_type": 1}, ["body"], "'1'"),
    ({"action_type": "MOVE_TO", "x": 1}, ["body", "MOVE_TO", "y"], "required"), ({"action_type": "MOVE_TO", "x": "1", "y": 1}, ["body", "MOVE_TO", "x"], "number"),
    ({"action_type": "MOVE_TO", "x": 5000, "y": 1}, ["body", "MOVE_TO"], "1280 x 1024"), ({"action_type": "MOVE_TO", "x": -1, "y": 1}, ["body", "MOVE_TO"], "off the screen"),
    ({"action_type": "CLICK", "x": 1}, ["body", "CLICK"], "both of"), ({"action_type": "CLICK", "num_clicks": 4}, ["body", "CLICK", "num_clicks"], "3"),
    ({"action_type": "CLICK", "button": "fourth"}, ["body", "CLICK", "button"], "left"), ({"action_type": "PRESS", "key": "entr"}, ["body", "PRESS"], "'enter'"),
    ({"action_type": "HOTKEY", "keys": []}, ["body", "HOTKEY"], "1 to 16"), ({"action_type": "HOTKEY", "keys": ["a"] * 17}, ["body", "HOTKEY"], "1 to 16"),
    ({"action_type": "TYPING", "text": ""}, ["body", "TYPING", "text"], "at least 1"), ({"action_type": "SCROLL", "dy": 101}, ["body", "SCROLL"], "100"),
    ({"action_type": "WAIT", "duration": 0}, ["body", "WAIT", "duration"], "greater than 0"), ({"action_type": "WAIT", "duration": 61}, ["body", "WAIT"], "60"),
    ({"action_type": "TYPING", "text": "x" * 10_001, "use_clipboard": False}, ["body", "TYPING"], "10000")])
def test_what_is_no_action_is_refused_in_words(api, body, loc, told):
    got = api.http.post("/v1/browser/actions", json=body)
    assert got.status_code == 422, got.text
    assert got.json()["detail"][0]["loc"] == loc and told in got.json()["detail"][0]["msg"]


def test_each_size_of_the_contract_is_the_screens(api):
    for width, height in SIZES:
        assert api.http.post("/v1/browser/config", json={"resolution": {"width": width, "height": height}}).json()["success"]
        got = api.http.get("/v1/browser/screenshot")
        assert (got.headers["x-screen-width"], got.headers["x-screen-height"]) == (str(width), str(height)) and png_size(got.content) == (width, height)
    assert api.http.post("/v1/browser/config", json={"resolution": {"width": 1280, "height": 1024}}).json()["success"]
    assert api.http.post("/v1/browser/config", json={}).json()["success"]


@pytest.mark.parametrize("resolution", [{"width": 801, "height": 600}, {"width": 0, "height": 600}, {"width": 800}, {"width": 10**9, "height": 10**9}])
def test_another_size_is_refused(api, resolution):
    assert api.http.post("/v1/browser/config", json={"resolution": resolution}).status_code == 422


def test_no_other_session_of_the_workspace_sees_the_screens_sockets(named):
    """Neither X's, by which keys could be read, nor VNC's; and nothing listens."""
    api = named()
    assert api.http.get("/v1/browser/screenshot").status_code == 200
    seen = api.bash("find /tmp/.X11-unix /dev/shm -mindepth 1 2>/dev/null | wc -l; cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A '; grep -c '@.*X11' /proc/net/unix")
    assert seen["stdout"].split() == ["0", "0", "0"], seen


def test_the_session_is_the_desktops_and_has_no_network(native, api):
    assert api.http.get("/v1/browser/screenshot").status_code == 200
    assert [one["domain"] for one in api.sessions()].count("desktop") == 1
    [server] = processes_of(native, "Xvnc")
    assert pathlib.Path(f"/proc/{server}/net/dev").read_text().count(":") == 1  # lo
    assert "NoNewPrivs:\t1" in pathlib.Path(f"/proc/{server}/status").read_text()


def test_another_workspace_has_another_screen(api, named):
    assert api.http.post("/v1/browser/config", json={"resolution": {"width": 800, "height": 600}}).json()["success"]
    try:
        assert named().http.get("/v1/browser/screenshot").headers["x-screen-width"] == "1280"
    finally:
        api.http.post("/v1/browser/config", json={"resolution": {"width": 1280, "height": 1024}})


@pytest.mark.parametrize("program", ["Xvnc", "openbox", "caisson-display"])
def test_what_is_killed_is_there_again(native, api, program):
    assert api.http.get("/v1/browser/screenshot").status_code == 200
    for _ in range(3):
        pid = eventually(lambda: only_process_of(native, program))
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: pid not in processes_of(native, program))
        eventually(lambda: api.http.get("/v1/browser/screenshot").status_code == 200 and api.http.get("/v1/browser/screenshot").content[:4] == b"\x89PNG")
        eventually(lambda: processes_of(native, program))


def test_the_end_of_the_workspace_is_that_of_its_screen(native, api, named):
    other = named()
    before = set(processes_of(native, "Xvnc"))
    assert other.http.get("/v1/browser/screenshot").status_code == 200
    [its] = set(processes_of(native, "Xvnc")) - before
    name = other.http.headers["X-Caisson-Workspace"]
    assert api.http.delete(f"/v1/workspaces/{name}").status_code == 200
    eventually(lambda: its not in processes_of(native, "Xvnc"))
