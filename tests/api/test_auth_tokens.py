"""Tokens of another issuer (JWT), tokens that a client makes from its key, and peers that need none."""
import base64
import json
import shutil
import subprocess
import time

import httpx
import pytest
from conftest import Api, eventually
from test_auth import NAVIGATION, KeyFile, status, token_in, upgraded


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """An RSA key of openssl's, and tokens that it signs."""

    def __init__(self, folder, name: str):
        self.private, self.kid = folder / f"{name}.pem", name
        self.run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.private)
        self.pem = self.run("pkey", "-in", self.private, "-pubout")

    @staticmethod
    def run(*arguments, **options) -> bytes:
        return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, **options).stdout

    def token(self, header=None, **claims) -> str:
        head = {"alg": "RS256", "kid": self.kid} if header is None else header
        text = f"{b64(json.dumps(head).encode())}.{b64(json.dumps({'exp': int(time.time()) + 300, **claims}).encode())}"
        return f"{text}.{b64(self.run('dgst', '-sha256', '-sign', self.private, input=text.encode()))}"

    def jwk(self) -> dict:
        modulus = self.run("rsa", "-pubin", "-noout", "-modulus", input=self.pem).decode().strip().split("=")[1]
        return {"kty": "RSA", "kid": self.kid, "use": "sig", "n": b64(bytes.fromhex(modulus)), "e": "AQAB"}


@pytest.fixture(scope="module")
def issuers(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("issuers")
    return [Issuer(folder, name) for name in ("one", "two", "three")]


@pytest.fixture(scope="module")
def trusting(launch, issuers):
    """A launcher with JWT_PUBLIC_KEY of the first issuer and a set with the second."""
    file = KeyFile("jwks.json")
    file.write({"keys": [issuers[1].jwk(), {"kty": "oct", "k": "AAAA"}]})
    launcher = launch(JWT_PUBLIC_KEY=base64.b64encode(issuers[0].pem).decode(), CAISSON_JWKS_FILE=str(file.path))
    launcher.file = file
    yield launcher
    file.remove()


def by(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120, trust_env=False)


def answers(url: str, token: str, method="GET", path="/v1/sandbox", **options) -> int:
    with by(url, token) as http:
        return status(http, method, path, **options)


def test_a_token_with_nothing_but_an_end_is_taken_as_aio_does(trusting, issuers):
    assert answers(trusting.url, issuers[0].token()) == 200
    assert answers(trusting.url, issuers[0].token({"alg": "RS256"})) == 200


def test_the_key_is_taken_beside_tokens(trusting):
    assert Api(trusting.url, trusting.key).bash("echo x")["stdout"] == "x\n"


@pytest.mark.parametrize("claims", [{"exp": 1}, {"exp": None}, {"exp": "9999999999"}, {"nbf": 9999999999}, {"iat": 9999999999},
                                    {"aud": "somebody-else"}])
def test_a_token_that_is_not_good_now_or_not_for_us_is_401(trusting, issuers, claims):
    assert answers(trusting.url, issuers[0].token(**claims)) == 401


def test_no_forged_token_is_taken(trusting, issuers):
    """AP-01"""
    good = issuers[0].token()
    head, claims, signature = good.split(".")
    none = b64(b'{"alg":"none"}')
    hmac = b64(b'{"alg":"HS256"}')
    for token in (f"{none}.{claims}.", f"{none}.{claims}.{signature}", f"{hmac}.{claims}.{signature}", f"{head}.{claims}.", f"{head}.{claims}",
                  good[:-4], good + "=", f"{head}.{b64(b'{}')}.{signature}", issuers[2].token(),
                  issuers[2].token({"alg": "RS256", "kid": "../../../../dev/null"}),
                  issuers[2].token({"alg": "RS256", "jwk": issuers[2].jwk()}),
                  issuers[0].token({"alg": "RS256", "crit": ["exp"]}), issuers[0].token({"alg": "RS384"})):
        with by(trusting.url, token) as http:
            answer = http.get("/v1/sandbox")
            assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer"), token
            assert token not in answer.text
        assert token not in trusting.log.read_text()


def test_scope_and_workspace_of_a_token_are_its_bounds(trusting, issuers):
    token = issuers[0].token(scope="openid sandbox:read", sub="ann")
    assert answers(trusting.url, token) == 200
    assert answers(trusting.url, token, "POST", "/v1/bash/exec", json={"command": "true"}) == 403
    assert answers(trusting.url, issuers[0].token(scope="openid")) == 403
    assert answers(trusting.url, issuers[0].token(caisson_workspace="unheard-of"), "POST", "/v1/bash/exec", json={"command": "true"}) == 404


def test_a_set_of_keys_is_replaced_while_the_server_runs(trusting, issuers):
    old, new = issuers[1].token(), issuers[2].token()
    assert answers(trusting.url, old) == 200
    assert answers(trusting.url, new) == 401
    trusting.file.write({"keys": [issuers[2].jwk()]})
    eventually(lambda: answers(trusting.url, new) == 200)
    assert answers(trusting.url, old) == 401, "a remembered token is forgotten with its key"
    assert answers(trusting.url, issuers[0].token()) == 200
    trusting.file.write('{"keys": []}')
    time.sleep(1.2)
    assert answers(trusting.url, new) == 200, "a set without keys is broken: the old one stays"


def test_issuer_and_audience_are_checked(launch, issuers):
    launcher = launch(JWT_PUBLIC_KEY=base64.b64encode(issuers[0].pem).decode(), CAISSON_JWT_ISSUER="https://id.example",
                      CAISSON_JWT_AUDIENCE="caisson")
    good = {"iss": "https://id.example", "aud": ["x", "caisson"]}
    assert answers(launcher.url, issuers[0].token(**good)) == 200
    for claims in ({}, {**good, "iss": "https://evil.example"}, {**good, "aud": "x"}, {"iss": good["iss"]}):
        assert answers(launcher.url, issuers[0].token(**claims)) == 401, claims


# Minted tokens

@pytest.fixture
def key(api):
    with by(api.url, api.key) as http:
        yield http


def mint(http: httpx.Client, **fields) -> dict:
    answer = http.post("/v1/tokens", json={"seconds": 60, **fields})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()["data"]) == {"token", "id", "expires_at"}
    return answer.json()["data"]


def test_a_token_is_given_again_by_its_label_and_revoked(api, key):
    made = mint(key, label="ci", scopes=["bash"])
    assert answers(api.url, made["token"], "POST", "/v1/bash/exec", json={"command": "true"}) == 200
    assert answers(api.url, made["token"]) == 403
    assert mint(key, label="ci", scopes=["bash"])["token"] == made["token"]
    assert status(key, "POST", "/v1/tokens", json={"label": "ci", "seconds": 60}) == 409
    told = key.get("/v1/tokens")
    assert [t["scopes"] for t in told.json()["data"]["tokens"] if t["label"] == "ci"] == [["bash"]] and made["token"] not in told.text
    assert status(key, "DELETE", f"/v1/tokens/{made['id']}") == 200
    assert answers(api.url, made["token"], "POST", "/v1/bash/exec", json={"command": "true"}) == 401
    assert status(key, "DELETE", f"/v1/tokens/{made['id']}") == 404
    assert mint(key, label="ci", scopes=["bash"])["token"] != made["token"]


def test_a_token_ends(api, key):
    made = mint(key, label="short", seconds=10)
    assert answers(api.url, made["token"]) == 200
    eventually(lambda: answers(api.url, made["token"]) == 401)


def test_a_token_is_for_its_path_or_port_only(api, key):
    page = mint(key, label="page", path="/v1/shell/ws")["token"]
    assert upgraded(api.url, f"/v1/shell/ws?api_key={page}") == 101
    assert answers(api.url, page) == 403
    assert answers(api.url, page, "POST", "/tickets") == 403
    port = mint(key, label="port", port=5173)["token"]
    assert answers(api.url, port) == 403


def test_a_token_makes_no_token_and_ends_what_came_of_it(api, key):
    made = mint(key, label="parent")
    with by(api.url, made["token"]) as http:
        assert status(http, "POST", "/v1/tokens", json={"label": "child", "seconds": 60}) == 403
        assert status(http, "GET", "/v1/tokens") == 403
        one = http.post("/tickets").json()["ticket"]
    assert upgraded(api.url, f"/v1/shell/ws?ticket={one}") == 101
    key.delete(f"/v1/tokens/{made['id']}")
    assert upgraded(api.url, f"/v1/shell/ws?ticket={one}") == 401


@pytest.mark.parametrize("fields", [{"seconds": 0}, {"seconds": 10**9}, {"scopes": ["bsh"]}, {"path": "x"}, {"port": 0}, {"port": 65536},
                                    {"label": ""}, {"unheard_of": 1}])
def test_a_token_that_cannot_be_is_422(key, fields):
    assert status(key, "POST", "/v1/tokens", json={"label": "x", "seconds": 60, **fields}) == 422


def test_a_token_of_one_workspace_gets_404_for_anothers_things(api, key, named):
    mine, other = named(), named()
    elsewhere = other.bash("true")["session_id"]
    token = mint(key, label="one", workspace=mine.workspace)["token"]
    foreign = mint(key, label="other", workspace=other.workspace)
    run = {"command": "true"}
    assert answers(api.url, token, "POST", "/v1/bash/exec", json=run) == 200
    assert answers(api.url, token, "POST", "/v1/bash/exec", json=run, headers={"X-Caisson-Workspace": other.workspace}) == 404
    assert answers(api.url, token, "POST", "/v1/bash/exec", json={**run, "session_id": elsewhere}) == 404
    for path in ("/v1/sessions", f"/v1/sessions/{elsewhere}/confinement", "/v1/audit/sessions", f"/v1/workspaces/{other.workspace}"):
        assert answers(api.url, token, path=path) == 404, path
    for made in ("one", "other"):
        key.delete(f"/v1/tokens/{[t['id'] for t in key.get('/v1/tokens').json()['data']['tokens'] if t['label'] == made][0]}")
    assert answers(api.url, foreign["token"]) == 401


def test_a_page_that_a_ticket_opened_makes_no_token(api, key):
    one = key.post("/tickets").json()["ticket"]
    with httpx.Client(base_url=api.url, trust_env=False) as page:
        page.get("/caisson/", params={"ticket": one}, headers=NAVIGATION)
        token = {"X-Caisson-Page": token_in(page.get("/caisson/", headers=NAVIGATION))}
        assert status(page, "GET", "/v1/sandbox", headers=token) == 200
        assert status(page, "POST", "/tickets", headers=token) == 200
        assert status(page, "POST", "/v1/tokens", json={"label": "x", "seconds": 60}, headers=token) == 403


# Trusted peers

def test_a_trusted_peer_needs_no_key_but_a_host_of_ours(launch):
    launcher = launch(CAISSON_TRUSTED_PEERS="192.0.2.1, 127.0.0.0/8")
    with httpx.Client(base_url=launcher.url, trust_env=False) as http:
        assert status(http, "GET", "/v1/sandbox") == 200
        assert status(http, "POST", "/v1/bash/exec", json={"command": "true"}) == 200
        assert status(http, "GET", "/v1/sandbox", headers={"X-AIO-API-Key": "wrong"}) == 401
        assert status(http, "GET", "/v1/sandbox", headers={"Host": "rebound.example"}) == 403
        assert status(http, "GET", "/v1/sandbox", headers={"Origin": "http://evil.example"}) == 403
        assert status(http, "GET", "/v1/sandbox", headers={"Host": "any.example", "X-AIO-API-Key": launcher.key}) == 200
        assert status(http, "GET", "/auth", headers={"X-Original-URI": "/"}) == 401, "it asks for somebody else"


def test_another_peer_needs_the_key_whatever_its_headers_say(launch):
    launcher = launch(CAISSON_TRUSTED_PEERS="192.0.2.1")
    with httpx.Client(base_url=launcher.url, trust_env=False) as http:
        for headers in ({}, {"X-Forwarded-For": "192.0.2.1"}, {"X-Real-IP": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
            assert status(http, "GET", "/v1/sandbox", headers=headers) == 401
