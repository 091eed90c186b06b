"""Autobahn's WebSocket suite (PyPI: autobahntestsuite, for Python 2.7) against our own stack, and through the preview proxy. CAISSON_WSTEST is its program, `wstest`;
compression is not offered, so its cases for that are left out."""
import json
import os
import shlex
import subprocess

import pytest
from launcher_process import BUILD

ECHO = BUILD / "tests/websocket/websocket-echo"


@pytest.fixture
def suite(tmp_path):
    """Runs the suite against an address: case -> (behaviour, behaviour at the close)."""
    program = os.environ.get("CAISSON_WSTEST")
    if not program:
        pytest.skip("CAISSON_WSTEST does not name Autobahn's wstest (it needs Python 2.7)")

    def run(url):
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps({"outdir": str(tmp_path / "reports"), "servers": [{"agent": "caisson", "url": url, "options": {}}],
                                    "cases": ["*"], "exclude-cases": ["12.*", "13.*"], "exclude-agent-cases": {}}))
        subprocess.run([*shlex.split(program), "-m", "fuzzingclient", "-s", spec], cwd=tmp_path, check=True, capture_output=True, timeout=300)
        found = json.loads((tmp_path / "reports/index.json").read_text())["caisson"]
        return {case: (one["behavior"], one["behaviorClose"]) for case, one in found.items()}

    return run


@pytest.fixture
def echo():
    """The port of a server that sends every message back, by the agent's own stack."""
    if not ECHO.exists():
        pytest.skip(f"{ECHO} is not built")
    with subprocess.Popen([ECHO, "0"], stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline())
        process.kill()


def failures(found):
    assert len(found) > 290
    return {case: how for case, how in found.items() if not set(how) <= {"OK", "INFORMATIONAL"}}


def test_no_case_fails_against_our_own_stack(suite, echo):
    assert failures(suite(f"ws://127.0.0.1:{echo}/")) == {}


def test_no_case_fails_through_the_preview_proxy(suite, api):
    if not ECHO.exists():
        pytest.skip(f"{ECHO} is not built")
    api.http.post("/v1/file/upload", data={"path": "/home/gem/websocket-echo"}, files={"file": ECHO.read_bytes()})
    started = api.bash("chmod +x ~/websocket-echo; (~/websocket-echo 9902 >/dev/null 2>&1 &); "
                       "for i in $(seq 300); do grep -qi :26AE /proc/net/tcp && break; sleep .1; done")
    try:
        assert failures(suite(f"ws{api.url[4:]}/proxy/9902/?api_key={api.key}")) == {}
    finally:
        api.post(f"/v1/bash/sessions/{started['session_id']}/close")
