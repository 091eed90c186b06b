"""GET /v1/attestation and GET /v1/sessions/{id}/confinement, checked as somebody would who has only the documentation: the
token by the openssl command, the statement by the schema that is shipped."""
import base64
import json
import pathlib
import subprocess
import time

import jsonschema
import pytest

from conftest import NOT_FOUND, Api

SCHEMA = pathlib.Path(__file__).parents[2] / "launcher" / "common" / "attest" / "statement.schema.json"
NONCE = "5f1c0a9e7b3d42868a1f"
DER_PREFIX = bytes.fromhex("302a300506032b6570032100")  # SubjectPublicKeyInfo of Ed25519 (RFC 8410), before the 32 bytes


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def openssl_accepts(token: str, jwk: dict, folder: pathlib.Path) -> bool:
    text, _, signature = token.rpartition(".")
    (folder / "key.der").write_bytes(DER_PREFIX + decoded(jwk["x"]))
    (folder / "text").write_bytes(text.encode())
    (folder / "signature").write_bytes(decoded(signature))
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-in", "text",
                           "-sigfile", "signature"], cwd=folder, capture_output=True, check=False).returncode == 0


def claims_of(token: str) -> dict:
    header, claims, _ = token.split(".")
    assert json.loads(decoded(header))["alg"] == "EdDSA"
    return json.loads(decoded(claims))


@pytest.fixture(scope="module")
def statement_schema():
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def boot(api):
    return api.data(f"/v1/attestation?nonce={NONCE}", method="GET")


@pytest.fixture
def session(api):
    id = api.data("/v1/bash/exec", {"command": "true"})["session_id"]
    return id, api.data(f"/v1/sessions/{id}/confinement?nonce={NONCE}", method="GET")


def test_the_boot_statement_is_signed_fresh_and_as_its_schema_says(boot, statement_schema, tmp_path):
    assert openssl_accepts(boot["token"], boot["key"], tmp_path)
    claims = claims_of(boot["token"])
    assert claims["eat_nonce"] == NONCE and claims["eat_profile"] == "urn:caisson:attestation:1"
    assert abs(claims["iat"] - time.time()) < 60
    statement_schema.validate(claims["caisson"])
    assert claims["caisson"] == boot["statement"] and claims["caisson"]["kind"] == "boot"
    assert {p["domain"] for p in claims["caisson"]["policies"] if p["state"] == "ready"} >= {"bash", "shell"}


def test_a_session_s_statement_names_the_proof_of_every_enforced_mechanism(session, statement_schema, tmp_path):
    _, answer = session
    assert openssl_accepts(answer["token"], answer["key"], tmp_path)
    statement = claims_of(answer["token"])["caisson"]
    statement_schema.validate(statement)
    for mechanism in statement["confinement"]["mechanisms"]:
        assert mechanism["state"] != "enforced" or mechanism["verified"], f"{mechanism['name']} is claimed without proof"
    by = {v["by"] for m in statement["confinement"]["mechanisms"] for v in m.get("verified", [])}
    assert by == {"step", "proc", "canary", "construction"}


def test_shell_sessions_are_attested_too(api, session):
    id = api.data("/v1/shell/sessions/create", {})["session_id"]
    statement = api.data(f"/v1/sessions/{id}/confinement", method="GET")["statement"]
    assert statement["confinement"]["domain"] == "shell"


@pytest.mark.parametrize("place", ["header", "claims", "signature"])
def test_a_tampered_byte_is_refused(boot, place, tmp_path):
    parts = boot["token"].split(".")
    i = ["header", "claims", "signature"].index(place)
    middle = len(parts[i]) // 2
    parts[i] = parts[i][:middle] + ("A" if parts[i][middle] != "A" else "B") + parts[i][middle + 1:]
    assert not openssl_accepts(".".join(parts), boot["key"], tmp_path)


def test_another_nonce_gives_another_token_so_a_replayed_one_is_seen(api, boot):
    other = api.data("/v1/attestation?nonce=another-nonce-1", method="GET")
    assert claims_of(other["token"])["eat_nonce"] == "another-nonce-1" != claims_of(boot["token"])["eat_nonce"]
    assert other["key"] == boot["key"]
    assert "eat_nonce" not in claims_of(api.data("/v1/attestation", method="GET")["token"])


@pytest.mark.parametrize("nonce", ["short", "x" * 89, "with space", "quote%22"])
def test_a_nonce_that_is_none_is_an_error_that_says_so(api, nonce):
    answer = api.http.get(f"/v1/attestation?nonce={nonce}").json()
    assert answer["success"] is False and "8 to 88 characters" in answer["message"]


def test_what_is_no_session_of_ours_is_404(api):
    for id in ("unknown", "s-0123456789abcdef", ".."):
        assert api.http.get(f"/v1/sessions/{id}/confinement").json() in (NOT_FOUND, {"success": False, "message": "Not Found", "data": None})


def test_both_need_the_key(api):
    for path in ("/v1/attestation", "/v1/sessions/x/confinement"):
        assert api.http.get(path, headers={"X-AIO-API-Key": "wrong"}).status_code == 401


def verified(launcher, token: str, folder: pathlib.Path, *options) -> str:
    """What `caisson attest --verify` prints, with the key of the launcher's audit log."""
    log = [json.loads(line) for line in (launcher.dir / "audit/launcher.ndjson").read_text().splitlines()]
    (folder / "key.jwk").write_text(json.dumps(next(r["attestation_key"] for r in log if "attestation_key" in r)))
    (folder / "token").write_text(token)
    done = subprocess.run([launcher.dir / "bin/caisson", *options, "attest", "--verify", folder / "token", "--key", folder / "key.jwk",
                           "--nonce", NONCE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_statement_names_the_peers_that_need_no_key(launch, statement_schema, tmp_path):
    launcher = launch(CAISSON_TRUSTED_PEERS=" 192.0.2.1,10.0.0.0/8, 2001:DB8::/32,192.0.2.1/32")
    api = Api(launcher.url, launcher.key)
    session = api.data("/v1/bash/exec", {"command": "true"})["session_id"]
    for path in ("/v1/attestation", f"/v1/sessions/{session}/confinement"):
        token = api.data(f"{path}?nonce={NONCE}", method="GET")["token"]
        statement = json.loads(verified(launcher, token, tmp_path, "--json"))["caisson"]
        statement_schema.validate(statement)
        assert statement["front_door"] == {"key_required": True, "trusted_peers": {
            "count": 3, "ranges": ["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"]}}
        assert "\ndoor    no key is required of 10.0.0.0/8, 192.0.2.1/32, 2001:db8::/32\n" in verified(launcher, token, tmp_path)


@pytest.mark.parametrize("environment, line", [({}, "a key is required of everybody"),
                                               ({"CAISSON_AUTH": "none"}, "everybody is served without a key")])
def test_the_statement_says_whether_a_key_is_required_at_all(launch, tmp_path, environment, line):
    launcher = launch(**environment)
    token = Api(launcher.url, launcher.key).data(f"/v1/attestation?nonce={NONCE}", method="GET")["token"]
    assert f"\ndoor    {line}\n" in verified(launcher, token, tmp_path)
