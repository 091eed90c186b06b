"""The bounds of credentials hold however a request is spelled, and whoever may do nothing makes nothing."""
import json
import secrets
import time

import httpx
import pytest
import test_auth
import test_auth_tokens
from conftest import Api, eventually
from proxied import app
from test_auth import NAVIGATION, KeyFile, client, status, token_in, upgraded
from test_auth_tokens import Issuer, answers, b64, by, mint

keyed, key_file = test_auth.keyed, test_auth.key_file  # fixtures
issuers, trusting = test_auth_tokens.issuers, test_auth_tokens.trusting
FILES = r'''
import http.server, os, sys
os.makedirs("/tmp/site/public", exist_ok=True)
for name, text in (("secret.txt", "the-secret-file"), ("public/page.txt", "public")): open(f"/tmp/site/{name}", "w").write(text)
class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *given): super().__init__(*given, directory="/tmp/site")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("listening")
server.serve_forever()
'''
SPELLINGS = ["..%2fsecret.txt", "..%2Fsecret.txt", "x%2f..%2f..%2fsecret.txt", "..%5csecret.txt", "..;/secret.txt", "..%00/secret.txt", "%2e%2e%2fsecret.txt",
             "..%252fsecret.txt", "a%5c..%5csecret.txt"]


@pytest.fixture
def key(api):
    with by(api.url, api.key) as http:
        yield http


def test_no_spelling_leaves_the_path_of_a_credential(api, key):
    with app(api, FILES) as port:
        public = f"/proxy/{port}/public/"
        token = mint(key, label=secrets.token_hex(4), path=public)["token"]
        assert answers(api.url, token, path=public + "page.txt") == 200
        for spelling in SPELLINGS:
            raw_request = f"GET {public}{spelling} HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: {token}\r\n\r\n"
            with Api(api.url, "").raw() as raw:
                raw.send(raw_request.encode())
                answer = raw.answer()
            assert answer.status in (400, 403), (spelling, answer)
            assert b"the-secret-file" not in answer.body


# The question of a proxy

@pytest.fixture
def reader(keyed):
    """A token that reads everything."""
    with client(keyed, "all") as http:
        return mint(http, label=secrets.token_hex(4), scopes=["*:read"])["token"]


@pytest.mark.parametrize("method, expected", [("GET", 200), ("HEAD", 200), ("POST", 403), ("DELETE", 403), ("get", 403), (None, 403)])
def test_for_a_proxy_what_has_no_method_is_no_read(keyed, reader, method, expected):
    headers = {"X-Original-URI": "/code-server/", **({"X-Original-Method": method} if method else {})}
    assert answers(keyed.url, reader, path="/auth", headers=headers) == expected


@pytest.mark.parametrize("twice", ["X-Original-URI", "X-Original-Method"])
def test_a_proxy_that_passes_its_clients_headers_on_is_told(keyed, twice):
    given = [("X-Original-URI", "/a"), ("X-Original-Method", "GET"), (twice, "GET" if twice.endswith("Method") else "/a")]
    with client(keyed, "all") as http:
        assert status(http, "GET", "/auth", headers=given[:2]) == 200
        assert status(http, "GET", "/auth", headers=given) == 400


@pytest.mark.parametrize("named, expected", [({}, 403), ({"X-Caisson-Workspace": "other"}, 403), ({"X-Caisson-Workspace": "w1"}, 200)])
def test_for_a_proxy_a_credential_of_a_workspace_is_good_there_alone(keyed, named, expected):
    with client(keyed, "bound") as http:
        assert status(http, "GET", "/auth", headers={"X-Original-URI": "/", "X-Original-Method": "GET", **named}) == expected


# Tokens of another issuer

def test_scp_is_a_scope(trusting, issuers):  # noqa: F811
    run = {"json": {"command": "true"}}
    for scp in (["sandbox:read"], "sandbox:read", [], "", ["openid"]):
        token = issuers[0].token(scp=scp)
        assert answers(trusting.url, token) == (200 if "sandbox:read" in scp else 403), scp
        assert answers(trusting.url, token, "POST", "/v1/bash/exec", **run) == 403, scp
    assert answers(trusting.url, issuers[0].token(scope="bash", scp=["bash"]), "POST", "/v1/bash/exec", **run) == 200
    for scopes in ({"scope": "bash", "scp": ["*"]}, {"scp": {"bash": True}}, {"scp": ["bash", 1]}, {"scope": ["bash"]}, {"scp": None}):
        assert answers(trusting.url, issuers[0].token(**scopes), "POST", "/v1/bash/exec", **run) == 401, scopes


def test_whoever_has_no_scope_of_ours_makes_nothing(trusting, issuers):  # noqa: F811
    token = issuers[0].token(scope="openid profile")
    with by(trusting.url, token) as http:
        assert status(http, "POST", "/tickets") == 403
        assert status(http, "POST", "/v1/tokens", json={"label": "x", "seconds": 60}) == 403
    with httpx.Client(base_url=trusting.url, trust_env=False) as page:
        for answer in (page.post("/v1/page/login", json={"key": token}), page.get("/", params={"api_key": token}, headers=NAVIGATION),
                       page.get("/proxy/5173/", params={"api_key": token}, headers=NAVIGATION)):
            assert answer.status_code == 403 and "set-cookie" not in answer.headers, answer.text


class EcIssuer(Issuer):
    """The same with P-521, whose signatures cost the server most."""

    def __init__(self, folder, name: str):
        self.private, self.kid = folder / f"{name}.pem", name
        self.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521", "-out", self.private)
        self.point = self.run("pkey", "-in", self.private, "-pubout", "-outform", "DER")[-132:]

    def token(self, header=None, **claims) -> str:
        text = ".".join(b64(json.dumps(part).encode()) for part in (header or {"alg": "ES512"}, {"exp": int(time.time()) + 300, **claims}))
        der = self.run("dgst", "-sha512", "-sign", self.private, input=text.encode())
        at, numbers = 3 if der[1] & 0x80 else 2, b""
        for _ in range(2):
            size = der[at + 1]
            numbers += int.from_bytes(der[at + 2:at + 2 + size], "big").to_bytes(66, "big")
            at += 2 + size
        return f"{text}.{b64(numbers)}"

    def jwk(self) -> dict:
        return {"kty": "EC", "crv": "P-521", "x": b64(self.point[:66]), "y": b64(self.point[66:])}


def test_a_wrong_token_does_not_cost_the_signature_of_each_key(launch, tmp_path):
    """A set of 40 keys without names: few of them are tried; with names, the one that is meant."""
    signers, file = [EcIssuer(tmp_path, f"k{n}") for n in range(40)], KeyFile("jwks.json")
    try:
        file.write({"keys": [signer.jwk() for signer in signers]})
        launcher = launch(CAISSON_JWKS_FILE=str(file.path))
        assert [answers(launcher.url, signers[n].token()) for n in (0, 3, 4, 39)] == [200, 200, 401, 401]
        file.write({"keys": [signer.jwk() | {"kid": signer.kid} for signer in signers]})
        named = signers[39].token({"alg": "ES512", "kid": "k39"})
        eventually(lambda: answers(launcher.url, named) == 200)
        forged = named[:-8] + "AAAAAAAA"
        with Api(launcher.url, "").raw(60) as wrong, httpx.Client(base_url=launcher.url, trust_env=False, timeout=60) as other:
            wrong.send(f"GET /v1/sandbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {forged}\r\n\r\n".encode() * 20)
            assert [status(other, "GET", "/healthz") for _ in range(20)] == [200] * 20
    finally:
        file.remove()


def test_what_a_single_use_ticket_opened_makes_tickets_that_end_with_it(api, key):
    """Their end is checked in unit tests, by a clock of their own: Gate.TheTicketsOfAChainHaveOneEnd."""
    one = key.post("/tickets", json={"single_use": True}).json()["ticket"]
    with httpx.Client(base_url=api.url, trust_env=False) as page:
        page.get("/", params={"ticket": one}, headers=NAVIGATION)
        token = {"X-Caisson-Page": token_in(page.get("/", headers=NAVIGATION))}
        next_one = page.post("/tickets", json={"single_use": True}, headers=token).json()["ticket"]
        assert [upgraded(api.url, f"/v1/shell/ws?ticket={next_one}") for _ in range(2)] == [101, 401]
        assert status(page, "POST", "/v1/tokens", json={"label": "x", "seconds": 60}, headers=token) == 403
