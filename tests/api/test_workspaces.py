"""X-Caisson-Workspace and /v1/workspaces: what a request can see and touch is what its workspace has."""
import asyncio
import concurrent.futures
import json
import os
import secrets
import signal

import pytest
from conftest import NOT_FOUND, Api, eventually

websockets = pytest.importorskip("websockets")

NO_WORKSPACE = {"success": False, "message": "Workspace not found", "data": None}
HEADER = "X-Caisson-Workspace"


@pytest.fixture(scope="module")
def here(native):
    """The native launcher, where it can keep workspaces apart."""
    answer = Api(native.url, native.key).post("/v1/workspaces", {"name": "probe"})
    if answer.status_code == 403:
        pytest.skip(f"refused here: {answer.json()['message']}")
    assert answer.status_code == 200, answer.text
    Api(native.url, native.key).http.delete("/v1/workspaces/probe")
    return native


@pytest.fixture
def named(here, contract):
    """named(): a client whose requests name a new workspace."""
    made = []

    def create(**fields) -> Api:
        name = "w" + secrets.token_hex(4)
        one = Api(here.url, here.key, contract)
        one.data("/v1/workspaces", {"name": name, **fields})
        one.http.headers[HEADER] = one.workspace = name
        made.append(one)
        return one

    yield create
    for one in made:
        one.http.delete(f"/v1/workspaces/{one.workspace}")


def test_files_are_a_workspaces_own(api, named):
    one, other = named(), named()
    for place in ("~", "/tmp"):
        assert one.bash(f"echo here > {place}/only-mine; cat {place}/only-mine")["stdout"] == "here\n"
        assert one.shell(f"cat {place}/only-mine")["output"] == "here"
        assert other.bash(f"cat {place}/only-mine")["exit_code"] == 1
        assert api.bash(f"cat {place}/only-mine")["exit_code"] == 1


def test_no_header_and_default_are_the_same_workspace(api, here):
    session = api.data("/v1/bash/sessions/create")["session_id"]
    listed = api.http.get("/v1/bash/sessions", headers={HEADER: "default"}).json()["data"]
    assert session in json.dumps(listed)
    api.post(f"/v1/bash/sessions/{session}/close")


USES = {
    "bash output": ("POST", "/v1/bash/output", {"session_id": "ID"}),
    "bash write": ("POST", "/v1/bash/write", {"session_id": "ID", "input": "x"}),
    "bash kill": ("POST", "/v1/bash/kill", {"session_id": "ID"}),
    "bash close": ("POST", "/v1/bash/sessions/ID/close", {}),
    "confinement": ("GET", "/v1/sessions/ID/confinement", None),
}


@pytest.mark.parametrize("use", USES)
def test_a_bash_session_of_one_does_not_exist_in_another(api, named, use):
    method, path, body = json.loads(json.dumps(USES[use]))
    one, other = named(), named()
    session = one.data("/v1/bash/sessions/create")["session_id"]
    path, body = path.replace("ID", session), body and {k: v.replace("ID", session) for k, v in body.items()}
    for stranger in (other, api):
        answer = stranger.http.request(method, path, json=body)
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert session in one.http.get("/v1/bash/sessions").text
    for stranger in (other, api):
        assert session not in stranger.http.get("/v1/bash/sessions").text


SHELL_USES = {
    "view": ("POST", "/v1/shell/view", {"id": "ID"}),
    "wait": ("POST", "/v1/shell/wait", {"id": "ID"}),
    "write": ("POST", "/v1/shell/write", {"id": "ID", "input": "x", "press_enter": True}),
    "kill": ("POST", "/v1/shell/kill", {"id": "ID"}),
    "update": ("POST", "/v1/shell/sessions/update", {"id": "ID"}),
    "delete": ("DELETE", "/v1/shell/sessions/ID", None),
}


@pytest.mark.parametrize("use", SHELL_USES)
def test_a_shell_session_of_one_does_not_exist_in_another(api, named, use):
    method, path, body = SHELL_USES[use]
    one = named()
    session = one.data("/v1/shell/sessions/create")["session_id"]
    body = body and {k: session if v == "ID" else v for k, v in body.items()}
    answer = api.http.request(method, path.replace("ID", session), json=body)
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert session in one.http.get("/v1/shell/sessions").text and session not in api.http.get("/v1/shell/sessions").text


def test_one_id_is_two_sessions_in_two_workspaces(api, named):
    one, other = named(), named()
    for client, word in ((one, "one"), (other, "other")):
        client.data("/v1/shell/sessions/create", {"id": "same"})
        client.shell(f"x={word}", id="same")
    assert [c.shell("echo $x", id="same")["output"] for c in (one, other)] == ["one", "other"]


def test_closing_all_closes_ones_own(named):
    one, other = named(), named()
    kept = one.data("/v1/shell/sessions/create")["session_id"]
    other.data("/v1/shell/sessions/create")
    assert other.http.delete("/v1/shell/sessions").json()["message"] == "Closed 1 sessions"
    assert kept in one.http.get("/v1/shell/sessions").text


async def first_message(client: Api, session: str) -> dict:
    """Of the terminal's WebSocket."""
    headers = {"X-AIO-API-Key": client.key} | ({HEADER: client.workspace} if hasattr(client, "workspace") else {})
    address = client.url.replace("http", "ws") + f"/v1/shell/ws?session_id={session}"
    async with websockets.connect(address, extra_headers=headers) as socket:
        return json.loads(await asyncio.wait_for(socket.recv(), 10))


def test_a_terminal_over_a_websocket_is_found_through_its_workspace_alone(api, named):
    one = named()
    session = one.data("/v1/shell/sessions/create")["session_id"]
    assert asyncio.run(first_message(one, session)) == {"type": "session_id", "data": session}
    assert asyncio.run(first_message(api, session)) == {"type": "error", "data": "Session not found"}


def test_an_event_stream_runs_in_its_workspace(named):
    one = named()
    one.bash("echo streamed > /tmp/it")
    answer = one.post("/v1/shell/exec", {"command": "cat /tmp/it"}, headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream") and "streamed" in answer.text


@pytest.mark.parametrize("name", ["nowhere", "", "../default", "DEFAULT", "x" * 5000])
@pytest.mark.parametrize("path", ["/v1/bash/exec", "/v1/shell/exec"])
def test_an_unknown_workspace_is_404(api, here, name, path):
    answer = api.post(path, {"command": "true"}, headers={HEADER: name})
    assert (answer.status_code, answer.json()) == (404, NO_WORKSPACE)


def test_two_headers_are_400(api, here):
    with api.raw() as raw:
        raw.send(api.request("GET /v1/bash/sessions", "", f"{HEADER}: default", f"{HEADER}: other"))
        assert raw.answer().status == 400


def test_without_a_key_the_header_tells_nothing(here):
    stranger = Api(here.url, "")
    for name in ("default", "nowhere"):
        assert stranger.http.get("/v1/bash/sessions", headers={HEADER: name}).status_code == 401
    assert stranger.http.get("/v1/workspaces").status_code == 401


def test_list_get_and_delete(api, named):
    one = named(disk_bytes=4 << 20, idle_seconds=60)
    shown = api.data(f"/v1/workspaces/{one.workspace}", method="GET")
    assert (shown["disk_bytes"], shown["idle_seconds"], shown["sessions"], shown["state"]) == (4 << 20, 60, 0, "ready")
    names = [w["name"] for w in api.data("/v1/workspaces", method="GET")["workspaces"]]
    assert "default" in names and one.workspace in names
    one.bash("true")
    assert api.data(f"/v1/workspaces/{one.workspace}", method="GET")["sessions"] == 1
    assert api.http.delete(f"/v1/workspaces/{one.workspace}").status_code == 200
    assert api.http.get(f"/v1/workspaces/{one.workspace}").status_code == 404
    answer = one.post("/v1/bash/exec", {"command": "true"})
    assert (answer.status_code, answer.json()) == (404, NO_WORKSPACE)


REFUSED = {
    "upper case": ({"name": "Abc"}, 422),
    "a slash": ({"name": "a/b"}, 422),
    "64 bytes": ({"name": "x" * 64}, 422),
    "none": ({}, 422),
    "unknown member": ({"name": "x", "root": True}, 422),
    "too large a disk": ({"name": "x", "disk_bytes": 1 << 60}, 422),
    "the default": ({"name": "default"}, 409),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_workspace_is_refused(api, here, what):
    body, status = REFUSED[what]
    answer = api.post("/v1/workspaces", body)
    assert answer.status_code == status, answer.text
    assert answer.json().get("detail") or answer.json()["message"]


def test_a_second_one_of_the_name_is_409(api, named):
    assert api.post("/v1/workspaces", {"name": named().workspace}).status_code == 409


def test_the_default_cannot_be_deleted_and_an_unknown_one_is_404(api, here):
    assert api.http.delete("/v1/workspaces/default").status_code == 403
    assert (api.http.delete("/v1/workspaces/nowhere").status_code, api.http.get("/v1/workspaces/nowhere").status_code) == (404, 404)


def test_what_expires_is_gone_for_the_agent_too(api, named):
    one = named(idle_seconds=1)
    assert eventually(lambda: one.http.get("/v1/bash/sessions").status_code == 404)
    assert api.http.get(f"/v1/workspaces/{one.workspace}").status_code == 404


def test_the_name_can_be_used_again_and_nothing_of_the_old_one_is_there(named):
    one = named()
    session = one.data("/v1/bash/sessions/create")["session_id"]
    one.bash("echo x > ~/left", session_id=session)
    one.http.delete(f"/v1/workspaces/{one.workspace}")
    one.data("/v1/workspaces", {"name": one.workspace})
    assert one.post("/v1/bash/output", {"session_id": session}).status_code == 404
    assert one.bash("ls -A ~ /tmp")["stdout"] == "/home/gem:\n\n/tmp:\n"


def test_a_request_under_way_ends_with_its_workspace(named):
    one, other = named(), named()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(lambda: one.post("/v1/bash/exec", {"command": "echo x > /tmp/begun; sleep 1000"}))
        eventually(lambda: one.bash("cat /tmp/begun")["stdout"] == "x\n")
        other.http.delete(f"/v1/workspaces/{one.workspace}")
        answer = running.result(20)
    assert answer.status_code == 200 and answer.json()["data"]["exit_code"] != 0


def test_workspaces_survive_the_agent_and_its_sessions_do_not(launch, here, contract):
    launcher = launch()
    one = Api(launcher.url, launcher.key, contract)
    one.data("/v1/workspaces", {"name": "kept"})
    one.http.headers[HEADER] = "kept"
    session = one.data("/v1/bash/sessions/create")["session_id"]
    one.bash("echo kept > ~/file", session_id=session)
    os.kill(launcher.agent_pid, signal.SIGKILL)
    launcher.wait_ready()
    assert one.post("/v1/bash/output", {"session_id": session}).status_code == 404
    assert one.bash("cat ~/file")["stdout"] == "kept\n"


def test_as_many_as_the_limit_says(launch, here, contract):
    launcher = launch(CAISSON_MAX_WORKSPACES="2")
    one = Api(launcher.url, launcher.key, contract)
    one.data("/v1/workspaces", {"name": "a"})
    refused = one.post("/v1/workspaces", {"name": "b"})
    assert refused.status_code == 429 and "2 workspaces" in refused.json()["message"]
