"""Read-only links: a token that watches one terminal writes nothing, opens nothing else, and ends with whoever watches by it. Tickets for
the page: they open its socket, and nothing else."""
import asyncio
import json

import httpx
import pytest
from test_auth import NAVIGATION, status, token_in, upgraded
from test_auth_tokens import answers, by, mint

websockets = pytest.importorskip("websockets")


@pytest.fixture
def key(api):
    with by(api.url, api.key) as http:
        yield http


@pytest.fixture
def watched(api, key, shell):
    """A token for the terminal of one shell session, which has written "before"."""
    api.data("/v1/shell/exec", {"id": shell, "command": "echo be$((0))fore"})
    made = mint(key, label=f"terminal {shell}", terminal=shell)
    yield made | {"session": shell}
    key.delete(f"/v1/tokens/{made['id']}")


class Watcher:
    """A connection to a terminal, one message at a time."""

    def __init__(self, api, token: str, session: str, query=""):
        self.loop = asyncio.new_event_loop()
        self.socket = self.wait(self.opened(f"{api.url.replace('http', 'ws')}/v1/shell/ws?api_key={token}&session_id={session}&flow=1{query}"))

    @staticmethod
    async def opened(address):
        return await websockets.connect(address, max_size=None, open_timeout=60)

    def wait(self, what):
        async def limited():
            return await asyncio.wait_for(what, 60)
        return self.loop.run_until_complete(limited())

    def until(self, fact):
        while True:
            message = json.loads(self.wait(self.socket.recv()))
            if fact(message):
                return message

    def end(self):
        """The code and the reason with which the server ends it."""
        with pytest.raises(websockets.ConnectionClosed):
            self.until(lambda m: False)
        return self.socket.close_code, self.socket.close_reason

    def send(self, kind: str, data):
        self.wait(self.socket.send(json.dumps({"type": kind, "data": data})))

    def close(self):
        self.wait(self.socket.close())
        self.loop.close()


def test_a_link_shows_its_terminal_and_writes_nothing(api, watched):
    """Its query does not say readonly, or denies it."""
    for query in ("", "&readonly=0"):
        watcher = Watcher(api, watched["token"], watched["session"], query)
        assert watcher.until(lambda m: m["type"] == "ready")["readonly"] is True
        watcher.until(lambda m: m["type"] == "output" and "be0fore" in m["data"])
        for kind, data in (("input", "echo own$((1))ed\n"), ("resize", {"cols": 33, "rows": 7})):
            watcher.send(kind, data)
            assert "read-only" in watcher.until(lambda m: m["type"] == "error")["data"]
        assert "own1ed" not in api.data("/v1/shell/view", {"id": watched["session"]})["output"]
        assert " 33" not in api.shell("stty size", id=watched["session"])["output"]
        watcher.close()


def test_a_link_opens_nothing_else(api, key, watched):
    other = api.data("/v1/shell/sessions/create")["session_id"]
    mine, token = watched["session"], watched["token"]
    for query in (f"session_id={other}", "", "session_id=", f"session_id={other}&session_id={mine}", f"session_id={mine}x"):
        assert upgraded(api.url, f"/v1/shell/ws?api_key={token}&{query}") == 403, query
    assert upgraded(api.url, f"/v1/shell/ws?api_key={token}&session_id={mine}") == 101
    calls = [(m, p) for p, methods in key.get("/v1/openapi.json").json()["paths"].items() for m in methods
             if (m, p) != ("post", "/v1/tokens") and p not in ("/tickets", "/auth") and not p.startswith(("/v1/ping", "/healthz", "/readyz"))]
    assert len(calls) > 80
    for method, path in calls:
        path = path.replace("{session_id}", mine)
        found = answers(api.url, token, method.upper(), path, **({"json": {"id": mine, "input": "x"}} if method in ("post", "put") else {}))
        assert found == 403, (method, path)
    assert answers(api.url, token, "POST", "/v1/tokens", json={"label": "child", "seconds": 60}) == 403
    for path in ("/metrics", "/proxy/8080/", "/absproxy/8080/"):
        assert answers(api.url, token, path=path) == 403, path
    assert answers(api.url, token, path="/auth", headers={"X-Original-URI": "/terminal"}) == 403


def test_a_ticket_of_a_link_can_do_no_more(api, watched):
    with by(api.url, watched["token"]) as http:
        made = [http.post("/tickets", json=body).json()["ticket"] for body in ({}, {"path": "/v1/shell/ws"}, {"path": "/"})]
        assert status(http, "POST", "/tickets", json={"workspace": "another"}) == 404
    for one in made:
        assert upgraded(api.url, f"/v1/shell/ws?ticket={one}") == 403
        assert upgraded(api.url, f"/v1/shell/ws?ticket={one}&session_id={watched['session']}") == 101


def test_whoever_watches_is_cut_off_when_the_link_is_revoked(api, key, watched):
    watcher = Watcher(api, watched["token"], watched["session"])
    watcher.until(lambda m: m["type"] == "ready")
    key.delete(f"/v1/tokens/{watched['id']}")
    assert watcher.end() == (1008, "the credential has ended or was revoked")
    assert upgraded(api.url, f"/v1/shell/ws?api_key={watched['token']}&session_id={watched['session']}") == 401


def test_whoever_watches_is_cut_off_when_the_link_ends(api, key, shell):
    watcher = Watcher(api, mint(key, label=f"short {shell}", terminal=shell, seconds=8)["token"], shell)  # in which it is opened
    assert watcher.end() == (1008, "the credential has ended or was revoked")


def test_a_link_is_of_its_workspace_whatever_ids_others_have(api, key, named):
    """It has the id that a session of another workspace has, too."""
    other = named()
    theirs = other.data("/v1/shell/sessions/create", {"id": "same"})["session_id"]
    token = mint(key, label="same", terminal=theirs)["token"]
    with by(api.url, token) as http:
        assert status(http, "POST", "/tickets", headers={"X-Caisson-Workspace": other.workspace}) == 404
    ticket = key.post("/tickets", json={"workspace": other.workspace}).json()["ticket"]
    assert upgraded(api.url, f"/v1/shell/ws?ticket={ticket}&session_id={theirs}") == 101
    told = Watcher(api, token, theirs).until(lambda m: m["type"] == "error")
    assert told["data"] == "Session not found"


# A ticket for the page

@pytest.fixture
def page(api, key):
    """page(**query): a browser's client after it opened /terminal by a ticket, with the page's token."""
    opened = []

    def open_terminal(**query) -> httpx.Client:
        one = key.post("/tickets", json={"path": "/terminal"}).json()["ticket"]
        browser = httpx.Client(base_url=api.url, trust_env=False, timeout=120)
        opened.append(browser)
        there = browser.get("/terminal", params={"ticket": one, **query}, headers=NAVIGATION)
        assert there.status_code == 303 and one not in there.headers["location"]
        browser.headers["X-Caisson-Page"] = token_in(browser.get(there.headers["location"], headers=NAVIGATION))
        return browser

    yield open_terminal
    for browser in opened:
        browser.close()


def socket_ticket(page) -> str:
    answer = page.post("/tickets", json={"path": "/v1/shell/ws"})
    assert answer.status_code == 200, answer.text
    return answer.json()["ticket"]


def test_a_ticket_for_the_terminal_opens_its_socket_and_nothing_else(api, page, shell):
    browser = page()
    for query in ("", f"&session_id={shell}"):
        assert upgraded(api.url, f"/v1/shell/ws?ticket={socket_ticket(browser)}{query}") == 101
    for path in ("/v1/sandbox", "/v1/shell/sessions", "/v1/tokens"):
        assert status(browser, "GET", path) == 403, path
    assert status(browser, "POST", "/v1/bash/exec", json={"command": "true"}) == 403
    for wider in ("/", "/v1", "/v1/shell", "/v1/sandbox", "/tickets", "/proxy/5173/"):
        assert status(browser, "POST", "/tickets", json={"path": wider}) == 403, wider
    assert status(browser, "POST", "/v1/shell/exec", params={"ticket": socket_ticket(browser)}, json={"command": "true"}) == 401
    assert status(browser, "POST", "/v1/page/logout") == 200
    assert status(browser, "POST", "/tickets", json={"path": "/v1/shell/ws"}) == 401


def test_where_the_address_names_a_session_it_is_that_one_alone(api, page, shell):
    browser, other = page(session_id=shell), api.data("/v1/shell/sessions/create")["session_id"]
    for query, expected in ((f"&session_id={shell}", 101), (f"&session_id={other}", 403), ("", 403),
                            (f"&session_id={other}&session_id={shell}", 403)):
        assert upgraded(api.url, f"/v1/shell/ws?ticket={socket_ticket(browser)}{query}") == expected, query
    again = browser.post("/tickets").json()["ticket"]
    browser.get("/terminal", params={"ticket": again, "session_id": other}, headers=NAVIGATION)
    browser.headers["X-Caisson-Page"] = token_in(browser.get("/terminal", headers=NAVIGATION))
    assert upgraded(api.url, f"/v1/shell/ws?ticket={socket_ticket(browser)}&session_id={other}") == 403, "it stays bound"


def test_a_ticket_for_the_terminal_is_no_credential_for_tickets(api, key):
    one = key.post("/tickets", json={"path": "/terminal"}).json()["ticket"]
    with httpx.Client(base_url=api.url, trust_env=False) as http:
        assert status(http, "POST", "/tickets", params={"ticket": one}, json={"path": "/v1/shell/ws"}) == 401
    token = mint(key, label="terminal page", path="/terminal")["token"]
    assert answers(api.url, token, "POST", "/tickets", json={"path": "/v1/shell/ws"}) == 403
