"""`end`: why what was started is over, from one closed list, with the limit and the figure. Each reason is made to happen."""
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import re
import signal
import struct
import termios
import threading

import pytest
from conftest import Api, eventually, finish
from launcher_process import ROOT

MIB = 1 << 20
LIMITS = {"memory_bytes": 256 * MIB, "processes": 64, "cpu_seconds": 4, "file_size_bytes": MIB}
REASONS = ["exit", "signal", "oom", "pids", "disk", "cpu", "time", "output", "idle", "policy", "agent", "shutdown"]
FLOOD = f"import signal; x = b'x' * (600 * {MIB}); signal.pause()"
FLOODS = f"import os, signal\nfor _ in range(6):\n  if os.fork() == 0: x = b'x' * (40 * {MIB}); signal.pause()\nsignal.pause()"
FORKS = "import os, signal\nfor _ in range(500):\n  if os.fork() == 0: signal.pause()\nsignal.pause()"
BURN = "while True: pass"
X32 = f"import ctypes; ctypes.CDLL(None).syscall(ctypes.c_long({0x40000000 | 39}))"


def tight(folder):
    """Lower limits where commands and runs are at home."""
    for domain in ("bash", "shell"):
        file = folder / f"{domain}.json"
        policy = json.loads(file.read_text())
        policy["limits"] = policy.get("limits", {}) | LIMITS
        file.write_text(json.dumps(policy))


@pytest.fixture(scope="module")
def server(launch):
    return launch(policies=tight)


@pytest.fixture(scope="module")
def tied(server, contract):
    return Api(server.url, server.key, contract)


def python(code: str) -> dict:
    return {"command": 'exec python3 -c "$S"', "env": {"S": code}}


def of(end: dict, *names: str):
    return tuple(end[name] for name in names)


# --- commands ---

def test_an_exit_has_its_code(tied):
    assert of(tied.bash("exit 7")["end"], "reason", "figure", "limit", "signal") == ("exit", 7, None, None)
    assert of(tied.shell("(exit 3)")["end"], "reason", "figure") == ("exit", 3)


def test_what_runs_has_no_end(tied):
    ran = tied.bash("sleep 1000", async_mode=True)
    assert ran["end"] is None
    assert tied.data("/v1/bash/output", {"session_id": ran["session_id"]})["command"]["end"] is None
    tied.data("/v1/bash/kill", {"session_id": ran["session_id"], "signal": "SIGKILL"})
    end = finish(tied, ran["session_id"])["command"]["end"]
    assert of(end, "reason", "signal") == ("signal", "SIGKILL")


def test_a_signal_is_named(tied):
    assert of(tied.bash("kill -SEGV $$")["end"], "reason", "signal", "limit") == ("signal", "SIGSEGV", None)


def test_a_time_limit_has_both_numbers(tied):
    end = tied.bash("sleep 1000", hard_timeout=0.3)["end"]
    assert of(end, "reason", "limit", "allowed") == ("time", "hard_timeout_ms", 300) and end["figure"] >= 300
    end = tied.shell("sleep 1000", hard_timeout=0.3)["end"]
    assert of(end, "reason", "limit", "allowed") == ("time", "hard_timeout_ms", 300) and end["figure"] >= 300


def test_memory_over_the_limit_is_oom_with_the_figure(tied):
    end = tied.bash(**python(FLOOD))["end"]
    assert of(end, "reason", "limit", "allowed") == ("oom", "memory_bytes", LIMITS["memory_bytes"])
    assert end["figure"] >= LIMITS["memory_bytes"]


def test_a_shell_s_command_says_so_too(tied):
    session = tied.data("/v1/shell/sessions/create")["session_id"]
    tied.data("/v1/file/write", {"file": "/home/gem/flood.py", "content": FLOOD})
    end = tied.shell("python3 /home/gem/flood.py", id=session)["end"]
    assert of(end, "reason", "allowed") == ("oom", LIMITS["memory_bytes"])


def test_too_many_processes_are_pids_with_the_figure(tied):
    got = tied.bash(**python(FORKS))
    if got["end"]["reason"] == "exit":
        pytest.skip("a cgroup is here: forks are refused, and nothing ends")
    assert of(got["end"], "reason", "limit", "allowed") == ("pids", "processes", LIMITS["processes"])
    assert got["end"]["figure"] > LIMITS["processes"]


def test_processor_time_over_the_limit_is_cpu(tied):
    end = tied.bash(**python(BURN))["end"]
    assert of(end, "reason", "limit", "allowed", "signal") == ("cpu", "cpu_seconds", LIMITS["cpu_seconds"], "SIGXCPU")
    assert end["figure"] >= LIMITS["cpu_seconds"] - 1, "the kernel counts ticks for the limit and nanoseconds for the figure"


def test_a_file_over_the_limit_is_disk(tied):
    end = tied.bash("exec dd if=/dev/zero of=/tmp/big bs=1M count=3")["end"]
    assert of(end, "reason", "limit", "allowed", "signal") == ("disk", "file_size_bytes", MIB, "SIGXFSZ")


def test_a_call_that_the_policy_kills_for_is_policy(tied):
    if platform.machine() not in ("x86_64", "amd64"):
        pytest.skip("not a call of this architecture")
    assert of(tied.bash(**python(X32))["end"], "reason", "limit", "signal") == ("policy", "seccomp", "SIGSYS")


def test_a_session_that_is_closed_ends_its_command_for_the_agent(tied):
    answers = []
    session = tied.data("/v1/bash/sessions/create")["session_id"]
    thread = threading.Thread(target=lambda: answers.append(tied.bash("echo on; sleep 1000", session_id=session)))
    thread.start()
    eventually(lambda: tied.post("/v1/bash/output", {"session_id": session}).json()["data"]["stdout"] == "on\n")
    tied.post(f"/v1/bash/sessions/{session}/close")
    thread.join(60)
    assert of(answers[0]["end"], "reason", "cause") == ("agent", "closed by the client")


def test_a_command_of_a_terminal_that_is_ended_says_by_whom(tied):
    session = tied.data("/v1/shell/sessions/create")["session_id"]
    tied.shell("sleep 1000", id=session, async_mode=True)
    eventually(lambda: tied.data("/v1/shell/sessions", method="GET")["sessions"][session]["status"] == "running")
    killed = tied.data("/v1/shell/kill", {"id": session})
    assert of(killed["end"], "reason", "cause") == ("agent", "ended_by_client")
    assert tied.data("/v1/shell/wait", {"id": session})["end"] == tied.data("/v1/shell/view", {"id": session})["end"] == killed["end"]


# --- runs, cells, programs, files, hooks ---

@pytest.mark.parametrize("language", ["python", "javascript"])
@pytest.mark.parametrize("stateful", [False, True])
def test_a_run_has_an_end(tied, language, stateful):
    def run(code, **fields):
        return tied.data("/v1/code/execute", {"language": language, "code": code, "stateful": stateful, **fields})["end"]

    quit_, wait = {"python": ("import sys; sys.exit(3)", "import time; time.sleep(100)"),
                   "javascript": ("process.exit(3)", "for (;;);")}[language]
    assert of(run("1 + 1"), "reason", "figure") == ("exit", 0)
    assert run(quit_)["reason"] == "exit"
    end = run(wait, timeout=1)
    assert of(end, "reason", "limit", "allowed") == ("time", "timeout_ms", 1000) and end["figure"] >= 1000


def test_a_run_of_nodejs_has_an_end(tied):
    assert of(tied.data("/v1/nodejs/execute", {"code": "process.exit(4)"})["end"], "reason", "figure") == ("exit", 4)
    assert tied.data("/v1/nodejs/execute", {"code": "process.kill(process.pid, 'SIGKILL')"})["end"]["signal"] == "SIGKILL"


def test_a_cell_has_an_end(tied):
    def cell(code, **fields):
        return tied.data("/v1/jupyter/execute", {"code": code, **fields})["end"]

    assert of(cell("1"), "reason", "figure") == ("exit", 0)
    assert of(cell("1/0"), "reason", "figure") == ("exit", 1)
    assert of(cell("import time; time.sleep(100)", timeout=1), "reason", "limit", "allowed") == ("time", "timeout_ms", 1000)
    assert of(cell("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), "reason", "signal") == ("signal", "SIGKILL")
    assert of(cell("import os; os._exit(5)"), "reason", "figure") == ("exit", 5)


def test_each_step_of_run_code_has_an_end(tied):
    def judge(code, language="c", **fields):
        answer = tied.post("/run_code", {"code": code, "language": language, **fields}).json()
        return answer["compile_result"] and answer["compile_result"]["end"], answer["run_result"] and answer["run_result"]["end"]

    compiled, ran = judge("int main(void) { return 9; }")
    assert of(compiled, "reason", "figure") == ("exit", 0) and of(ran, "reason", "figure") == ("exit", 9)
    assert judge("no program")[0]["reason"] == "exit"
    assert of(judge("import time; time.sleep(100)", "python", run_timeout=1)[1], "reason", "limit", "allowed") == ("time", "timeout_ms", 1000)
    assert judge("int main(void) { return *(volatile int *)0; }")[1]["signal"] == "SIGSEGV"
    # One allocation beyond the limit fails by itself; together processes reach it all the same.
    assert of(judge(FLOOD, "python", memory_limit_MB=128)[1], "reason", "figure") == ("exit", 1)
    assert judge(FLOODS, "python", memory_limit_MB=128, run_timeout=60)[1]["reason"] == "oom"


def worker_of(server) -> int:
    for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # others end meanwhile
            if comm.read_text() == "caisson-file-wo\n" and server.owns(int(comm.parent.name)):
                return int(comm.parent.name)
    raise AssertionError("no file worker")


def unread(pid: int) -> int:
    with open(f"/proc/{pid}/fd/0", "rb", buffering=0) as pipe:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0]


def test_a_file_worker_that_is_killed_says_so(server, tied):
    tied.data("/v1/file/list", {"path": "/home/gem"})
    answers, worker = [], worker_of(server)
    os.kill(worker, signal.SIGSTOP)
    # Before it stands still, a read that the signal wakes up may take the request.
    eventually(lambda: "\nState:\tT" in pathlib.Path(f"/proc/{worker}/status").read_text())
    thread = threading.Thread(target=lambda: answers.append(tied.post("/v1/file/read", {"file": "/etc/passwd"}).json()))
    thread.start()
    eventually(lambda: unread(worker))  # the request is under way
    os.kill(worker, signal.SIGKILL)
    thread.join(60)
    assert answers[0]["success"] is False and of(answers[0]["data"]["end"], "reason", "signal") == ("signal", "SIGKILL")


def test_a_hook_says_how_its_last_run_ended(launch, contract):
    fresh = launch(RUN_HOOK_INIT="exit 6", RUN_HOOK_POST_READY="sleep 100", CAISSON_HOOK_SECONDS="8")
    client = Api(fresh.url, fresh.key, contract)

    def end(event):
        return client.data(f"/v1/sandbox/hooks?event={event}", method="GET")[0]["end"]

    assert of(end("init"), "reason", "figure") == ("exit", 6)
    assert of(eventually(lambda: end("post_ready")), "reason", "limit", "allowed") == ("time", "hard_timeout_ms", 8000)


# --- sessions, by their logs ---

def ends(client):
    return [s["end"] for s in client.data("/v1/audit/sessions?state=ended&limit=100", method="GET")["sessions"]]


def test_the_log_of_a_session_has_the_same_reason(tied):
    tied.bash(**python(FLOOD))
    found = eventually(lambda: [e for e in ends(tied) if of(e, "reason", "allowed") == ("oom", LIMITS["memory_bytes"])])[0]
    assert found["limit"] == "memory_bytes" and found["figure"] >= found["allowed"]


def test_what_says_more_than_anybody_has_room_for_ends_for_its_output(launch, contract):
    server = launch(CAISSON_OUTPUT_TOTAL_BYTES=str(MIB))
    api = Api(server.url, server.key, contract)
    # Six bytes of JSON for each: the frame is larger than all the room that there is.
    got = api.data("/v1/jupyter/execute", {"code": "print('\\x01' * 1_000_000)", "timeout": 60})
    assert (got["status"], got["end"]["reason"]) == ("error", "output"), got


def test_an_idle_session_ends_as_idle(launch, contract):
    fresh = launch(CAISSON_SESSION_IDLE_SECONDS="5")
    client = Api(fresh.url, fresh.key, contract)
    client.bash("true")
    assert eventually(lambda: [e for e in ends(client) if e["reason"] == "idle"], 120)[0]["limit"] == "idle_seconds"


def test_what_still_runs_at_the_end_of_the_server_is_answered_and_told_why(launch, contract):
    fresh = launch()
    client = Api(fresh.url, fresh.key, contract)
    answers = []
    session = client.data("/v1/bash/sessions/create")["session_id"]
    thread = threading.Thread(target=lambda: answers.append(client.bash("echo on; sleep 1000", session_id=session)))
    thread.start()
    eventually(lambda: client.post("/v1/bash/output", {"session_id": session}).json()["data"]["stdout"] == "on\n")
    fresh.process.send_signal(signal.SIGTERM)
    thread.join(60)
    assert answers and answers[0]["stdout"] == "on\n" and answers[0]["end"]["reason"] == "shutdown"


# --- the list ---

def test_the_list_is_closed_and_in_the_description(tied):
    schema = tied.http.get("/v1/openapi.json").json()["components"]["schemas"]
    assert schema["End"]["properties"]["reason"]["enum"] == REASONS
    for name in ("BashExecResult", "BashCommandInfo", "ShellCommandResult", "ShellViewResult", "ShellWaitResult", "ShellKillResult",
                 "CodeExecuteResponse", "NodeJSExecuteResponse", "JupyterExecuteResponse", "CommandRunResult", "SandboxHook",
                 "FileOperationError", "AuditSession"):
        assert "End" in json.dumps(schema[name]["properties"]["end"]), name


def test_each_word_of_the_launcher_is_in_the_table():
    """A reason that the launcher learns needs its row: without one it would count as the agent's."""
    table = (ROOT / "agent/bridge/end.cc").read_text()
    words = {word for file in (ROOT / "launcher/pid1/session").glob("*.cc")
             for word in re.findall(r'(?:\bend|end_broken)\((?:sys[^"]*)?"(\w+)"|end_reason_ = "(\w+)"', file.read_text()) for word in word if word}
    assert len(words) > 12
    assert {word for word in words if f'{{"{word}", "' not in table} == set()
