"""MCP servers that clients add to their workspace while it runs: they are listed, called, replaced and removed like the configured ones, take
nothing from these, and can do what a policy permits that the operator wrote for them."""
import json
import pathlib
import time

import pytest
from conftest import Api, eventually
from mcp_client import Client, events
from test_mcp_upstream import programs
from upstream import configured, granting, python

MOST = 32


@pytest.fixture(scope="module")
def hub(launch):
    return launch(policies=granting("mcp", "mcp-clients"), EXTRA_MCP_SERVERS=configured(
        fixed=python("hostile", "nothing", "fixed"), git=python("hostile", "nothing", prefix="git_"), plain=python("hostile", "nothing", "plain", prefix="")))


@pytest.fixture(scope="module")
def api(hub, contract):
    return Api(hub.url, hub.key, contract)


@pytest.fixture(scope="module")
def client(api):
    return Client(api)


def bearer(api, label, *scopes):
    token = api.data("/v1/tokens", {"label": label, "seconds": 600, "scopes": list(scopes)})["token"]
    one = Api(api.url, "", api.contract)
    one.http.headers["Authorization"] = f"Bearer {token}"
    return one


@pytest.fixture(scope="module")
def guest(api):
    return bearer(api, "guest", "mcp")


def put(api, name, entry):
    return api.http.put(f"/v1/mcp/servers/{name}", json=entry)


def remove(api, name):
    return api.http.delete(f"/v1/mcp/servers/{name}")


@pytest.fixture
def added(api):
    """added(name, ..., by=api): a server, removed with the test."""
    names = []

    def add(name, *arguments, by=api, **more):
        answer = put(by, name, python(*arguments, **more))
        assert answer.status_code == 200 and answer.json()["success"], answer.text
        names.append(name)
        return answer.json()["data"]
    yield add
    for name in names:
        remove(api, name)


def tools(client, query=""):
    return [tool["name"] for tool in client.ask("tools/list", query=query)["result"]["tools"]]


def test_one_is_added_used_over_mcp_and_rest_and_removed(api, hub, client, added):
    before = api.data("/v1/mcp/servers", method="GET")
    with api.http.stream("GET", "/mcp", headers=client.headers) as response:
        told = events(response)
        assert added("mine", "hostile", "nothing", "of-mine", tags=["calm"]) == {"name": "mine", "domain": "mcp", "prefix": "mine_"}
        assert next(told)["data"]["method"] == "notifications/tools/list_changed"
    assert api.data("/v1/mcp/servers", method="GET") == [*before, "mine"]
    assert tools(client, "?tags=calm") == ["mine_hello", "mine_act"]
    assert client.text("mine_hello").startswith("hello from nothing")
    called = api.http.post("/v1/mcp/mine/tools/hello", json={}).json()
    assert called["success"] and called["data"]["content"][0]["text"].startswith("hello from nothing")
    assert [t["name"] for t in api.http.get("/v1/mcp/mine/tools").json()["data"]["tools"]] == ["hello", "act"]
    state = next(one for one in api.data("/v1/mcp/states", method="GET")["servers"] if one["name"] == "mine")
    assert state["added"] is True and state["state"] == "running" and programs(hub, "nothing of-mine")
    assert remove(api, "mine").json()["success"]
    assert api.data("/v1/mcp/servers", method="GET") == before and api.http.get("/v1/mcp/mine/tools").status_code == 404
    assert "Unknown tool" in client.ask("tools/call", {"name": "mine_hello", "arguments": {}})["error"]["message"]
    eventually(lambda: not programs(hub, "nothing of-mine"))
    assert remove(api, "mine").status_code == 404


def test_one_that_is_replaced_is_started_anew_and_one_that_is_the_same_goes_on(hub, client, added):
    added("swap", "hostile", "nothing", "first-of-swap")
    first = client.text("swap_hello")
    added("swap", "hostile", "nothing", "first-of-swap")
    assert client.text("swap_hello") == first  # with its process id
    added("swap", "hostile", "never", "second-of-swap")
    assert client.text("swap_hello").startswith("hello from never")
    eventually(lambda: not programs(hub, "first-of-swap"))
    added("swap", "hostile", "never", disabled=True)
    assert not [tool for tool in tools(client) if tool.startswith("swap_")]


@pytest.mark.parametrize("name", ["a%20b", "x" * 65, "..%2Fx", "%00", "a%2Fb", "%E2%82%AC", "a.b"])
def test_a_name_that_is_none_is_refused(api, name):
    assert put(api, name, python("hostile")).status_code in (400, 404, 422)
    assert name not in api.data("/v1/mcp/servers", method="GET")


@pytest.mark.parametrize(("entry", "text"), [
    ({}, "either a command or a url"), ({"command": "x", "blok": []}, "there is no member 'blok'"), ({"command": 7}, "must be text"),
    ({"command": "x", "domain": "bash"}, "begin with mcp-"), ({"command": "x", "prefix": "a b"}, "prefix is at most"),
    ({"command": "x", "env": {"A=B": "s3cret"}}, "is no name"), ({"url": "ftp://x", "domain": "mcp"}, "https://"),
    ({"command": "x", "envFiles": {"A": "/etc/shadow"}}, "below /etc/caisson/mcp"), ([], "valid dictionary"), ("x", "valid dictionary")])
def test_an_entry_that_makes_no_sense_is_named(api, entry, text):
    answer = put(api, "wrong", entry)
    assert answer.status_code == 422 and text in answer.json()["detail"][0]["msg"] and "s3cret" not in answer.text, answer.text


def test_what_is_no_json_or_too_large_is_refused(api):
    assert api.http.put("/v1/mcp/servers/wrong", content=b"{", headers={"Content-Type": "application/json"}).status_code == 422
    twice = b'{"command": "x", "block": ["a"], "block": []}'
    assert api.http.put("/v1/mcp/servers/wrong", content=twice, headers={"Content-Type": "application/json"}).status_code == 422
    assert put(api, "wrong", {"command": "x", "args": ["y" * 4000] * 20}).status_code == 413


def test_what_the_operator_configured_stays(api, client):
    for name in ("fixed", "plain", "sandbox", "browser", "markitdown"):
        assert put(api, name, python("hostile")).status_code == 409 and remove(api, name).status_code == 409
    for prefix in ("", "fix", "fixed_", "fixed_more_", "g", "sandbox_", "browser_x_", "sand"):
        answer = put(api, "other", python("hostile", "nothing", prefix=prefix))
        assert answer.status_code == 409 and "overlaps" in answer.json()["message"], (prefix, answer.text)
    assert client.text("fixed_hello").startswith("hello from nothing")


def test_a_configuration_that_takes_the_name_removes_the_added_one(launch, servers_file):
    file, write = servers_file
    write(configured(one=python("hostile", "nothing")))
    server = launch(policies=granting("mcp"), CAISSON_MCP_SERVERS=str(file))
    client = Client(Api(server.url, server.key))
    for name in ("two", "three"):
        assert put(client.api, name, python("hostile", "never")).status_code == 200
    assert client.text("two_hello").startswith("hello from never")
    write(configured(one=python("hostile", "nothing"), two=python("hostile", "nothing")))
    eventually(lambda: client.text("two_hello").startswith("hello from nothing"))
    assert client.api.data("/v1/mcp/servers", method="GET")[3:] == ["one", "two", "three"]
    assert "MCP server two, which a client added, is removed" in server.log.read_text()
    assert remove(client.api, "two").status_code == 409
    # Without the policy of the operator's for them, clients add nothing.
    refused = put(bearer(client.api, "guest", "mcp"), "four", python("hostile"))
    assert refused.status_code == 403 and "no policy of the operator's permits" in refused.json()["message"]
    assert put(client.api, "four", python("hostile", domain="mcp-none")).status_code == 403


def test_what_was_meant_for_a_configured_server_does_not_reach_an_added_one(launch):
    server = launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(hole=python("hostile", "broken", prefix="")))
    client = Client(Api(server.url, server.key))
    assert put(client.api, "more", python("everything", "2025-11-25")).status_code == 200
    error = client.ask("tools/call", {"name": "more_test_simple_text", "arguments": {}})["error"]
    assert "its license has expired" in error["message"]
    assert "Resource not found" in client.ask("resources/read", {"uri": "test://static-text"})["error"]["message"]
    assert client.ask("tools/call", {"name": "more_test_simple_text", "arguments": {}}, query="?servers=more")["result"]["content"]


def test_without_the_scope_operator_a_server_has_the_domain_of_clients(api, guest, added):
    assert added("its", "hostile", "nothing", by=guest) == {"name": "its", "domain": "mcp-clients", "prefix": "its_"}
    assert Client(guest).text("its_hello").startswith("hello from nothing")
    session = next(one for one in api.sessions() if one.get("domain") == "mcp-clients")
    assert session
    for entry, what in (({"domain": "mcp"}, "the domain 'mcp'"), ({"domain": "mcp-other"}, "the domain"), ({"pin": "off"}, "pin"),
                        ({"envFiles": {"T": "/etc/caisson/mcp/token"}}, "envFiles")):
        refused = put(guest, "not", python("hostile", "nothing", **entry))
        assert refused.status_code == 403 and what in refused.json()["message"] and "scope operator" in refused.json()["message"]
    far = {"url": "https://mcp.example.org/mcp", "headers": {"Authorization": "s3cret-header"}}
    assert put(guest, "not", far | {"headerFiles": {"X-A": "/etc/caisson/mcp/token"}}).status_code == 403
    taken = put(guest, "far", far)
    assert taken.status_code == 200 and "s3cret" not in taken.text and remove(guest, "far").status_code == 200


def test_other_scopes_add_nothing(api):
    for label, scopes in (("bash", ["bash"]), ("reader", ["mcp:read", "operator"]), ("all-reader", ["*:read"])):
        one = bearer(api, label, *scopes)
        assert put(one, "not", python("hostile")).status_code == 403 and remove(one, "fixed").status_code == 403


def test_what_one_credential_added_is_not_anothers(api, guest, added):
    added("its", "hostile", "nothing", by=guest)
    other = bearer(api, "another", "mcp")
    assert put(other, "its", python("hostile", "never")).status_code == 409 and remove(other, "its").status_code == 409
    assert put(other, "near", python("hostile", "never", prefix="its_")).status_code == 409
    assert Client(other).text("its_hello").startswith("hello from nothing")  # used by all of the workspace
    assert put(api, "its", python("hostile", "never")).status_code == 200  # an operator may
    assert put(guest, "its", python("hostile", "nothing")).status_code == 409
    assert remove(api, "its").status_code == 200


def test_rules_and_approval_hold_for_added_ones_too(api, guest, client, added):
    added("ruled", "hostile", "nothing", by=guest, rules=[{"identities": ["token:guest"], "allow": ["hello"]}])
    assert tools(Client(guest), "?servers=ruled") == ["ruled_hello"] and tools(client, "?servers=ruled") == []
    added("rug", "hostile", "rug", by=guest)
    own = Client(guest)
    assert own.text("rug_hello") and own.text("rug_act") == "pulled"
    error = eventually(lambda: own.ask("tools/call", {"name": "rug_hello", "arguments": {}}).get("error"))
    assert "rug is held back" in error["message"]
    assert guest.http.post("/v1/mcp/rug/approve", json={}).status_code == 403
    assert api.data("/v1/mcp/rug/approve")["state"] == "running" and own.text("rug_hello")


def test_another_workspace_has_none_of_it_and_its_end_ends_them(api, hub, added):
    added("mine", "hostile", "nothing", "of-default")
    assert api.post("/v1/workspaces", {"name": "apart"}).status_code == 200
    apart = Api(api.url, api.key, api.contract)
    apart.http.headers["X-Caisson-Workspace"] = "apart"
    assert "mine" not in apart.data("/v1/mcp/servers", method="GET") and remove(apart, "mine").status_code == 404
    assert put(apart, "mine", python("hostile", "never", "of-apart")).status_code == 200
    assert Client(apart).text("mine_hello").startswith("hello from never") and Client(api).text("mine_hello").startswith("hello from nothing")
    assert programs(hub, "of-apart")
    assert api.http.delete("/v1/workspaces/apart").status_code == 200
    assert not programs(hub, "of-apart")
    assert api.post("/v1/workspaces", {"name": "apart"}).status_code == 200
    assert "mine" not in apart.data("/v1/mcp/servers", method="GET") and "mine" in api.data("/v1/mcp/servers", method="GET")
    api.http.delete("/v1/workspaces/apart")


def test_there_are_so_many_and_no_more(api, added):
    for number in range(MOST):
        added(f"n{number:02}", "hostile", "nothing")
    refused = put(api, "more", python("hostile"))
    assert refused.status_code == 429 and f"at most {MOST}" in refused.json()["message"]
    added("n07", "hostile", "never")  # in the place of another
    assert remove(api, "n08").status_code == 200
    added("more", "hostile", "nothing")


def test_its_secrets_are_not_in_answers_logs_or_arguments(api, hub, client, added):
    secret = "s3cret-that-a-client-gave"
    added("leak", "hostile", "leak", env={"TOKEN": secret})
    assert client.text("leak_act") == "leaked"
    assert any(secret in pathlib.Path(f"/proc/{pid}/environ").read_text() for pid in programs(hub, "hostile.py leak"))  # it has it
    lines = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if hub.owns(int(path.parent.name))]
    assert lines and not any(secret.encode() in line for line in lines)
    assert secret not in json.dumps(client.ask("tools/list")) and secret not in api.http.get("/v1/mcp/leak/tools").text
    assert secret not in api.http.get("/v1/sessions").text
    states = api.data("/v1/mcp/states", method="GET")["servers"]
    assert not any(secret in json.dumps({k: v for k, v in one.items() if k != "stderr"}) for one in states)  # stderr is what it wrote itself
    time.sleep(0.5)
    assert secret not in hub.log.read_text()
    assert not any(secret.encode() in file.read_bytes() for file in (hub.dir / "audit").rglob("*") if file.is_file())
