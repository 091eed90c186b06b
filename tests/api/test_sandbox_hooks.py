"""/v1/sandbox/hooks and the hooks of the operator's environment: each in a session of its own, bounded, on record, said when it
fails."""
import json
import pathlib
import time

import pytest
from conftest import Api, eventually

HOOKS = "/v1/sandbox/hooks"


def hook(name="h", **fields):
    return {"name": name, "command": "true", **fields}


@pytest.fixture(autouse=True)
def no_hooks(request):
    """The launcher is shared with other files, which may have left a hook."""
    def removed():
        if "api" in request.fixturenames:
            api = request.getfixturevalue("api")
            for one in api.data(HOOKS, method="GET"):
                api.http.delete(f"{HOOKS}/{one['name']}")
    removed()
    yield
    removed()


def records(launcher, label: str) -> list[dict]:
    """The audit log of the newest session with that label, its end awaited."""
    def find():
        for log in sorted((launcher.dir / "audit").glob("s-*.ndjson"), reverse=True):
            lines = [json.loads(line) for line in log.read_text().rpartition("\n")[0].splitlines()]  # the last may be half written
            if lines and lines[0].get("label") == label and lines[-1]["event"] == "session_end":
                return lines
        return None
    return eventually(find)


def home(launcher) -> pathlib.Path:
    return launcher.dir / "home"


def test_a_hook_is_registered_with_the_contract_s_defaults(api):
    made = api.data(HOOKS, hook())
    assert made == {"name": "h", "event": "shutdown", "command": "true", "timeout": 10, "priority": 100, "source": "api"}
    assert api.data(HOOKS, method="GET") == [made | {"end": None}]  # it has not run


def test_hooks_are_listed_in_the_order_in_which_they_run(api):
    for name, priority in (("late", 200), ("early", -1), ("middle", 100)):
        api.data(HOOKS, hook(name, priority=priority))
    assert [h["name"] for h in api.data(HOOKS, method="GET")] == ["early", "middle", "late"]
    assert api.data(HOOKS + "?event=post_ready", method="GET") == []


def test_the_same_name_replaces(api):
    api.data(HOOKS, hook(command="false"))
    api.data(HOOKS, hook(command="echo new"))
    assert [h["command"] for h in api.data(HOOKS, method="GET")] == ["echo new"]


def test_a_removed_hook_is_gone_and_a_second_removal_is_404(api):
    api.data(HOOKS, hook())
    assert api.data(f"{HOOKS}/h", method="DELETE") is None
    answer = api.http.delete(f"{HOOKS}/h")
    assert (answer.status_code, answer.json()["message"]) == (404, "Hook not found")


@pytest.mark.parametrize("body, field", [
    (hook(name="a b"), "name"), (hook(name=""), "name"), (hook(name="n" * 65), "name"), (hook(name="../x"), "name"),
    (hook(command="c" * 4097), "command"), (hook(timeout=-1), "timeout"), (hook(timeout=0), "timeout"), (hook(priority="high"), "priority"),
    ({"name": "h"}, "command"), (hook(command="a\0b"), "command")], ids=str)
def test_what_the_contract_does_not_allow_is_422(api, body, field):
    answer = api.post(HOOKS, body)
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", field]


def test_another_event_is_refused_by_name(api):
    assert "shutdown" in api.fails(HOOKS, hook(event="init"))["message"]


def test_there_are_at_most_64(api):
    for i in range(64):
        api.data(HOOKS, hook(f"n{i}"))
    assert "64" in api.fails(HOOKS, hook("n64"))["message"]
    assert api.data(HOOKS, hook("n0"))["name"] == "n0"


# --- at the end ---

@pytest.fixture
def ending(launch, contract):
    """ending(hooks): a launcher of its own that had these hooks registered and has been stopped."""
    def run(*hooks, **environment):
        launcher = launch(**environment)
        api = Api(launcher.url, launcher.key, contract)
        for one in hooks:
            api.data(HOOKS, one)
        launcher.stop()
        return launcher
    return run


def test_shutdown_hooks_run_by_priority_with_the_workspace_s_home(ending):
    launcher = ending(hook("b", command="echo second >> order; pwd > where", priority=2), hook("a", command="echo first >> order", priority=1))
    assert (home(launcher) / "order").read_text() == "first\nsecond\n"
    assert (home(launcher) / "where").read_text() == "/home/gem\n" or (home(launcher) / "where").read_text().strip()


def test_hooks_of_one_priority_run_side_by_side(ending):
    """Each waits for what the other makes."""
    wait = "touch {0}; for i in $(seq 400); do [ -e {1} ] && exec touch {0}-met; sleep 0.02; done; exit 1"
    launcher = ending(hook("a", command=wait.format("a", "b")), hook("b", command=wait.format("b", "a")))
    assert (home(launcher) / "a-met").exists() and (home(launcher) / "b-met").exists()


def test_a_shutdown_hook_runs_confined(ending):
    probe = "id -u > uid; cat /etc/shadow; grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status > status; env | cut -d= -f1 | sort > env"
    launcher = ending(hook("probe", command=probe))
    status = (home(launcher) / "status").read_text().split()
    assert status == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert (home(launcher) / "uid").read_text() == "1000\n"
    assert "SANDBOX_API_KEY" not in (home(launcher) / "env").read_text().split()
    assert any(r["event"] == "exec_exit" for r in records(launcher, "hook probe"))


def test_a_failing_hook_is_said_and_on_record_and_the_next_one_runs(ending):
    launcher = ending(hook("bad", command="echo why >&2; exit 7", priority=1), hook("good", command="touch good", priority=2))
    assert (home(launcher) / "good").exists()
    assert "hook bad: it exited with 7 and wrote 'why" in launcher.log.read_text()
    assert [r["exit_code"] for r in records(launcher, "hook bad") if r["event"] == "exec_exit"] == [7]


def test_a_hook_that_does_not_end_is_killed_at_its_time(ending):
    began = time.monotonic()
    launcher = ending(hook("slow", command="touch began; sleep 600", timeout=3), hook("next", command="touch next", priority=101))
    assert (home(launcher) / "began").exists() and (home(launcher) / "next").exists() and time.monotonic() - began < 300
    assert "hook slow: it was killed after its time limit" in launcher.log.read_text()


def test_all_shutdown_hooks_together_have_a_limit(ending):
    slow = [hook(f"slow{i}", command="sleep 600", timeout=600, priority=i) for i in range(3)]
    launcher = ending(*slow, CAISSON_SHUTDOWN_SECONDS="2")
    text = launcher.log.read_text()
    assert launcher.process.returncode == 0
    assert "hook slow0: it was killed after its time limit" in text and "hook slow2: there was no time left for it" in text


def test_the_hooks_of_a_workspace_run_when_it_is_deleted_and_are_gone_with_it(launch, contract):
    launcher = launch()
    api = Api(launcher.url, launcher.key, contract)
    made = api.post("/v1/workspaces", {"name": "w"})
    if made.status_code != 200:
        pytest.skip(f"no workspaces here: {made.json()['message']}")
    there = {"X-Caisson-Workspace": "w"}
    assert api.http.post(HOOKS, json=hook("bye", command="echo $PWD"), headers=there).json()["success"] is True
    assert api.data(HOOKS, method="GET") == []
    assert api.http.delete("/v1/workspaces/w").status_code == 200
    log = records(launcher, "hook bye")
    assert log[0]["workspace"] == "w" and any(r["event"] == "exec_exit" and r["exit_code"] == 0 for r in log)
    api.post("/v1/workspaces", {"name": "w"})
    assert api.http.get(HOOKS, headers=there).json()["data"] == []


# --- of the environment ---

@pytest.fixture(scope="module")
def hooked(launch):
    return launch(RUN_HOOK_INIT="echo init >> order; id -u > uid; cat /proc/self/status > status",
                  RUN_HOOK_PRE_SERVICES="echo pre >> order; exit 4", RUN_HOOK_POST_READY="echo post >> order; env > env")


@pytest.fixture(scope="module")
def hooked_api(hooked, contract):
    eventually(lambda: (home(hooked) / "env").exists())
    return Api(hooked.url, hooked.key, contract)


def test_the_hooks_of_the_environment_run_in_their_order(hooked, hooked_api):
    assert eventually(lambda: (t := (home(hooked) / "order").read_text()).count("\n") == 3 and t) == "init\npre\npost\n"


def test_the_first_two_have_run_before_the_first_request_is_served(hooked, hooked_api):
    """What the first session of a client finds; the probe for tools is the server's own first session."""
    logs = [log.read_text() for log in (hooked.dir / "audit").glob("s-*.ndjson")]
    first = min((json.loads(log.split("\n")[0]) for log in logs if "\n" in log), key=lambda r: r["mono_us"])  # one may have just been made
    assert first["label"] == "hook RUN_HOOK_INIT"


def test_a_hook_of_the_environment_runs_confined(hooked, hooked_api):
    status = (home(hooked) / "status").read_text()
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status and "CapEff:\t0000000000000000" in status
    assert "SANDBOX_API_KEY" not in (home(hooked) / "env").read_text()


def test_its_failure_is_said_in_the_log_the_list_and_the_audit(hooked, hooked_api):
    assert "hook RUN_HOOK_PRE_SERVICES: it exited with 4" in hooked.log.read_text()
    assert "RUN_HOOK_PRE_SERVICES: it exited with 4" in hooked_api.http.get(HOOKS).json()["hint"]
    assert any(r["event"] == "exec_exit" and r["exit_code"] == 4 for r in records(hooked, "hook RUN_HOOK_PRE_SERVICES"))


def test_hooks_of_the_environment_are_listed_and_cannot_be_changed(hooked_api):
    listed = hooked_api.data(HOOKS + "?event=init", method="GET")
    assert [(h["name"], h["source"], h["event"]) for h in listed] == [("RUN_HOOK_INIT", "env", "init")]
    assert "cannot be removed" in hooked_api.http.delete(f"{HOOKS}/RUN_HOOK_INIT").json()["message"]
    assert "environment" in hooked_api.fails(HOOKS, hook("RUN_HOOK_INIT"))["message"]


def test_a_restarted_agent_does_not_run_them_again(hooked, hooked_api):
    import os
    import signal
    os.kill(hooked.agent_pid, signal.SIGKILL)
    hooked.wait_ready()
    assert hooked_api.data(HOOKS + "?event=post_ready", method="GET")[0]["source"] == "env"
    eventually(lambda: "tools" and hooked_api.bash("echo up")["stdout"] == "up\n")
    assert (home(hooked) / "order").read_text() == "init\npre\npost\n"


def test_a_hook_of_the_environment_that_does_not_end_is_killed_and_the_server_serves(launch, contract):
    launcher = launch(RUN_HOOK_INIT="sleep 600", CAISSON_HOOK_SECONDS="1")
    assert Api(launcher.url, launcher.key, contract).bash("echo up")["stdout"] == "up\n"
    assert "hook RUN_HOOK_INIT: it was killed after its time limit" in launcher.log.read_text()


def test_a_hook_cannot_reach_past_its_session(launch, contract):
    """As a command of a client: no file of the container, no process of the launcher's."""
    launcher = launch(RUN_HOOK_INIT="cat /etc/shadow /proc/1/environ > stolen; kill -9 1; cat stolen | wc -c > size; true")
    assert eventually(lambda: (home(launcher) / "size").exists() and (home(launcher) / "size").read_text()) == "0\n"
    assert launcher.process.poll() is None


def test_a_hook_of_the_environment_runs_the_system_s_programs_not_those_of_a_home(launch, contract):
    plant = "mkdir -p ~/.local/bin && cd ~/.local/bin && printf '#!/bin/sh\\necho planted\\n' | tee bash seq >/dev/null && chmod +x bash seq"
    launcher = launch(RUN_HOOK_INIT=plant, RUN_HOOK_PRE_SERVICES="{ seq 1 1; command -v bash; } > said")
    assert (home(launcher) / "said").read_text() == "1\n/usr/bin/bash\n"
    assert Api(launcher.url, launcher.key, contract).data("/v1/code/execute", {"language": "python", "code": "import shutil; print(shutil.which('seq'))"})[
        "stdout"] == "/home/gem/.local/bin/seq\n", "for who works there it is the first"
