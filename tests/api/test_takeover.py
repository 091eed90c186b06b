"""/websockify, the page /vnc/, /v1/browser/takeover and info: a person at the screen, and who else then has it."""
import struct
import time
import urllib.parse

import pytest
import requests
from conftest import eventually

websockets = pytest.importorskip("websockets")
from rfb import RAW, Viewer  # noqa: E402
from screen import act, copy_on_screen, needs_desktop, open_field, take_over, typed_anew  # noqa: E402
from test_cdp import Cdp  # noqa: E402
from websockets import ConnectionClosed, InvalidStatusCode  # noqa: E402

pytestmark = needs_desktop


def socket_url(api, path="/websockify"):
    return api.url.replace("http", "ws", 1) + path


@pytest.fixture
def view(api):
    made = []

    def start(path="/websockify", headers=None, **fields):
        made.append(Viewer(socket_url(api, path), {"X-AIO-API-Key": api.key} if headers is None else headers, **fields))
        return made[-1].greet()
    yield start
    for one in made:
        one.close()


@pytest.fixture
def field(api):
    return open_field(api)


@pytest.fixture
def takeover(api):
    yield lambda **fields: take_over(api, **fields)
    api.http.delete("/v1/browser/takeover")


# --- the screen by VNC ---

@pytest.mark.parametrize("path", ["/websockify", "/vnc/websockify"])
def test_a_viewer_sees_the_screen(view, path):
    viewer = view(path)
    assert (viewer.width, viewer.height) == (1280, 1024)
    eventually(lambda: len(set(struct.unpack(f">{1280 * 1024}I", viewer.picture()))) > 1)  # once the browser is on it


def test_a_viewer_points_and_types(view, field):
    viewer = view()
    viewer.click(600, 600)
    viewer.type("Hello: 42 (ok)")
    eventually(lambda: field() == "Hello: 42 (ok)")


def test_a_viewer_types_in_many_scripts(view, field):
    text = "Grüße, Ελληνικά, Русский, עברית, العربية, हिन्दी, 日本語かな, 한국어, 😀🦊"
    viewer = view()
    viewer.click(600, 600)
    eventually(lambda: typed_anew(viewer.erase, lambda: viewer.type(text + "!"), field) == text + "!")


def test_sizes_of_a_viewer_are_those_of_the_screen(api, view):
    viewer = view(encodings=(RAW, -223, -308))
    viewer.picture()
    viewer.resize(1024, 768)
    try:
        eventually(lambda: api.http.get("/v1/browser/screenshot").headers["x-screen-width"] == "1024")
    finally:
        api.http.post("/v1/browser/config", json={"resolution": {"width": 1280, "height": 1024}})


def watching(api, view, how):
    if how == "by its query":
        return view("/websockify?view_only=1")
    token = api.post("/v1/tokens", {"label": "watch", "scopes": ["browser:read"], "seconds": 600}).json()["data"]["token"]
    return view(headers={"X-AIO-API-Key": token})


@pytest.mark.parametrize("how", ["by its query", "by its credential"])
def test_nothing_of_one_who_watches_reaches_the_screen(api, view, field, how):
    act(api, "MOVE_TO", x=17, y=23)
    viewer = watching(api, view, how)
    viewer.click(600, 600)
    viewer.type("not typed")
    viewer.cut(b"not copied")
    viewer.send(struct.pack(">B3xi", 6, -8) + struct.pack(">II", 1 << 28 | 1, 4))  # extended: a text is provided
    viewer.resize(800, 600)
    viewer.send(struct.pack(">BBHII", 255, 0, 1, ord("q"), 16))  # QEMU: a key
    viewer.send(b"\xfa\0\1\2")                                      # xvp: shut down
    assert len(viewer.picture()) == 1280 * 1024 * 4               # what came before has been read
    assert field() == ""
    assert api.http.get("/v1/browser/screenshot").headers["x-screen-width"] == "1280"


def told(viewer):
    """What the next message says that was copied; empty if it is another message."""
    viewer.ask()
    kind, found = viewer.message()
    return found[1] if kind == 3 else b""


def test_no_viewer_is_sent_what_is_typed(api, view, field):
    """It may be a password: what is copied afterwards comes alone."""
    viewer = view()
    viewer.picture()
    act(api, "TYPING", text="a password")
    eventually(lambda: field() == "a password")
    act(api, "TYPING", text=" and more")
    for key in ("a", "c"):
        act(api, "HOTKEY", keys=["ctrl", key])
    assert eventually(lambda: text if b"password" in (text := told(viewer)) else b"") == b"a password and more"


def test_one_who_watches_is_not_sent_what_is_copied(api, view, field):
    watcher, other = view("/websockify?view_only=1"), view()
    watcher.picture()
    copy_on_screen(api, "a secret")
    eventually(lambda: b"a secret" in told(other))
    watcher.point(1, 1)
    for _ in range(5):
        watcher.ask()
        kind, found = watcher.message(10)
        assert kind != 3 or b"a secret" not in found[1]
        assert kind != 3 or found[0] < 0 and len(found[1]) == 4  # the announcement alone


@pytest.mark.parametrize("path", ["/websockify", "/websockify?view_only=1"])
@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"RFB 003.008\n\2", b"RFB 003.008\n\1\1\x63" + bytes(5000), b"\xff" * 100_000],
                         ids=["HTTP", "a security type", "a message", "bytes"])
def test_garbage_ends_its_viewer_alone(api, view, path, garbage):
    other = view()
    one = Viewer(socket_url(api, path), {"X-AIO-API-Key": api.key})
    one.send(garbage)
    with pytest.raises(ConnectionClosed):
        one.read(1 << 30, timeout=20)
    one.loop.close()
    assert len(other.picture()) == 1280 * 1024 * 4


def test_text_frames_are_refused(api):
    viewer = Viewer(socket_url(api), {"X-AIO-API-Key": api.key})
    viewer.loop.run_until_complete(viewer.socket.send("RFB 003.008\n"))
    with pytest.raises(ConnectionClosed) as closed:
        viewer.read(1 << 20)
    assert closed.value.rcvd.code == 1003
    viewer.loop.close()


def test_the_thirty_third_viewer_is_refused(api):
    viewers = [Viewer(socket_url(api), {"X-AIO-API-Key": api.key}) for _ in range(32)]
    try:
        for one in viewers:
            assert one.read(12) == b"RFB 003.008\n"
        more = Viewer(socket_url(api), {"X-AIO-API-Key": api.key})
        with pytest.raises(ConnectionClosed) as closed:
            more.read(12)
        assert closed.value.rcvd.code == 1011 and "32 viewers" in closed.value.rcvd.reason
        more.loop.close()
    finally:
        for one in viewers:
            one.close()

    def again():
        one = Viewer(socket_url(api), {"X-AIO-API-Key": api.key})
        try:
            return one.read(12) == b"RFB 003.008\n"
        except ConnectionClosed:
            return False
        finally:
            one.close()
    eventually(again)


# --- who may ---

@pytest.mark.parametrize("path", ["/websockify", "/vnc/websockify"])
@pytest.mark.parametrize("headers, query, status", [({}, "", 401), ({}, "?x=.js", 401), ({}, "?ticket=none", 401), ({}, "?api_key=no", 401),
                                                    ({"Origin": "http://evil.test"}, "", 403), ({"X-AIO-API-Key": "wrong"}, "", 401)])
def test_nothing_of_vnc_comes_without_a_right(api, path, headers, query, status):
    with pytest.raises(InvalidStatusCode) as refused:
        Viewer(socket_url(api, path + query), headers)
    assert refused.value.status_code == status


def ticket(api, **fields):
    return api.post("/tickets", fields).json()["ticket"]


def test_a_ticket_opens_its_path_and_workspace_alone(api, named):
    good = ticket(api, path="/websockify")
    for _ in range(2):
        with Viewer(socket_url(api, f"/websockify?ticket={good}"), {}) as viewer:
            assert viewer.read(12) == b"RFB 003.008\n"
    other = named().http.headers["X-Caisson-Workspace"]
    for path, headers in ((f"/websockify?ticket={ticket(api, path='/cdp')}", {}), (f"/cdp?ticket={good}", {}),
                          (f"/websockify?ticket={ticket(api, path='/websockify', workspace='default')}", {"X-Caisson-Workspace": other})):
        with pytest.raises(InvalidStatusCode) as refused:
            Viewer(socket_url(api, path), headers)
        assert refused.value.status_code in (401, 403, 404)


def test_a_token_of_another_area_sees_nothing(api):
    token = api.post("/v1/tokens", {"label": "files", "scopes": ["file"], "seconds": 600}).json()["data"]["token"]
    with pytest.raises(InvalidStatusCode) as refused:
        Viewer(socket_url(api), {"X-AIO-API-Key": token})
    assert refused.value.status_code == 403


# --- the addresses ---

def test_info_has_addresses_that_work_as_they_are(api):
    info = api.http.get("/v1/browser/info").json()["data"]
    assert info["viewport"] == {"width": 1280, "height": 1024} and info["cdp_ui_url"] is None
    assert "Chrome/" in info["user_agent"] and "Headless" not in info["user_agent"]
    assert 0 < info["page_viewport"]["width"] <= 1280 and 0 < info["page_viewport"]["height"] < 1024
    with Cdp(api, info["cdp_url"], headers={}) as cdp:
        assert "Chrome/" in cdp.call("Browser.getVersion")["product"]
    person = requests.Session()
    page = person.get(info["vnc_url"], headers={"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"})
    assert page.status_code == 200 and "ticket" not in page.url and person.cookies


def test_info_tells_of_a_page_that_does_not_answer(api):
    api.post("/v1/browser/page/navigate", {"url": "about:blank"})
    made = api.http.put("/json/new?about:blank").json()
    with Cdp(api, made["webSocketDebuggerUrl"]) as page:
        page.send('{"id": 1, "method": "Runtime.evaluate", "params": {"expression": "for (;;);"}}')
        started = time.monotonic()
        info = api.http.get("/v1/browser/info").json()
        assert info["success"] and time.monotonic() - started < 10
    api.http.get(f"/json/close/{made['id']}")


@pytest.mark.parametrize("path", ["/vnc/", "/vnc/index.html?autoconnect=true", "/vnc/vnc.html"])
def test_the_page_holds_nothing_secret_and_may_not_be_framed(api, path):
    page = requests.get(api.url + path)
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy and "unsafe" not in policy
    assert page.headers["x-frame-options"] == "DENY" and api.key not in page.text


# --- takeover ---

def test_bad_requests_for_a_takeover(api):
    for body in ({"mode": "mine"}, {"seconds": 0}, {"seconds": 3601}, {"view": True}, {"view_only": 7}):
        assert api.post("/v1/browser/takeover", body).status_code == 422, body
    assert api.http.get("/v1/browser/takeover").json()["data"]["active"] is False


def test_a_shared_takeover_keeps_nobody_out(api, takeover):
    given = takeover()
    assert given["mode"] == "shared" and given["view_only"] is False
    assert urllib.parse.urlsplit(given["url"]).path == "/vnc/index.html" and given["ticket"] in given["url"]
    assert api.http.get("/v1/browser/takeover").json()["data"]["mode"] == "shared"
    assert api.http.get("/v1/browser/screenshot").headers["content-type"] == "image/png"


def test_an_exclusive_takeover_holds_everything_until_it_is_given_back(api, takeover, view, field):
    viewer = view()
    with Cdp(api, "/cdp") as cdp:
        cdp.call("Browser.getVersion")
        takeover(mode="exclusive", seconds=60)
        for answer in (api.post("/v1/browser/actions", {"action_type": "TYPING", "text": "agent"}), api.http.get("/v1/browser/screenshot"),
                       api.post("/v1/browser/page/evaluate", {"expression": "1"}), api.http.get("/v1/browser/page/text"), api.http.get("/json/list")):
            body = answer.json()
            assert answer.status_code == 200 and body["success"] is False and "until" in body["hint"], body
        viewer.click(600, 600)
        viewer.type("a person")
        cdp.send('{"id": 77, "method": "Browser.getVersion"}')
        with pytest.raises(TimeoutError):
            cdp.receive(timeout=1)
        assert api.http.delete("/v1/browser/takeover").json()["success"]
        eventually(lambda: cdp.receive().get("id") == 77)
    eventually(lambda: field() == "a person")


def test_a_takeover_ends_by_itself(api, takeover):
    takeover(mode="exclusive", seconds=3)
    assert api.http.get("/v1/browser/page/text").json()["success"] is False
    eventually(lambda: api.http.get("/v1/browser/screenshot").headers["content-type"] == "image/png")
    assert api.http.get("/v1/browser/takeover").json()["data"] == {"active": False, "mode": None, "until": None, "view_only": None}


def test_a_takeover_is_of_its_workspace_alone(api, takeover, named):
    takeover(mode="exclusive")
    assert named().http.get("/v1/browser/screenshot").headers["content-type"] == "image/png"


def test_a_link_that_only_watches_takes_nothing_over(api, takeover, field):
    given = takeover(view_only=True)
    with Viewer(socket_url(api, f"/websockify?ticket={ticket_of_page(api, given)}"), {}) as viewer:
        viewer.greet()
        viewer.click(600, 600)
        viewer.type("not typed")
        viewer.picture()
    assert field() == ""


def ticket_of_page(api, given):
    """As the page does it: the ticket becomes a cookie, whose login gets tickets for the socket."""
    person = requests.Session()
    page = person.get(given["url"], headers={"Accept": "text/html", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"})
    token = page.text.split('name="caisson-page" content="')[1].split('"')[0]
    headers = {"X-Caisson-Page": token, "Origin": api.url}
    assert person.post(api.url + "/tickets", json={"path": "/v1/bash"}, headers=headers).status_code == 403
    assert person.get(api.url + "/v1/browser/screenshot", headers=headers).status_code == 403
    asked = person.post(api.url + "/tickets", json={"path": "/websockify"}, headers=headers)
    assert asked.status_code == 200, asked.text
    assert person.delete(api.url + "/vnc/takeover", headers=headers).status_code == 403 if given["view_only"] else True
    assert person.get(api.url + "/vnc/takeover", headers=headers).json()["data"]["active"] is True
    return asked.json()["ticket"]
