"""Ports that a policy publishes: their previews need no credential, and nothing else is open because of them."""
import json
import socket
import subprocess
import time

import httpx
import pytest
import test_attestation
from conftest import Api, eventually, with_workspaces
from proxied import ECHO, app
from test_attestation import NONCE, verified
from test_auth import UPGRADE
from test_policies import reload
from test_revocation import ECHOES

statement_schema = test_attestation.statement_schema  # a fixture
OPEN, SOCKETS, SHUT, ELSEWHERE = 17001, 17002, 17003, 17004  # no other test's (proxied.py); the last is published by an unused domain
WITHIN = 60  # as in test_revocation.py


def publish(folder, ports, domain="bash"):
    file = folder / f"{domain}.json"
    policy = json.loads(file.read_text())
    reasons = [w for w in policy.get("weaken", []) if w["field"] != "/published_ports"]
    if ports:
        reasons.append({"field": "/published_ports", "why": "a public demonstration"})
    file.write_text(json.dumps(policy | {"published_ports": ports, "weaken": reasons}))


def publishing(folder):
    publish(folder, [OPEN, SOCKETS])
    publish(folder, [ELSEWHERE], "code-server")


@pytest.fixture(scope="module")
def launcher(launch):
    return launch(policies=publishing, CAISSON_PREVIEW_HOSTS="preview.test,localhost")


@pytest.fixture(scope="module")
def owner(launcher):
    return Api(launcher.url, launcher.key)


@pytest.fixture(scope="module")
def echo(owner):
    with app(owner, ECHO, port=OPEN) as port:
        yield port


@pytest.fixture(scope="module")
def shut(owner):
    with app(owner, ECHO, port=SHUT) as port:
        yield port


@pytest.fixture
def anybody(launcher):
    with httpx.Client(base_url=launcher.url, timeout=120, trust_env=False) as client:
        yield client


@pytest.mark.parametrize("way", ["path", "absolute", "name", "name of the workspace", "localhost", "header"])
def test_a_published_port_needs_no_credential_by_any_way(anybody, echo, way):
    path, headers = {
        "path": (f"/proxy/{echo}/x?q=1", {}),
        "absolute": (f"/absproxy/{echo}/x?q=1", {}),
        "name": ("/x?q=1", {"Host": f"{echo}-preview.test"}),
        "name of the workspace": ("/x?q=1", {"Host": f"{echo}-default.preview.test"}),
        "localhost": ("/x?q=1", {"Host": f"{echo}-localhost:8080"}),
        "header": ("/x?q=1", {"X-AIO-Proxy-Port": str(echo)}),
    }[way]
    answer = anybody.get(path, headers=headers)
    assert answer.status_code == 200 and answer.json()["target"].endswith("/x?q=1"), answer.text


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_its_methods_and_bodies_pass(anybody, echo, method):
    answer = anybody.request(method, f"/proxy/{echo}/", content=b"" if method == "GET" else b"x" * 10)
    assert (answer.status_code, answer.json()["method"]) == (200, method)


def upgraded(api: Api, path: str, *headers: str):
    raw = api.raw()
    raw.send("\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *UPGRADE, *headers, "", ""]).encode())
    return raw, raw.answer().status


def test_a_websocket_needs_none_either(owner):
    with app(owner, ECHOES, port=SOCKETS) as port:
        raw, status = upgraded(owner, f"/proxy/{port}/")
        with raw:
            assert status == 101
            raw.send(b"\x82\x83\0\0\0\0abc")
            assert raw.exactly(9) == b"\x82\x83\0\0\0\0abc"  # the server sends back what came


@pytest.mark.parametrize("path", ["/proxy/{shut}/", "/absproxy/{shut}/", "/proxy/1/", "/v1/sandbox", "/v1/policies/bash", "/v1/tokens", "/metrics"])
def test_everything_else_needs_one_as_before(anybody, echo, shut, path):
    assert anybody.get(path.format(shut=shut)).status_code == 401


def test_another_port_needs_one_by_every_way(owner, anybody, echo, shut):
    assert owner.http.get(f"/proxy/{shut}/").status_code == 200
    assert anybody.get("/", headers={"Host": f"{shut}-preview.test"}).status_code == 401
    assert anybody.get(f"/proxy/{echo}/", headers={"X-AIO-Proxy-Port": str(shut)}).status_code == 401
    assert upgraded(owner, f"/proxy/{shut}/")[1] == 401


@pytest.mark.parametrize("path", ["/tickets", "/v1/bash/exec", "/v1/policies/reload"])
def test_it_makes_nobody_somebody(anybody, echo, path):
    came = anybody.get(f"/proxy/{echo}/")
    assert came.status_code == 200 and "set-cookie" not in came.headers
    assert anybody.post(path, json={}, headers={"Referer": f"{anybody.base_url}/proxy/{echo}/"}).status_code == 401


def test_a_session_does_not_publish_by_listening(owner, anybody):
    """The port is published by a domain of which no session runs here: it is not meant."""
    with app(owner, ECHO, port=ELSEWHERE) as port:
        assert anybody.get(f"/proxy/{port}/").status_code == 401
        assert owner.http.get(f"/proxy/{port}/").status_code == 200


def test_a_private_session_publishes_nothing(owner, launcher, anybody):
    with_workspaces(launcher)
    owner.data("/v1/workspaces", {"name": "alone"})
    try:
        one = Api(owner.url, owner.key)
        one.http.headers["X-Caisson-Workspace"] = "alone"
        one.data("/v1/bash/sessions/create", {"isolation": "private"})
        assert anybody.get(f"/proxy/{OPEN}/", headers={"X-Caisson-Workspace": "alone"}).status_code == 401
        one.data("/v1/bash/sessions/create")
        assert anybody.get(f"/proxy/{OPEN}/", headers={"X-Caisson-Workspace": "alone"}).status_code == 502
    finally:
        owner.http.delete("/v1/workspaces/alone")


def test_the_address_says_of_which_workspace_it_is(owner, launcher, anybody, echo):
    with_workspaces(launcher)
    owner.data("/v1/workspaces", {"name": "second"})

    def status(path=f"/proxy/{OPEN}/", **headers):
        return anybody.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}).status_code

    try:
        by_name = {"path": "/", "Host": f"{OPEN}-second.preview.test"}
        assert [status(X_Caisson_Workspace=name) for name in ("second", "none", "", "../default")] == [401] * 4
        assert status(**by_name) == 401  # nothing runs in it
        second = Api(owner.url, owner.key)
        second.http.headers["X-Caisson-Workspace"] = "second"
        with app(second, ECHO.replace('"method": ', '"of": "second", "method": '), port=OPEN):
            assert status(X_Caisson_Workspace="second") == status(**by_name) == 200
            assert anybody.get("/", headers={"Host": by_name["Host"]}).json()["of"] == "second"
            assert "of" not in anybody.get(f"/proxy/{OPEN}/").json()
            assert status(**by_name, X_Caisson_Workspace="default") == 401  # two names
            owner.data("/v1/workspaces/second/pause")
            assert status(**by_name) == 503
            assert owner.data("/v1/workspaces/second", method="GET")["state"] == "paused"
    finally:
        owner.http.delete("/v1/workspaces/second")


@pytest.mark.parametrize("headers,status", [
    ({"Host": "evil.example"}, 401), ({"Host": f"{OPEN}-evil.example"}, 401), ({"Host": f"{OPEN}.preview.test"}, 401),
    ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403), ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200), ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
    ({"Service-Worker": "script"}, 403)])
def test_pages_of_other_sites_reach_it_no_more_than_a_keyless_server(anybody, echo, headers, status):
    assert anybody.get(f"/proxy/{echo}/", headers=headers).status_code == status


@pytest.mark.parametrize("wrong", [{"X-AIO-API-Key": "wrong"}, {"Authorization": "Bearer wrong"}, {"X-Caisson-Page": "wrong"}])
def test_a_wrong_credential_is_refused_there_as_anywhere(anybody, echo, wrong):
    assert anybody.get(f"/proxy/{echo}/", headers=wrong).status_code == 401
    assert anybody.get(f"/proxy/{echo}/?ticket=wrong").status_code == anybody.get(f"/proxy/{echo}/?api_key=wrong").status_code == 401


def test_the_server_gets_the_app_s_own_login_and_none_of_ours(owner, anybody, echo):
    own = {"Authorization": "Basic YTpi", "Cookie": f"a=b; caisson_login={owner.key}; caisson_x=y"}
    seen = dict((name.lower(), value) for name, value in anybody.get(f"/proxy/{echo}/", headers=own).json()["headers"])
    assert (seen["authorization"], seen["cookie"]) == ("Basic YTpi", "a=b")
    kept = dict(owner.http.get(f"/proxy/{echo}/", headers={"Cookie": f"caisson_login={owner.key}"}).json()["headers"])
    assert owner.key not in str(seen) + str(kept)


@pytest.fixture
def own(launch):
    made = launch(policies=publishing)
    return made, Api(made.url, made.key)


def test_a_reload_that_takes_the_port_away_ends_what_is_open(own):
    launcher, api = own
    with app(api, ECHOES, port=SOCKETS) as port, app(api, ECHO, port=OPEN) as echo, \
            httpx.Client(base_url=api.url, trust_env=False) as anybody:
        raw, status = upgraded(api, f"/proxy/{port}/")
        assert status == 101 and anybody.get(f"/proxy/{echo}/").status_code == 200
        file = launcher.dir / "policies" / "bash.json"
        good = file.read_text()
        file.write_text(good.replace("17001", "0"))
        assert reload(api)["success"] is False and anybody.get(f"/proxy/{echo}/").status_code == 200  # the old ones stay
        file.write_text(good)
        publish(launcher.dir / "policies", [])
        assert reload(api)["success"] is True
        eventually(lambda: anybody.get(f"/proxy/{echo}/").status_code == 401)
        with raw:
            raw.socket.settimeout(WITHIN * 2)
            began = time.monotonic()
            while raw.more():
                pass
            assert time.monotonic() - began < WITHIN * 2
        assert api.http.get(f"/proxy/{echo}/").status_code == 200
        publish(launcher.dir / "policies", [OPEN])
        assert reload(api)["success"] is True  # counts for sessions that run already
        eventually(lambda: anybody.get(f"/proxy/{echo}/").status_code == 200)


def test_a_published_port_is_never_the_agent_s_the_launcher_s_or_the_host_s(own):
    launcher, api = own
    with socket.create_server(("127.0.0.1", 0)) as host, httpx.Client(base_url=api.url, trust_env=False) as anybody:
        ports = [launcher.port, host.getsockname()[1]]
        publish(launcher.dir / "policies", ports)
        assert reload(api)["success"] is True
        api.data("/v1/bash/sessions/create")
        for port in ports:
            eventually(lambda port=port: anybody.get(f"/proxy/{port}/v1/ping").status_code == 502)
        host.settimeout(0)
        with pytest.raises(BlockingIOError):
            host.accept()


def test_the_statement_and_explain_say_what_is_open(owner, launcher, statement_schema, tmp_path):
    answer = owner.data(f"/v1/attestation?nonce={NONCE}", method="GET")
    statement_schema.validate(answer["statement"])
    line = f"\ndoor    no key is required of anybody for port {OPEN} of a workspace while a session of bash runs there\n"
    assert line in verified(launcher, answer["token"], tmp_path)
    stated = answer["statement"]["policies"]
    of = {row["domain"]: row["published_ports"] for row in stated if row["state"] != "refused"}
    assert of["bash"] == [OPEN, SOCKETS] and of["shell"] == []
    explained = subprocess.run([launcher.dir / "bin/caisson", "--json", "--policies", launcher.dir / "policies", "policy", "explain", "bash"],
                               capture_output=True, text=True, check=True)
    told = json.loads(explained.stdout)["published_ports"]
    assert (told["value"], told["why"]) == ([OPEN, SOCKETS], "a public demonstration")
    assert owner.data("/v1/policies/bash", method="GET")["published_ports"] == [OPEN, SOCKETS]
