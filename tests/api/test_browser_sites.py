"""What a browser's cookies open, and at which address: pages of two workspaces never share an origin, what another site or a program's
page causes needs a key, and the credential that a request names counts before the cookies that it has."""
import contextlib
import json

import httpx
import pytest
from conftest import Api, with_workspaces
from proxied import ECHO, app
from test_auth import NAVIGATION

CROSS = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
TYPED = {**NAVIGATION, "Sec-Fetch-Site": "none"}


NAME = r"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"@")
    do_POST = do_GET
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening")
server.serve_forever()
"""


@contextlib.contextmanager
def saying(server, name: str, port=None):
    """A program that answers with that name, in the workspace of that name if there is one; yields its port."""
    api = Api(server.url, server.key)
    if name in ("hostile", "victim"):
        api.http.headers["X-Caisson-Workspace"] = name
    with app(api, NAME.replace("@", name), port=port) as listening:
        yield listening


@pytest.fixture(scope="module")
def server(launch):
    return launch()


@pytest.fixture(scope="module")
def operator(server):
    with_workspaces(server)
    api = Api(server.url, server.key)
    for name in ("hostile", "victim"):
        api.data("/v1/workspaces", {"name": name})
    return api


@pytest.fixture(scope="module")
def port(server, operator):
    """A port with a server in each workspace, which says its name."""
    with saying(server, "default") as port, saying(server, "hostile", port), saying(server, "victim", port):
        yield port


@pytest.fixture
def browser(server):
    with httpx.Client(base_url=server.url, timeout=120, trust_env=False, headers=NAVIGATION) as made:
        yield made


def ticket(api, **asked) -> str:
    answer = api.http.post("/tickets", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["ticket"]


def named(port: int, workspace: str, server) -> dict:
    return {"Host": f"{port}-{workspace}.localhost:{server.port}"}


def login(browser, key: str) -> str:
    """A page's login; its token."""
    answer = browser.post("/v1/page/login", json={"key": key})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["token"]


def test_the_default_workspace_opens_by_path(browser, operator, port):
    opened = browser.get(f"/proxy/{port}/", params={"ticket": ticket(operator, path=f"/proxy/{port}/")}, follow_redirects=True)
    assert opened.text == "default" and browser.get(f"/proxy/{port}/").text == "default"


def test_another_workspace_opens_at_its_own_name_alone(browser, server, operator, port):
    def grant():
        return ticket(operator, port=port, workspace="victim")

    for path, headers in ((f"/proxy/{port}/", {}), (f"/absproxy/{port}/", {}), ("/", named(port, "hostile", server)),
                          ("/", {"Host": f"{port}-localhost"}), ("/", {"Host": f"{port}-victim.example"})):
        refused = browser.get(path, params={"ticket": grant()}, headers=headers)
        assert refused.status_code == 403 and f"{port}-victim.DOMAIN" in refused.text and "set-cookie" not in refused.headers, (path, headers)
    there = named(port, "victim", server)
    opened = browser.get("/", params={"ticket": grant()}, headers=there)
    assert opened.status_code == 303 and opened.headers["location"] == "/"
    cookie = {"Cookie": opened.headers["set-cookie"].split(";")[0]}
    assert browser.get("/", headers={**there, **cookie}).text == "victim"
    for elsewhere in (f"/proxy/{port}/", f"/absproxy/{port}/"):
        assert browser.get(elsewhere, headers=cookie).status_code == 401
    assert browser.get("/", headers={**named(port, "hostile", server), **cookie}).status_code == 401


def test_the_default_workspace_has_no_cookie_at_the_name_of_another(browser, server, operator, port):
    refused = browser.get("/", params={"ticket": ticket(operator, port=port)}, headers=named(port, "victim", server))
    assert refused.status_code == 403 and f"{port}-DOMAIN" in refused.text


def test_a_cookie_of_the_default_workspace_opens_no_other_by_a_header(browser, operator, port):
    browser.get(f"/proxy/{port}/", params={"ticket": ticket(operator, port=port)}, follow_redirects=True)
    assert browser.get(f"/proxy/{port}/", headers={"X-Caisson-Workspace": "victim"}).status_code == 404


def test_a_key_in_a_header_opens_every_workspace_at_every_address(operator, port):
    for path in (f"/proxy/{port}/", f"/absproxy/{port}/"):
        assert operator.http.get(path, headers={"X-Caisson-Workspace": "victim"}).text == "victim"


def test_a_ticket_for_a_port_is_good_for_nothing_else(server, operator, port):
    for path in ("/v1/sandbox", f"/proxy/{port + 1}/"):
        assert httpx.get(server.url + path, params={"ticket": ticket(operator, port=port)}).status_code == 403, path
    assert operator.http.post("/tickets", json={"port": 0}).status_code == 422


def test_the_credential_that_a_request_names_counts_before_its_cookie(browser, operator, port):
    browser.get(f"/proxy/{port}/", params={"ticket": ticket(operator, port=port)}, follow_redirects=True)
    assert browser.get(f"/proxy/{port}/", params={"ticket": ticket(operator, workspace="victim")}).status_code == 403
    renewed = browser.get(f"/proxy/{port}/x", params={"ticket": ticket(operator, port=port), "a": "1"})
    assert (renewed.status_code, renewed.headers["location"]) == (303, f"/proxy/{port}/x?a=1")


def test_a_programs_own_parameter_of_that_name_reaches_it(browser, operator):
    with app(operator, ECHO) as echo:
        browser.get(f"/proxy/{echo}/", params={"ticket": ticket(operator, port=echo)}, follow_redirects=True)
        seen = browser.get(f"/proxy/{echo}/", params={"ticket": "the-programs-own", "a": "1"})
        assert seen.status_code == 200 and seen.json()["target"].startswith("/") and "a=1" in seen.json()["target"]


def test_a_page_of_a_program_opens_no_port_with_the_users_login(browser, server, port):
    login(browser, server.key)
    link = browser.get(f"/proxy/{port}/", headers={**NAVIGATION, "Sec-Fetch-Site": "same-origin"})
    assert link.status_code == 401 and "set-cookie" not in link.headers
    typed = browser.get(f"/proxy/{port}/", headers=TYPED)
    assert typed.status_code == 303 and typed.headers["set-cookie"].count(f"Path=/proxy/{port};")


def test_service_workers_have_no_place_below_a_path(server, operator, port):
    for path in (f"/proxy/{port}/sw.js", f"/absproxy/{port}/sw.js"):
        assert operator.http.get(path, headers={"Service-Worker": "script"}).status_code == 403
        assert operator.http.get(path).status_code == 200
    by_name = operator.http.get("/sw.js", headers={"Service-Worker": "script", "Host": f"{port}-localhost"})
    assert by_name.status_code == 200


@pytest.mark.parametrize("path", ["/proxy/{port}/", "/v1/sandbox"])
def test_without_a_key_what_another_site_causes_is_refused(launch, path):
    open_server = launch(CAISSON_AUTH="none")
    with saying(open_server, "open") as port:
        address = open_server.url + path.format(port=port)
        for site in ("cross-site", "same-site"):
            assert httpx.get(address, headers={**CROSS, "Sec-Fetch-Site": site}).status_code == 403
        assert httpx.post(address, headers={**NAVIGATION, "Sec-Fetch-Site": "cross-site"}).status_code == 403
        for fine in ({**CROSS, "Sec-Fetch-Site": "same-origin"}, {**NAVIGATION, "Sec-Fetch-Site": "cross-site"}, TYPED, {}):
            assert httpx.get(address, headers=fine).status_code == 200, fine


def test_with_a_cookie_what_a_neighbouring_name_causes_is_refused(browser, server, operator, port):
    there = {"Host": f"{port}-localhost:{server.port}"}
    opened = browser.get("/", params={"ticket": ticket(operator, port=port)}, headers=there)
    with_cookie = {**there, "Cookie": opened.headers["set-cookie"].split(";")[0]}
    assert browser.get("/", headers={**with_cookie, **CROSS, "Sec-Fetch-Site": "same-site"}).status_code == 403
    assert browser.get("/", headers={**with_cookie, **CROSS, "Sec-Fetch-Site": "same-origin"}).text == "default"


def test_a_trusted_peer_is_served_under_no_rebound_name(launch):
    server = launch(CAISSON_TRUSTED_PEERS="127.0.0.0/8")
    with saying(server, "peer") as port:
        for headers in ({}, {"X-Caisson-Page": "x"}):
            for host, path in (("rebound.example", f"/proxy/{port}/"), (f"{port}-rebound.example", "/"), ("rebound.example", "/v1/sandbox")):
                assert httpx.get(server.url + path, headers={**headers, "Host": host}).status_code in (401, 403), (host, path, headers)
        assert httpx.get(server.url + f"/proxy/{port}/").text == "peer"


def test_a_client_of_a_proxy_among_the_peers_is_no_peer(launch):
    server = launch(CAISSON_TRUSTED_PEERS="127.0.0.0/8", CAISSON_TRUSTED_PROXIES="127.0.0.1")
    assert httpx.get(server.url + "/v1/sandbox", headers={"X-Forwarded-For": "203.0.113.7"}).status_code == 401
    assert httpx.get(server.url + "/v1/sandbox", headers={"X-Forwarded-For": "127.0.0.9"}).status_code == 200
    assert httpx.get(server.url + "/v1/sandbox").status_code == 200


def test_guesses_of_a_key_through_a_program_are_counted(server, operator):
    minted = operator.http.post("/v1/tokens", json={"label": "guesser", "seconds": 600, "scopes": ["preview"]}).json()["data"]["token"]
    with app(operator, ECHO) as echo, httpx.Client(base_url=server.url, headers={"X-AIO-API-Key": minted}, trust_env=False) as http:
        def passed(value: str) -> bool:
            seen = http.get(f"/proxy/{echo}/", headers={"Authorization": f"Bearer {value}"}).json()["headers"]
            return any(name.lower() == "authorization" for name, _ in seen)

        assert all(passed("the-programs-own") for _ in range(400)), "what is no guess is not counted"
        assert passed("guess") and not passed(server.key)
        assert not all(passed(f"guess-{n}") for n in range(400)), "after too many, everything is taken for ours"
        assert not passed("another-guess")
    assert operator.http.get("/v1/sandbox").status_code == 200  # nobody else's requests are refused for it


def test_a_login_is_found_among_cookies_that_others_put_in_front(browser, server, operator):
    minted = operator.http.post("/v1/tokens", json={"label": "tenant", "seconds": 600, "workspace": "hostile"}).json()["data"]["token"]
    token = login(browser, server.key)
    own = "; ".join(f"{c.name}={c.value}" for c in browser.cookies.jar)
    with httpx.Client(base_url=server.url, trust_env=False) as other:
        login(other, minted)
        tossed = "; ".join(f"{c.name}={c.value}" for c in other.cookies.jar)
    answer = httpx.get(server.url + "/v1/workspaces", headers={"X-Caisson-Page": token, "Cookie": f"{tossed}; {own}"})
    assert answer.status_code == 200 and len(answer.json()["data"]["workspaces"]) == 3


def test_a_link_of_another_site_does_not_change_who_is_logged_in(browser, server, operator):
    minted = operator.http.post("/v1/tokens", json={"label": "other", "seconds": 600, "workspace": "hostile"}).json()["data"]["token"]
    login(browser, server.key)
    link = browser.get("/", params={"api_key": minted}, headers={**NAVIGATION, "Sec-Fetch-Site": "cross-site"})
    assert (link.status_code, link.headers["location"]) == (303, "/") and "set-cookie" not in link.headers
    own = browser.get("/", params={"api_key": minted}, headers=TYPED)
    assert own.status_code == 303 and "set-cookie" in own.headers


def test_no_redirect_leads_to_another_host(browser, server, operator, port):
    for path in ("/\\evil.example/x", "//evil.example/x"):
        with Api(server.url, "").raw() as raw:
            raw.send(f"GET {path}?ticket={ticket(operator, port=port)} HTTP/1.1\r\nHost: {port}-localhost\r\nSec-Fetch-Mode: navigate\r\n"
                     "Sec-Fetch-Dest: document\r\n\r\n".encode())
            answer = raw.answer()
        assert answer.status in (303, 400), path
        assert not answer.headers.get("location", "/x")[1:2] in ("/", "\\"), path


def test_options_of_everything_reaches_a_program_as_it_was_sent(operator):
    with app(operator, ECHO) as echo, operator.raw() as raw:
        raw.send(operator.request("OPTIONS *", "", f"X-AIO-Proxy-Port: {echo}"))
        assert json.loads(raw.answer().body)["target"] == "*"


def test_an_address_of_a_terminal_is_made_by_no_reader(server, operator):
    minted = operator.http.post("/v1/tokens", json={"label": "reader", "seconds": 600, "scopes": ["shell:read"]}).json()["data"]["token"]
    before = operator.http.get("/v1/shell/sessions").json()["data"]["sessions"]
    assert httpx.get(server.url + "/v1/shell/terminal-url", headers={"X-AIO-API-Key": minted}).status_code == 403
    assert operator.http.get("/v1/shell/sessions").json()["data"]["sessions"] == before
    assert operator.http.get("/v1/shell/terminal-url").status_code == 200


def test_wrong_keys_that_a_web_page_sends_lock_nobody_out(launch):
    launcher = launch()
    with httpx.Client(base_url=launcher.url, timeout=120, trust_env=False) as http:
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(Api(launcher.url, "").raw(60)) for _ in range(40)]
            for raw in raws:  # without waiting for the answers, which are delayed
                raw.send("".join(f"GET /v1/sandbox?api_key={n} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n" for n in range(8)).encode())
            assert {raw.answer().status for raw in raws for _ in range(8)} == {401, 429}
        assert http.get("/v1/sandbox", headers={"X-AIO-API-Key": "short"}).status_code == 401, "looked at"
        assert http.get("/v1/sandbox", headers={"X-AIO-API-Key": launcher.key}).status_code == 200
