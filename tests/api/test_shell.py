"""/v1/shell: a terminal whose state persists, one command at a time."""
import concurrent.futures
import json

import pytest
from conftest import NOT_FOUND, Api, eventually


def test_output_has_neither_prompt_nor_trailing_newline(api, shell):
    assert api.shell("printf shell-doc-ok", id=shell)["output"] == "shell-doc-ok"
    assert api.shell("echo one; echo two", id=shell)["output"] == "one\ntwo"


def test_trap_07_output_is_one_merged_stream(api, shell):
    assert api.shell("echo out; echo err >&2; echo out2", id=shell)["output"] == "out\nerr\nout2"


def test_trap_07_console_has_prompt_command_and_output(api, shell):
    record = api.shell("echo seen", id=shell)["console"][-1]
    assert record["ps1"].rstrip().endswith("$")
    assert (record["command"], record["output"]) == ("echo seen", "seen")


def test_trap_06_a_failing_command_is_completed_with_its_exit_code(api, shell):
    done = api.shell("ls /nowhere", id=shell)
    assert (done["status"], done["exit_code"]) == ("completed", 2)
    assert "No such file" in done["output"]


@pytest.mark.parametrize("command", ["exit 3", "echo x; exit 3", "(exit 3)", "bash -c 'exit 3'", "false; exit 3"])
def test_trap_04_exit_ends_the_command_and_the_session_stays_usable(api, shell, command):
    done = api.shell(command, id=shell, timeout=20)
    assert (done["status"], done["exit_code"]) == ("completed", 3)
    assert api.shell("echo usable", id=shell, timeout=20)["output"] == "usable"


def test_trap_04_exit_0_after_output_answers_at_once(api, shell):
    done = api.shell("echo x; exit 0", id=shell, timeout=20)
    assert (done["status"], done["exit_code"], done["output"].splitlines()[0]) == ("completed", 0, "x")


def test_trap_04_the_directory_survives_exit(api, shell):
    api.shell("cd /usr/bin; exit 1", id=shell, timeout=20)
    assert api.shell("pwd", id=shell)["output"] == "/usr/bin"


@pytest.mark.parametrize("command", ["exec true", "kill -9 $$", "set -e; false", "exec >/dev/null", "set -u; echo $nope",
                                     "trap 'exit 9' DEBUG", "PROMPT_COMMAND=; PS1=", "stty raw -echo", "exec 0</dev/null",
                                     "trap '' INT TERM; true", "unset HOME PATH"])
def test_a_command_that_ruins_its_shell_does_not_ruin_the_session(api, shell, command):
    assert api.shell(command, id=shell, timeout=25)["status"] == "completed"
    assert api.shell("echo usable >&2", id=shell, timeout=25)["output"] in ("usable", "")
    again = api.shell("/bin/echo still; exit 4", id=shell, timeout=25)
    assert again["status"] == "completed"


def test_a_command_that_breaks_our_bookkeeping_can_be_killed(api, shell):
    api.shell("readonly _caisson_s", id=shell, timeout=1)
    api.data("/v1/shell/kill", {"id": shell})
    assert api.shell("echo usable", id=shell, timeout=25)["output"] == "usable"


def test_trap_09_cd_and_variables_persist(api, shell):
    api.shell("cd /usr/bin; export KEPT=yes; plain=too; f() { echo f-$1; }", id=shell)
    assert api.shell("echo $PWD $KEPT $plain $(f 1)", id=shell)["output"] == "/usr/bin yes too f-1"


def test_the_last_status_is_known_to_the_next_command(api, shell):
    api.shell("(exit 42)", id=shell)
    assert api.shell("echo $?", id=shell)["output"] == "42"


def test_trap_09_exec_dir_changes_the_directory(api, shell):
    assert api.shell("pwd", id=shell, exec_dir="/usr/lib")["output"] == "/usr/lib"
    assert api.shell("pwd", id=shell)["output"] == "/usr/lib"


def test_trap_09_a_missing_exec_dir_stays_silently(api, shell):
    before = api.shell("pwd", id=shell)["output"]
    done = api.shell("pwd", id=shell, exec_dir="/nowhere")
    assert (done["status"], done["output"]) == ("completed", before)


def test_trap_09_a_missing_exec_dir_with_strict_fails_and_runs_nothing(api, shell):
    body = {"command": "touch /tmp/ran", "id": shell, "exec_dir": "/nowhere", "strict": True}
    assert "/nowhere" in api.fails("/v1/shell/exec", body)["message"]
    assert api.shell("ls /tmp/ran", id=shell)["exit_code"] == 2


@pytest.mark.parametrize("preserve, where", [(False, "/tmp/real"), (True, "/tmp/link"), (None, "/tmp/real")])
def test_trap_09_preserve_symlinks_keeps_the_given_path(api, shell, preserve, where):
    api.shell("mkdir /tmp/real; ln -s real /tmp/link", id=shell)
    assert api.shell("pwd", id=shell, exec_dir="/tmp/link", preserve_symlinks=preserve)["output"] == where


def test_a_session_starts_in_its_exec_dir(api):
    made = api.data("/v1/shell/sessions/create", {"exec_dir": "/usr/share"})
    assert made["working_dir"] == "/usr/share"
    assert api.shell("pwd", id=made["session_id"])["output"] == "/usr/share"


# --- what a command may look like ---

@pytest.mark.parametrize("command, output", [
    ("cat <<'END'\n$HOME `x` \"q\"\nEND", "$HOME `x` \"q\""),
    ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2"),
    ("echo 'a\nb'", "a\nb"),
    ("echo a # comment", "a"),
    ("echo a \\\n b", "a b"),
    ("echo '!! !x'", "!! !x"),
    ("printf 'tab\\there'", "tab\there"),
    ("echo \t'\t'x", "\tx"),
    ("echo \u00e9 \u20ac \U0001f600", "\u00e9 \u20ac \U0001f600"),
    ("", ""), ("\n\n", ""), ("   ", ""), (":;", ""),
    ("true && \\\n echo joined", "joined"),
])
def test_a_command_of_any_form_runs_as_written(api, shell, command, output):
    done = api.shell(command, id=shell, timeout=20)
    assert (done["status"], done["output"]) == ("completed", output)


@pytest.mark.parametrize("command", ["echo 'open", 'echo "open', "echo $(", "cat <<END\nno end", "if true", "(", "`", "{ echo a"])
def test_an_unfinished_command_ends_and_leaves_the_session_usable(api, shell, command):
    assert api.shell(command, id=shell, timeout=20)["status"] == "completed"
    assert api.shell("echo usable", id=shell, timeout=20)["output"] == "usable"


def test_a_long_command_passes(api, shell):
    text = "x" * 100_000
    assert api.shell(f"v={text}; echo ${{#v}}", id=shell, timeout=50)["output"] == "100000"


def test_nul_in_a_command_is_told(api, shell):
    assert "NUL" in api.fails("/v1/shell/exec", {"id": shell, "command": "a\0b"})["message"]


def test_nul_bytes_of_the_output_stay(api, shell):
    # What grep -Z and find -print0 separate names by; clients that list files through the shell split at it.
    assert api.shell("printf 'a b\\0c\\n\\0'", id=shell)["output"] == "a b\0c\n\0"


@pytest.mark.parametrize("name", ["timeout", "hard_timeout"])
def test_a_negative_timeout_is_refused_and_nothing_runs(api, shell, name):
    answer = api.post("/v1/shell/exec", {"id": shell, "command": "touch ~/ran", name: -1})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", name]
    assert api.shell("ls ~/ran", id=shell)["exit_code"] == 2
    assert api.shell("echo at once", id=shell, **{name: 30})["output"] == "at once"


def test_a_background_job_does_not_hold_the_answer(api, shell):
    done = api.shell("sleep 60 & echo started", id=shell, timeout=20)
    assert done["status"] == "completed" and done["output"].endswith("started")


def test_colours_and_cursor_movements_are_not_in_the_output(api, shell):
    assert api.shell("printf '\\e[31mred\\e[0m\\e[2K!\\n'", id=shell)["output"] == "red!"


def test_a_command_that_prints_our_markers_does_not_end_early(api, shell):
    done = api.shell("printf '\\e]7717;P;0123456789abcdef;0;/\\a'; echo after", id=shell)
    assert (done["status"], done["output"]) == ("completed", "after")


def test_binary_output_is_valid_json_and_utf8(api, shell):
    answer = api.post("/v1/shell/exec", {"id": shell, "command": "printf 'a\\xff\\xfe\\x01b'"})
    text = json.loads(answer.content.decode("utf-8", "strict"))["data"]["output"]
    assert text[0] == "a" and text[-1] == "b" and "\ufffd" in text


# --- sessions ---

def test_trap_01_exec_with_an_unknown_id_is_404_in_the_envelope(api):
    answer = api.post("/v1/shell/exec", {"id": "unheard-of", "command": "true"})
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert len(answer.content) == 59  # clients have matched on it


@pytest.mark.parametrize("path, body", [("view", {}), ("wait", {}), ("write", {"input": "x", "press_enter": True}), ("kill", {}),
                                        ("sessions/update", {})])
def test_trap_01_an_unknown_id_is_404_everywhere(api, path, body):
    answer = api.post(f"/v1/shell/{path}", {"id": "unheard-of", **body})
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


@pytest.mark.parametrize("given", ["", None])
def test_trap_01_an_empty_id_generates_one(api, given):
    assert api.shell("true", id=given)["session_id"]
    assert api.data("/v1/shell/sessions/create", {"id": given})["session_id"]


def test_trap_02_no_id_makes_a_session_that_can_be_used_again(api):
    first = api.shell("cd /usr")
    assert api.shell("pwd", id=first["session_id"])["output"] == "/usr"


def test_trap_01_create_with_an_existing_id_returns_it(api, shell):
    api.shell("cd /usr; KEPT=1", id=shell)
    assert api.data("/v1/shell/sessions/create", {"id": shell}) == {"session_id": shell, "working_dir": "/usr"}
    assert api.shell("echo $KEPT", id=shell)["output"] == "1"


def test_create_takes_no_body_at_all(api):
    assert api.http.post("/v1/shell/sessions/create").json()["data"]["session_id"]


def test_a_session_may_be_named_by_the_client(api):
    assert api.data("/v1/shell/sessions/create", {"id": "my own"})["session_id"] == "my own"
    assert api.http.delete("/v1/shell/sessions/my%20own").json()["success"] is True


def test_the_list_tells_what_a_session_does(api, shell):
    api.shell("cd /usr", id=shell)
    api.shell("sleep 60", id=shell, async_mode=True)
    listed = eventually(lambda: (s := api.data("/v1/shell/sessions", method="GET")["sessions"][shell])["current_command"] and s)
    assert (listed["working_dir"], listed["current_command"]) == ("/usr", "sleep 60")


def test_stats_count_sessions(api, shell):
    stats = api.data("/v1/shell/sessions/stats", method="GET")
    assert stats["total_sessions"] == len(api.data("/v1/shell/sessions", method="GET")["sessions"])
    assert stats["active_sessions"] + stats["idle_sessions"] == stats["total_sessions"]
    assert stats["usage_ratio"] == pytest.approx(stats["total_sessions"] / stats["max_sessions"], abs=0.01)


def test_update_changes_the_no_change_timeout(api, shell):
    api.data("/v1/shell/sessions/update", {"id": shell, "no_change_timeout": 1})
    assert api.shell("sleep 60", id=shell, timeout=30)["status"] == "no_change_timeout"


def test_a_deleted_session_is_gone(api, shell):
    assert api.http.delete(f"/v1/shell/sessions/{shell}").json()["success"] is True
    assert api.post("/v1/shell/exec", {"id": shell, "command": "true"}).status_code == 404
    assert api.http.delete(f"/v1/shell/sessions/{shell}").status_code == 404


def test_deleting_a_session_answers_who_waits_for_its_command(api, shell):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(api.post, "/v1/shell/exec", {"id": shell, "command": "echo begun; sleep 60"})
        eventually(lambda: "begun" in api.data("/v1/shell/view", {"id": shell})["output"].splitlines())
        api.http.delete(f"/v1/shell/sessions/{shell}")
        assert waiting.result(60).status_code == 200


def test_delete_all_leaves_none(launch, contract):
    launcher = launch()
    api = Api(launcher.url, launcher.key, contract)
    for _ in range(3):
        api.data("/v1/shell/sessions/create")
    api.data("/v1/shell/sessions", method="DELETE")
    assert api.data("/v1/shell/sessions", method="GET")["sessions"] == {}


def test_terminal_url_names_a_session_that_exists(api):
    url = api.data("/v1/shell/terminal-url", method="GET")
    assert url.startswith(api.url + "/terminal?session_id=")
    assert url.rsplit("=", 1)[1] in api.data("/v1/shell/sessions", method="GET")["sessions"]
