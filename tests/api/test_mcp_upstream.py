"""Configured MCP servers behind /mcp: each sealed in a session of its own, listed and called by its prefix, over both kinds of revisions
and over REST; started by use, ended when idle, compared with what was approved."""
import hashlib
import json
import os
import pathlib
import threading
import time

import pytest
from conftest import Api, eventually
from mcp_client import Client, Stateless, events
from upstream import configured, granting, python

@pytest.fixture(scope="module")
def hub(launch):
    return launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(
        every=python("everything", "2025-11-25"), hasty=python("everything", "2025-11-25", timeout=1, hidden=True),
        endless=python("hostile", "never", hidden=True), secret=python("hostile", "nothing", hidden=True),
        plain=python("hostile", "nothing", "plain", prefix="", tags=["calm"], idle=2),
        newest=python("everything", "2026-07-28", revision="2026-07-28", block=["test_error*"]),
        ruled=python("hostile", "nothing", rules=[{"identities": ["token:reader"], "allow": ["hello"]}, {"identities": ["token:admin*"]}])))


@pytest.fixture(scope="module")
def api(hub, contract):
    return Api(hub.url, hub.key, contract)


@pytest.fixture(scope="module")
def client(api):
    return Client(api)


def names(client, query=""):
    return [tool["name"] for tool in client.ask("tools/list", query=query)["result"]["tools"]]


def programs(launcher, word):
    """Processes of this launcher whose command line has the word."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode()
            if word in line and "mcp" in line and launcher.owns(int(entry.parent.name)):
                found.append(int(entry.parent.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def test_its_tools_are_listed_behind_those_of_the_sandbox_and_called(client):
    listed = names(client)
    assert "sandbox_execute_bash" in listed and "every_test_simple_text" in listed and "hello" in listed and "secret_hello" in listed
    assert listed.index("sandbox_execute_bash") < listed.index("every_test_simple_text")
    assert "newest_test_simple_text" in listed and "newest_test_error_handling" not in listed
    assert client.text("hello").startswith("hello from nothing")
    assert client.call("every_test_simple_text")["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]
    assert client.call("every_test_error_handling")["isError"] is True
    tool = next(t for t in client.ask("tools/list")["result"]["tools"] if t["name"] == "every_json_schema_2020_12_tool")
    assert tool["inputSchema"]["$defs"]["address"]["$anchor"] == "addressDef" and tool["inputSchema"]["if"]


def test_a_client_of_the_newest_revision_calls_both_kinds_of_servers(api):
    client = Stateless(api)
    for prefix in ("every_", "newest_"):
        result = client.call(prefix + "test_simple_text")
        assert result["resultType"] == "complete" and result["content"][0]["text"].startswith("This is a simple")
    asked = client.call("newest_test_input_required_result_elicitation")
    assert asked["resultType"] == "input_required" and asked["inputRequests"]["user_name"]["method"] == "elicitation/create"


@pytest.mark.parametrize("tool", ["every_test_error", "newest_test_error_handling", "every_", "test_simple_text", "nobody_hello", "x" * 300])
def test_a_tool_that_is_not_there_or_blocked_is_unknown(client, tool):
    error = client.ask("tools/call", {"name": tool, "arguments": {}})["error"]
    assert error["code"] == -32602 and "Unknown tool" in error["message"]


def test_what_the_query_leaves(client):
    assert names(client, "?servers=plain") == ["hello", "act"] == names(client, "?tags=calm")
    assert names(client, "?tools=hello,sandbox_execute_bash") == ["sandbox_execute_bash", "hello"]
    assert "every_test_simple_text" in names(client, "?search=SIMPLE_TEXT") and "hello" not in names(client, "?search=simple_text")
    error = client.ask("tools/call", {"name": "hello", "arguments": {}}, query="?servers=every")["error"]
    assert error["code"] == -32602


def test_prompts_resources_and_completion(client):
    prompts = [p["name"] for p in client.ask("prompts/list")["result"]["prompts"]]
    assert "every_test_simple_prompt" in prompts
    got = client.ask("prompts/get", {"name": "every_test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}})["result"]
    assert "arg1='a', arg2='b'" in got["messages"][0]["content"]["text"]
    assert [r["uri"] for r in client.ask("resources/list")["result"]["resources"]].count("test://static-text") == 1
    assert client.ask("resources/templates/list")["result"]["resourceTemplates"][0]["uriTemplate"] == "test://template/{id}/data"
    for uri, text in (("test://static-text", "static text"), ("test://template/77/data", '"77"')):
        assert text in client.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"]
    missing = client.ask("resources/read", {"uri": "test://nowhere"})["error"]
    assert missing["code"] == -32002 and missing["data"] == {"uri": "test://nowhere"}
    done = client.ask("completion/complete", {"ref": {"type": "ref/prompt", "name": "every_test_prompt_with_arguments"},
                                              "argument": {"name": "arg1", "value": "test"}})["result"]
    assert done["completion"]["values"] == ["testing"]


def test_progress_and_log_messages_come_before_the_result(client):
    client.ask("logging/setLevel", {"level": "info"})
    stream = client.stream("tools/call", {"name": "every_test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "mine"}})
    told = [event["data"] for event in stream]
    assert [m["params"]["progress"] for m in told[:-1]] == [0, 50, 100] and {m["params"]["progressToken"] for m in told[:-1]} == {"mine"}
    assert told[-1]["id"] == 1 and told[-1]["result"]["content"]
    logged = [event["data"] for event in client.stream("tools/call", {"name": "every_test_tool_with_logging", "arguments": {}})]
    assert [m["params"]["data"] for m in logged[:-1]] == ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert logged[0]["params"]["logger"] == "every/conformance"
    client.ask("logging/setLevel", {"level": "error"})
    answer = client.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "every_test_tool_with_logging"}})
    assert answer.headers["content-type"] == "application/json" and answer.json()["result"]
    client.ask("logging/setLevel", {"level": "debug"})
    assert client.ask("logging/setLevel", {"level": "loud"})["error"]["code"] == -32602


def test_a_server_asks_the_client_of_its_request_and_no_other(api):
    able = Client(api, capabilities={"sampling": {}, "elicitation": {}})

    def answer(request):
        if request["method"] == "sampling/createMessage":
            text = request["params"]["messages"][0]["content"]["text"]
            return {"result": {"role": "assistant", "model": "m", "content": {"type": "text", "text": f"heard {text}"}}}
        return {"result": {"action": "accept", "content": {"username": "u", "email": "e@example.com"}}}

    told = able.stream("tools/call", {"name": "every_test_sampling", "arguments": {"prompt": "this"}}, answer=answer)
    assert told[-1]["data"]["result"]["content"][0]["text"] == "LLM response: heard this"
    told = able.stream("tools/call", {"name": "every_test_elicitation", "arguments": {"message": "who?"}}, answer=answer)
    assert told[0]["data"]["params"]["message"] == "who?" and "action=accept" in told[-1]["data"]["result"]["content"][0]["text"]
    started = time.monotonic()
    told = able.stream("tools/call", {"name": "hasty_test_elicitation", "arguments": {"message": "take your time"}},
                       answer=lambda request: time.sleep(3) or answer(request))  # its timeout is one second
    assert "action=accept" in told[-1]["data"]["result"]["content"][0]["text"] and time.monotonic() - started > 3
    plain = Client(api)  # says that it can do nothing of the kind
    error = plain.ask("tools/call", {"name": "every_test_sampling", "arguments": {"prompt": "this"}})["error"]
    assert "sampling/createMessage" in error["message"]


def test_a_stream_that_broke_goes_on_where_it_was(api, client):
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call",
            "params": {"name": "every_test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": 1}}}
    with api.http.stream("POST", "/mcp", json=body, headers=client.headers) as response:
        first = next(iter(events(response)))
    with api.http.stream("GET", "/mcp", headers=client.headers | {"Last-Event-ID": first["id"]}) as response:
        assert response.status_code == 200
        rest = [event["data"] for event in events(response)]
    assert [m["params"]["progress"] for m in rest[:-1]] == [50, 100] and rest[-1]["id"] == 9
    other = Client(api)
    again = api.http.get("/mcp", headers=other.headers | {"Last-Event-ID": first["id"]})
    assert again.status_code == 400


def in_call(api, client, id_):
    """A call that never ends, once it is under way, and where its answer will be."""
    answers = []
    body = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": "endless_act", "arguments": {}}}
    threading.Thread(target=lambda: answers.append(client.post(body).json()), daemon=True).start()
    eventually(lambda: any(one["name"] == "endless" and one.get("under_way") for one in api.data("/v1/mcp/states", method="GET")["servers"]))
    time.sleep(0.2)  # from the hub to the server
    return answers


def test_a_call_that_is_called_off_ends(api):
    client = Client(api)
    assert client.call("endless_hello")["content"]
    answers = in_call(api, client, "slow")
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
    eventually(lambda: answers)
    assert "cancelled" in answers[0]["error"]["message"]


def test_changed_lists_are_told_to_whoever_listens(api, client):
    for kind in ("tools", "prompts"):
        client.ask(f"{kind}/list")
    with api.http.stream("GET", "/mcp", headers=client.headers) as response:
        told = events(response)
        assert client.call("every_test_trigger_prompt_change")["content"]
        assert next(told)["data"]["method"] == "notifications/prompts/list_changed"
    client.ask("prompts/list")
    listener = Stateless(api)
    request = listener.request("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, id_="sub")
    with api.http.stream("POST", "/mcp", **request) as response:
        told = events(response)
        first = next(told)["data"]
        assert first["method"] == "notifications/subscriptions/acknowledged" and first["params"]["notifications"] == {"promptsListChanged": True}
        client.call("every_test_trigger_tool_change")
        client.call("every_test_trigger_prompt_change")
        second = next(told)["data"]
        assert second["method"] == "notifications/prompts/list_changed"  # the tools' change was not asked for
        assert second["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"


def test_rules_decide_which_credential_sees_and_calls_what(api, client):
    def of(label):
        token = api.data("/v1/tokens", {"label": label, "seconds": 600, "scopes": ["mcp"]})["token"]
        one = Api(api.url, "", None)
        one.http.headers["Authorization"] = f"Bearer {token}"
        return Client(one)

    reader, admin, guest = of("reader"), of("admin-1"), of("guest")
    query = "?servers=ruled"
    assert (names(reader, query), names(admin, query), names(guest, query)) == (["ruled_hello"], ["ruled_hello", "ruled_act"], [])
    assert names(client, query) == []
    assert reader.text("ruled_hello") and "Unknown tool" in reader.ask("tools/call", {"name": "ruled_act"})["error"]["message"]
    assert "Unknown tool" in guest.ask("tools/call", {"name": "ruled_hello"})["error"]["message"]
    assert "ruled" not in guest.api.http.get("/v1/mcp/servers").json()["data"]
    assert guest.api.http.get("/v1/mcp/ruled/tools").status_code == 404
    assert reader.api.http.post("/v1/mcp/ruled/tools/act", json={}).status_code == 404


def test_a_hundred_are_configured_and_those_that_are_used_run(launch):
    many = launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(
        **{f"s{number:03}": python("hostile", "nothing", f"number{number:03}", idle=1) for number in range(100)}))
    client = Client(Api(many.url, many.key))
    for number in (7, 42, 99):
        assert client.ask("tools/call", {"name": f"s{number:03}_hello", "arguments": {}})["result"]["content"]
    running = {number for number in range(100) if programs(many, f"number{number:03}")}
    assert running == {7, 42, 99}


def test_the_rest_mirror(api):
    assert api.data("/v1/mcp/servers", method="GET") == ["sandbox", "browser", "markitdown", "every", "newest", "plain"]
    assert "secret" in api.http.get("/v1/mcp/servers", params={"include_hidden": "true"}).json()["data"]
    tools = api.http.get("/v1/mcp/every/tools").json()["data"]["tools"]
    assert "test_simple_text" in [tool["name"] for tool in tools]
    called = api.http.post("/v1/mcp/every/tools/test_simple_text", json={}).json()
    assert called["success"] and called["data"]["content"][0]["text"].startswith("This is a simple")
    assert api.http.post("/v1/mcp/every/tools/none", json={}).status_code == 404
    assert api.http.get("/v1/mcp/none/tools").status_code == 404


def test_it_starts_when_it_is_used_and_ends_when_it_is_idle(hub, client):
    assert client.text("hello")
    assert programs(hub, "hostile.py nothing plain")
    pid = programs(hub, "hostile.py nothing plain")
    deadline = time.monotonic() + 40
    while programs(hub, "hostile.py nothing plain") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not programs(hub, "hostile.py nothing plain"), pid


def test_after_its_death_a_call_fails_and_the_next_one_works(hub, api, client):
    assert client.call("endless_hello")["content"]
    answers = in_call(api, client, "doomed")
    for pid in programs(hub, "hostile.py never"):
        os.kill(pid, 9)
    eventually(lambda: answers)  # long before the minute that an answer may take
    assert answers[0]["error"]["code"] == -32603 and "SIGKILL" in answers[0]["error"]["message"]
    assert client.call("endless_hello")["content"]


def test_a_configuration_that_makes_no_sense_is_named(launch):
    wrong = launch(EXTRA_MCP_SERVERS=json.dumps({"mcpServers": {"one": {"command": "x", "blok": ["a"]}}}))
    deadline = time.monotonic() + 10
    while "blok" not in wrong.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "EXTRA_MCP_SERVERS: line 1: server 'one': there is no member 'blok'" in wrong.log.read_text()


def test_each_call_is_one_record_without_its_arguments(hub, api, client):
    client.call("every_test_simple_text", secret="do-not-write-this-down")
    client.call("every_test_error_handling")
    client.call("sandbox_execute_bash", cmd="echo do-not-write-this-down")
    deadline = time.monotonic() + 5
    calls = []
    while len(calls) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
        calls = [json.loads(line) for line in hub.log.read_text().splitlines() if line.startswith('{"log":"mcp_call"')][-3:]
    assert [(c["server"], c["tool"], c["outcome"]) for c in calls] == [
        ("every", "test_simple_text", "done"), ("every", "test_error_handling", "tool_error"), ("sandbox", "sandbox_execute_bash", "done")]
    digest = hashlib.sha256(b'{"secret":"do-not-write-this-down"}').hexdigest()
    assert calls[0]["arguments_sha256"] == digest and calls[0]["workspace"] == "default" and calls[0]["ms"] > 0
    assert "do-not-write-this-down" not in "".join(json.dumps(call) for call in calls)
    # Those of the configured server are in the log of its session, too, before the answers come.
    logs = [path.read_text() for path in (hub.dir / "audit").glob("*.ndjson")]
    notes = [record["note"] for log in logs for record in map(json.loads, log.splitlines()) if record["event"] == "note"]
    assert all(note["kind"] == "mcp_call" and note["us"] > 0 for note in notes)
    last = [note for note in notes if note["server"] == "every" and note["tool"] in ("test_simple_text", "test_error_handling")][-2:]
    assert [(n["tool"], n["outcome"], n["identity"]) for n in last] == [
        ("test_simple_text", "done", "SANDBOX_API_KEY"), ("test_error_handling", "tool_error", "SANDBOX_API_KEY")]
    assert last[0]["arguments_sha256"] == digest and "do-not-write-this-down" not in "".join(log for log in logs if '"mcp_call"' in log)


def test_the_file_is_read_again_while_it_runs(launch, servers_file):
    file, write = servers_file
    write(configured(one=python("hostile", "nothing", "first"), two=python("hostile", "nothing", "second")))
    server = launch(policies=granting("mcp"), CAISSON_MCP_SERVERS=str(file), EXTRA_MCP_SERVERS=configured(two=python("everything"), three=python("hostile", "nothing")))
    client = Client(Api(server.url, server.key))

    def shown(expected):
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if (now := client.api.data("/v1/mcp/servers", method="GET")[3:]) == expected:
                break
            time.sleep(0.2)
        assert now == expected

    shown(["one", "three", "two"])  # of a name in both, the file's
    assert client.text("one_hello") and client.text("two_hello").startswith("hello from nothing")
    kept = programs(server, "nothing second")
    write(configured(one=python("hostile", "nothing", "changed"), two=python("hostile", "nothing", "second"), four=python("hostile", "nothing")))
    shown(["four", "one", "three", "two"])
    assert client.text("one_hello") and client.text("four_hello")
    deadline = time.monotonic() + 10
    while programs(server, "nothing first") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not programs(server, "nothing first") and programs(server, "nothing second") == kept and programs(server, "nothing changed")
    write('{"mcpServers": {"one": {"command": "x", "tpye": "stdio"}}}')
    time.sleep(1.5)
    shown(["four", "one", "three", "two"])
    assert "there is no member 'tpye'" in server.log.read_text()
    file.unlink()
    shown(["three", "two"])
