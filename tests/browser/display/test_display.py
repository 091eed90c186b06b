"""caisson-display on an X server of its own, seen from the worker's protocol and from another client of that server."""
import re
import shutil
import struct
import subprocess
import time
import zlib

import pytest
from display import Client, Refused, Worker, Xvnc, eventually, typed

SIZES = [(1920, 1080), (640, 480), (1360, 768), (1280, 720), (800, 600), (1024, 768), (1280, 800), (1920, 1200), (1280, 960),
         (1400, 1050), (1680, 1050), (1280, 1024), (1600, 1200)]
LINES = ["The quick brown fox", "Größe über Öl, façade", "Ελληνικά κείμενα", "Съешь ещё этих мягких", "日本語の文章です",
         "한국어 문장입니다", "نص عربي قصير", "हिन्दी में पाठ", "😀🎉🚀👩‍💻🇩🇪"]
THOUSAND = "\n".join(LINES * 6)[:1000]
RED, BLUE = (0xCC, 0x33, 0x11), (0x11, 0x33, 0xCC)


def buttons(events):
    return [(e[1], int(e[2])) for e in events if e[0] == "button"]


def keys(events):
    return [(e[1], e[3]) for e in events if e[0] == "key"]


# ---- the pointer


def test_move_to_puts_the_pointer_there(at, client):
    at.act("MOVE_TO", x=10, y=20)
    assert client.events()[-1][:3] == ("motion", "10", "20")


def test_move_rel_adds_to_where_the_pointer_is(at, client):
    at.act("MOVE_REL", x_offset=-5, y_offset=7)
    assert client.events()[-1][:3] == ("motion", "635", "519")


@pytest.mark.parametrize("action, members", [
    ("MOVE_TO", {"x": 1280, "y": 0}), ("CLICK", {"x": 0, "y": 1024}), ("DRAG_TO", {"x": -1, "y": 0}),
    ("MOVE_REL", {"x_offset": 700, "y_offset": 0}), ("DRAG_REL", {"x_offset": 0, "y_offset": -600})])
def test_a_place_off_the_screen_is_refused_with_the_size(at, client, action, members):
    with pytest.raises(Refused, match="1280 x 1024") as refused:
        at.act(action, **members)
    assert refused.value.code == "invalid_argument"
    assert client.events() == []


def test_one_coordinate_alone_is_refused(at):
    with pytest.raises(Refused, match="both of 'x' and 'y'"):
        at.act("CLICK", x=3)


@pytest.mark.parametrize("name, number", [("left", 1), ("middle", 2), ("right", 3)])
def test_click_presses_and_releases_the_button(at, client, name, number):
    at.act("CLICK", x=100, y=200, button=name)
    events = client.events()
    assert buttons(events) == [("press", number), ("release", number)]
    assert events[-1][3:] == ("100", "200")


def test_click_without_a_place_is_where_the_pointer_is(at, client):
    at.act("CLICK", num_clicks=3)
    events = client.events()
    assert buttons(events) == [("press", 1), ("release", 1)] * 3
    assert events[0][3:] == ("640", "512")


def test_right_click(at, client):
    at.act("RIGHT_CLICK", x=1, y=2)
    assert buttons(client.events()) == [("press", 3), ("release", 3)]


def test_double_click(at, client):
    at.act("DOUBLE_CLICK")
    assert buttons(client.events()) == [("press", 1), ("release", 1)] * 2


def test_a_button_stays_down_until_it_is_released(at, client):
    at.act("MOUSE_DOWN", button="middle")
    assert at.call("info")[0]["buttons"] == ["middle"]
    assert buttons(client.events()) == [("press", 2)]
    at.act("MOUSE_UP", button="middle")
    assert at.call("info")[0]["buttons"] == []
    assert buttons(client.events()) == [("release", 2)]


def test_drag_moves_with_the_button_pressed_in_many_steps(at, client):
    at.act("DRAG_TO", x=740, y=612)
    events = client.events()
    motions = [e for e in events if e[0] == "motion"]
    assert buttons(events) == [("press", 1), ("release", 1)]
    assert len(motions) >= 10 and all(int(e[3], 16) & 0x100 for e in motions)
    assert motions[-1][1:3] == ("740", "612")


def test_drag_rel_begins_at_a_button_that_is_held(at, client):
    at.act("MOUSE_DOWN")
    at.act("DRAG_REL", x_offset=-100, y_offset=0)
    at.act("MOUSE_UP")
    events = client.events()
    assert buttons(events) == [("press", 1), ("release", 1)]
    assert events[-1][3:] == ("540", "512")


@pytest.mark.parametrize("members, wanted", [({"dy": 3}, [4] * 3), ({"dy": -100}, [5] * 100), ({"dx": 2}, [6] * 2), ({"dx": -1}, [7]), ({}, [])])
def test_scroll_turns_the_wheel_by_notches(at, client, members, wanted):
    at.act("SCROLL", **members)
    assert buttons(client.events()) == [(what, n) for n in wanted for what in ("press", "release")]


def test_what_is_held_is_released_by_itself(xvnc, client):
    with Worker(xvnc.name, "--hold-ms", "100") as worker:
        worker.act("MOUSE_DOWN")
        worker.act("KEY_DOWN", key="shift")
        client.lines.until(re.compile("button release 1 .*").match)
        client.lines.until(re.compile("key release .* 0xffe1 ").match)


def test_what_is_held_is_released_when_the_worker_ends(xvnc, client):
    with Worker(xvnc.name) as worker:
        worker.act("MOUSE_DOWN", button="right")
        worker.act("KEY_DOWN", key="ctrl")
        worker.process.stdin.close()
        assert worker.ended() == (0, "")
    client.lines.until(re.compile("button release 3 .*").match)
    client.lines.until(re.compile("key release .* 0xffe3 ").match)


# ---- keys


def test_press(at, client):
    at.act("PRESS", key="Enter")
    assert keys(client.events()) == [("press", "0xff0d"), ("release", "0xff0d")]


def test_press_of_a_capital_letter_presses_shift(at, client):
    at.act("PRESS", key="A")
    assert [e[1] for e in keys(client.events())].count("0x41") >= 1


def test_press_of_a_character_that_the_layout_lacks(at, client):
    at.act("PRESS", key="語")
    assert ("press", "0x1008a9e") in keys(client.events())


def test_key_down_and_up(at, client):
    at.act("KEY_DOWN", key="shift")
    at.act("PRESS", key="x")
    at.act("KEY_UP", key="shift")
    assert keys(client.events()) == [("press", "0xffe1"), ("press", "0x58"), ("release", "0x58"), ("release", "0xffe1")]


def test_hotkey_presses_in_order_and_releases_backwards(at, client):
    at.act("HOTKEY", keys=["ctrl", "ALT", "t"])
    codes = [(e[1], e[2]) for e in client.events()]
    assert [what for what, _ in codes] == ["press"] * 3 + ["release"] * 3
    assert [code for _, code in codes[:3]] == [code for _, code in reversed(codes[3:])]


def test_an_unknown_key_is_refused_with_the_nearest_name(at, client):
    with pytest.raises(Refused, match="'retrun'; the nearest name is 'Return'"):
        at.act("PRESS", key="retrun")
    with pytest.raises(Refused, match="the nearest name"):
        at.act("HOTKEY", keys=["ctrl", "foobar"])
    assert client.events() == []


# ---- texts


def layout(xvnc, *names):
    if shutil.which("setxkbmap") is None or shutil.which("xkbcomp") is None:
        pytest.skip("there is no setxkbmap (packages x11-xkb-utils, xkb-data)")
    subprocess.run(["setxkbmap", "-display", xvnc.name, *names], check=True)


@pytest.mark.parametrize("names", [["us"], ["de"], ["us,ru"], ["fr"]], ids=" ".join)
def test_a_text_is_typed_key_by_key_under_each_layout(xvnc, client, names):
    layout(xvnc, *names)
    try:
        with Worker(xvnc.name) as worker:
            client.events()
            worker.type(THOUSAND, use_clipboard=False)
            assert typed(client.events()) == THOUSAND
    finally:
        layout(xvnc, "us")


def test_caps_lock_does_not_change_what_is_typed_and_stays_on(at, client):
    at.act("PRESS", key="capslock")
    try:
        client.events()
        at.type("aBcДд", use_clipboard=False)
        assert typed(client.events()) == "aBcДд"
        at.act("PRESS", key="q")
        assert all(int(line.split()[-1], 16) & 2 for line in client.say("ping") if line.startswith("key press"))
    finally:
        at.act("PRESS", key="capslock")


def test_keys_of_players_are_spare(at, client):
    assert client.spare() > 80


def test_keys_that_others_bind_are_given_back_before_none_is_left(at, client):
    there = client.spare()
    client.spare(bind=there // 3)
    assert client.spare() == there - there // 3
    client.spare(bind=there // 3)
    eventually(lambda: client.spare() >= there)  # more: those of the former test are given back as well


def test_a_text_has_the_keys_that_others_leave(at, client):
    there = client.spare()
    client.spare(bind=there - 5)
    client.events()
    at.type("Ελληνικά", use_clipboard=False)
    assert typed(client.events()) == "Ελληνικά"
    eventually(lambda: client.spare() >= there)  # more: those of the former test are given back as well


def test_a_control_character_is_not_typed(at):
    with pytest.raises(Refused, match=r"U\+0007"):
        at.type("a\a", use_clipboard=False)


def test_a_text_of_ten_thousand_characters_is_typed(at, client):
    text = "0123456789" * 1000
    at.type(text, use_clipboard=False)
    assert typed(client.events()) == text


@pytest.mark.parametrize("text", [THOUSAND, "x" * 300_000, "ä" * 524_288], ids=["scripts", "in parts", "as long as may be"])
def test_a_text_is_typed_by_the_clipboard(at, client, text):
    assert at.type(text) == {"taken": True}
    assert client.pasted() == text


def comes_back(client, text):
    """A request prolongs the time for which a pasted text is kept, so this one asks seldom."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        time.sleep(1.5)
        if client.clipboard() == text:
            return True
    return False


def test_the_former_text_comes_back(xvnc, at, client, program):
    with Client(xvnc.name, program) as other:
        other.say("own " + "früher".encode().hex())
        assert at.type("jetzt") == {"taken": True}
        assert other.pasted() == "jetzt"
        assert at.call("clipboard_get")[1].decode() == "früher"
        assert comes_back(client, "früher")


def test_the_workers_own_text_comes_back(at, client):
    at.call("clipboard_set", "mine".encode())
    at.type("other")
    assert client.pasted() == "other"
    assert comes_back(client, "mine")


def test_a_program_may_ask_for_a_pasted_text_again(at, client):
    at.call("clipboard_set", b"mine")
    at.type("one")
    at.type("two")
    assert [client.pasted(), client.pasted()] == ["one", "two"]
    time.sleep(0.3)
    assert client.clipboard() == "two"
    assert comes_back(client, "mine")


@pytest.mark.parametrize("keys", [("v",), ("shift", "insert")])
def test_a_key_that_pastes_gives_the_former_text(at, client, keys):
    at.call("clipboard_set", b"mine")
    at.type("one")
    assert client.pasted() == "one"
    at.act("HOTKEY", keys=["ctrl", *keys])
    assert client.clipboard() == "mine"


def test_a_new_text_replaces_the_one_that_was_pasted(at, client):
    at.type("one")
    at.call("clipboard_set", b"new")
    assert client.clipboard() == "new"
    assert comes_back(client, "new")


def test_what_is_copied_after_a_paste_stays(xvnc, at, client, program):
    at.call("clipboard_set", b"mine")
    at.type("one")
    with Client(xvnc.name, program) as other:
        other.say("own " + b"copied".hex())
        time.sleep(1.5)
        assert client.clipboard() == "copied"
        assert at.call("clipboard_get")[1] == b"copied"


def test_requests_do_not_keep_a_pasted_text_for_ever(at, client):
    at.call("clipboard_set", b"mine")
    at.type("one")
    eventually(lambda: client.clipboard() == "mine")  # it asks all the time


def test_without_a_former_text_the_clipboard_is_empty_afterwards(xvnc, program):
    with Xvnc() as fresh, Client(fresh.name, program) as client, Worker(fresh.name) as worker:
        worker.type("secret")
        assert client.pasted() == "secret"
        assert comes_back(client, None)
        assert worker.call("clipboard_get")[1] == b""


def test_a_program_that_never_takes_the_text_does_not_hold_the_worker_up(at, client):
    at.call("clipboard_set", b"before")
    client.say("no-paste")
    assert at.type("unwanted") == {"taken": False}
    assert client.clipboard() == "before"


# ---- the clipboard


@pytest.mark.parametrize("text", ["", "plain", THOUSAND, "z" * (1 << 20)], ids=["empty", "plain", "scripts", "1 MiB"])
def test_a_text_that_is_set_is_seen_by_others(worker, client, text):
    worker.call("clipboard_set", text.encode())
    assert client.clipboard() == text


def test_a_text_of_another_program_is_got(worker, client):
    client.say("own " + THOUSAND.encode().hex())
    assert worker.call("clipboard_get")[1].decode() == THOUSAND


def test_a_text_in_parts_is_got(worker, client):
    client.say("parts 1000000")
    assert worker.call("clipboard_get")[1] == b"x" * 1_000_000


@pytest.mark.parametrize("command", ["huge 12582912", "parts 8388608", "endless"])
def test_a_text_without_end_is_refused(worker, client, command):
    client.say(command)
    with pytest.raises(Refused, match="more than 1048576 bytes"):
        worker.call("clipboard_get")
    assert worker.call("info")[0]["width"] == 1280


def test_an_owner_that_never_answers_is_an_error(worker, client):
    client.say("silent")
    with pytest.raises(Refused) as refused:
        worker.call("clipboard_get")
    assert refused.value.code == "timeout"


def test_an_owner_that_never_answers_does_not_hinder_typing(xvnc, at, program, client):
    with Client(xvnc.name, program) as owner:
        owner.say("silent")
        assert at.type("typed") == {"taken": True}
        assert owner.pasted() == "typed"


def test_a_flood_of_requests_leaves_the_worker_answering(worker, client):
    worker.call("clipboard_set", b"text")
    client.say("flood 100000")
    assert worker.call("info")[0]["width"] == 1280
    assert client.clipboard() == "text"


def test_a_text_that_is_no_utf8_is_refused(worker):
    with pytest.raises(Refused, match="UTF-8"):
        worker.call("clipboard_set", b"\xff")


# ---- pictures


def png_pixels(data):
    """Width, height, and the function that gives a pixel of an unfiltered PNG of 24 bits."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, packed, at = 0, 0, b"", 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8:at + 16])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    rows, stride = zlib.decompress(packed), 1 + width * 3
    assert len(rows) == stride * height and not any(rows[::stride])
    return width, height, lambda x, y: tuple(rows[y * stride + 1 + x * 3:][:3])


def jpeg_size(data):
    assert data[:2] == b"\xff\xd8" and data[-2:] == b"\xff\xd9"
    at = 2
    while data[at + 1] not in (0xC0, 0xC2):
        at += 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
    return struct.unpack(">HH", data[at + 5:at + 9])[::-1]


@pytest.mark.parametrize("options", [[], ["--no-shared-memory"]], ids=["shared", "not shared"])
def test_a_png_has_the_pixels_of_the_screen(xvnc, client, options):
    with Worker(xvnc.name, *options) as worker:
        head, body = worker.call("screenshot", format="png")
        width, height, pixel = png_pixels(body)
        assert (width, height) == (1280, 1024) == (head["width"], head["height"])
        assert [pixel(*at) for at in ((0, 0), (299, 1023), (300, 0), (1279, 1023))] == [RED, RED, BLUE, BLUE]


def test_a_jpeg_has_the_size_of_the_screen(worker, client):
    head, body = worker.call("screenshot", format="jpeg", quality=80)
    assert jpeg_size(body) == (1280, 1024) == (head["width"], head["height"])


def test_a_jpeg_shows_the_screen(worker, client, tmp_path):
    if shutil.which("djpeg") is None:
        pytest.skip("there is no djpeg (package libjpeg-turbo-progs)")
    (tmp_path / "a.jpg").write_bytes(worker.call("screenshot", format="jpeg", quality=95)[1])
    pnm = subprocess.run(["djpeg", "-pnm", str(tmp_path / "a.jpg")], capture_output=True, check=True).stdout
    pixels = pnm[-1280 * 1024 * 3:]
    for at, colour in ((100 * 1280 + 100, RED), (1000 * 1280 + 1200, BLUE)):
        assert all(abs(a - b) < 12 for a, b in zip(pixels[at * 3:at * 3 + 3], colour))


def test_a_lower_quality_takes_fewer_bytes(worker, client):
    sizes = [len(worker.call("screenshot", format="jpeg", quality=quality)[1]) for quality in (0, 50, 100)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[2]


def test_the_pointer_is_in_the_picture_if_asked_for(at, client):
    at.act("MOVE_TO", x=1000, y=500)
    without, with_it = (png_pixels(at.call("screenshot", cursor=cursor)[1])[2] for cursor in (False, True))
    near = [(x, y) for x in range(985, 1016) for y in range(485, 516)]
    assert all(without(*place) == BLUE for place in near)
    assert any(with_it(*place) != BLUE for place in near)


@pytest.mark.parametrize("members", [{"format": "gif"}, {"quality": 101}, {"quality": -1}, {"quality": "high"}, {"cursor": 1}, {"size": 1}])
def test_a_wrong_member_of_screenshot_is_refused(worker, members):
    with pytest.raises(Refused) as refused:
        worker.call("screenshot", **members)
    assert refused.value.code == "invalid_argument"


# ---- the size of the screen


def test_each_of_the_thirteen_sizes(program):
    with Xvnc() as own, Worker(own.name) as worker:
        for width, height in SIZES:
            assert worker.call("resize", width=width, height=height)[0] == {"width": width, "height": height}
            head, body = worker.call("screenshot", format="png")
            assert png_pixels(body)[:2] == (width, height) == (head["width"], head["height"])
            worker.act("MOVE_TO", x=width - 1, y=height - 1)
        info = worker.call("info")[0]
        assert all(list(size) in info["sizes"] for size in SIZES)
        assert (info["width"], info["height"]) == SIZES[-1]


@pytest.mark.parametrize("members", [{"width": 1281, "height": 1024}, {"width": 0, "height": 0}, {}, {"width": 1280.0, "height": 1024}])
def test_another_size_is_refused(worker, members):
    with pytest.raises(Refused) as refused:
        worker.call("resize", **members)
    assert refused.value.code == "invalid_argument"
