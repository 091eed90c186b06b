"""X-Caisson-Workspace and /v1/workspaces: what a request can see and touch is what its workspace has."""
import asyncio
import concurrent.futures
import json
import os
import signal

import pytest
from conftest import HEADER, NOT_FOUND, SKEL, Api, eventually, uid_of

websockets = pytest.importorskip("websockets")

NO_WORKSPACE = {"success": False, "message": "Workspace not found", "data": None}


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
    newer = int(websockets.__version__.split(".")[0]) >= 14  # where the argument has another name
    given = {"additional_headers" if newer else "extra_headers": headers}
    async with websockets.connect(address, open_timeout=60, **given) as socket:
        return json.loads(await asyncio.wait_for(socket.recv(), 60))


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
    assert (shown["disk"]["limit"], shown["idle_seconds"], shown["sessions"], shown["state"]) == (4 << 20, 60, 0, "ready")
    assert shown["disk"]["enforced_by"] == "tmpfs" and not shown["persistent"]
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
    assert one.bash("ls -A ~ /tmp")["stdout"] == "\n".join(["/home/gem:", *SKEL, "", "/tmp:", ""])


def test_a_request_under_way_ends_with_its_workspace(named):
    one, other = named(), named()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(lambda: one.post("/v1/bash/exec", {"command": "echo x > /tmp/begun; sleep 1000"}))
        eventually(lambda: one.bash("cat /tmp/begun")["stdout"] == "x\n")
        other.http.delete(f"/v1/workspaces/{one.workspace}")
        answer = running.result(60)
    assert answer.status_code == 200 and answer.json()["data"]["exit_code"] != 0


def test_workspaces_survive_the_agent_and_so_do_their_sessions(launch, here, contract):
    launcher = launch()
    one = Api(launcher.url, launcher.key, contract)
    one.data("/v1/workspaces", {"name": "kept"})
    one.http.headers[HEADER] = "kept"
    session = one.data("/v1/bash/sessions/create")["session_id"]
    one.bash("echo kept > ~/file", session_id=session)
    os.kill(launcher.agent_pid, signal.SIGKILL)
    launcher.wait_ready()
    assert one.bash("cat ~/file", session_id=session)["stdout"] == "kept\n"


def test_as_many_as_the_limit_says(launch, here, contract):
    launcher = launch(CAISSON_MAX_WORKSPACES="2")
    one = Api(launcher.url, launcher.key, contract)
    one.data("/v1/workspaces", {"name": "a"})
    refused = one.post("/v1/workspaces", {"name": "b"})
    assert refused.status_code == 429 and "2 workspaces" in refused.json()["message"]


CREATE = {"bash": ("/v1/bash/sessions/create", "session_id", "session_id"), "shell": ("/v1/shell/sessions/create", "id", "session_id")}


def run(client, kind, session, command):
    """Its output, of whichever of the two APIs."""
    if kind == "bash":
        return client.bash(command, session_id=session)["stdout"].strip()
    return client.shell(command, id=session)["output"].strip()


@pytest.mark.parametrize("kind", CREATE)
@pytest.mark.parametrize("which", ["default", "named"])
def test_a_private_session_has_files_and_loopback_of_its_own(api, named, kind, which):
    client = api if which == "default" else named()
    path, _, id_of = CREATE[kind]
    shared = client.data(path, {"isolation": "shared"})[id_of]
    private = client.data(path, {"isolation": "private"})[id_of]
    listen = "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",7791)); s.listen(); open(\"/tmp/up\",\"w\"); time.sleep(60)' >/dev/null 2>&1 &"
    run(client, kind, shared, f"rm -f /tmp/up; echo x > ~/of-all; echo x > /tmp/of-all; {listen} sleep 0")
    assert run(client, kind, shared, "until [ -e /tmp/up ]; do :; done; (exec 3<>/dev/tcp/127.0.0.1/7791) && echo reached") == "reached"
    assert run(client, kind, private, "ls -1A ~ /tmp") == "\n".join(["/home/gem:", *SKEL, "", "/tmp:"])
    assert run(client, kind, private, "(exec 3<>/dev/tcp/127.0.0.1/7791) 2>/dev/null || echo refused") == "refused"
    run(client, kind, private, "echo x > ~/of-one")
    assert run(client, kind, shared, "ls -A ~").count("of-one") == 0
    client.http.delete(f"/v1/shell/sessions/{shared}") if kind == "shell" else client.post(f"/v1/bash/sessions/{shared}/close")


@pytest.mark.parametrize("kind", CREATE)
def test_isolation_is_shown_and_attested(api, here, kind):
    path, name, id_of = CREATE[kind]
    for isolation in ("private", "shared"):
        session = api.data(path, {name: f"shown-{kind}-{isolation}", "isolation": isolation})[id_of]
        listed = [s for s in api.sessions() if s["label"] == session]
        assert [(s["workspace"], s["isolation"]) for s in listed] == [("default", isolation)]
        said = api.data(f"/v1/sessions/{session}/confinement", method="GET")["statement"]["session"]
        assert (said["workspace"], said["isolation"]) == ("default", isolation)


@pytest.mark.parametrize("kind", CREATE)
def test_a_session_that_exists_does_not_become_private(api, here, kind):
    path, name, id_of = CREATE[kind]
    api.data(path, {name: f"is-shared-{kind}"})
    answer = api.post(path, {name: f"is-shared-{kind}", "isolation": "private"})
    assert answer.status_code == 200 and not answer.json()["success"] and "isolation shared" in answer.json()["message"]
    assert api.data(path, {name: f"is-shared-{kind}"})[id_of] == f"is-shared-{kind}"


@pytest.mark.parametrize("kind", CREATE)
@pytest.mark.parametrize("value", ["none", "PRIVATE", "", 1, ["private"]])
def test_isolation_is_one_of_two_words(api, here, kind, value):
    assert api.post(CREATE[kind][0], {"isolation": value}).status_code == 422


def test_a_persistent_workspace_survives_a_restart(launch, here, contract, tmp_path):
    launcher = launch(CAISSON_WORKSPACES=str(tmp_path / "workspaces"))
    one = Api(launcher.url, launcher.key, contract)
    made = one.data("/v1/workspaces", {"name": "kept", "persistent": True, "disk_bytes": 8 << 20})
    assert made["persistent"] and made["disk"]["limit"] == 8 << 20 and made["disk"]["enforced_by"] in ("measured", "project_quota")
    headers = {HEADER: "kept"}
    assert one.post("/v1/bash/exec", {"command": "echo kept > ~/file"}, headers=headers).json()["data"]["exit_code"] == 0
    launcher.restart()
    one = Api(launcher.url, launcher.key, contract)
    assert one.post("/v1/bash/exec", {"command": "true"}, headers=headers).status_code == 404
    one.data("/v1/workspaces", {"name": "kept", "persistent": True})
    assert one.post("/v1/bash/exec", {"command": "cat ~/file"}, headers=headers).json()["data"]["stdout"] == "kept\n"
    assert one.http.delete("/v1/workspaces/kept").status_code == 200
    assert [path.name for path in (tmp_path / "workspaces").iterdir()] in ([], [".lock"])


def test_without_a_directory_persistent_is_403(api, here):
    answer = api.post("/v1/workspaces", {"name": "kept", "persistent": True})
    assert answer.status_code == 403 and "CAISSON_WORKSPACES" in answer.json()["message"]


def test_a_reset_is_the_first_day_again(api, here, named):
    one, other = named(disk_bytes=4 << 20, idle_seconds=77), named()
    other.bash("echo other > ~/file")
    one.bash("echo mine > ~/file; echo mine > /tmp/file; echo 'exit 5' > ~/.bashrc")
    one.data("/v1/sandbox/hooks", {"name": "last", "command": "true"})
    session, shell = one.data("/v1/bash/sessions/create")["session_id"], one.data("/v1/shell/sessions/create", {"id": "s"})["session_id"]
    before, uid = api.data(f"/v1/workspaces/{one.workspace}", method="GET"), uid_of(here, one.workspace)
    made = api.data(f"/v1/workspaces/{one.workspace}/reset")
    same = ("name", "idle_seconds", "persistent", "limits", "state")
    assert [made[f] for f in same] == [before[f] for f in same] and made["disk"]["limit"] == 4 << 20 and made["sessions"] == 0
    assert made["created_at"] > before["created_at"] and uid_of(here, one.workspace) > uid
    assert one.bash("ls -A ~ /tmp; id -u")["stdout"] == named().bash("ls -A ~ /tmp; id -u")["stdout"]
    for path, id in (("/v1/bash/output", {"session_id": session}), ("/v1/shell/view", {"id": shell})):
        assert one.post(path, id).json() == NOT_FOUND
    assert one.data("/v1/sandbox/hooks", method="GET") == []
    assert other.bash("cat ~/file")["stdout"] == "other\n"
    records = [json.loads(line) for line in (here.dir / "audit/launcher.ndjson").read_text().splitlines()]
    mine = [r for r in records if r["event"].startswith("workspace_") and one.workspace in json.dumps(r["workspace"])]
    assert [r["event"] for r in mine] == ["workspace_create", "workspace_end", "workspace_create"]
    assert [r["reason"] for r in mine if r["event"] == "workspace_end"] == ["reset"]


def test_a_request_during_a_reset_is_served_afterwards(api, named):
    one = named()
    one.bash("echo mine > ~/file")
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        reset = pool.submit(api.post, f"/v1/workspaces/{one.workspace}/reset")
        asked = [pool.submit(one.post, "/v1/bash/exec", {"command": "cat ~/file"}) for _ in range(4)]
    assert reset.result().status_code == 200
    for answer in asked:  # before it, ended by it, or after it: never the old file in the new workspace
        assert answer.result().status_code in (200, 404), answer.result().text
    assert one.bash("cat ~/file")["exit_code"] == 1


def test_a_persistent_one_is_empty_after_a_reset(launch, here, contract, tmp_path):
    launcher = launch(CAISSON_WORKSPACES=str(tmp_path / "workspaces"))
    one = Api(launcher.url, launcher.key, contract)
    one.data("/v1/workspaces", {"name": "kept", "persistent": True, "disk_bytes": 8 << 20})
    headers = {HEADER: "kept"}
    assert one.post("/v1/bash/exec", {"command": "mkdir -p ~/a/b; echo kept > ~/a/b/file"}, headers=headers).json()["data"]["exit_code"] == 0
    uid = (tmp_path / "workspaces/kept/home").stat().st_uid
    made = one.data("/v1/workspaces/kept/reset")
    assert made["persistent"] and made["disk"]["limit"] == 8 << 20
    assert list((tmp_path / "workspaces/kept/home").iterdir()) == [] and (tmp_path / "workspaces/kept/home").stat().st_uid > uid
    assert one.post("/v1/bash/exec", {"command": "ls -A ~"}, headers=headers).json()["data"]["stdout"].split() == SKEL


def test_the_default_cannot_be_reset_and_an_unknown_one_is_404(api, here):
    assert api.post("/v1/workspaces/default/reset").status_code == 403
    assert api.post("/v1/workspaces/nothing/reset").json() == NO_WORKSPACE
