"""The API for programs in sessions: only where a policy opens it, for its own workspace alone, with a token that is worth nothing elsewhere."""
import contextlib
import json

import httpx
import pytest
from aio_program import pack
from conftest import HEADER, Api, eventually, with_workspaces
from test_attestation import NONCE, verified
from test_file_tiers import Lower
from test_policies import reload

ASK = """import json, os, sys, urllib.request
method, path, body = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
headers = {"Authorization": "Bearer " + os.environ.get("AIO_TOKEN", ""), "Content-Type": "application/json"} | json.loads(os.environ.get("MORE", "{}"))
asked = urllib.request.Request(os.environ["AIO_API_URL"] + path, body and body.encode(), headers, method=method)
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as why:
    print(why.code, why.read().decode())
"""


def opened(folder, areas, domain="bash", **more):
    file = folder / f"{domain}.json"
    policy = json.loads(file.read_text())
    reasons = [w for w in policy.get("weaken", []) if w["field"] != "/api"]
    if areas:
        reasons.append({"field": "/api", "why": "agents in the terminal use their own workspace"})
    file.write_text(json.dumps(policy | {"api": areas, "weaken": reasons} | more))


@pytest.fixture(scope="module")
def launcher(launch):
    return launch(policies=lambda folder: opened(folder, ["sandbox", "bash", "file", "mcp"]))


@pytest.fixture(scope="module")
def api(launcher):
    return Api(launcher.url, launcher.key)


@pytest.fixture(scope="module")
def workspace(launcher):
    """workspace(name): a client of a new workspace, which ends with the block."""
    with_workspaces(launcher)
    owner = Api(launcher.url, launcher.key)

    @contextlib.contextmanager
    def make(name):
        owner.data("/v1/workspaces", {"name": name})
        one = Api(launcher.url, launcher.key)
        one.http.headers[HEADER] = name
        try:
            yield one
        finally:
            owner.http.delete(f"/v1/workspaces/{name}")
    return make


def run(api, command, **more):
    done = api.data("/v1/bash/exec", {"command": command, **more})
    assert done["exit_code"] == 0, done
    return done["stdout"]


def ask(api, method, path, body=None, **env):
    """(status, answer) of a request from a session."""
    words = [method, path] + ([] if body is None else [json.dumps(body)])
    out = run(api, f'python3 -c "$ASK" {" ".join(map(quoted, words))}', env={"ASK": ASK, **env})
    status, _, text = out.partition(" ")
    return int(status), json.loads(text) if text.lstrip().startswith(("{", "[")) else text


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def token_of(api):
    return run(api, "printenv AIO_TOKEN AIO_API_URL").split()


def test_a_program_uses_its_own_workspace(api):
    status, answer = ask(api, "POST", "/v1/bash/exec", {"command": "echo hello; id -u"})
    assert status == 200 and answer["data"]["stdout"].startswith("hello\n")
    status, answer = ask(api, "POST", "/v1/file/write", {"file": "inside.txt", "content": "from inside"})
    assert status == 200 and run(api, "cat ~/inside.txt") == "from inside"
    status, answer = ask(api, "GET", "/v1/sandbox")
    assert status == 200 and answer["home_dir"]


def test_the_command_line_works_there(api, tmp_path):
    with open(pack(tmp_path / "aio"), "rb") as program:
        assert api.http.post("/v1/file/upload", files={"file": ("aio", program)}, data={"path": "/home/gem/aio"}).status_code == 200
    assert run(api, "python3 ~/aio exec -- echo from within") == "from within\n"
    assert json.loads(run(api, "python3 ~/aio sandbox info"))
    assert "sandbox_str_replace_editor" in run(api, "python3 ~/aio mcp tools sandbox")
    refused = api.data("/v1/bash/exec", {"command": "python3 ~/aio code python -c 1"})
    assert refused["exit_code"] != 0 and "does not permit" in refused["stderr"]


@pytest.mark.parametrize("method,path,body", [
    ("POST", "/v1/code/execute", {"language": "python", "code": "1"}), ("GET", "/v1/jupyter/sessions", None), ("GET", "/v1/shell/sessions", None),
    ("GET", "/v1/workspaces", None), ("GET", "/v1/audit/sessions", None), ("GET", "/v1/tokens", None),
    ("POST", "/tickets", {}), ("POST", "/v1/tokens", {"label": "x"}), ("POST", "/v1/policies/reload", {}), ("GET", "/v1/mcp/states", None),
    ("GET", "/proxy/22/", None), ("GET", "/metrics", None)])
def test_no_other_area_is_open(api, method, path, body):
    status, answer = ask(api, method, path, body)
    assert status in (401, 403, 404), (status, answer)


def test_the_token_is_worth_nothing_from_outside(launcher, api):
    token, _ = token_of(api)
    for headers in ({"Authorization": f"Bearer {token}"}, {"X-AIO-API-Key": token}):
        answer = httpx.get(f"{launcher.url}/v1/sandbox", headers=headers, trust_env=False)
        assert answer.status_code == 401, answer.text
    assert httpx.get(f"{launcher.url}/v1/sandbox?api_key={token}", trust_env=False).status_code == 401


def test_no_other_credential_counts_inside(launcher, api):
    for headers in ({"Authorization": f"Bearer {launcher.key}"}, {"Authorization": "Bearer cs_x.y"}, {"Authorization": ""}):
        assert ask(api, "GET", "/v1/sandbox", MORE=json.dumps(headers))[0] == 401
    assert ask(api, "GET", f"/v1/sandbox?api_key={launcher.key}", MORE='{"Authorization": ""}')[0] == 401
    assert ask(api, "GET", "/v1/ping", MORE='{"Authorization": ""}')[0] in (200, 404)


def test_another_workspace_is_out_of_reach(workspace):
    with workspace("inside-one") as one, workspace("inside-two") as two:
        for first, second in ((one, two), (two, one)):
            mine, theirs = token_of(first)[0], token_of(second)[0]
            assert mine != theirs
            assert ask(first, "GET", "/v1/sandbox", AIO_TOKEN=theirs)[0] == 401
            assert ask(first, "GET", "/v1/sandbox", MORE=json.dumps({HEADER: "default"}))[0] == 404
        status, _ = ask(one, "POST", "/v1/bash/exec", {"command": "touch ~/mark; echo done"})
        assert status == 200 and run(one, "ls ~").split() == ["mark"] and run(two, "ls ~") == ""


def test_the_end_of_a_workspace_ends_its_token(workspace):
    with workspace("inside-gone") as gone:
        before = token_of(gone)[0]
    with workspace("inside-gone") as again:
        assert token_of(again)[0] != before
        assert ask(again, "GET", "/v1/sandbox", AIO_TOKEN=before)[0] == 401


def test_sessions_of_other_domains_get_none_and_can_do_nothing_without(api):
    got = api.data("/v1/code/execute", {"language": "python", "code": "import os; print(os.environ.get('AIO_TOKEN'))"})
    assert "None" in json.dumps(got)
    address = token_of(api)[1]
    code = f"import urllib.request as u, urllib.error as e\ntry: u.urlopen('{address}/v1/sandbox')\nexcept e.HTTPError as why: print(why.code)"
    assert "401" in json.dumps(api.data("/v1/code/execute", {"language": "python", "code": code}))


def test_a_private_session_gets_none(api):
    session = api.data("/v1/bash/sessions/create", {"isolation": "private"})["session_id"]
    got = api.data("/v1/bash/exec", {"session_id": session, "command": "printenv AIO_TOKEN || echo none"})
    assert got["stdout"] == "none\n"
    api.data(f"/v1/bash/sessions/{session}/close", {})


def test_a_port_that_is_taken_is_replaced(workspace):
    with workspace("inside-busy") as busy:
        busy.data("/v1/shell/exec", {"command": "python3 -m http.server -b 127.0.0.1 8079", "async_mode": True})
        up = "import socket; socket.create_connection(('127.0.0.1', 8079)); print('up')"
        eventually(lambda: "up\\n" in json.dumps(busy.data("/v1/code/execute", {"language": "python", "code": up})))
        assert not token_of(busy)[1].endswith(":8079") and ask(busy, "GET", "/v1/sandbox")[0] == 200


def test_a_flood_of_connections_reaches_its_own_bound(launcher, api):
    address = token_of(api)[1]
    host, port = address.removeprefix("http://").split(":")
    code = (f"import socket\nheld = []\ntry:\n    for _ in range(900): held.append(socket.create_connection(('{host}', {port}), 5))\n"
            "except OSError as why: print(type(why).__name__)\nprint(len(held)); import time; time.sleep(3)")
    api.data("/v1/bash/exec", {"command": f"python3 -c {quoted(code)} >/tmp/flood.txt 2>&1 &"})
    eventually(lambda: run(api, "cat /tmp/flood.txt 2>/dev/null || true"))
    assert httpx.get(f"{launcher.url}/v1/sandbox", headers={"X-AIO-API-Key": launcher.key}, trust_env=False, timeout=30).status_code == 200


def test_what_a_policy_takes_away_ends_at_once(launch):
    launcher = launch(policies=lambda folder: opened(folder, ["sandbox", "bash"]))
    api = Api(launcher.url, launcher.key)
    token, address = token_of(api)
    assert ask(api, "GET", "/v1/sandbox")[0] == 200
    opened(launcher.dir / "policies", ["bash"])
    assert reload(api)["success"]
    assert ask(api, "GET", "/v1/sandbox", AIO_TOKEN=token, AIO_API_URL=address)[0] == 403
    opened(launcher.dir / "policies", [])
    assert reload(api)["success"]
    assert run(api, "printenv AIO_TOKEN || echo none") == "none\n"
    assert ask(api, "GET", "/v1/sandbox", AIO_TOKEN=token, AIO_API_URL=address)[0] == 401


def test_without_authentication_the_outside_is_open_and_the_inside_is_not(launch):
    launcher = launch(policies=lambda folder: opened(folder, ["sandbox"]), CAISSON_AUTH="none")
    api = Api(launcher.url, launcher.key)
    assert ask(api, "GET", "/v1/sandbox")[0] == 200
    assert ask(api, "GET", "/v1/sandbox", MORE='{"Authorization": ""}')[0] == 401


def test_by_default_there_is_none(launch):
    launcher = launch()
    api = Api(launcher.url, launcher.key)
    assert run(api, "printenv AIO_TOKEN AIO_API_URL || echo none") == "none\n"
    assert run(api, "ss -Hltn 2>/dev/null || cat /proc/net/tcp | tail -n +2") == ""


@pytest.mark.parametrize("tier", ["T0", "T1"])
def test_lower_tiers_have_none_and_say_so(contract, tier):
    launcher = type("Tier", (Lower,), {"tier": tier})(policies=lambda folder: opened(folder, ["sandbox"]))
    try:
        api = Api(launcher.url, launcher.key, contract)
        assert run(api, "printenv AIO_TOKEN || echo none") == "none\n"
        eventually(lambda: "cannot use the API" in launcher.log.read_text())
    finally:
        launcher.close()


def test_statement_and_policies_say_it(launcher, api, tmp_path):
    assert api.data("/v1/policies/bash", method="GET")["api"] == ["sandbox", "bash", "file", "mcp"]
    token = api.data(f"/v1/attestation?nonce={NONCE}", method="GET")["token"]
    assert 'api     sessions of bash may use ["sandbox","bash","file","mcp"] of their workspace\'s API' in verified(launcher, token, tmp_path)


def test_a_session_with_a_way_out_reaches_it_too(launch):
    """Its network is another than that of the workspace's sessions without one."""
    def both(folder):
        opened(folder, ["sandbox"])
        opened(folder, ["sandbox"], "code", network="allowlist", egress=[{"host": "example.org", "why": "an example"}])
        file = folder / "code.json"
        policy = json.loads(file.read_text())
        policy["weaken"].append({"field": "/network", "why": "an example of a way out"})
        file.write_text(json.dumps(policy))
    launcher = launch(policies=both)
    api = Api(launcher.url, launcher.key)
    assert ask(api, "GET", "/v1/sandbox")[0] == 200
    code = "import os, sys\nsys.argv = ['', 'GET', '/v1/sandbox']\n" + ASK
    for _ in range(2):
        assert "200 {" in json.dumps(api.data("/v1/code/execute", {"language": "python", "code": code}))
