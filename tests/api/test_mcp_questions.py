"""Questions of MCP servers up to 2025-11-25 to clients of 2026-07-28, which nobody can ask: they come as results, the call stays under way,
and goes on when the client comes back with its answers. Nobody else's request goes on with it."""
import concurrent.futures
import json
import os
import time

import httpx
import pytest
from conftest import Api, eventually
from mcp_client import Client, Stateless
from test_mcp_upstream import programs
from upstream import configured, granting, python

ASKED = {"elicitation": {}, "sampling": {}, "roots": {}}
NAMED = {"action": "accept", "content": {"username": "u", "email": "e@example.com"}}


@pytest.fixture(scope="module")
def hub(launch):
    return launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(
        every=python("everything", "2025-11-25"), hasty=python("everything", "2025-11-25", timeout=1), doomed=python("everything", "2025-11-25"),
        endless=python("hostile", "never"), newest=python("everything", "2026-07-28", revision="2026-07-28")))


@pytest.fixture(scope="module")
def api(hub, contract):
    return Api(hub.url, hub.key, contract)


@pytest.fixture(scope="module")
def client(api):
    return Stateless(api, capabilities=ASKED)


def bearer(api, label):
    token = api.data("/v1/tokens", {"label": label, "seconds": 600, "scopes": ["mcp"]})["token"]
    one = Api(api.url, "", api.contract)
    one.http.headers["Authorization"] = f"Bearer {token}"
    return one


class Round:
    """A call that was answered with questions."""

    def __init__(self, client, name, arguments, result):
        assert result["resultType"] == "input_required" and result["inputRequests"], result
        self.client, self.name, self.arguments, self.result = client, name, arguments, result
        self.state = result["requestState"]
        assert len(self.state) >= 32

    @property
    def keys(self):
        return list(self.result["inputRequests"])

    @property
    def question(self):
        assert len(self.keys) == 1
        return self.result["inputRequests"][self.keys[0]]

    def send(self, *answers, **changes):
        params = {"name": self.name, "arguments": self.arguments, "requestState": self.state, "inputResponses": dict(zip(self.keys, answers, strict=False))}
        return self.client.ask("tools/call", params | changes)

    def text(self, *answers):
        result = self.send(*answers)["result"]
        assert result["resultType"] == "complete", result
        return result["content"][0]["text"]

    def again(self, *answers):
        return Round(self.client, self.name, self.arguments, self.send(*answers)["result"])


def asks(client, name, **arguments):
    return Round(client, name, arguments, client.call(name, **arguments))


def wrong(answer):
    assert answer["error"]["code"] == -32602, answer
    return answer["error"]["message"]


def test_an_elicitation_comes_as_a_result_and_its_answer_ends_the_call(client):
    asked = asks(client, "every_test_elicitation", message="who?")
    assert asked.question["method"] == "elicitation/create" and asked.question["params"]["message"] == "who?"
    assert set(asked.question["params"]["requestedSchema"]["properties"]) == {"username", "email"}
    assert asked.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "caisson"
    text = asked.text(NAMED)
    assert "action=accept" in text and '"username": "u"' in text
    declined = asks(client, "every_test_elicitation", message="again?")
    assert "action=decline" in declined.text({"action": "decline"})


def test_a_sampling_question_also_without_a_stream(api, client):
    asked = asks(client, "every_test_sampling", prompt="this")
    assert asked.question["method"] == "sampling/createMessage" and asked.question["params"]["maxTokens"] == 100
    assert asked.text({"role": "assistant", "model": "m", "content": {"type": "text", "text": "heard"}}) == "LLM response: heard"
    request = client.request("tools/call", {"name": "every_test_sampling", "arguments": {"prompt": "this"}})
    request["headers"]["Accept"] = "application/json"
    assert api.http.post("/mcp", **request).json()["result"]["resultType"] == "input_required"


def test_rounds_each_with_a_state_that_is_used_once(client):
    first = asks(client, "every_test_rounds")
    assert first.question == {"method": "roots/list", "params": {}}
    second = first.again({"roots": [{"uri": "file:///here", "name": "here"}]})
    assert second.state != first.state and second.question["method"] == "elicitation/create" and "file:///here" in second.question["params"]["message"]
    assert "was used" in wrong(first.send({"roots": []}))
    assert "action=cancel" in second.text({"action": "cancel"})
    assert "was used" in wrong(second.send({"action": "accept"}))


def test_progress_goes_to_the_request_that_waits(client):
    request = {"name": "every_test_rounds", "arguments": {}}
    first = Round(client, "every_test_rounds", {}, client.ask("tools/call", request, progressToken="one")["result"])
    second = first.again({"roots": []})
    told = []
    params = request | {"requestState": second.state, "inputResponses": {second.keys[0]: NAMED}}
    sent = client.request("tools/call", params, progressToken="two")
    with client.api.http.stream("POST", "/mcp", **sent) as response:
        told = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: ")]
    assert [m["params"]["progressToken"] for m in told[:-1]] == ["two"] and told[-1]["result"]["resultType"] == "complete"


def test_what_the_client_does_not_offer_is_not_asked(api):
    for capabilities in ({}, {"elicitation": {}}, {"experimental": {"sampling": {}}}):
        error = Stateless(api, capabilities=capabilities).ask("tools/call", {"name": "every_test_sampling", "arguments": {"prompt": "this"}})["error"]
        assert "sampling/createMessage" in error["message"] and "input_required" not in json.dumps(error)
    given_up = asks(Stateless(api, capabilities=ASKED), "every_test_elicitation", message="who?")
    given_up.client = Stateless(api)
    assert "did not answer" in given_up.send()["error"]["message"]
    first = asks(Stateless(api, capabilities=ASKED), "every_test_rounds")
    first.client = Stateless(api, capabilities={"roots": {}})  # it does not offer any more what is asked next
    assert "elicitation/create" in first.send({"roots": []})["error"]["message"]


def test_a_state_is_of_one_credential_and_one_request(api, client):
    asked = asks(client, "every_test_elicitation", message="mine")
    foreign = Stateless(bearer(api, "other"), capabilities=ASKED)
    params = {"name": asked.name, "arguments": asked.arguments, "requestState": asked.state, "inputResponses": {asked.keys[0]: NAMED}}
    assert "belongs to another request" in wrong(foreign.ask("tools/call", params))
    assert wrong(asked.send(NAMED, arguments={"message": "another"})) and wrong(asked.send(NAMED, name="every_test_simple_text"))
    assert wrong(asked.send(NAMED, name="hasty_test_elicitation"))
    for state in ("", "0" * 32, asked.state[:-1], asked.state.upper() + "x", 7, ["x"], "x" * 100_000):
        assert wrong(asked.send(NAMED, requestState=state))
    assert api.post("/v1/workspaces", {"name": "apart"}).status_code == 200
    apart = client.request("tools/call", params)
    apart["headers"]["X-Caisson-Workspace"] = "apart"
    assert wrong(api.http.post("/mcp", **apart).json())
    api.http.delete("/v1/workspaces/apart")
    assert "mine" not in json.dumps(foreign.ask("tools/list"))
    assert "action=accept" in asked.text(NAMED)  # none of that used it


def test_responses_that_are_none_change_nothing(client):
    asked = asks(client, "every_test_elicitation", message="who?")
    for responses in ([], 7, "x", {asked.keys[0]: 12345}, {asked.keys[0]: None}, {asked.keys[0]: ["accept"]}):
        assert "inputResponses" in wrong(asked.send(inputResponses=responses))
    asked = asked.again()  # no answer: it is asked again
    assert asked.question["params"]["message"] == "who?"
    result = asked.send(inputResponses={asked.keys[0]: NAMED, "unknown": {"action": "accept"}})["result"]
    assert "action=accept" in result["content"][0]["text"]
    again = client.ask("tools/call", {"name": "every_test_simple_text", "arguments": {}, "inputResponses": {"unknown": {}}})
    assert again["result"]["resultType"] == "complete"


def test_the_time_of_the_server_does_not_count_while_the_client_is_away(client):
    asked = asks(client, "hasty_test_elicitation", message="take your time")  # its timeout is one second
    time.sleep(3)
    assert "action=accept" in asked.text(NAMED)


def test_parallel_calls_get_their_own_answers_and_copies_are_used_again(hub, client):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asked = list(pool.map(lambda number: asks(client, "every_test_elicitation", message=f"number {number}"), range(4)))
        assert [one.question["params"]["message"] for one in asked] == [f"number {number}" for number in range(4)]
        texts = list(pool.map(lambda pair: pair[1].text({"action": "accept", "content": {"username": str(pair[0])}}), enumerate(asked)))
    assert [f'"username": "{number}"' in text for number, text in enumerate(texts)] == [True] * 4
    before = programs(hub, "everything.py 2025-11-25")
    for _ in range(3):
        asks(client, "every_test_elicitation", message="one after another").text(NAMED)
    assert set(programs(hub, "everything.py 2025-11-25")) <= set(before)


def test_one_credential_has_eight_and_the_oldest_that_nobody_came_back_for_ends(api):
    one = Stateless(bearer(api, "many"), capabilities=ASKED)
    asked = [asks(one, "every_test_elicitation", message=f"number {number}") for number in range(9)]
    assert wrong(asked[0].send(NAMED))
    assert all("action=accept" in one.text(NAMED) for one in asked[1:])
    other = asks(Stateless(bearer(api, "another"), capabilities=ASKED), "every_test_elicitation", message="there is room")
    assert "action=accept" in other.text(NAMED)


def test_a_client_that_leaves_ends_the_call_and_its_copy(hub, api, client):
    assert client.call("endless_hello")["content"]
    idle = set(programs(hub, "hostile.py never"))  # that of the list, and that of this client's calls
    request = client.request("tools/call", {"name": "endless_act", "arguments": {}})
    with pytest.raises(httpx.ReadTimeout):
        api.http.post("/mcp", timeout=5, **request)
    left = eventually(lambda: idle - set(programs(hub, "hostile.py never")))
    assert len(left) == 1 and len(idle) == 2  # it may still ask: it serves no other call
    assert client.call("endless_hello")["content"]


def test_the_death_of_the_server_is_told(hub, api):
    client = Stateless(bearer(api, "mourner"), capabilities={"elicitation": {}})
    asked = asks(client, "doomed_test_elicitation", message="who?")
    before = set(programs(hub, "everything.py 2025-11-25"))
    for pid in before:
        os.kill(pid, 9)
    error = asked.send(NAMED)["error"]
    assert error["code"] == -32603 and "SIGKILL" in error["message"]
    assert "action=accept" in asks(client, "doomed_test_elicitation", message="again").text(NAMED)


def test_both_revisions_of_clients_and_servers_go_on_as_before(api, client):
    asked = client.call("newest_test_input_required_result_request_state")  # the server's own question and state
    assert list(asked["inputRequests"]) == ["confirm"]
    told = client.ask("tools/call", {"name": "newest_test_input_required_result_request_state", "arguments": {}, "requestState": asked["requestState"],
                                     "inputResponses": {"confirm": {"action": "accept", "content": {"ok": True}}}})
    assert told["result"]["content"][0]["text"] == "state-ok"
    legacy = Client(api, capabilities={"elicitation": {}})
    told = legacy.stream("tools/call", {"name": "every_test_elicitation", "arguments": {"message": "who?"}}, answer=lambda _: {"result": NAMED})
    assert told[0]["data"]["method"] == "elicitation/create" and "action=accept" in told[-1]["data"]["result"]["content"][0]["text"]
