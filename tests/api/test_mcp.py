"""/mcp and /v1/mcp: the transport and its revisions, from bytes on; the tools over it and over REST."""
import base64
import json

import httpx
import pytest
from mcp_client import ACCEPT, LEGACY, META, STATELESS, Client, message

SANDBOX = ["sandbox_get_context", "sandbox_get_packages", "sandbox_execute_bash", "sandbox_execute_code", "sandbox_file_operations",
           "sandbox_str_replace_editor", "sandbox_convert_to_markdown", "sandbox_get_browser_info", "sandbox_browser_screenshot", "sandbox_browser_execute_action"]
# Those of @agent-infra/mcp-server-browser 1.2.29, with their arguments.
BROWSER = {"browser_click": "index", "browser_close": "", "browser_close_tab": "", "browser_evaluate": "script",
           "browser_form_input_fill": "selector index value clear", "browser_get_clickable_elements": "", "browser_get_download_list": "",
           "browser_get_markdown": "", "browser_get_text": "", "browser_go_back": "", "browser_go_forward": "",
           "browser_hover": "index selector", "browser_navigate": "url", "browser_new_tab": "url", "browser_press_key": "key",
           "browser_read_links": "", "browser_screenshot": "name selector index width height fullPage highlight", "browser_scroll": "amount",
           "browser_select": "index selector value", "browser_switch_tab": "index", "browser_tab_list": "", "browser_vision_screen_capture": "",
           "browser_vision_screen_click": "factors x y"}


@pytest.fixture(scope="module")
def client(api):
    return Client(api)


def stateless(api, method, params=None, meta=True, path="/mcp", **headers):
    """A request of 2026-07-28; a header that is None is left out."""
    params = dict(params or {})
    if meta:
        params["_meta"] = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {}}
    given = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
    if "name" in params:
        given["Mcp-Name"] = params["name"]
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return api.http.post(path, json=message(method, params, 7), headers=ACCEPT | {k: v for k, v in given.items() if v is not None})


# --- revisions ---


@pytest.mark.parametrize("path", ["/mcp", "/v1/mcp"])
@pytest.mark.parametrize("revision", LEGACY)
def test_a_session_begins_is_used_and_ends(api, revision, path):
    client = Client(api, revision, path)
    assert client.hello["protocolVersion"] == revision and client.hello["serverInfo"]["name"] == "caisson"
    assert client.ask("ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert client.ask("tools/list")["result"]["tools"]
    assert api.http.delete(path, headers=client.headers).status_code == 200
    assert client.post(message("ping")).status_code == 404
    assert api.http.delete(path, headers=client.headers).status_code == 404


def test_another_revision_is_answered_with_the_newest_that_has_sessions(api):
    assert Client(api, "2024-11-05").hello["protocolVersion"] == LEGACY[-1]
    assert Client(api, STATELESS).hello["protocolVersion"] == LEGACY[-1]


def test_a_session_is_needed_and_is_its_holders_alone(api, client):
    assert api.http.post("/mcp", json=message("tools/list"), headers=ACCEPT).status_code == 400
    forged = api.http.post("/mcp", json=message("tools/list"), headers=ACCEPT | {"Mcp-Session-Id": "0" * 32})
    assert forged.status_code == 404 and forged.json()["error"]
    token = api.data("/v1/tokens", {"label": "mcp", "scopes": ["mcp"], "seconds": 60})["token"]
    other = client.headers | {"X-AIO-API-Key": token}
    assert api.http.post("/mcp", json=message("ping"), headers=other).status_code == 404


def test_who_begins_many_sessions_ends_its_own_alone(api):
    kept = Client(api)
    token = api.data("/v1/tokens", {"label": "mcp-many", "scopes": ["mcp"], "seconds": 60})["token"]
    first, *_ = [Client(api, headers={"X-AIO-API-Key": token}) for _ in range(130)]
    assert first.post(message("ping")).status_code == 404
    assert kept.ask("ping")["result"] == {}


def test_a_request_of_2026_07_28_stands_for_itself(api):
    got = stateless(api, "server/discover")
    assert got.status_code == 200, got.text
    result = got.json()["result"]
    assert result["supportedVersions"] == [*LEGACY, STATELESS] and "tools" in result["capabilities"]
    assert result["resultType"] == "complete" and result["cacheScope"] == "private" and result["ttlMs"] >= 0
    assert result["_meta"][META + "serverInfo"]["name"] == "caisson"
    listed = stateless(api, "tools/list").json()["result"]
    assert [tool["name"] for tool in listed["tools"]][:len(SANDBOX)] == SANDBOX
    called = stateless(api, "tools/call", {"name": "sandbox_execute_bash", "arguments": {"cmd": "echo stateless"}})
    assert called.json()["result"]["structuredContent"]["output"] == "stateless" and "mcp-session-id" not in called.headers
    encoded = "=?base64?" + base64.b64encode(b"sandbox_get_context").decode() + "?="
    assert stateless(api, "tools/call", {"name": "sandbox_get_context"}, Mcp_Name=encoded).status_code == 200


@pytest.mark.parametrize(("method", "params", "headers", "status", "code"), [
    ("tools/list", {}, {"Mcp_Method": "prompts/list"}, 400, -32020),
    ("tools/list", {}, {"Mcp_Method": None}, 400, -32020),
    ("tools/list", {}, {"Mcp_Method": "TOOLS/LIST"}, 400, -32020),
    ("tools/list", {}, {"MCP_Protocol_Version": None}, 400, -32020),
    ("tools/list", {}, {"MCP_Protocol_Version": "2025-11-25"}, 400, -32020),
    ("tools/call", {"name": "sandbox_get_context"}, {"Mcp_Name": "other"}, 400, -32020),
    ("tools/call", {"name": "sandbox_get_context"}, {"Mcp_Name": None}, 400, -32020),
    ("tools/call", {"name": "sandbox_get_context"}, {"Mcp_Name": "=?base64?%%%?="}, 400, -32020),
    ("initialize", {}, {}, 404, -32601),
    ("ping", {}, {}, 404, -32601),
    ("unknown/method", {}, {}, 404, -32601),
    ("resources/subscribe", {}, {}, 404, -32601),
    ("tools/call", {"name": "no_such_tool"}, {}, 200, -32602),
])
def test_what_a_stateless_request_must_not_be(api, method, params, headers, status, code):
    got = stateless(api, method, params, **headers)
    assert (got.status_code, got.json()["error"]["code"], got.json()["id"]) == (status, code, 7), got.text


def test_versions_and_meta_of_a_stateless_request(api):
    assert stateless(api, "server/discover", meta=False).json()["error"]["code"] == -32602
    for left in ("protocolVersion", "clientCapabilities"):
        params = {"_meta": {META + "protocolVersion": STATELESS, META + "clientCapabilities": {}}}
        del params["_meta"][META + left]
        got = stateless(api, "server/discover", params, meta=False)
        assert (got.status_code, got.json()["error"]["code"]) == (400, -32602)
    params = {"_meta": {META + "protocolVersion": "v999", META + "clientCapabilities": {}}}
    got = stateless(api, "server/discover", params, meta=False, MCP_Protocol_Version="v999")
    assert (got.status_code, got.json()["error"]["code"]) == (400, -32022)
    assert got.json()["error"]["data"] == {"requested": "v999", "supported": [*LEGACY, STATELESS]}
    assert stateless(api, "server/discover", params, meta=False).json()["error"]["code"] == -32020
    assert api.http.post("/mcp", json=message("tools/list"), headers=ACCEPT | {"MCP-Protocol-Version": "v999"}).status_code == 400


# --- the transport ---


@pytest.mark.parametrize(("body", "code"), [
    ("{", -32700), ("", -32700), ("[]", -32600), ("1", -32600), ('{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1}', -32600), ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600), ('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    ('{"jsonrpc":"2.0","id":1,"method":"ping","params":' + '{"a":' * 80 + "1" + "}" * 80 + "}", -32700),
])
def test_what_is_no_message(api, client, body, code):
    got = api.http.post("/mcp", content=body, headers=client.headers | {"Content-Type": "application/json"})
    assert (got.status_code, got.json()["error"]["code"]) == (400, code), got.text


def test_the_stream_and_what_asks_for_none(api, client):
    plain = api.http.get("/mcp", headers={"Accept": "*/*"})
    assert plain.status_code == 406
    assert plain.json() == {"jsonrpc": "2.0", "id": "server-error",
                            "error": {"code": -32600, "message": "Not Acceptable: Client must accept text/event-stream"}}
    assert api.http.get("/mcp", headers=ACCEPT).status_code == 405  # of no session
    assert api.http.get("/mcp", headers=client.headers | {"Mcp-Session-Id": "0" * 32}).status_code == 404
    with api.http.stream("GET", "/mcp", headers=client.headers) as response:
        assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
    assert client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}).status_code == 202
    assert client.post({"jsonrpc": "2.0", "id": 3, "result": {}}).status_code == 202
    assert client.ask("server/discover")["error"]["code"] == client.ask("no/such")["error"]["code"] == -32601


def test_other_names_and_sites_are_refused(api, client):
    assert api.http.post("/mcp", json=message("ping"), headers=client.headers | {"Origin": "http://evil.example"}).status_code == 403
    assert api.http.post("/mcp", json=message("ping"), headers=ACCEPT | {"X-AIO-API-Key": "wrong"}).status_code == 401


# --- the tools ---


def test_tools_are_listed_in_order_with_schemas_that_stand_alone(client):
    tools = client.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == [*SANDBOX, *BROWSER, "convert_to_markdown"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object" and "#/components" not in json.dumps(tool) and tool["description"] and tool["title"]
        assert set(tool["annotations"]) >= {"readOnlyHint", "openWorldHint"}
    by_name = {tool["name"]: tool for tool in tools}
    for name, arguments in BROWSER.items():
        assert set(arguments.split()) <= set(by_name[name]["inputSchema"].get("properties", {})), name
    assert by_name["sandbox_execute_bash"]["inputSchema"]["required"] == ["cmd"]
    assert set(by_name["sandbox_execute_bash"]["inputSchema"]["properties"]) == {"cmd", "cwd", "new_session", "timeout", "preserve_symlinks", "truncate"}
    assert client.ask("tools/list", {"cursor": "x"})["error"]["code"] == -32602


def test_filters_leave_what_they_name(client):
    def names(query):
        return [tool["name"] for tool in client.ask("tools/list", query=query)["result"]["tools"]]
    assert names("?servers=sandbox") == SANDBOX
    assert names("?tools=browser_click,sandbox_get_context") == ["sandbox_get_context", "browser_click"]
    assert names("?search=MARKDOWN") == ["sandbox_convert_to_markdown", "browser_get_markdown", "convert_to_markdown"]
    assert names("?servers=markitdown") == ["convert_to_markdown"]
    refused = client.ask("tools/call", {"name": "sandbox_get_context"}, query="?servers=browser")
    assert refused["error"]["code"] == -32602 and "Unknown tool" in refused["error"]["message"]


def test_a_credential_sees_and_calls_what_its_scopes_permit(api):
    token = api.data("/v1/tokens", {"label": "narrow", "scopes": ["mcp", "file", "browser:read"], "seconds": 60})["token"]
    narrow = Client(api, headers={"X-AIO-API-Key": token})
    names = [tool["name"] for tool in narrow.ask("tools/list")["result"]["tools"]]
    assert names == ["sandbox_file_operations", "sandbox_str_replace_editor", "sandbox_browser_screenshot"]
    assert narrow.ask("tools/call", {"name": "sandbox_execute_bash", "arguments": {"cmd": "id"}})["error"]["code"] == -32602
    assert narrow.call("sandbox_file_operations", action="list", path=".")["isError"] is False
    without = api.data("/v1/tokens", {"label": "none", "scopes": ["bash"], "seconds": 60})["token"]
    assert api.http.post("/mcp", json=message("ping"), headers=ACCEPT | {"X-AIO-API-Key": without}).status_code == 403
    assert api.http.post("/v1/mcp/sandbox/tools/sandbox_execute_bash", json={"cmd": "id"}, headers={"X-AIO-API-Key": token}).status_code == 404


def test_bash_keeps_its_state_in_one_shell(client):
    first = client.call("sandbox_execute_bash", cmd="mkdir -p /tmp/mcp && cd /tmp/mcp && export WORD=kept; pwd")
    assert first["structuredContent"] == {"status": "completed", "output": "/tmp/mcp", "exit_code": 0, "cwd": "/tmp/mcp"}
    assert json.loads(first["content"][0]["text"]) == first["structuredContent"]
    assert client.call("sandbox_execute_bash", cmd="echo $WORD $PWD")["structuredContent"]["output"] == "kept /tmp/mcp"
    alone = client.call("sandbox_execute_bash", cmd="echo $WORD; exit 3", new_session=True)["structuredContent"]
    assert (alone["output"].strip(), alone["exit_code"]) == ("", 3)
    assert client.call("sandbox_execute_bash", cmd="pwd", cwd="/")["structuredContent"]["cwd"] == "/"
    late = client.call("sandbox_execute_bash", cmd="echo begun; sleep 60", timeout=1)["structuredContent"]
    assert late["status"] == "hard_timeout" and "begun" in late["output"]
    assert client.call("sandbox_execute_bash", cmd="echo again")["structuredContent"]["output"] == "again"
    assert client.call("sandbox_execute_bash", cmd="false")["structuredContent"]["exit_code"] == 1
    cut = client.call("sandbox_execute_bash", cmd="seq 1 20000")["structuredContent"]["output"]
    whole = client.call("sandbox_execute_bash", cmd="seq 1 20000", truncate=False)["structuredContent"]["output"]
    assert len(cut) < 40_000 < len(whole)
    missing = client.call("sandbox_execute_bash", cmd="pwd", cwd="/no/such")
    assert missing["isError"] and "/no/such" in missing["content"][0]["text"]


def test_code_and_context(api, client):
    ran = client.call("sandbox_execute_code", code="print(6 * 7)")["structuredContent"]
    rest = api.data("/v1/code/execute", {"language": "python", "code": "print(6 * 7)"})
    assert {k: v for k, v in ran.items() if k != "session_id"} == {k: v for k, v in rest.items() if k != "session_id"}
    failing = client.call("sandbox_execute_code", code="throw new Error('x')", language="javascript")["structuredContent"]
    assert failing["exit_code"] == 1
    assert client.text("sandbox_get_context") == api.http.get("/v1/sandbox").json()["data"]
    python = client.text("sandbox_get_packages", language="python")
    both = client.text("sandbox_get_packages")
    assert python.startswith("Python Packages:\n") and "==" in python and "Node.js Packages:\n" in both


def test_files(api, client):
    def files(**arguments):
        return client.call("sandbox_file_operations", **arguments)
    assert files(action="write", path="/tmp/mcp-file.txt", content="one\ntwo\n")["structuredContent"]["bytes_written"] == 8
    read = files(action="read", path="/tmp/mcp-file.txt")
    assert read["content"][0]["text"] == "one\ntwo\n" and read["structuredContent"]["content"] == "one\ntwo\n"
    assert files(action="replace", path="/tmp/mcp-file.txt", old_str="two", new_str="2")["structuredContent"]["replaced_count"] == 1
    assert files(action="search", path="/tmp/mcp-file.txt", pattern="^2")["structuredContent"]["line_numbers"] == [2]
    assert files(action="find", path="/tmp", pattern="mcp-file*")["structuredContent"]["files"] == ["/tmp/mcp-file.txt"]
    assert any(one["name"] == "mcp-file.txt" for one in files(action="list", path="/tmp")["structuredContent"]["files"])
    seen = client.text("sandbox_str_replace_editor", command="view", path="/tmp/mcp-file.txt")
    assert seen == api.data("/v1/file/str_replace_editor", {"command": "view", "path": "/tmp/mcp-file.txt"})["output"]
    for wrong in ({"action": "write", "path": "x"}, {"action": "destroy", "path": "x"}, {"path": "x"}, {"action": "read", "path": 1}):
        result = files(**wrong)
        assert result["isError"] and result["content"][0]["text"].startswith("Wrong arguments: "), result
    gone = files(action="read", path="/no/such")
    assert gone["isError"] and "/no/such" in gone["content"][0]["text"]


def test_parameters_of_a_call_that_are_wrong(client):
    for params in ({}, {"name": 1}, {"name": "sandbox_get_context", "arguments": []}, {"name": "sandbox_get_context", "task": {}}, {"name": "x" * 1000}):
        assert client.ask("tools/call", params)["error"]["code"] == -32602


def test_the_same_over_rest(api):
    assert api.data("/v1/mcp/servers", method="GET") == ["sandbox", "browser", "markitdown"]
    assert [tool["name"] for tool in api.data("/v1/mcp/sandbox/tools", method="GET")["tools"]] == SANDBOX
    ran = api.data("/v1/mcp/sandbox/tools/sandbox_execute_bash", {"cmd": "echo rest"})
    assert ran["isError"] is False and ran["structuredContent"]["output"] == "rest"
    assert api.data("/v1/mcp/sandbox/tools/sandbox_get_context")["content"][0]["type"] == "text"
    assert api.post("/v1/mcp/nobody/tools/x").status_code == api.post("/v1/mcp/sandbox/tools/x").status_code == 404
    assert api.http.get("/v1/mcp/nobody/tools").status_code == 404
    assert api.http.post("/v1/mcp/sandbox/tools/sandbox_get_context", json=[1]).status_code == 422


def test_a_workspace_has_its_own_sessions_and_shell(api):
    name = {"X-Caisson-Workspace": "mcp-other"}
    api.data("/v1/workspaces", {"name": "mcp-other"})
    try:
        own, other = Client(api), Client(api, headers=name)
        own.call("sandbox_execute_bash", cmd="cd /tmp; echo secret > /tmp/mcp-secret")
        seen = other.call("sandbox_execute_bash", cmd="cat /tmp/mcp-secret; pwd")["structuredContent"]
        assert "secret\n" not in seen["output"] and "/tmp\n" not in seen["output"] + "\n"
        crossed = own.headers | name
        assert api.http.post("/mcp", json=message("ping"), headers=crossed).status_code == 404
    finally:
        api.http.delete("/v1/workspaces/mcp-other")


def test_a_batch_is_of_the_first_revision_alone(api):
    first = Client(api, LEGACY[0])
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    answer = first.post([message("ping", id_=1), note, message("tools/list", id_="two"), {"jsonrpc": "1.0", "id": 3},
                         message("initialize", {"protocolVersion": LEGACY[0]}, id_=4), message("no/such", id_=5)])
    assert answer.status_code == 200
    told = {part["id"]: part for part in answer.json()}
    assert told[1]["result"] == {} and "tools" in told["two"]["result"] and len(told) == 5
    assert (told[None]["error"]["code"], told[4]["error"]["code"], told[5]["error"]["code"]) == (-32600, -32600, -32601)
    assert first.post([note]).status_code == 202
    for wrong in ([], [message("ping")] * 65):
        assert first.post(wrong).status_code == 400
    assert first.post([message("ping")], **{"Mcp-Session-Id": "0" * 32}).status_code == 404
    assert Client(api).post([message("ping")]).json()["error"]["code"] == -32600


def test_a_credential_in_the_address_opens_nothing(api):
    for path in ("/mcp", "/v1/mcp"):
        refused = httpx.post(f"{api.url}{path}?api_key={api.key}", json=message("ping"), headers=ACCEPT, trust_env=False)
        assert refused.status_code == 401 and "resource_metadata" not in refused.headers["www-authenticate"]
    assert api.http.get("/.well-known/oauth-protected-resource/mcp").status_code == 404  # no issuer is configured


def test_clients_learn_who_issues_tokens(launch):
    server = launch(CAISSON_JWT_ISSUER="https://login.example.org/")
    refused = httpx.post(f"{server.url}/mcp", json=message("ping"), headers=ACCEPT, trust_env=False)
    where = f"{server.url}/.well-known/oauth-protected-resource/mcp"
    assert refused.status_code == 401 and refused.headers["www-authenticate"] == f'Bearer realm="caisson", resource_metadata="{where}"'
    wrong = httpx.post(f"{server.url}/mcp", json=message("ping"), headers=ACCEPT | {"Authorization": "Bearer x.y.z"}, trust_env=False)
    assert wrong.status_code == 401 and 'error="invalid_token"' in wrong.headers["www-authenticate"]
    told = httpx.get(where, trust_env=False).json()
    assert told["resource"] == f"{server.url}/mcp" and told["authorization_servers"] == ["https://login.example.org/"]
    assert told["bearer_methods_supported"] == ["header"] and "mcp" in told["scopes_supported"]
    token = httpx.post(f"{server.url}/v1/tokens", headers={"X-AIO-API-Key": server.key}, json={"label": "narrow", "seconds": 60, "scopes": ["bash"]},
                       trust_env=False).json()
    narrow = {"Authorization": f"Bearer {token['data']['token']}"}
    forbidden = httpx.post(f"{server.url}/mcp", json=message("ping"), headers=ACCEPT | narrow, trust_env=False)
    assert forbidden.status_code == 403 and 'error="insufficient_scope", scope="mcp"' in forbidden.headers["www-authenticate"]
