"""POST /v1/workspaces/{name}/pause and /resume: nothing in it runs, and the next request to it lets it go on."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal

import pytest
from conftest import Api, eventually, finish, uid_of

COUNT = "i=0; while :; do i=$((i+1)); echo $i > ~/count; done"
CHAIN = "import os\nwhile True:\n  if os.fork() != 0: os._exit(0)"  # always another process, always a moment old
MANY = "import os\nfor _ in range(40):\n  if os.fork() == 0:\n    while True:\n      if os.fork() == 0: os._exit(0)\n      os.wait()\nos.wait()"


def states(uid: int) -> dict[int, str]:
    """State of each process of that user."""
    found = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError, IndexError):
            text = status.read_text()
            if int(text.split("\nUid:\t")[1].split()[0]) == uid:
                found[int(status.parent.name)] = text.split("\nState:\t")[1][0]
    return found


def ticks(uid: int) -> dict[int, str]:
    """What each has used of a processor."""
    found = {}
    for pid in (pid for pid, state in states(uid).items() if state not in "ZX"):  # who has ended is reaped at some time
        with contextlib.suppress(OSError):
            found[pid] = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    return found


def settled(uid: int) -> dict[int, str] | None:
    """ticks(), if nobody took, came or went between two looks, nor waits for a processor: on a busy machine, that may be for long."""
    first = ticks(uid)
    return first if first == ticks(uid) and "R" not in states(uid).values() else None


@pytest.fixture
def kept(here, named):
    one = named()
    one.uid = uid_of(here, one.workspace)
    return one


def state(api, one) -> str:
    return next(w["state"] for w in api.data("/v1/workspaces", method="GET")["workspaces"] if w["name"] == one.workspace)


def pause(api, one):
    assert api.data(f"/v1/workspaces/{one.workspace}/pause")["state"] == "paused"


@pytest.mark.parametrize("what", [None, CHAIN, MANY], ids=["a loop", "a chain of forks", "forty that fork"])
def test_nothing_of_it_runs_and_the_others_do(api, named, kept, what):
    other = named()
    kept.bash(COUNT, async_mode=True)
    if what:
        kept.bash('exec python3 -c "$S"', env={"S": what}, async_mode=True)
    eventually(lambda: kept.bash("cat ~/count")["stdout"].strip())
    pause(api, kept)
    assert state(api, kept) == "paused"
    used = eventually(lambda: settled(kept.uid))  # what was being built when it was paused has ended
    assert other.bash("echo on")["stdout"] == "on\n"
    assert ticks(kept.uid) == used


def test_the_next_request_wakes_it(api, kept):
    kept.bash(COUNT, async_mode=True)
    eventually(lambda: kept.bash("cat ~/count")["stdout"].strip())
    pause(api, kept)
    first = kept.bash("cat ~/count")["stdout"]
    assert state(api, kept) == "ready"
    eventually(lambda: kept.bash("cat ~/count")["stdout"] not in ("", first))


def test_many_requests_at_once_wake_it_once(here, api, kept):
    kept.bash("true")
    pause(api, kept)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert [a["stdout"] for a in pool.map(lambda _: kept.bash("echo on"), range(8))] == ["on\n"] * 8
    records = [json.loads(line) for line in (here.dir / "audit/launcher.ndjson").read_text().splitlines()]
    events = [r["event"] for r in records if r["event"] in ("workspace_pause", "workspace_resume") and r["workspace"] == kept.workspace]
    assert events == ["workspace_pause", "workspace_resume"]


def test_resume_lets_it_go_on_and_both_may_be_asked_twice(api, kept):
    kept.bash(COUNT, async_mode=True)
    for path, expected in (("pause", "paused"), ("pause", "paused"), ("resume", "ready"), ("resume", "ready")):
        assert api.data(f"/v1/workspaces/{kept.workspace}/{path}")["state"] == expected
    used = ticks(kept.uid)
    eventually(lambda: ticks(kept.uid) != used)


def test_a_shell_s_command_does_not_look_stopped_to_its_shell(api, kept):
    session = kept.data("/v1/shell/sessions/create")["session_id"]
    kept.shell("sh -c 'while [ ! -e ~/go ]; do sleep 0.05; done; echo over'", id=session, async_mode=True)
    eventually(lambda: kept.data("/v1/shell/sessions", method="GET")["sessions"][session]["status"] == "running")
    for _ in range(5):
        pause(api, kept)
        assert kept.data("/v1/shell/sessions", method="GET")["sessions"][session]["status"] == "running"
    kept.bash("touch ~/go")
    assert kept.data("/v1/shell/wait", {"id": session, "seconds": 60})["status"] == "completed"
    assert "Stopped" not in kept.data("/v1/shell/view", {"id": session})["output"]


def test_who_had_been_stopped_before_stays_stopped(api, kept):
    kept.bash("sleep 1000 & echo $! > ~/pid; kill -STOP $!; wait", async_mode=True)
    stopped = lambda: "T" in states(kept.uid).values()  # noqa: E731
    eventually(stopped)
    pause(api, kept)
    api.data(f"/v1/workspaces/{kept.workspace}/resume")
    assert list(states(kept.uid).values()).count("T") == 1


def test_the_clock_of_a_command_stands_still(api, named, kept):
    clock = named()
    ran = kept.bash("sleep 1000", async_mode=True, hard_timeout=6)  # in which it must be paused
    pause(api, kept)
    clock.bash("sleep 7")
    assert kept.data("/v1/bash/output", {"session_id": ran["session_id"]})["command"]["status"] == "running"
    end = finish(kept, ran["session_id"])["command"]["end"]
    assert (end["reason"], end["allowed"]) == ("time", 6000) and end["figure"] > 7000


def test_the_clock_of_a_shell_s_command_stands_still(api, named, kept):
    clock = named()
    session = kept.data("/v1/shell/sessions/create")["session_id"]
    kept.shell("export KEPT=yes", id=session)
    kept.shell("sleep 1000", id=session, async_mode=True, hard_timeout=6)
    eventually(lambda: kept.data("/v1/shell/sessions", method="GET")["sessions"][session]["status"] == "running")
    pause(api, kept)
    clock.bash("sleep 13")  # longer than it takes to end a command and then its bash
    assert kept.data("/v1/shell/sessions", method="GET")["sessions"][session]["status"] == "running"
    assert kept.data("/v1/shell/wait", {"id": session, "seconds": 60})["status"] == "hard_timeout"
    assert kept.shell("echo $KEPT", id=session)["output"].split()[-1] == "yes", "its bash has lived on"


@pytest.mark.parametrize("how", ["delete", "reset"])
def test_a_paused_one_can_be_ended(api, kept, how):
    kept.bash(COUNT, async_mode=True)
    pause(api, kept)
    if how == "reset":
        assert api.data(f"/v1/workspaces/{kept.workspace}/reset")["state"] == "ready"
        assert kept.bash("cat ~/count")["exit_code"] == 1
    else:
        assert api.http.delete(f"/v1/workspaces/{kept.workspace}").status_code == 200
    eventually(lambda: not [s for pid, s in states(kept.uid).items() if s == "T"])


def test_the_default_one_pauses_too(launch, contract):
    fresh = launch()
    one = Api(fresh.url, fresh.key, contract)
    session = one.data("/v1/bash/sessions/create")["session_id"]
    one.bash(COUNT, session_id=session, async_mode=True)
    assert one.data("/v1/workspaces/default/pause")["state"] == "paused"
    assert one.data("/v1/workspaces/default", method="GET")["state"] == "paused"
    first = one.bash("cat ~/count")["stdout"]
    assert one.data("/v1/workspaces/default", method="GET")["state"] == "ready"
    eventually(lambda: one.bash("cat ~/count")["stdout"] not in ("", first))


def agent_of(launcher) -> int | None:
    with contextlib.suppress(AssertionError):  # it has none for a moment
        return launcher.agent_pid
    return None


def test_a_new_agent_knows_that_it_is_paused(launch, contract):
    fresh = launch()
    one = Api(fresh.url, fresh.key, contract)
    one.bash("true")
    assert one.data("/v1/workspaces/default/pause")["state"] == "paused"
    old = fresh.agent_pid
    os.kill(old, signal.SIGKILL)
    eventually(lambda: agent_of(fresh) not in (None, old))
    fresh.wait_ready()
    assert one.bash("echo on")["stdout"] == "on\n"


def test_an_unknown_one_is_404(api, here):
    for path in ("pause", "resume"):
        assert api.post(f"/v1/workspaces/nothing/{path}").status_code == 404
