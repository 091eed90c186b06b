"""The image as DeerFlow's provider starts it: no capability, no new privileges, at most 512 processes, and no key in any request. Its router
is a trusted peer; whoever else reaches the port needs the key. Its tools are those of tests/api/test_clients.py."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree

import httpx
import pytest

from conftest import ROOT, with_flags

FLAGS = ["--cap-drop=ALL", "--security-opt", "no-new-privileges", "--pids-limit", "512"]
HOST = "host.docker.internal"  # where its backend finds the container, when it is in one itself


def without_key(served) -> httpx.Client:
    return httpx.Client(base_url=served.started["url"], timeout=120, trust_env=False)


def seen_from(served) -> str:
    """This client's address as the server sees it, from its log."""
    found = []

    def logged():  # the engine writes it down a moment after the answer
        lines = [json.loads(line) for line in served.logs().splitlines() if line.startswith("{")]
        found[:] = [line["remote"] for line in lines if line["path"] == "/v1/sandbox"]
        return found

    served.eventually(logged)
    return found[0]


def status_inside(served, path: str) -> int:
    """Of a request from another address: the container's own loopback."""
    return int(served.exec("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"http://127.0.0.1:8080{path}").stdout)


@pytest.fixture(scope="module")
def untrusted(engine, image):
    with with_flags(engine, image, "caisson-deerflow-untrusted", FLAGS) as served:
        served.eventually(served.ready)
        yield served


@pytest.fixture(scope="module")
def deerflow(engine, image, untrusted):
    with without_key(untrusted) as http:
        assert http.get("/v1/sandbox").status_code == 401
    peer = seen_from(untrusted)
    assert peer != "127.0.0.1"
    settings = ["-e", f"CAISSON_TRUSTED_PEERS={peer}", "-e", f"CAISSON_ALLOW_HOST={HOST}"]
    with with_flags(engine, image, "caisson-deerflow", [*FLAGS, *settings], key="") as served:  # the launcher makes one
        served.eventually(served.ready)
        served.peer = peer
        yield served


def test_without_the_setting_its_requests_are_refused(untrusted):
    with without_key(untrusted) as http:
        assert http.get("/v1/sandbox").status_code == 401
        assert http.post("/v1/shell/exec", json={"command": "true"}).status_code == 401


def test_its_poll_is_answered_without_a_key_from_the_peer_and_from_nowhere_else(deerflow):
    with without_key(deerflow) as http:
        assert http.get("/v1/sandbox").status_code == 200
        assert http.get("/v1/sandbox", headers={"Host": HOST}).status_code == 200
        assert http.get("/v1/sandbox", headers={"Host": "rebound.example"}).status_code == 403
    assert status_inside(deerflow, "/v1/sandbox") == 401


def test_probes_of_kubernetes_need_no_key_from_any_address(untrusted, deerflow):
    for served in (untrusted, deerflow):
        with without_key(served) as http:
            for path in ("/readyz", "/healthz"):
                answer = http.get(path, headers={"User-Agent": "kube-probe/1.31", "Accept": "*/*", "Connection": "close"})
                assert answer.status_code == 200 and answer.json()["success"]
                assert status_inside(served, path) == 200


def test_commands_and_files_work_without_a_key(deerflow):
    with without_key(deerflow) as http:
        home = http.get("/v1/sandbox").json()["home_dir"]
        written = http.post("/v1/file/write", json={"file": f"{home}/given.txt", "content": "given\n"}).json()
        ran = http.post("/v1/shell/exec", json={"command": "cat given.txt; pwd", "exec_dir": home}).json()["data"]
        bash = http.post("/v1/bash/exec", json={"command": f"echo $X >> {home}/given.txt", "env": {"X": "more"}}).json()["data"]
        read = http.post("/v1/file/read", json={"file": f"{home}/given.txt"}).json()["data"]
    assert written["success"], written
    assert ran["output"].splitlines() == ["given", home] and bash["exit_code"] == 0, (ran, bash)
    assert read["content"] == "given\nmore\n"


def test_its_tools_work_through_the_sdk(deerflow, tmp_path):
    pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")
    environment = {**os.environ, "CAISSON_URL": deerflow.started["url"]}
    environment.pop("CAISSON_KEY", None)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", tmp_path / "results.xml", "-k",
                           "deer_flow", ROOT / "tests/api/test_clients.py"], env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = list(xml.etree.ElementTree.parse(tmp_path / "results.xml").iter("testcase"))
    assert len(cases) >= 14 and not [case.get("name") for case in cases if len(case)]


def test_the_statement_names_the_tier_and_the_open_door(deerflow):
    with without_key(deerflow) as http:
        statement = http.get("/v1/attestation").json()["data"]["statement"]
    assert statement["tier"] == "T1" and statement["why_not_higher"]
    assert statement["outer"]["no_new_privs"] and set(statement["outer"]["capabilities"]["effective"]) == {"0"}
    bits = 128 if ":" in deerflow.peer else 32
    assert statement["front_door"] == {"key_required": True, "trusted_peers": {"count": 1, "ranges": [f"{deerflow.peer}/{bits}"]}}
