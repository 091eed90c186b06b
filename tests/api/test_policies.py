"""GET /v1/policies, GET /v1/policies/{domain}, POST /v1/policies/reload."""
import json
import subprocess
import time

import pytest

from conftest import Api


@pytest.fixture
def own(launch):
    """A launcher whose policies may be changed."""
    launcher = launch()
    return launcher, Api(launcher.url, launcher.key)


def reload(api):
    """A client may ask once a second: asks until it is heard."""
    for _ in range(50):
        answer = api.post("/v1/policies/reload")
        assert answer.status_code == 200
        if "reloaded a moment ago" not in answer.json()["message"]:
            return answer.json()
        time.sleep(0.1)
    raise AssertionError("never heard")


def test_the_policies_in_force_are_listed(api):
    data = api.data("/v1/policies", method="GET")
    assert len(data["digest"]) == 64 and isinstance(data["preset"], str) and isinstance(data["refused"], dict)
    assert {"bash", "shell"} <= set(data["domains"]) and len(data["domains"]["bash"]["digest"]) == 64


def test_one_policy_is_told_whole_with_its_reasons(api):
    data = api.data("/v1/policies/bash", method="GET")
    assert data["domain"] == "bash" and data["limits"]["processes"] > 0 and data["why"]["/network"]
    assert data["digest"] == api.data("/v1/policies", method="GET")["domains"]["bash"]["digest"]


@pytest.mark.parametrize("domain", ["bash", "file", "code-server"])
def test_the_score_is_that_of_explain(own, domain):
    launcher, api = own
    explained = subprocess.run([launcher.dir / "bin/caisson", "--json", "--policies", launcher.dir / "policies", "policy", "explain", domain],
                               capture_output=True, text=True, check=True)
    score = api.data(f"/v1/policies/{domain}", method="GET")["score"]
    assert score == json.loads(explained.stdout)["score"] and score["deductions"]


@pytest.mark.parametrize("name", ["none", "..", "%2e%2e%2fbash", "bash%00", "x" * 200])
def test_a_domain_that_is_not_there_is_404(api, name):
    answer = api.http.get(f"/v1/policies/{name}")
    assert answer.status_code in (400, 404) and answer.json().get("success", False) is False


def test_a_key_is_asked(api):
    if not api.key:
        pytest.skip("the server under test asks no key")
    for method, path in (("GET", "/v1/policies"), ("GET", "/v1/policies/bash"), ("POST", "/v1/policies/reload")):
        assert api.http.request(method, path, headers={"X-AIO-API-Key": "wrong"}).status_code == 401


def test_a_reload_tells_old_and_new_and_leaves_sessions_alone(own):
    launcher, api = own
    running = api.data("/v1/bash/sessions/create")["session_id"]
    before = api.data("/v1/policies", method="GET")["digest"]
    file = launcher.dir / "policies" / "bash.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"umask": "077"}))
    answer = reload(api)
    assert answer["success"] and answer["data"]["old"] == before and answer["data"]["new"] != before
    assert api.data("/v1/policies", method="GET")["digest"] == answer["data"]["new"]
    assert api.bash("umask", session_id=running)["stdout"] == "0022\n" and api.bash("umask")["stdout"] == "0077\n"


def test_a_broken_policy_is_refused_whole_with_every_problem(own):
    launcher, api = own
    before = api.data("/v1/policies", method="GET")
    (launcher.dir / "policies" / "bash.json").write_text('{"extends": "base",\n"limits": {"procesess": 1}, "umask": "9"}')
    answer = reload(api)
    assert answer["success"] is False and "old ones stay" in answer["message"]
    assert len(answer["data"]["problems"]) == 2 and "meant 'processes'?" in answer["data"]["problems"][0]
    assert api.data("/v1/policies", method="GET") == before and api.bash("echo still here")["stdout"] == "still here\n"


def test_a_client_cannot_keep_the_launcher_reloading(own):
    _, api = own
    reload(api)
    answers = [api.post("/v1/policies/reload").json() for _ in range(5)]
    assert any(not a["success"] and "reloaded a moment ago" in a["message"] for a in answers)
