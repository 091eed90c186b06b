"""Kernels and code with state outlive the agent: it is killed, and clients go on by id, with another one."""
import random
import secrets
import subprocess
import time

import pytest
from conftest import Api, eventually
from successor import cell, in_the_background, kill_agent, now_serving, printed


@pytest.fixture(scope="module")
def here(launch):
    return launch()


def begun(client, file):
    """Waits until code has made this file."""
    eventually(lambda: client.bash(f"test -e {file}")["exit_code"] == 0)


@pytest.fixture
def client(here, contract):
    return Api(here.url, here.key, contract)


def test_a_kernel_keeps_its_variables_and_its_count(here, client):
    session = client.data("/v1/jupyter/sessions/create", {"session_id": f"kept-{secrets.token_hex(3)}"})["session_id"]
    cell(client, session, "import os; x = 41; pid = os.getpid()")
    before = next(s for s in client.data("/v1/jupyter/sessions", method="GET")["sessions"].items() if s[0] == session)
    for _ in range(3):
        kill_agent(here)
    after = next(s for s in client.data("/v1/jupyter/sessions", method="GET")["sessions"].items() if s[0] == session)
    assert {k: v for k, v in after[1].items() if "last" not in k and "age" not in k} == {
        k: v for k, v in before[1].items() if "last" not in k and "age" not in k}
    got = cell(client, session, "print(x + 1, pid == os.getpid())")
    assert (got["status"], printed(got), got["execution_count"]) == ("ok", "42 True\n", 2), got
    assert cell(client, session, "1/0")["end"]["reason"] == "exit"


def test_a_kernel_goes_on_with_an_agent_that_the_operator_asked_for(here, client):
    session = f"restart-{secrets.token_hex(3)}"
    cell(client, session, "x = 'kept'")
    before = here.agent_pid
    subprocess.run([here.dir / "bin/caisson", "--run", here.dir / "run", "agent", "restart"], check=True, timeout=60)
    eventually(lambda: now_serving(here, before))
    assert printed(cell(client, session, "print(x)")) == "kept\n"


def test_a_cell_goes_on_without_the_agent_that_was_asked_and_the_next_one_waits(here, client):
    session, mark = f"cell-{secrets.token_hex(3)}", f"/tmp/{secrets.token_hex(4)}"
    cell(client, session, "import time; n = 0")
    asked = in_the_background(lambda: client.post("/v1/jupyter/execute", {"session_id": session, "timeout": 30, "code": (
        f"open('{mark}.begun', 'w')\nfor i in range(30):\n  n += 1; print('not yours', i); time.sleep(0.1)\nopen({mark!r}, 'w').write('done')")}))
    begun(client, mark + ".begun")
    time.sleep(0.3)
    kill_agent(here)
    asked.join(10)
    got = cell(client, session, f"print(n, open({mark!r}).read())")
    assert (got["status"], printed(got)) == ("ok", "30 done\n"), got


def test_a_flood_of_a_cell_is_no_answer_to_the_next(here, client):
    session = f"flood-{secrets.token_hex(3)}"
    cell(client, session, "import time")
    for _ in range(3):
        asked = in_the_background(lambda: client.post("/v1/jupyter/execute", {"session_id": session, "timeout": 30, "code": (
            "for i in range(2000):\n  print('x' * 2000)\n  if i % 100 == 0: time.sleep(0.05)")}))
        time.sleep(random.uniform(0.1, 0.7))
        kill_agent(here)
        asked.join(10)
        got = cell(client, session, "print('mine')")
        assert (got["status"], printed(got)) == ("ok", "mine\n"), got


def test_the_timeout_of_a_cell_holds_without_the_agent_that_was_asked(here, client):
    session = f"slow-{secrets.token_hex(3)}"
    cell(client, session, "import time; x = 'kept'")
    asked = in_the_background(lambda: client.post("/v1/jupyter/execute", {"session_id": session, "timeout": 2, "code": "time.sleep(60)"}))
    time.sleep(0.5)
    killed = time.monotonic()
    kill_agent(here)
    asked.join(10)
    assert printed(cell(client, session, "print(x)")) == "kept\n"
    assert time.monotonic() - killed < 45


def test_a_kernel_that_dies_meanwhile_is_gone(here, client):
    session = f"dies-{secrets.token_hex(3)}"
    cell(client, session, "import os, threading, time; x = 1")
    cell(client, session, "threading.Timer(0.05, os._exit, (3,)).start()")
    kill_agent(here)
    eventually(lambda: session not in client.data("/v1/jupyter/sessions", method="GET")["sessions"])
    assert cell(client, session, "x")["status"] == "error"  # a new one


def test_a_kernel_that_was_being_given_a_cell_is_lost_and_the_next_one_says_so(here, client):
    session = f"torn-{secrets.token_hex(3)}"
    cell(client, session, "import os, signal; x = 1; bridge = os.getppid()")
    cell(client, session, "import threading; threading.Timer(3, os.kill, (bridge, signal.SIGSTOP)).start()")
    time.sleep(5)
    asked = in_the_background(lambda: client.post("/v1/jupyter/execute", {"session_id": session, "code": "#" * 500_000}))
    time.sleep(3)
    kill_agent(here)
    asked.join(10)
    hints = [client.post("/v1/jupyter/execute", {"session_id": session, "code": "x"}).json()["hint"] for _ in range(2)]
    assert "lost with the agent" in hints[0] and hints[1] is None, hints


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_code_with_state_keeps_its_variables(here, client, language):
    def run(code, **more):
        if language == "javascript":
            return client.data("/v1/nodejs/execute", {"session_id": session, "code": code, **more})
        return client.data("/v1/code/execute", {"language": "python", "session_id": session, "code": code, **more})

    if language == "javascript":
        session = client.data("/v1/nodejs/sessions", {})["session_id"]
        said = lambda word: f"console.log({word})"  # noqa: E731
    else:
        session = f"code-{secrets.token_hex(3)}"
        said = lambda word: f"print({word})"  # noqa: E731
    run("x = 40" if language == "python" else "let x = 40")
    kill_agent(here)
    assert run(said("x + 2"))["stdout"] == "42\n"
    mark = f"/home/gem/{secrets.token_hex(4)}"
    slow = f"import time; open('{mark}', 'w')\nfor i in range(20): time.sleep(0.1); x += 1; print('not yours')" if language == "python" else (
        f"require('fs').writeFileSync('{mark}', '')\n"
        "for (let i = 0; i < 20; i++) { await new Promise(r => setTimeout(r, 100)); x += 1; console.log('not yours') }")
    asked = in_the_background(lambda: run(slow))
    begun(client, mark)
    time.sleep(0.3)
    kill_agent(here)
    asked.join(10)
    assert run(said("x"))["stdout"] == "60\n"
    endless = "while True: pass" if language == "python" else "while (true) {}"
    asked = in_the_background(lambda: run(endless, timeout=2))
    time.sleep(0.5)
    kill_agent(here)
    asked.join(10)
    got = run(said("x"))
    assert got["stdout"] == "60\n", got
