"""Who may come in: keys of a file with bounds, tickets, the question of a proxy, and the logins of pages."""
import hashlib
import json
import os
import pathlib
import secrets

import httpx
import pytest
from conftest import Api, eventually, with_workspaces

FOLDER = pathlib.Path("/etc/caisson/auth")
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": "text/html"}
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")


def entry(name: str, key: str, **bounds) -> dict:
    return {"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest(), **bounds}


class KeyFile:
    """A file of keys, replaced as an operator should: by rename."""

    def __init__(self, suffix: str):
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.path = FOLDER / f"test-{secrets.token_hex(6)}.{suffix}"

    def write(self, content):
        new = self.path.with_suffix(".new")
        new.write_text(content if isinstance(content, str) else json.dumps(content))
        new.chmod(0o644)
        os.replace(new, self.path)

    def remove(self):
        self.path.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def key_file():
    if os.geteuid() != 0:
        pytest.skip("the folder of keys is root's")
    file = KeyFile("json")
    yield file
    file.remove()


@pytest.fixture(scope="module")
def keyed(launch, key_file):
    """A launcher with keys of a file: `all`, `reader` (file:read), `basher` (bash), `bound` (workspace w1)."""
    keys = {name: f"{name}-{secrets.token_hex(16)}" for name in ("all", "reader", "basher", "bound", "old")}
    key_file.entries = [entry("all", keys["all"]), entry("reader", keys["reader"], scopes=["file:read", "sandbox:read"]),
                        entry("basher", keys["basher"], scopes=["bash"]), entry("bound", keys["bound"], workspace="w1"),
                        entry("old", keys["old"], not_after=1_600_000_000)]
    key_file.write(key_file.entries)
    launcher = launch(CAISSON_API_KEYS_FILE=str(key_file.path), TICKET_TTL_SECONDS="120")
    launcher.keys = keys
    return launcher


def client(launcher, name: str, **headers) -> httpx.Client:
    return httpx.Client(base_url=launcher.url, headers={"Authorization": f"Bearer {launcher.keys[name]}", **headers}, timeout=120, trust_env=False)


def status(http: httpx.Client, method: str, path: str, **options) -> int:
    return http.request(method, path, **options).status_code


# Keys of a file

def test_a_key_of_the_file_is_as_good_as_the_operators(keyed):
    with client(keyed, "all") as http:
        assert http.post("/v1/bash/exec", json={"command": "echo x"}).json()["data"]["stdout"] == "x\n"
    assert Api(keyed.url, keyed.key).bash("echo y")["stdout"] == "y\n"


def test_a_key_whose_end_has_come_is_refused(keyed):
    with client(keyed, "old") as http:
        assert status(http, "GET", "/v1/sandbox") == 401


def test_a_key_reaches_the_areas_of_its_scopes_only(keyed):
    with client(keyed, "reader") as http:
        assert status(http, "GET", "/v1/sandbox") == 200
        refused = http.post("/v1/bash/exec", json={"command": "true"})
        assert (refused.status_code, refused.json()["success"]) == (403, False) and "scope" in refused.json()["message"]
        assert status(http, "POST", "/v1/file/write", json={"file": "/tmp/x", "content": ""}) == 403
        assert status(http, "GET", "/v1/audit/sessions") == 403
        assert status(http, "GET", "/v1/nothing") == 404
    with client(keyed, "basher") as http:
        assert status(http, "POST", "/v1/bash/exec", json={"command": "true"}) == 200
        assert status(http, "GET", "/v1/sandbox") == 403


def test_a_key_of_one_workspace_sees_no_other(keyed):
    with_workspaces(keyed)
    owner = Api(keyed.url, keyed.key)
    for name in ("w1", "w2"):
        owner.data("/v1/workspaces", {"name": name})
    elsewhere = owner.bash("pwd")["session_id"]
    owner.http.headers["X-Caisson-Workspace"] = "w1"
    with client(keyed, "bound") as http:
        made = http.post("/v1/bash/exec", json={"command": "echo mine > ~/mark; cat ~/mark"}).json()
        assert made["data"]["stdout"] == "mine\n"
        assert owner.bash("cat ~/mark")["stdout"] == "mine\n", "without a header it is in its own workspace"
        missing = http.post("/v1/bash/exec", json={"command": "true"}, headers={"X-Caisson-Workspace": "w2"})
        unheard = http.post("/v1/bash/exec", json={"command": "true"}, headers={"X-Caisson-Workspace": "unheard-of"})
        assert (missing.status_code, missing.json()) == (unheard.status_code, unheard.json()) == (404, missing.json())
        assert status(http, "POST", "/v1/bash/exec", json={"command": "true", "session_id": elsewhere}) == 404
        for path in ("/v1/sessions", f"/v1/sessions/{elsewhere}/confinement", "/v1/audit/sessions", "/v1/workspaces/w2",
                     "/v1/workspaces/unheard-of"):
            assert status(http, "GET", path) == 404, path
        assert status(http, "POST", "/v1/workspaces", json={"name": "w3"}) == 404
        assert status(http, "DELETE", "/v1/workspaces/w2") == 404
        assert status(http, "POST", "/v1/policies/reload") == 404
        assert [w["name"] for w in http.get("/v1/workspaces").json()["data"]["workspaces"]] == ["w1"]
        assert status(http, "GET", "/v1/workspaces/w1") == 200
    owner.http.headers.pop("X-Caisson-Workspace")
    for name in ("w1", "w2"):
        owner.http.delete(f"/v1/workspaces/{name}")


def test_a_replaced_file_counts_within_seconds_and_a_broken_one_does_not(keyed, key_file):
    new = secrets.token_hex(16)
    key_file.write([*key_file.entries[1:], entry("new", new)])
    with client(keyed, "all") as http, httpx.Client(base_url=keyed.url, headers={"X-AIO-API-Key": new}, trust_env=False) as newcomer:
        eventually(lambda: status(newcomer, "GET", "/v1/sandbox") == 200)
        assert status(http, "GET", "/v1/sandbox") == 401, "a key that is not in the file any more"
        before = keyed.log.read_text().count("CAISSON_API_KEYS_FILE")
        key_file.write("[{")
        eventually(lambda: status(newcomer, "GET", "/v1/sandbox") == 200 and keyed.log.read_text().count("CAISSON_API_KEYS_FILE") > before)
        key_file.write(key_file.entries)
        eventually(lambda: status(http, "GET", "/v1/sandbox") == 200)
        assert keyed.log.read_text().count("CAISSON_API_KEYS_FILE") == before + 1, "a fault is told once"
        assert status(newcomer, "GET", "/v1/sandbox") == 401


def test_no_key_of_the_file_is_in_the_log(keyed):
    with client(keyed, "reader") as http:
        http.post("/v1/bash/exec", json={"command": "true"})
    text = keyed.log.read_text()
    assert not [name for name, key in keyed.keys.items() if key in text]


def test_no_session_sees_the_files_of_keys(keyed, key_file):
    api = Api(keyed.url, keyed.key)
    seen = api.bash(f"cat {key_file.path} 2>&1; ls /etc/caisson 2>&1")["stdout"]
    assert "sha256" not in seen and ("No such file" in seen or "Permission denied" in seen)


# Tickets

def ticket(http: httpx.Client, **body) -> str:
    answer = http.post("/tickets", json=body)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"ticket", "expires_in"} and answer.headers["cache-control"] == "no-store"
    return answer.json()["ticket"]


def upgraded(url: str, path: str) -> int:
    with Api(url, "").raw() as raw:
        raw.send("\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *UPGRADE, "", ""]).encode())
        return raw.answer().status


@pytest.fixture
def anybody(keyed):
    with httpx.Client(base_url=keyed.url, trust_env=False, timeout=120) as http:
        yield http


def test_a_ticket_needs_a_key_and_no_body(keyed, anybody):
    assert status(anybody, "POST", "/tickets") == 401
    with client(keyed, "all") as http:
        answer = http.post("/tickets")
        assert answer.json()["expires_in"] == 120 and len(answer.json()["ticket"]) == 43


def test_a_ticket_opens_websockets_as_often_as_asked_and_anything_else_once(keyed, anybody):
    with client(keyed, "all") as http:
        one = ticket(http)
    assert [upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") for _ in range(3)] == [101] * 3
    assert status(anybody, "POST", f"/v1/bash/exec?ticket={one}", json={"command": "true"}) == 200
    assert status(anybody, "POST", f"/v1/bash/exec?ticket={one}", json={"command": "true"}) == 401
    assert upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") == 401


def test_a_single_use_ticket_opens_one_websocket(keyed):
    with client(keyed, "all") as http:
        one = ticket(http, single_use=True)
    assert [upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") for _ in range(2)] == [101, 401]


def test_a_ticket_ends(launch):
    launcher = launch(TICKET_TTL_SECONDS="5")
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, trust_env=False) as http:
        one = ticket(http)
    eventually(lambda: upgraded(launcher.url, f"/v1/shell/ws?ticket={one}") == 401)
    launcher.close()


def test_a_ticket_is_good_for_its_path_only_and_is_not_used_up_elsewhere(keyed, anybody):
    with client(keyed, "all") as http:
        one = ticket(http, path="/v1/shell/ws")
        for path in ("v1", "//v1", "/v1/../x", "/v1?x=y", "/v1;x", "/%00"):
            assert status(http, "POST", "/tickets", json={"path": path}) == 422, path
    for path in ("/v1/sandbox", "/v1/shell/ws2", "/v1/shell", "/v1/shell/%77%73x"):
        assert status(anybody, "GET", f"{path}?ticket={one}") == 401, path
    assert upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") == 101


def test_a_ticket_has_the_bounds_of_its_key(keyed, anybody):
    with client(keyed, "reader") as http:
        assert upgraded(keyed.url, f"/v1/shell/ws?ticket={ticket(http)}") == 403
        assert status(anybody, "GET", f"/v1/sandbox?ticket={ticket(http)}") == 200
    with client(keyed, "bound") as http:
        assert status(http, "POST", "/tickets", json={"workspace": "w2"}) == 404
        assert status(http, "POST", "/tickets", json={"workspace": "w1"}) == 200


def test_a_ticket_begets_no_tickets(keyed, anybody):
    with client(keyed, "all") as http:
        assert status(anybody, "POST", f"/tickets?ticket={ticket(http)}") == 403


def test_a_ticket_ends_with_its_key(keyed, key_file):
    with client(keyed, "all") as http:
        one = ticket(http)
        key_file.write(key_file.entries[1:])
        eventually(lambda: status(http, "GET", "/v1/sandbox") == 401)
        assert upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") == 401
        key_file.write(key_file.entries)
        eventually(lambda: status(http, "GET", "/v1/sandbox") == 200)


# GET /auth

def test_auth_answers_a_proxy_with_strings(keyed, anybody):
    with client(keyed, "all") as http:
        told = http.get("/auth")
        assert told.status_code == 200 and all(isinstance(v, str) for v in told.json().values()) and told.json()["name"] == "all"
        one = ticket(http, path="/vnc")
    for _ in range(2):
        assert status(anybody, "GET", "/auth", headers={"X-Original-URI": f"/vnc/index.html?ticket={one}&path=websockify%3Fticket%3D{one}"}) == 200
    for address in (f"/terminal?ticket={one}", "/vnc/index.html", "/vnc/?ticket=x", f"/vnc/../terminal?ticket={one}"):
        assert status(anybody, "GET", "/auth", headers={"X-Original-URI": address}) in (400, 401), address
    assert status(anybody, "GET", "/auth") == 401
    assert anybody.get("/auth").headers["www-authenticate"].startswith("Bearer")


def test_auth_lets_a_ticket_change_something_once(keyed, anybody):
    with client(keyed, "all") as http:
        one = ticket(http)
    asked = {"X-Original-URI": f"/x?ticket={one}", "X-Original-Method": "POST"}
    assert [status(anybody, "GET", "/auth", headers=asked) for _ in range(2)] == [200, 401]


def test_auth_does_not_pass_a_key_of_some_operations(keyed):
    with client(keyed, "reader") as http:
        assert status(http, "GET", "/auth", headers={"X-Original-URI": "/code-server/"}) == 403


# Pages

def log_in(http: httpx.Client, key: str) -> str:
    answer = http.post("/v1/page/login", json={"key": key})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["token"]


def token_in(answer: httpx.Response) -> str:
    mark = '<meta name="caisson-page" content="'
    return answer.text.split(mark)[1].split('"')[0] if mark in answer.text else ""


@pytest.mark.parametrize("path", ["/", "/caisson/", "/v1/docs"])
def test_a_page_answers_without_a_key_and_cannot_be_framed_or_kept(anybody, path):
    answer = anybody.get(path, headers=NAVIGATION)
    assert answer.status_code == 200 and token_in(answer) == ""
    headers = answer.headers
    assert headers["x-frame-options"] == "DENY" and "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-opener-policy"] == "same-origin" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_cookie_alone_is_no_credential_for_the_api(keyed, anybody):
    token = log_in(anybody, keyed.keys["all"])
    assert anybody.cookies and status(anybody, "GET", "/v1/sandbox") == 401
    assert status(anybody, "GET", "/v1/sandbox", headers={"X-Caisson-Page": "x" * len(token)}) == 401
    assert status(anybody, "GET", "/v1/sandbox", headers={"X-Caisson-Page": token}) == 200
    with httpx.Client(base_url=keyed.url, trust_env=False) as other:
        assert status(other, "GET", "/v1/sandbox", headers={"X-Caisson-Page": token}) == 401, "the token alone is none either"


def test_a_websocket_is_not_opened_by_a_cookie(keyed, anybody):
    token = log_in(anybody, keyed.keys["all"])
    cookie = "; ".join(f"{name}={value}" for name, value in anybody.cookies.items())
    with Api(keyed.url, "").raw() as raw:
        raw.send("\r\n".join(["GET /v1/shell/ws HTTP/1.1", "Host: localhost", f"Cookie: {cookie}", *UPGRADE, "", ""]).encode())
        assert raw.answer().status == 401
    one = anybody.post("/tickets", json={"path": "/v1/shell/ws"}, headers={"X-Caisson-Page": token}).json()["ticket"]
    assert upgraded(keyed.url, f"/v1/shell/ws?ticket={one}") == 101


def test_only_a_navigation_gets_the_page_token(keyed, anybody):
    token = log_in(anybody, keyed.keys["all"])
    assert token_in(anybody.get("/caisson/", headers=NAVIGATION)) == token
    for forged in ({}, {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
                   {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "document"}):
        assert token_in(anybody.get("/caisson/", headers=forged)) == "", forged


def test_the_cookie_is_seen_by_no_script_and_sent_by_no_other_site(keyed, anybody):
    answer = anybody.post("/v1/page/login", json={"key": keyed.keys["all"]})
    cookie = answer.headers["set-cookie"]
    assert "; HttpOnly" in cookie and "; SameSite=Strict" in cookie and "; Path=/;" in cookie and "Secure" not in cookie
    secure = httpx.post(f"{keyed.url}/v1/page/login", json={"key": keyed.keys["all"]}, headers={"X-Forwarded-Proto": "https"}, trust_env=False)
    assert "; Secure" in secure.headers["set-cookie"] and secure.headers["set-cookie"].startswith("__Host-")


def test_a_second_tab_keeps_the_login_of_the_first(keyed, anybody):
    first = log_in(anybody, keyed.keys["all"])
    assert log_in(anybody, keyed.keys["all"]) == first
    assert log_in(anybody, keyed.keys["reader"]) != first


def test_a_wrong_key_does_not_log_in(keyed, anybody):
    for body in ({"key": "wrong"}, {"login": "wrong"}, {}, {"key": ""}):
        answer = anybody.post("/v1/page/login", json=body)
        assert answer.status_code == 401 and "set-cookie" not in answer.headers, body
    assert anybody.post("/v1/page/login", json={"key": keyed.key}, headers={"Origin": "http://evil.example"}).status_code == 403


def test_logging_out_ends_cookie_and_token(keyed, anybody):
    token = log_in(anybody, keyed.keys["all"])
    cookies = dict(anybody.cookies)
    assert status(anybody, "POST", "/v1/page/logout") == 401, "another site, or a preview, must not do it"
    assert status(anybody, "POST", "/v1/page/logout", headers={"X-Caisson-Page": token}) == 200
    assert not anybody.cookies
    again = httpx.get(f"{keyed.url}/v1/sandbox", cookies=cookies, headers={"X-Caisson-Page": token}, trust_env=False)
    assert again.status_code == 401


def test_a_login_ends_with_its_key_and_has_its_bounds(keyed, anybody, key_file):
    token = log_in(anybody, keyed.keys["basher"])
    assert status(anybody, "GET", "/v1/sandbox", headers={"X-Caisson-Page": token}) == 403
    key_file.write([e for e in key_file.entries if e["name"] != "basher"])
    eventually(lambda: status(anybody, "POST", "/v1/bash/sessions/create", headers={"X-Caisson-Page": token}) == 401)
    key_file.write(key_file.entries)
    with client(keyed, "basher") as http:
        eventually(lambda: status(http, "POST", "/v1/bash/exec", json={"command": "true"}) == 200)


def test_a_key_in_the_address_is_exchanged_for_the_cookie(keyed, anybody):
    answer = anybody.get("/caisson/", params={"api_key": keyed.keys["all"], "a": "b c&d"}, headers=NAVIGATION)
    assert (answer.status_code, answer.headers["location"]) == (303, "/caisson/?a=b%20c%26d")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert token_in(anybody.get(answer.headers["location"], headers=NAVIGATION))
    assert anybody.get("/caisson/", params={"api_key": "wrong"}, headers=NAVIGATION).status_code == 401
    scripted = anybody.get("/caisson/", params={"api_key": keyed.keys["all"]}, headers={"Sec-Fetch-Mode": "cors", "Accept": "text/html"})
    assert scripted.status_code == 200 and "set-cookie" not in scripted.headers, "only a navigation is exchanged"


def test_without_fetch_metadata_the_page_is_handed_one_login_in_the_fragment(keyed, anybody):
    answer = anybody.get("/caisson/", params={"api_key": keyed.keys["all"]}, headers={"Accept": "text/html"})
    address, handed = answer.headers["location"].split("#login=")
    assert address == "/caisson/" and keyed.keys["all"] not in handed
    with httpx.Client(base_url=keyed.url, trust_env=False) as page:
        for expected in (200, 401):
            assert status(page, "POST", "/v1/page/login", json={"login": handed}) == expected
    assert status(anybody, "GET", f"/v1/sandbox?ticket={handed}") == 401, "it is no ticket"


def test_a_ticket_in_a_pages_address_is_exchanged_as_well(keyed, anybody):
    with client(keyed, "all") as http:
        one = ticket(http)
    assert anybody.get("/caisson/", params={"ticket": one}, headers=NAVIGATION).headers["location"] == "/caisson/"
    assert token_in(anybody.get("/caisson/", headers=NAVIGATION))


def test_without_authentication_pages_and_tickets_work_as_well(launch):
    launcher = launch(key=None, CAISSON_AUTH="none")
    with httpx.Client(base_url=launcher.url, trust_env=False) as http:
        assert http.get("/caisson/", params={"api_key": "any"}, headers=NAVIGATION).status_code == 200
        assert upgraded(launcher.url, f"/v1/shell/ws?ticket={ticket(http)}") == 101
        assert http.get("/auth").json()["kind"] == "open"


def test_a_path_as_it_must_not_be_leads_no_further(keyed):
    """AP-02: no spelling of a path gets by without a key."""
    for path in ("//v1/sandbox", "/v1/..;/v1/sandbox", "/v1/%2e%2e/v1/sandbox", "/v1/sandbox%00", "/V1/sandbox", "/v1/%252e%252e/sandbox",
                 "/v1/sandbox/", "/v1/sandbox;a=b", "/caisson/../v1/sandbox", "/caisson/%2e%2e/v1/sandbox", "/v1/docs/../sandbox",
                 "/v1%2fsandbox", "/v1/sandbox?x=.js", "/v1/ping/../sandbox", "/v1/docs%2f..%2fsandbox"):
        with Api(keyed.url, "").raw() as raw:
            raw.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            answer = raw.answer()
            assert answer.status in (400, 401), (path, answer.status)
