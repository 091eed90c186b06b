"""Sessions outlive the agent: it is killed, and clients go on by id, with another one."""
import hashlib
import os
import pathlib
import random
import re
import secrets
import signal
import subprocess
import threading
import time

import httpx
import pytest
from conftest import HEADER, Api, eventually, finish
from successor import agent_or_none, kill_agent, now_serving, printed, start, whole_output

FULL = os.environ.get("CAISSON_TEST_FULL") == "1"


@pytest.fixture(scope="module")
def here(launch):
    return launch()


@pytest.fixture
def client(here, contract):
    return Api(here.url, here.key, contract)


def test_a_running_command_goes_on_and_its_output_is_whole(here, client):
    session, command = start(client, "for i in $(seq 400); do echo line $i; echo err $i >&2; sleep 0.005; done; exit 3")
    time.sleep(0.3)
    for _ in range(3):
        kill_agent(here)
        time.sleep(0.2)
    out, err, said = whole_output(client, session, command)
    assert out == "".join(f"line {i}\n" for i in range(1, 401))
    assert err == "".join(f"err {i}\n" for i in range(1, 401))
    assert (said["status"], said["exit_code"]) == ("completed", 3)


def test_a_flood_loses_and_doubles_nothing(here, client):
    session, command = start(client, "for i in $(seq 40); do seq $((i * 2500 - 2499)) $((i * 2500)); sleep 0.05; done")
    for _ in range(4):
        time.sleep(random.uniform(0.05, 0.4))
        kill_agent(here)
    out, _, said = whole_output(client, session, command)
    assert out == "".join(f"{i}\n" for i in range(1, 100_001))
    assert said["status"] == "completed"


def test_what_is_over_is_remembered_with_how_it_ended(here, client):
    session, command = start(client, "echo out; echo err >&2; kill -SEGV $$")
    finish(client, session)
    before = client.data("/v1/bash/output", {"session_id": session, "command_id": command})
    kill_agent(here)
    assert client.data("/v1/bash/output", {"session_id": session, "command_id": command}) == before


def test_a_command_that_ends_while_there_is_no_agent(here, client):
    session, command = start(client, "echo begins; sleep 0.4; echo ends; exit 9")
    time.sleep(0.2)
    before = here.agent_pid
    binary = here.dir / "bin/caisson-agent"
    binary.rename(binary.with_suffix(".away"))
    os.kill(before, signal.SIGKILL)
    time.sleep(1)
    binary.with_suffix(".away").rename(binary)
    eventually(lambda: now_serving(here, before))
    out, _, said = whole_output(client, session, command)
    assert (out, said["status"], said["exit_code"]) == ("begins\nends\n", "completed", 9)


def test_a_session_keeps_its_directory_its_id_and_its_count(here, client):
    session, _ = start(client, "mkdir -p deep && cd deep", exec_dir="/tmp")
    finish(client, session)
    before = next(s for s in client.data("/v1/bash/sessions", method="GET") if s["session_id"] == session)
    kill_agent(here)
    after = next(s for s in client.data("/v1/bash/sessions", method="GET") if s["session_id"] == session)
    assert {k: after[k] for k in ("working_dir", "created_at", "command_count")} == {
        k: before[k] for k in ("working_dir", "created_at", "command_count")}
    assert client.data("/v1/bash/exec", {"session_id": session, "command": "pwd"})["stdout"] == "/tmp\n"


def test_input_and_signals_reach_a_command_of_the_agent_before(here, client):
    session, command = start(client, "read line; echo got $line; cat >/dev/null; echo eof; while :; do sleep 0.05; done")
    kill_agent(here)
    client.data("/v1/bash/write", {"session_id": session, "command_id": command, "input": "hello\n"})
    client.data("/v1/bash/write", {"session_id": session, "command_id": command, "input": "\x04"})
    eventually(lambda: "eof" in client.data("/v1/bash/output", {"session_id": session, "command_id": command})["stdout"])
    kill_agent(here)
    time.sleep(0.2)
    client.data("/v1/bash/kill", {"session_id": session, "signal": "SIGTERM"})
    out, _, said = whole_output(client, session, command)
    assert (out, said["status"]) == ("got hello\neof\n", "killed")


def test_a_command_with_input_that_it_had_not_read_ends_and_says_so(here, client):
    session, command = start(client, "sleep 300; cat | wc -c")
    client.data("/v1/bash/write", {"session_id": session, "command_id": command, "input": "x" * 500_000})
    kill_agent(here)
    _, _, said = whole_output(client, session, command)
    assert (said["status"], said["end"]["reason"], said["end"]["cause"]) == ("killed", "agent", "agent_restart")


def test_hard_timeouts_hold(here, client):
    session, command = start(client, "sleep 60", hard_timeout=2)
    kill_agent(here)
    said = whole_output(client, session, command)[2]
    assert (said["status"], said["end"]["limit"], said["end"]["allowed"]) == ("timed_out", "hard_timeout_ms", 2000)


def test_a_shell_keeps_its_variables_and_goes_on(here, client):
    def run(command, **more):
        return client.data("/v1/shell/exec", {"id": session, "command": command, **more})

    session = client.data("/v1/shell/sessions/create")["session_id"]
    run("export MARK=there; cd /tmp")
    kill_agent(here)
    got = run("echo $MARK $PWD")
    assert (got["output"], got["exit_code"]) == ("there /tmp", 0)
    run("for i in $(seq 100); do echo shell $i; sleep 0.02; done", async_mode=True)
    time.sleep(0.4)
    kill_agent(here)
    got = client.data("/v1/shell/wait", {"id": session, "seconds": 100})
    got = client.data("/v1/shell/view", {"id": session})
    assert got["output"].splitlines()[-100:] == [f"shell {i}" for i in range(1, 101)] or "shell 100" in got["output"], got
    lines = re.findall(r"^shell (\d+)$", got["output"].replace("\r", ""), re.M)
    assert [int(n) for n in lines] == list(range(1, 101))
    assert run("echo $MARK")["output"] == "there"


def test_an_agent_that_is_killed_while_it_takes_up_loses_nothing(here, client):
    session = client.data("/v1/shell/sessions/create")["session_id"]
    client.data("/v1/shell/exec", {"id": session, "command": "MARK=there"})
    bash, command = start(client, "for i in $(seq 100); do echo $i; sleep 0.1; done")
    for n in range(12):  # two in a row: after the third what was left is dropped
        before = here.agent_pid
        os.kill(before, signal.SIGKILL)
        after = eventually(lambda: (pid := agent_or_none(here)) and pid != before and pid)
        time.sleep(n * 0.008)
        os.kill(after, signal.SIGKILL)
        eventually(lambda: now_serving(here, after))
        assert client.data("/v1/shell/exec", {"id": session, "command": "echo $MARK"})["output"] == "there", n
    assert whole_output(client, bash, command)[0] == "".join(f"{i}\n" for i in range(1, 101))


def test_commands_that_wait_in_a_shells_queue_run_once(here, client):
    session = client.data("/v1/shell/sessions/create")["session_id"]
    name = secrets.token_hex(4)
    for i in range(4):
        client.data("/v1/shell/exec", {"id": session, "command": f"echo {i} >>/tmp/{name}; sleep 0.4", "async_mode": True})
    kill_agent(here)
    ran = eventually(lambda: (got := client.data("/v1/bash/exec", {"command": f"cat /tmp/{name}"})["stdout"]).count("\n") == 4 and got)
    assert ran == "0\n1\n2\n3\n"


def test_sessions_of_other_workspaces_stay_theirs(here, contract):
    plain = Api(here.url, here.key, contract)
    if plain.post("/v1/workspaces", {"name": "outlive"}).status_code != 200:
        pytest.skip("no workspaces here")
    named = Api(here.url, here.key, contract)
    named.http.headers[HEADER] = "outlive"
    session, command = start(named, "echo mine; sleep 0.5; echo still")
    kill_agent(here)
    assert whole_output(named, session, command)[0] == "mine\nstill\n"
    assert plain.post("/v1/bash/output", {"session_id": session}).status_code == 404
    plain.http.delete("/v1/workspaces/outlive")


def test_hooks_are_still_registered(here, client):
    hook = {"name": "outlives", "event": "shutdown", "command": "echo end", "timeout": 3, "priority": 7}
    client.data("/v1/sandbox/hooks", hook)
    client.data("/v1/sandbox/hooks", {**hook, "name": "goes"})
    client.http.delete("/v1/sandbox/hooks/goes")
    before = client.data("/v1/sandbox/hooks", method="GET")
    kill_agent(here)
    assert client.data("/v1/sandbox/hooks", method="GET") == before
    assert [h["name"] for h in before] == ["outlives"]
    client.http.delete("/v1/sandbox/hooks/outlives")
    kill_agent(here)
    assert client.data("/v1/sandbox/hooks", method="GET") == []


def test_a_watch_goes_on_and_says_that_it_may_have_missed_something(here, client):
    client.data("/v1/bash/exec", {"command": "mkdir -p /tmp/watched"})
    watch = client.data("/v1/file/watch", {"path": "/tmp/watched", "recursive": True, "debounce_ms": 50})["watcher_id"]
    client.data("/v1/bash/exec", {"command": "touch /tmp/watched/before"})

    def events(cursor):
        return client.data(f"/v1/file/watch/{watch}/poll", {"cursor": cursor})

    got = eventually(lambda: (e := events(0))["events"] and e)
    cursor = got["cursor"]
    kill_agent(here)
    got = events(cursor)
    assert got["overflow"] and got["cursor"] > cursor, got
    cursor = got["cursor"]

    def touched():
        client.data("/v1/bash/exec", {"command": "date +%N >/tmp/watched/after"})
        return [e for e in events(cursor)["events"] if e["path"].endswith("/after")]

    assert eventually(touched)


def test_a_restart_is_asked_for_by_the_operator(here, client):
    session, command = start(client, "echo a; sleep 1; echo b")
    before = here.agent_pid
    subprocess.run([here.dir / "bin/caisson", "--run", here.dir / "run", "agent", "restart"], check=True, timeout=60)
    eventually(lambda: now_serving(here, before))
    assert whole_output(client, session, command)[0] == "a\nb\n"


def test_sighup_replaces_an_agent_whose_program_is_another(here, client):
    session, command = start(client, "echo a; sleep 1; echo b")
    before = here.agent_pid
    os.kill(here.pid, signal.SIGHUP)
    eventually(lambda: "policies reloaded" in here.log.read_text())
    time.sleep(0.3)
    assert here.agent_pid == before
    binary = here.dir / "bin/caisson-agent"
    binary.with_suffix(".new").write_bytes(binary.read_bytes())
    binary.with_suffix(".new").chmod(0o755)
    binary.with_suffix(".new").rename(binary)
    os.kill(here.pid, signal.SIGHUP)
    eventually(lambda: now_serving(here, before))
    assert whole_output(client, session, command)[0] == "a\nb\n"


def test_what_is_forgotten_is_said_to_be(here, client):
    path = f"/tmp/{secrets.token_hex(4)}"

    def edit(command, **more):
        return client.post("/v1/file/str_replace_editor", {"command": command, "path": path, **more}).text

    edit("create", file_text="one\n")
    edit("str_replace", old_str="one", new_str="two")
    watched = client.data("/v1/sandbox/observe/start", {"interval_seconds": 1})["session_id"]
    kill_agent(here)
    assert "can no longer be undone" in edit("undo_edit")
    said = client.post("/v1/sandbox/observe/stop", {"session_id": watched})
    assert said.status_code == 404 and "ended with" in said.text


def test_the_commands_pipes_close_as_they_do_without_a_keeper(client):
    session, command = start(client, "cat; echo eof")
    client.data("/v1/bash/write", {"session_id": session, "command_id": command, "input": "\x04"})
    assert whole_output(client, session, command)[0] == "eof\n"


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("\nVmRSS:")[1].split()[0])


class Load(threading.Thread):
    """One client of mixed calls. Every answer is right, or the connection is closed; nothing of a session is lost."""

    def __init__(self, here, number, over):
        super().__init__(daemon=True)
        self.here, self.number, self.over, self.calls, self.closed, self.wrong, self.seen = here, number, over, 0, 0, None, {}
        self.client = Api(here.url, here.key)

    def again(self, call):
        """What may be asked twice: by id, or without effect."""
        while True:
            try:
                self.calls += 1
                return call()
            except httpx.TransportError:
                self.closed += 1
                time.sleep(0.05)

    def once(self, call):
        try:
            self.calls += 1
            return call()
        except httpx.TransportError:
            self.closed += 1
            return None

    def run(self):
        try:
            bash = self.again(lambda: self.client.data("/v1/bash/sessions/create"))["session_id"]
            shell = self.again(lambda: self.client.data("/v1/shell/sessions/create", {"id": f"load-{self.number}"}))["session_id"]
            mark = secrets.token_hex(4)
            self.again(lambda: self.client.data("/v1/shell/exec", {"id": shell, "command": f"MARK={mark}"}))
            round = 0
            while not self.over.is_set() and self.wrong is None:
                round += 1
                kinds = (self.in_bash, self.asynchronous, self.files, lambda s: self.in_shell(shell, mark), self.in_kernel, self.in_code)
                kinds[round % len(kinds)](bash)
        except Exception as why:  # noqa: BLE001: told by the test
            self.wrong = f"client {self.number}: {why!r}"

    def in_bash(self, session):
        word = secrets.token_hex(8)
        got = self.once(lambda: self.client.data("/v1/bash/exec", {"session_id": session, "command": f"echo {word}; exit 7"}))
        if got:
            assert (got["stdout"], got["exit_code"], got["status"]) == (word + "\n", 7, "completed"), got

    def asynchronous(self, session):
        count, word = random.randint(200, 5000), secrets.token_hex(4)
        text = f"for i in $(seq {count}); do echo {word} $i; ((i % 500)) || sleep 0.05; done"
        got = self.once(lambda: self.client.data("/v1/bash/exec", {"session_id": session, "command": text, "async_mode": True}))
        if not got:
            return
        out, asked = "", {"session_id": session, "command_id": got["command_id"], "wait": True, "wait_timeout": 1}
        while True:
            got = self.again(lambda: self.client.data("/v1/bash/output", asked))
            out += got["stdout"]
            asked["offset"] = got["offset"]
            if got["command"]["status"] != "running" and not got["stdout"]:
                break
        want = "".join(f"{word} {i}\n" for i in range(1, count + 1))
        assert hashlib.sha256(out.encode()).digest() == hashlib.sha256(want.encode()).digest(), (
            got["command"], len(out), len(want), next((i for i, (a, b) in enumerate(zip(out, want)) if a != b), None))
        assert got["command"]["exit_code"] == 0, got["command"]

    def files(self, _session):
        path, text = f"/tmp/load-{self.number}", secrets.token_hex(2000)
        self.again(lambda: self.client.data("/v1/file/write", {"file": path, "content": text}))
        got = self.again(lambda: self.client.data("/v1/file/read", {"file": path}))
        assert got["content"].rstrip("\n") == text

    def in_kernel(self, _session):
        """What it counts is what was run: each cell once at most, and those that were answered for certain."""
        self.counted("/v1/jupyter/execute", {"session_id": f"load-{self.number}"}, printed)

    def in_code(self, _session):
        self.counted("/v1/code/execute", {"session_id": f"load-code-{self.number}", "language": "python"}, lambda got: got["stdout"])

    def counted(self, path, asked, output):
        answered, sent = self.seen.get(path, (0, 0))
        sent += 1
        code = "try: n += 1\nexcept NameError: n = 1\nprint(n)"
        got = self.once(lambda: self.client.data(path, {**asked, "code": code, "timeout": 120}))
        if got:
            assert answered < int(output(got)) <= sent, (path, answered, sent, got)
            answered = int(output(got))
            sent = answered
        self.seen[path] = (answered, sent)

    def in_shell(self, session, mark):
        word = secrets.token_hex(6)
        got = self.once(lambda: self.client.data("/v1/shell/exec", {"id": session, "command": f"echo $MARK-{word}"}))
        if got:
            assert (got["output"], got["exit_code"]) == (f"{mark}-{word}", 0), got


def test_mixed_load_and_an_agent_that_is_killed_again_and_again(launch):
    """With CAISSON_TEST_FULL=1 a hundred times."""
    here = launch()
    over = threading.Event()
    clients = [Load(here, n, over) for n in range(8)]
    for one in clients:
        one.start()
    eventually(lambda: all(c.calls > 30 or c.wrong for c in clients), 180)  # each has all that it will have
    before, kills = resident(here.pid), 100 if FULL else 6
    sizes = []
    for _ in range(kills):
        time.sleep(random.uniform(0.1, 1.0))
        kill_agent(here)
        sizes.append(resident(here.pid))
        assert not [c.wrong for c in clients if c.wrong], "\n".join(c.wrong for c in clients if c.wrong)
    over.set()
    for one in clients:
        one.join(300)
    assert not [c.wrong for c in clients if c.wrong], "\n".join(c.wrong for c in clients if c.wrong)
    print(f"{kills} kills, {sum(c.calls for c in clients)} calls, {sum(c.closed for c in clients)} connections closed, "
          f"launcher {before} -> {max(sizes)} KiB")
    assert all(c.closed for c in clients) or not FULL
    # What a launcher holds does not grow with the agents that it has seen.
    assert sizes[-1] < before + 4096, sizes
