"""/v1/shell while commands run: the three timeouts, the queue, wait, write, kill, view, truncation, floods, event streams."""
import concurrent.futures
import json
import time

import pytest
from conftest import eventually


def view(api, shell) -> dict:
    return api.data("/v1/shell/view", {"id": shell})


def wait(api, shell, seconds=60) -> str:
    return api.data("/v1/shell/wait", {"id": shell, "seconds": seconds})["status"]


# --- trap 5: three timeouts ---

def test_trap_05_timeout_answers_running_and_the_command_goes_on(api, shell):
    began = api.shell("read x; echo got $x", id=shell, timeout=0.3)
    assert (began["status"], began["output"], began["exit_code"]) == ("running", None, None)
    api.data("/v1/shell/write", {"id": shell, "input": "it", "press_enter": True})
    assert wait(api, shell) == "completed"
    assert view(api, shell)["console"][-1]["output"].splitlines()[-1] == "got it"


def test_trap_05_no_change_timeout_counts_silence_only(api, shell):
    began = time.monotonic()
    done = api.shell("for i in 1 2 3 4 5 6; do echo $i; read -t 0.7; done; sleep 60", id=shell, no_change_timeout=3)
    assert done["status"] == "no_change_timeout"
    assert time.monotonic() - began > 4.2


def test_trap_05_after_no_change_timeout_the_command_takes_input(api, shell):
    assert api.shell("read x; echo got $x", id=shell, no_change_timeout=1)["status"] == "no_change_timeout"
    api.data("/v1/shell/write", {"id": shell, "input": "it", "press_enter": True})
    assert wait(api, shell) == "completed"


def test_trap_05_after_no_change_timeout_the_command_can_be_killed(api, shell):
    api.shell("sleep 60", id=shell, no_change_timeout=1)
    assert api.data("/v1/shell/kill", {"id": shell})["status"] == "terminated"
    assert api.shell("echo usable", id=shell, timeout=20)["output"] == "usable"


def test_trap_05_hard_timeout_kills_and_keeps_partial_output(api, shell):
    done = api.shell("echo partial; sleep 60", id=shell, hard_timeout=3)
    assert done["status"] == "hard_timeout"
    assert done["output"].splitlines()[0] == "partial"


@pytest.mark.parametrize("command", ["trap '' INT TERM QUIT; while :; do :; done", "python3 -c 'import signal, time\n"
                                     "for s in (2, 3, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)'"])
def test_hard_timeout_ends_what_ignores_signals(api, shell, command):
    assert api.shell(command, id=shell, hard_timeout=0.5, timeout=30)["status"] == "hard_timeout"
    assert api.shell("echo usable", id=shell, timeout=20)["output"] == "usable"


def test_hard_timeout_in_async_mode_counts_too(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True, hard_timeout=0.3)
    assert wait(api, shell) == "hard_timeout"


def test_state_survives_hard_timeout(api, shell):
    api.shell("cd /usr; KEPT=1", id=shell)
    api.shell("sleep 60", id=shell, hard_timeout=0.3)
    assert api.shell("echo $PWD $KEPT", id=shell, timeout=20)["output"] == "/usr 1"


# --- trap 3: the queue ---

def test_trap_03_concurrent_commands_of_one_session_run_one_by_one(api, shell):
    api.shell("n=0", id=shell)
    command = "m=$n; read -t 0.02 x </dev/tty; n=$((m+1)); echo $n"
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        done = list(pool.map(lambda _: api.shell(command, id=shell, timeout=50), range(10)))
    assert {d["status"] for d in done} == {"completed"}
    assert sorted(int(d["output"]) for d in done) == list(range(1, 11))


def test_trap_03_queued_commands_keep_their_order(api, shell):
    for n in range(8):
        api.shell(f"order+=' {n}'", id=shell, async_mode=True)
    assert api.shell("echo $order", id=shell, timeout=20)["output"] == "0 1 2 3 4 5 6 7"


def test_trap_03_the_observation_error_text_never_appears(api, shell):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: api.shell(f"echo {n}", id=shell, timeout=50), range(16)))
    assert sorted(int(d["output"]) for d in done) == list(range(16))


def test_a_queued_command_answers_running_at_its_timeout(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True)
    assert api.shell("echo later", id=shell, timeout=0.3)["status"] == "running"


def test_sessions_do_not_wait_for_each_other(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True)
    assert api.shell("echo other", timeout=20)["output"] == "other"


# --- wait, write, kill ---

def test_wait_answers_running_when_its_time_is_over(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True)
    assert api.data("/v1/shell/wait", {"id": shell, "seconds": 1})["status"] == "running"


def test_wait_on_an_idle_session_answers_at_once(api, shell):
    began = time.monotonic()
    assert wait(api, shell, 60) == "completed"
    assert time.monotonic() - began < 10


def test_max_wait_seconds_bounds_wait(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True)
    assert api.data("/v1/shell/wait", {"id": shell, "seconds": 60, "max_wait_seconds": 1})["status"] == "running"


def test_write_without_enter_leaves_the_line_open(api, shell):
    api.shell("read x; echo got $x", id=shell, async_mode=True)
    assert api.data("/v1/shell/write", {"id": shell, "input": "ab", "press_enter": False})["status"] == "running"
    api.data("/v1/shell/write", {"id": shell, "input": "cd", "press_enter": True})
    assert wait(api, shell) == "completed"
    assert "got abcd" in view(api, shell)["output"]


def test_control_c_can_be_written(api, shell):
    api.shell("echo begun; sleep 60", id=shell, async_mode=True)
    eventually(lambda: "begun" in view(api, shell)["output"].splitlines())
    api.data("/v1/shell/write", {"id": shell, "input": "\x03", "press_enter": False})
    assert wait(api, shell) != "running"
    assert view(api, shell)["exit_code"] == 130


def test_a_line_typed_at_the_prompt_runs(api, shell):
    api.data("/v1/shell/write", {"id": shell, "input": "echo typed-$((1+1))", "press_enter": True})
    eventually(lambda: "typed-2" in view(api, shell)["output"])


def test_half_a_line_typed_at_the_prompt_does_not_spoil_the_next_command(api, shell):
    api.data("/v1/shell/write", {"id": shell, "input": "echo 'half", "press_enter": False})
    assert api.shell("echo whole", id=shell, timeout=20)["output"] == "whole"


def test_kill_ends_the_command_and_says_terminated(api, shell):
    api.shell("sleep 60", id=shell, async_mode=True)
    assert api.data("/v1/shell/kill", {"id": shell})["status"] == "terminated"
    assert view(api, shell)["status"] == "terminated"


def test_kill_ends_what_ignores_signals(api, shell):
    api.shell("trap '' INT TERM QUIT; while :; do :; done", id=shell, timeout=0.5)
    api.data("/v1/shell/kill", {"id": shell})
    assert api.shell("echo usable", id=shell, timeout=20)["output"] == "usable"


def test_kill_on_an_idle_session_tells_the_last_exit_code(api, shell):
    api.shell("(exit 5)", id=shell)
    done = api.data("/v1/shell/kill", {"id": shell})
    assert (done["status"], done["exit_code"], done["returncode"]) == ("completed", 5, 5)


def test_the_waiting_exec_is_answered_when_its_command_is_killed(api, shell):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(api.shell, "echo begun; sleep 60", id=shell)
        eventually(lambda: "begun" in view(api, shell)["output"].splitlines())
        api.data("/v1/shell/kill", {"id": shell})
        assert waiting.result(60)["status"] == "terminated"


# --- view, truncation, floods ---

def test_trap_07_view_is_the_whole_terminal(api, shell):
    api.shell("echo first", id=shell)
    api.shell("echo second", id=shell)
    seen = view(api, shell)
    lines = seen["output"].splitlines()
    assert lines.index("first") < lines.index("second")
    assert [r["output"] for r in seen["console"]][-2:] == ["first", "second"]


def test_view_shows_no_bookkeeping_of_ours(api, shell):
    api.shell("echo 'a\nb'; cd /usr", id=shell)
    api.shell("cat <<'E'\nx\nE", id=shell)
    assert "_caisson" not in json.dumps(view(api, shell))


def test_view_of_a_running_command_has_its_output_so_far(api, shell):
    api.shell("echo begun; sleep 60", id=shell, async_mode=True)
    seen = eventually(lambda: (v := view(api, shell))["console"] and v["console"][-1]["output"] and v)
    assert (seen["status"], seen["command"], seen["exit_code"]) == ("running", "echo begun; sleep 60", None)
    assert seen["console"][-1]["output"] == "begun"


def test_trap_08_truncate_cuts_above_30000_characters(api, shell):
    done = api.shell("python3 -c \"print('a' + '\u00e9' * 40000 + 'z')\"", id=shell, timeout=30)
    assert 29_000 < len(done["output"]) <= 30_000
    assert done["output"][0] == "a" and done["output"][-1] == "z" and "truncated" in done["output"]


def test_truncate_false_keeps_everything(api, shell):
    assert len(api.shell("python3 -c \"print('x' * 100000)\"", id=shell, truncate=False, timeout=30)["output"]) == 100_000


def test_a_flood_does_not_grow_the_agent_nor_the_launcher(api, native, shell):
    before = native.memory_peaks()
    done = api.shell("yes $(printf %0200d 0) | head -c 100M; echo end", id=shell, timeout=170)
    assert done["output"].endswith("end")
    grown = {name: peak - before[name] for name, peak in native.memory_peaks().items()}
    assert grown["launcher"] < 4 << 20 and grown["agent"] < 80 << 20, grown


def test_a_client_that_leaves_does_not_end_its_command(api, shell):
    body = json.dumps({"id": shell, "command": "echo begun; read x; echo $x > /tmp/went-on"})
    with api.raw() as raw:
        raw.send(api.request("POST /v1/shell/exec", body))
        eventually(lambda: "begun" in view(api, shell)["output"].splitlines())
    api.data("/v1/shell/write", {"id": shell, "input": "still", "press_enter": True})
    assert api.shell("cat /tmp/went-on", id=shell, timeout=20)["output"] == "still"


# --- trap 13: event streams ---

def events(text: str):
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            yield fields["event"], json.loads(fields["data"])


def test_trap_13_exec_streams_on_an_explicit_accept_only(api, shell):
    for accept in ("*/*", "application/json", "text/*", ""):
        answer = api.post("/v1/shell/exec", {"id": shell, "command": "echo x"}, headers={"Accept": accept})
        assert answer.headers["content-type"].startswith("application/json"), accept


def test_exec_as_a_stream_has_output_then_done(api, shell):
    answer = api.post("/v1/shell/exec", {"id": shell, "command": "echo one; echo two; exit 3", "timeout": 20},
                      headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    seen = list(events(answer.text))
    assert {name for name, _ in seen[:-1]} == {"output"}
    assert "".join(data["data"] for _, data in seen[:-1]).replace("\r", "").startswith("one\ntwo\n")
    assert (seen[-1][0], seen[-1][1]["exit_code"], seen[-1][1]["status"]) == ("done", 3, "completed")


def test_output_is_streamed_before_the_command_ends(api, shell):
    with api.http.stream("POST", "/v1/shell/exec", json={"id": shell, "command": "echo early; read x"},
                         headers={"Accept": "text/event-stream"}) as answer:
        lines = answer.iter_lines()
        assert any("early" in line for line in lines)
        api.data("/v1/shell/write", {"id": shell, "input": "", "press_enter": True})
        assert any("done" in line for line in lines)


def test_view_as_a_stream_ends_with_the_command(api, shell):
    api.shell("echo begun; read x", id=shell, async_mode=True)
    with api.http.stream("POST", "/v1/shell/view", json={"id": shell}, headers={"Accept": "text/event-stream"}) as answer:
        pieces = answer.iter_text()
        text = next(pieces)
        api.data("/v1/shell/write", {"id": shell, "input": "", "press_enter": True})
        text += "".join(pieces)
    seen = list(events(text))
    assert (seen[0], seen[-1][0]) == (("status", {"status": "running"}), "done")


def test_a_stream_of_an_unknown_session_is_an_ordinary_404(api):
    answer = api.post("/v1/shell/view", {"id": "unheard-of"}, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.json()["message"]) == (404, "Session not found")
