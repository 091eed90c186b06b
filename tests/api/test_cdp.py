"""/cdp, /json and /devtools: Chromium of a workspace by its DevTools protocol, as clients of Chromium's own port expect it; and what
stands between the browser and everything else."""
import asyncio
import json
import os
import pathlib
import signal
import time
import urllib.parse

import pytest
from conftest import eventually
from screen import needs_desktop, processes

websockets = pytest.importorskip("websockets")
from websockets import ConnectionClosed, InvalidStatusCode  # noqa: E402

pytestmark = needs_desktop
PREFIXES = ("", "/cdp")


class Cdp:
    """One client. Events are kept apart."""

    def __init__(self, api, url, headers=None):
        if url.startswith("/"):
            url = api.url.replace("http", "ws", 1) + url
        self.last, self.events, self.loop = 0, [], asyncio.new_event_loop()
        headers = {"X-AIO-API-Key": api.key} if headers is None else headers

        async def connect():
            return await websockets.connect(url, max_size=None, open_timeout=120, ping_interval=None, extra_headers=headers)
        self.socket = self.loop.run_until_complete(connect())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.loop.run_until_complete(self.socket.close())
        self.loop.close()

    def send(self, text):
        self.loop.run_until_complete(self.socket.send(text))

    def receive(self, timeout=60):
        return json.loads(self.loop.run_until_complete(asyncio.wait_for(self.socket.recv(), timeout)))

    def call(self, method, params=None, session=None):
        self.last += 1
        self.send(json.dumps({"id": self.last, "method": method, "params": params or {}, **({"sessionId": session} if session else {})}))
        while True:
            message = self.receive()
            if message.get("id") == self.last:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def tab(self, url="about:blank"):
        target = self.call("Target.createTarget", {"url": url})["targetId"]
        return target, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def evaluate(self, expression, session):
        done = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True}, session)
        return done["result"].get("value", done.get("exceptionDetails"))

    def until(self, expression, session, seconds=30):
        return eventually(lambda: self.evaluate(expression, session), seconds)


@pytest.fixture
def client(api):
    with Cdp(api, "/cdp") as one:
        yield one


def renderers(native):
    return [pathlib.Path(f"/proc/{pid}") for pid, line in processes(native).items() if "--type=renderer" in line]


def commands(native):
    return [(pid, line) for pid, line in processes(native).items() if "chromium" in line or "caisson-cdp --socket" in line]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_browser_is_described_as_its_own_port_does(api, prefix, slash):
    version = api.http.get(f"{prefix}/json/version{slash}").json()
    assert version["Browser"].startswith("Chrome/") and version["Protocol-Version"] == "1.3" and version["User-Agent"].startswith("Mozilla/")
    address = urllib.parse.urlsplit(version["webSocketDebuggerUrl"])
    assert address.netloc == urllib.parse.urlsplit(api.url).netloc and address.path.startswith(f"{prefix}/devtools/browser/")
    with Cdp(api, version["webSocketDebuggerUrl"]) as one:
        assert one.call("Browser.getVersion")["product"] == version["Browser"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_tabs_are_opened_listed_shown_and_closed(api, prefix):
    made = api.http.put(f"{prefix}/json/new?about:blank").json()
    assert made["type"] == "page" and made["webSocketDebuggerUrl"].endswith(f"{prefix}/devtools/page/{made['id']}")
    for path in ("/json", "/json/list", "/json/"):
        assert made["id"] in [tab["id"] for tab in api.http.get(prefix + path).json()]
    with Cdp(api, made["webSocketDebuggerUrl"]) as page:
        assert page.evaluate("location.href", None) == "about:blank"
    assert api.http.get(f"{prefix}/json/activate/{made['id']}").text == "Target activated"
    assert api.http.get(f"{prefix}/json/close/{made['id']}").text == "Target is closing"
    eventually(lambda: made["id"] not in [tab["id"] for tab in api.http.get(prefix + "/json").json()])
    assert api.http.get(f"{prefix}/json/close/{made['id']}").status_code == 404


def test_an_address_with_a_query_is_opened_as_it_is(api):
    made = api.http.put("/json/new?data:text/html,<title>a=b</title>").json()
    assert made["url"].startswith("data:text/html,") and "a=b" in urllib.parse.unquote(made["url"])
    api.http.get(f"/json/close/{made['id']}")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_protocol_is_described_as_the_browsers_own_port_does(api, prefix):
    described = api.http.get(f"{prefix}/json/protocol").json()
    methods = {f"{domain['domain']}.{command['name']}" for domain in described["domains"] for command in domain["commands"]}
    assert described["version"]["major"] == "1" and {"Page.navigate", "Runtime.evaluate", "Target.attachToTarget"} <= methods


def test_a_tab_is_not_opened_by_a_link(api):
    assert api.http.get("/json/new?about:blank").status_code == 405


def test_two_clients_have_tabs_of_their_own(api, client):
    with Cdp(api, "/cdp") as other:
        (_, one), (_, two) = client.tab(), other.tab()
        client.evaluate("window.mark = 'one'", one)
        other.evaluate("window.mark = 'two'", two)
        assert (client.evaluate("window.mark", one), other.evaluate("window.mark", two)) == ("one", "two")
        other.send(json.dumps({"id": 99, "method": "Runtime.evaluate", "params": {"expression": "1"}, "sessionId": one}))
        while (answer := other.receive()).get("id") != 99:
            pass
        assert answer["error"]["code"] == -32001


def test_messages_of_any_size_pass_both_ways(client):
    _, session = client.tab()
    assert client.evaluate(json.dumps("ü" * 3_000_000) + ".length", session) == 3_000_000
    assert len(client.evaluate("'ä€🙂'.repeat(2_000_000)", session)) == 3 * 2_000_000


def test_closing_the_browser_ends_this_client_alone(api, client):
    with Cdp(api, "/cdp") as other:
        assert other.call("Browser.close") == {}
        with pytest.raises(ConnectionClosed):
            other.receive()
    assert client.call("Browser.getVersion")


@pytest.mark.parametrize("message", [b"\x00binary", "a\0b", "[]", '{"id":1,"id":2,"method":"A.b"}'])
def test_what_is_no_message_ends_its_client_alone(api, client, message):
    with Cdp(api, "/cdp") as other:
        other.send(message)
        with pytest.raises(ConnectionClosed):
            other.receive()
    assert client.call("Browser.getVersion")


@pytest.mark.parametrize("path", ["/devtools/page/NOSUCH", "/cdp/devtools/browser/00000000000000000000000000000000"])
def test_what_is_not_there_is_closed_with_the_reason(api, path):
    with Cdp(api, path) as one:
        with pytest.raises(ConnectionClosed) as closed:
            one.receive()
    assert closed.value.rcvd.code in (1008, 1011) and closed.value.rcvd.reason


def test_the_thirty_third_client_is_refused(api):
    """The page driver may be one of the 32."""
    clients = []
    try:
        with pytest.raises(ConnectionClosed) as closed:
            for _ in range(33):
                clients.append(Cdp(api, "/cdp"))
                assert clients[-1].call("Browser.getVersion")
        assert "32 clients" in closed.value.rcvd.reason and len(clients) in (32, 33)
    finally:
        for one in clients:
            one.close()
    eventually(lambda: api.http.get("/json/version").json().get("Browser"))


@pytest.mark.parametrize("headers, status", [({}, 401), ({"X-AIO-API-Key": "wrong"}, 401), ({"Host": "evil.example", "Origin": "http://evil.example"}, 401)])
@pytest.mark.parametrize("path", ["/cdp", "/json/version", "/cdp/json/list", "/devtools/page/X", "/v1/browser/screenshot"])
def test_nothing_is_reached_without_the_key(api, path, headers, status):
    import httpx
    assert httpx.get(api.url + path, headers=headers).status_code == status
    if path in ("/cdp", "/devtools/page/X"):
        with pytest.raises(InvalidStatusCode) as refused:
            Cdp(api, path, headers={name: value for name, value in headers.items() if name != "Host"})
        assert refused.value.status_code in (status, 403)


def test_a_ticket_opens_its_path_alone(api):
    ticket = api.http.post("/tickets", json={"path": "/cdp"}).json()["ticket"]
    with Cdp(api, f"/cdp?ticket={ticket}", headers={}) as one:
        assert one.call("Browser.getVersion")
    with pytest.raises(InvalidStatusCode):
        Cdp(api, f"/devtools/page/X?ticket={ticket}", headers={})


def test_each_renderer_has_chromiums_own_sandbox(native, client):
    """Seen from outside: namespaces that are not the session's, two filters, no capability, an empty root."""
    client.tab()
    seen = renderers(native)
    assert seen
    [session] = {os.readlink(f"/proc/{pid}/ns/user") for pid, line in commands(native) if "caisson-cdp --socket" in line}
    for entry in seen:
        status = dict(line.split(":\t", 1) for line in (entry / "status").read_text().splitlines() if ":\t" in line)
        assert int(status["Seccomp_filters"]) >= 2 and status["CapEff"].strip("0") == status["CapPrm"].strip("0") == "" and status["NoNewPrivs"] == "1"
        assert os.readlink(entry / "ns/user") != session and len(status["NSpid"].split()) >= 4
    assert not [line for _, line in commands(native) if "no-sandbox" in line]


def test_other_sessions_of_the_workspace_reach_nothing_of_the_browser(api, client):
    """No port, no socket, no profile, no process."""
    client.tab()
    seen = api.bash("cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A '; ls /dev/shm; ls /tmp/.X11-unix; pgrep -c chromium")
    assert seen["stdout"].split() == ["0", "0"], seen


def test_pages_that_the_shell_wrote_are_opened_and_nothing_is_written(api, client):
    api.bash("echo '<title>from the shell</title>' >/tmp/page.html; mkdir -p ~/deep; echo '<title>home</title>' >~/deep/page.html; pwd")
    _, session = client.tab("file:///tmp/page.html")
    assert client.until("document.title", session) == "from the shell"
    home = api.bash("echo -n $HOME")["stdout"]
    client.call("Page.navigate", {"url": f"file://{home}/deep/page.html"}, session)
    client.until("document.title == 'home'", session)


def test_a_server_of_the_workspace_is_reached_and_a_download_lands_in_the_home(api, client):
    started = api.data("/v1/bash/exec", {"command": "cd $(mktemp -d); echo content >file.bin; echo '<a id=a href=file.bin download>x</a>' >index.html; "
                                                    "exec python3 -m http.server 18099", "async_mode": True})
    try:
        _, session = client.tab()
        eventually(lambda: "errorText" not in client.call("Page.navigate", {"url": "http://127.0.0.1:18099/"}, session))
        client.until("!!document.getElementById('a')", session)
        client.evaluate("document.getElementById('a').click()", session)
        eventually(lambda: api.bash("cat ~/Downloads/file.bin 2>/dev/null")["stdout"] == "content\n")
    finally:
        api.post("/v1/bash/kill", {"session_id": started["session_id"]})


def test_a_killed_browser_is_back_and_its_clients_are_told(native, api, client):
    client.tab()
    [browser] = [pid for pid, line in commands(native) if "--remote-debugging-pipe" in line and "--type=" not in line]
    began = time.monotonic()
    os.kill(browser, signal.SIGKILL)
    with pytest.raises(ConnectionClosed):
        while True:
            client.receive()
    assert api.http.get("/json/version").json()["Browser"]
    assert time.monotonic() - began < 60
    with Cdp(api, "/cdp") as again:
        assert again.call("Browser.getVersion")


def test_another_workspace_has_another_browser(api, named, client):
    other = named()
    client.tab("data:text/html,<title>mine</title>")
    with Cdp(api, "/cdp", headers={"X-AIO-API-Key": api.key, "X-Caisson-Workspace": other.workspace}) as theirs:
        assert "mine" not in json.dumps(theirs.call("Target.getTargets"))


def test_a_restart_keeps_the_profile_and_takes_wishes(api, client):
    client.call("Storage.setCookies", {"cookies": [{"name": "kept", "value": "yes", "url": "http://example.org/", "expires": time.time() + 86400}]})
    for body, language in (({"mode": "hard", "locale": "de", "url_blocklist": ["blocked.example"]}, "de"), (None, "en-US")):
        assert api.http.post("/v1/browser/restart", **({"json": body} if body else {})).json()["success"]
        with Cdp(api, "/cdp") as again:
            assert "yes" in [cookie["value"] for cookie in again.call("Storage.getCookies")["cookies"]]
            _, session = again.tab()
            assert again.evaluate("navigator.language", session) == language
            if body:
                assert again.call("Page.navigate", {"url": "http://blocked.example/"}, session)["errorText"] == "net::ERR_BLOCKED_BY_ADMINISTRATOR"


@pytest.mark.parametrize("body", [{"mode": "warm"}, {"locale": "--no-sandbox"}, {"url_blocklist": [""]}, {"url_blocklist": "all"}])
def test_a_restart_that_cannot_be_is_refused_and_the_browser_goes_on(api, client, body):
    assert api.http.post("/v1/browser/restart", json=body).status_code == 422
    assert client.call("Browser.getVersion")
    assert api.http.get("/json/version").json()["Browser"]
