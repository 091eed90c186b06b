"""Tokens, tickets and logins end with the workspace to which they are bound, and with the login of the page from which they came; a later
workspace of the same name is another one."""
import secrets
import time

import httpx
import pytest
from conftest import Api, eventually
from proxied import ECHO, app
from test_auth import NAVIGATION, UPGRADE, log_in, status, token_in, upgraded
from test_auth_tokens import answers, by, mint

RUN = {"command": "cat ~/secret"}
WITHIN = 20


@pytest.fixture
def key(api):
    with by(api.url, api.key) as http:
        yield http


@pytest.fixture
def again(api, here):
    """again(): the workspace of one name, made anew by each call."""
    name = "w" + secrets.token_hex(4)

    def make() -> str:
        api.http.delete(f"/v1/workspaces/{name}")
        api.data("/v1/workspaces", {"name": name})
        api.post("/v1/bash/exec", {"command": "echo tenant > ~/secret"}, headers={"X-Caisson-Workspace": name}).raise_for_status()
        return name

    yield make
    api.http.delete(f"/v1/workspaces/{name}")


def runs(api, token: str) -> int:
    return answers(api.url, token, "POST", "/v1/bash/exec", json=RUN)


@pytest.mark.parametrize("how", ["deleted", "reset"])
def test_a_token_of_an_ended_workspace_does_not_open_the_next_of_that_name(api, key, again, how):
    name = again()
    old = mint(key, label=f"t-{name}", workspace=name)
    assert runs(api, old["token"]) == 200
    if how == "deleted":
        again()
    else:
        api.data(f"/v1/workspaces/{name}/reset")
    assert runs(api, old["token"]) == 401
    assert f"t-{name}" not in key.get("/v1/tokens").text
    anew = mint(key, label=f"t-{name}", workspace=name)
    assert anew["token"] != old["token"] and runs(api, anew["token"]) == 200


def test_a_token_ends_with_a_workspace_that_nobody_deleted(api, key, here):
    """Minted before there was one, it is of the first of that name."""
    name = "w" + secrets.token_hex(4)
    old = mint(key, label=name, workspace=name)["token"]
    assert runs(api, old) == 404
    api.data("/v1/workspaces", {"name": name, "idle_seconds": 1})
    eventually(lambda: name not in key.get("/v1/workspaces").text, 60)
    api.data("/v1/workspaces", {"name": name})
    assert runs(api, old) == 401
    api.http.delete(f"/v1/workspaces/{name}")


def test_a_ticket_and_a_login_end_with_their_workspace(api, key, again):
    name = again()
    one = key.post("/tickets", json={"workspace": name}).json()["ticket"]
    login = mint(key, label=f"l-{name}", workspace=name)["token"]
    with httpx.Client(base_url=api.url, trust_env=False) as page:
        token = {"X-Caisson-Page": log_in(page, login)}
        assert status(page, "POST", "/v1/bash/exec", json=RUN, headers=token) == 200
        again()
        assert status(page, "POST", "/v1/bash/exec", json=RUN, headers=token) == 401
    assert upgraded(api.url, f"/v1/shell/ws?ticket={one}") == 401


def test_a_stream_that_a_credential_opened_ends_with_its_workspace(api, key, again):
    one = Api(api.url, mint(key, label=secrets.token_hex(4), workspace=again())["token"])
    with one.raw() as raw:
        raw.send(one.request("GET /v1/sandbox/observe/live?interval=1", "", "Accept: text/event-stream"))
        assert raw.head().status == 200
        again()
        raw.socket.settimeout(WITHIN)
        began = time.monotonic()
        while not raw.bytes.endswith(b"0\r\n\r\n") and raw.more():  # perhaps without an event before
            assert time.monotonic() - began < WITHIN


def test_logging_out_ends_the_previews_that_the_page_opened(api, key):
    with app(api, ECHO) as port, httpx.Client(base_url=api.url, trust_env=False, headers=NAVIGATION) as browser:
        token = {"X-Caisson-Page": log_in(browser, api.key)}
        path = f"/proxy/{port}/"

        def granted() -> str:
            return browser.post("/tickets", json={"path": path}, headers=token).json()["ticket"]

        left, another = granted(), key.post("/tickets", json={"path": path}).json()["ticket"]
        browser.get(path, params={"ticket": granted()})
        assert browser.get(path).status_code == 200
        assert status(browser, "POST", "/v1/page/logout", headers=token) == 200
        assert browser.get(path).status_code == 401
        assert browser.get(path, params={"ticket": left}).status_code == 401
        browser.get(path, params={"ticket": another})
        assert browser.get(path).status_code == 200, "it came of the key"


def test_logging_out_ends_the_terminals_of_the_page(api):
    with httpx.Client(base_url=api.url, trust_env=False) as browser:
        token = {"X-Caisson-Page": log_in(browser, api.key)}
        one = browser.post("/tickets", json={"path": "/v1/shell/ws"}, headers=token).json()["ticket"]
        with api.raw() as raw:
            raw.send("\r\n".join([f"GET /v1/shell/ws?ticket={one} HTTP/1.1", "Host: localhost", *UPGRADE, "", ""]).encode())
            assert raw.answer().status == 101
            assert status(browser, "POST", "/v1/page/logout", headers=token) == 200
            raw.socket.settimeout(WITHIN)
            while raw.more():
                pass


def test_who_was_handed_a_ticket_logs_nobody_else_out(api):
    with httpx.Client(base_url=api.url, trust_env=False) as giver, httpx.Client(base_url=api.url, trust_env=False) as guest:
        token = {"X-Caisson-Page": log_in(giver, api.key)}
        one = giver.post("/tickets", headers=token).json()["ticket"]
        guest.get("/", params={"ticket": one}, headers=NAVIGATION)
        theirs = {"X-Caisson-Page": token_in(guest.get("/", headers=NAVIGATION))}
        assert status(guest, "POST", "/v1/page/logout", headers=theirs) == 200
        assert status(guest, "GET", "/v1/sandbox", headers=theirs) == 401
        assert status(giver, "GET", "/v1/sandbox", headers=token) == 200
