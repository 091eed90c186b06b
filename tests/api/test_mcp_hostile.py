"""MCP servers that do what they should not: each harms its own session alone. The others answer as before, the hub keeps nothing of it, and
what a server says is taken for its own requests and nobody else's."""
import json
import threading
import time

import pytest
from conftest import Api
from mcp_client import Client, Stateless, message
from upstream import configured, granting, python

KINDS = ("flood", "floodlong", "forge", "long_line", "bomb", "spy", "die", "rug", "ask_back", "never")
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def hub(launch):
    return launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(
        good=python("everything", "2025-11-25"), mute=python("hostile", "mute"), broken=python("hostile", "broken"), timeless=python("hostile", "never", timeout=1),
        leak=python("hostile", "leak", env={"TOKEN": "s3cret-of-the-server"}), odd=python("hostile", "odd"), huge=python("hostile", "huge"),
        pages=python("hostile", "pages"), **{kind: python("hostile", kind) for kind in KINDS}))


@pytest.fixture(scope="module")
def api(hub, contract):
    return Api(hub.url, hub.key, contract)


@pytest.fixture(scope="module")
def client(api):
    return Client(api)


def call(client, tool, query="?servers="):
    """The answer of one server's tool; other servers are not asked."""
    return client.ask("tools/call", {"name": tool, "arguments": {}}, query=query + tool.rpartition("_")[0])


def good(api):
    """How long another server takes to answer."""
    started = time.monotonic()
    result = Stateless(api).call("good_test_simple_text")
    assert result["content"][0]["text"].startswith("This is a simple")
    return time.monotonic() - started


def in_background(act):
    out = []
    thread = threading.Thread(target=lambda: out.append(act()), daemon=True)
    thread.start()
    return thread, out


@pytest.mark.parametrize("kind", ["flood", "floodlong"])
def test_a_flood_costs_its_own_server_time_and_the_hub_no_memory(api, hub, client, kind):
    good(api)
    before = hub.memory_peaks()["agent"]
    flooded = message("tools/call", {"name": f"{kind}_act", "arguments": {}})
    in_background(lambda: Client(api).post(flooded))
    time.sleep(0.5)
    slowest = max(good(api) for _ in range(50))
    assert hub.memory_peaks()["agent"] - before < (16 if kind == "flood" else 64) * MIB
    assert slowest < 15, slowest


def test_forged_ids_and_notifications_reach_nobody_else(api, client):
    other = Client(api, capabilities={"elicitation": {}, "sampling": {}})
    asked = {"name": "good_test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 1}}
    heard, out = in_background(lambda: other.stream("tools/call", asked))
    time.sleep(0.05)
    assert call(client, "forge_act")["result"]["content"][0]["text"] in ("its own", "forged")
    heard.join(10)
    progress = [event["data"]["params"]["progress"] for event in out[0][:-1]]
    assert progress == [0, 50, 100] and out[0][-1]["data"]["result"]["content"][0]["text"] == "done"
    assert good(api) < 15


def test_a_line_without_end_ends_its_server(api, hub, client):
    before = hub.memory_peaks()["agent"]
    error = call(client, "long_line_act")["error"]
    assert error["code"] == -32603 and "a line of more than" in error["message"]
    assert hub.memory_peaks()["agent"] - before < 64 * MIB
    assert good(api) < 15
    assert call(client, "long_line_hello")["result"]["content"][0]["text"].startswith("hello")  # started anew


def test_a_fork_bomb_stops_at_its_sessions_limit(api, client):
    thread, out = in_background(lambda: call(Client(api), "bomb_act"))
    while thread.is_alive():
        assert good(api) < 15
    if "error" in out[0]:  # without cgroups the watchdog ends the session
        assert any(why in out[0]["error"]["message"] for why in ("its session ended: processes", "was ended by SIGKILL")), out
        return
    number, why = out[0]["result"]["content"][0]["text"].split(" ", 1)
    assert int(number) <= 64 and "Resource temporarily unavailable" in why


def test_it_sees_no_secret_no_network_and_no_other(api, client):
    found = json.loads(call(client, "spy_act")["result"]["content"][0]["text"])
    assert "No such file" in found["ssh"] and "id_" not in found["home"] and "No such file" in found["config"]
    assert "Operation not permitted" in found["connect"] and "Operation not permitted" in found["api"]
    assert len(json.loads(found["others"].replace("'", '"'))) <= 1, found  # the session's init
    assert "SANDBOX_API_KEY" not in found["parent"] and "TOKEN" not in found["parent"]


def test_its_death_in_a_call_is_an_error_at_once(client):
    started = time.monotonic()
    error = call(client, "die_act")["error"]
    assert error["code"] == -32603 and "SIGKILL" in error["message"] and time.monotonic() - started < 30
    assert call(client, "die_hello")["result"]["content"]


def test_one_that_never_answers_has_its_time_and_no_more(client):
    started = time.monotonic()
    error = call(client, "timeless_act")["error"]
    assert "did not answer" in error["message"] and 1 <= time.monotonic() - started < 30
    assert call(client, "timeless_hello")["result"]["content"]  # it still serves


def test_its_questions_are_bounded_and_refused_without_an_offer(client):
    assert call(client, "ask_back_act")["result"]["content"][0]["text"] == "asked"


def test_tools_that_change_after_they_were_approved_are_held_back_and_said_so(api, client):
    assert call(client, "rug_hello")["result"]["content"]
    assert call(client, "rug_act")["result"]["content"][0]["text"] == "pulled"
    time.sleep(0.2)
    error = call(client, "rug_hello")["error"]
    assert "rug is held back" in error["message"] and "'hello' differs" in error["message"]
    listed = client.ask("tools/list", query="?servers=rug")["result"]["tools"]
    assert listed == []
    states = {one["name"]: one for one in api.data("/v1/mcp/states", method="GET")["servers"]}
    assert states["rug"]["state"] == "held_back" and "'hello' differs" in states["rug"]["held_back"]
    assert good(api) < 15
    approved = api.data("/v1/mcp/rug/approve")
    assert approved["state"] == "running" and approved["tools_digest"] == states["rug"]["tools_digest"]
    assert call(client, "rug_hello")["result"]["content"]
    assert api.post("/v1/mcp/none/approve").status_code == 404


def test_lists_are_bounded_and_items_that_are_none_are_left_out(client):
    assert [t["name"] for t in client.ask("tools/list", query="?servers=odd")["result"]["tools"]] == ["odd_hello"]
    huge = client.ask("tools/list", query="?servers=huge")["result"]["tools"]
    assert 100 < len(huge) <= 1024 and len(json.dumps(huge)) < 3 * MIB
    assert [t["name"] for t in client.ask("tools/list", query="?servers=pages")["result"]["tools"]] == ["pages_hello"]


def test_one_that_is_silent_or_broken_holds_nobody(api, client):
    started = time.monotonic()
    listed = [t["name"] for t in client.ask("tools/list", query="?servers=mute,broken,good")["result"]["tools"]]
    assert "good_test_simple_text" in listed and time.monotonic() - started < 45
    error = call(client, "broken_act")["error"]
    assert "its license has expired" in error["message"]
    assert "sandbox_execute_bash" in [t["name"] for t in Stateless(api).ask("tools/list", {})["result"]["tools"]]


def test_secrets_of_a_server_are_not_in_answers_logs_or_arguments(api, hub, client):
    assert call(client, "leak_act")["result"]["content"][0]["text"] == "leaked"
    state = next(one for one in api.data("/v1/mcp/states", method="GET")["servers"] if one["name"] == "leak")
    assert "s3cret" in state["stderr"]  # what it wrote there itself, for operators alone
    token = api.data("/v1/tokens", {"label": "no operator", "seconds": 60, "scopes": ["mcp"]})["token"]
    assert api.http.get("/v1/mcp/states", headers={"X-AIO-API-Key": "", "Authorization": f"Bearer {token}"}).status_code in (401, 403)
    secret = "s3cret-of-the-server"
    assert secret not in json.dumps(client.ask("tools/list")) and secret not in hub.log.read_text()
    assert secret not in api.http.get("/v1/sessions").text
    assert not any(secret.encode() in file.read_bytes() for file in (hub.dir / "audit").rglob("*") if file.is_file())
