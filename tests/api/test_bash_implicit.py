"""Bash sessions that exec made because a request named none: they end soon after their command, and their ids stay good."""
import pytest
from conftest import Api, eventually, finish
from successor import kill_agent


@pytest.fixture(scope="module")
def brief(launch):
    return launch(CAISSON_IMPLICIT_IDLE_SECONDS="2")


@pytest.fixture
def client(brief, contract):
    return Api(brief.url, brief.key, contract)


def living(client) -> set[str]:
    """Those that the launcher has."""
    return {s["label"] for s in client.sessions() if s.get("domain") == "bash"}


def listed(client) -> set[str]:
    return {s["session_id"] for s in client.data("/v1/bash/sessions", method="GET")}


def ended(client) -> str:
    """One that exec has made and that is over: whoever was idle before it has been looked at."""
    session = client.bash("true")["session_id"]
    eventually(lambda: session not in living(client))
    return session


def test_a_session_that_exec_made_ends_soon_after_its_command(client):
    assert ended(client) not in listed(client)


def test_its_output_can_be_read_and_its_id_used_again(client):
    made = client.bash("echo out; echo err >&2; exit 3", exec_dir="/usr")
    session = made["session_id"]
    asked = {"session_id": session, "command_id": made["command_id"]}
    before = client.data("/v1/bash/output", asked)
    eventually(lambda: session not in living(client))
    after = client.data("/v1/bash/output", asked)
    assert after == before and (after["stdout"], after["stderr"], after["command"]["exit_code"]) == ("out\n", "err\n", 3)
    client.bash("pwd; cat", session_id=session, async_mode=True)
    client.data("/v1/bash/write", {"session_id": session, "input": "in\n"})
    client.data("/v1/bash/write", {"session_id": session, "input": "\x04"})
    assert finish(client, session)["stdout"] == "/usr\nin\n"
    assert session in listed(client) & living(client)
    ended(client), ended(client)
    assert session in living(client), "somebody has come back to it"


def test_a_session_that_rests_can_be_closed_and_created(client):
    session = ended(client)
    assert client.data(f"/v1/bash/sessions/{session}/close") is None
    assert client.post("/v1/bash/exec", {"command": "true", "session_id": session}).status_code == 404
    session = ended(client)
    assert client.data("/v1/bash/sessions/create", {"session_id": session, "exec_dir": "/usr"})["working_dir"] == "/usr"
    assert client.bash("pwd", session_id=session)["stdout"] == "/usr\n"


def test_what_lives_on_in_it_keeps_it(client):
    made = client.bash("sleep 1000 </dev/null >/dev/null 2>&1 & echo $!")
    session = made["session_id"]
    ended(client), ended(client)
    assert session in living(client)
    other = client.bash(f"kill {made['stdout']}", session_id=session)
    assert (other["session_id"], other["exit_code"]) == (session, 0)


def test_it_ends_once_what_lived_on_has_ended(client):
    session = client.bash("sleep 4 </dev/null >/dev/null 2>&1 &")["session_id"]
    eventually(lambda: session not in living(client))


def test_a_session_that_was_created_stays(client):
    session = client.data("/v1/bash/sessions/create")["session_id"]
    client.bash("true", session_id=session)
    ended(client), ended(client)
    assert session in living(client) & listed(client)


def test_an_agent_that_follows_ends_it_as_well(brief, client):
    session = client.bash("true")["session_id"]
    kill_agent(brief)
    eventually(lambda: session not in living(client))
    assert session not in listed(client)
