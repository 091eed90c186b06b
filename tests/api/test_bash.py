"""/v1/bash: one process per command, state only where the contract says so."""
import concurrent.futures

import pytest
from conftest import NOT_FOUND, Api, finish


def test_stdout_and_stderr_are_apart(api):
    done = api.bash("echo out; echo err >&2")
    assert (done["stdout"], done["stderr"]) == ("out\n", "err\n")


def test_a_nonzero_exit_code_is_completed_and_no_failure(api):
    done = api.bash("exit 3")
    assert (done["status"], done["exit_code"]) == ("completed", 3)


def test_trap_06_exit_code_is_not_success(api):
    answer = api.post("/v1/bash/exec", {"command": "ls /nowhere"}).json()
    assert answer["success"] is True
    assert answer["data"]["status"] == "completed"
    assert answer["data"]["exit_code"] == 2


def test_a_command_that_is_not_there_exits_with_127(api):
    done = api.bash("no-such-program-here")
    assert done["exit_code"] == 127
    assert "not found" in done["stderr"]


def test_a_program_that_kills_itself_reports_128_plus_the_signal(api):
    assert api.bash("kill -SEGV $$")["exit_code"] == 128 + 11


def test_unbalanced_quotes_are_an_error_of_the_shell(api):
    done = api.bash("echo 'unfinished")
    assert done["exit_code"] != 0
    assert "unexpected EOF" in done["stderr"]


def test_a_heredoc_passes(api):
    assert api.bash("cat <<'END'\na  $HOME `x`\nEND")["stdout"] == "a  $HOME `x`\n"


def test_many_lines_and_quotes_pass_unchanged(api):
    text = "a'b\"c\\d\n$x `y` !z\t\u00e9\u20ac\U0001f600"
    done = api.bash("python3 -c 'import sys; sys.stdout.write(sys.argv[1])' \"$(cat <<'END_OF_IT'\n" + text + "\nEND_OF_IT\n)\"")
    assert done["stdout"] == text


def test_a_command_larger_than_an_ipc_message_passes(api):
    text = "x" * 1_500_000
    assert api.bash(f"v={text}; echo ${{#v}}")["stdout"] == "1500000\n"


def test_a_large_command_still_has_its_own_stdin(api, session):
    text = "x" * 200_000
    started = api.bash(f"v={text}; read line; echo got $line ${{#v}}", session_id=session, async_mode=True)
    api.data("/v1/bash/write", {"session_id": session, "command_id": started["command_id"], "input": "hello\n"})
    assert finish(api, session)["stdout"] == "got hello 200000\n"


def test_nul_in_a_command_is_told(api):
    assert "NUL" in api.fails("/v1/bash/exec", {"command": "echo a\0b"})["message"]


def test_an_empty_command_completes(api):
    done = api.bash("")
    assert (done["status"], done["exit_code"], done["stdout"]) == ("completed", 0, "")


def test_a_background_job_does_not_hold_the_answer(api):
    done = api.bash("sleep 60 & echo started", timeout=50)
    assert (done["status"], done["stdout"]) == ("completed", "started\n")


def test_output_of_a_background_job_is_collected_after_the_command(api, session):
    done = api.bash("{ read; echo late; } <&0 & echo early; sleep 0.1", session_id=session)
    assert done["stdout"].startswith("early\n")


def test_two_commands_run_at_once_in_one_session(api, session):
    api.bash("mkfifo /tmp/meet", session_id=session)
    commands = ["echo over > /tmp/meet; echo wrote", "cat /tmp/meet"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda c: api.bash(c, session_id=session, timeout=60)["stdout"], commands))
    assert outputs == ["wrote\n", "over\n"]


# --- where state is and where it is not ---

def test_trap_09_cd_does_not_persist(api, session):
    api.bash("cd /usr", session_id=session)
    assert api.bash("pwd", session_id=session)["stdout"] != "/usr\n"


def test_trap_09_export_does_not_persist(api, session):
    api.bash("export CARRIED=1", session_id=session)
    assert api.bash("echo ${CARRIED-unset}", session_id=session)["stdout"] == "unset\n"


def test_trap_09_exec_dir_is_remembered(api, session):
    api.bash("true", session_id=session, exec_dir="/usr/bin")
    assert api.bash("pwd", session_id=session)["stdout"] == "/usr/bin\n"


def test_a_missing_exec_dir_is_told_by_name(api, session):
    message = api.fails("/v1/bash/exec", {"command": "pwd", "session_id": session, "exec_dir": "/nowhere"})["message"]
    assert "/nowhere" in message and "does not exist" in message


def test_a_missing_exec_dir_is_not_remembered(api, session):
    before = api.bash("pwd", session_id=session)["stdout"]
    api.fails("/v1/bash/exec", {"command": "pwd", "session_id": session, "exec_dir": "/nowhere"})
    assert api.bash("pwd", session_id=session)["stdout"] == before


def test_a_file_as_exec_dir_is_told(api):
    assert "not a directory" in api.fails("/v1/bash/exec", {"command": "pwd", "exec_dir": "/etc/passwd"})["message"]


def test_files_persist_between_commands_of_a_session(api, session):
    api.bash("echo kept > /tmp/kept", session_id=session)
    assert api.bash("cat /tmp/kept", session_id=session)["stdout"] == "kept\n"


def test_the_home_is_shared_by_sessions(api, session):
    name = f"shared-{session[:12]}"
    api.bash(f"echo here > ~/{name}", session_id=session)
    assert api.bash(f"cat ~/{name}; rm ~/{name}")["stdout"] == "here\n"


# --- environment ---

def test_env_is_for_this_command_only(api, session):
    assert api.bash("echo $GIVEN", session_id=session, env={"GIVEN": "a b"})["stdout"] == "a b\n"
    assert api.bash("echo ${GIVEN-unset}", session_id=session)["stdout"] == "unset\n"


def test_a_null_in_env_unsets_the_variable(api, session):
    assert api.bash("echo ${LANG-unset}", session_id=session)["stdout"] != "unset\n"
    assert api.bash("echo ${LANG-unset}", session_id=session, env={"LANG": None})["stdout"] == "unset\n"


def test_a_null_env_is_none(api):
    assert api.bash("echo fine", env=None)["stdout"] == "fine\n"


@pytest.mark.parametrize("name", ["", "A=B", "A\0B"])
def test_a_name_that_cannot_be_set_is_told(api, name):
    assert "env" in api.fails("/v1/bash/exec", {"command": "true", "env": {name: "x"}})["message"]


def test_an_environment_beyond_the_limit_is_told(api):
    api.fails("/v1/bash/exec", {"command": "true", "env": {"BIG": "x" * 2_000_000}})


# --- sessions ---

def test_trap_01_an_unknown_session_is_404_in_the_envelope(api):
    answer = api.post("/v1/bash/exec", {"command": "true", "session_id": "unheard-of"})
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


@pytest.mark.parametrize("path, body", [("output", {}), ("write", {"input": "x"}), ("kill", {})])
def test_an_unknown_session_is_404_everywhere(api, path, body):
    answer = api.post(f"/v1/bash/{path}", {"session_id": "unheard-of", **body})
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


def test_closing_an_unknown_session_is_404(api):
    answer = api.post("/v1/bash/sessions/unheard-of/close")
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


@pytest.mark.parametrize("given", ["", None])
def test_trap_01_an_empty_session_id_generates_one(api, given):
    assert api.bash("true", session_id=given)["session_id"]
    assert api.data("/v1/bash/sessions/create", {"session_id": given})["session_id"]


def test_no_session_id_makes_a_new_session_each_time(api):
    assert api.bash("true")["session_id"] != api.bash("true")["session_id"]


def test_trap_01_create_with_an_existing_id_returns_it(api, session):
    api.bash("touch /tmp/same", session_id=session)
    again = api.data("/v1/bash/sessions/create", {"session_id": session})
    assert again["session_id"] == session and again["command_count"] == 1
    assert api.bash("ls /tmp/same", session_id=session)["exit_code"] == 0


def test_a_session_may_be_named_by_the_client(api):
    made = api.data("/v1/bash/sessions/create", {"session_id": "my own: name \u00e9"})
    assert made["session_id"] == "my own: name \u00e9"
    assert api.post("/v1/bash/sessions/my%20own:%20name%20%C3%A9/close").json()["success"] is True


@pytest.mark.parametrize("name, why", [("a/b", "slash"), ("..", "dot name"), ("x" * 129, "128"), ("a\nb", "control")])
def test_a_name_that_no_path_can_carry_is_told(api, name, why):
    assert why in api.fails("/v1/bash/sessions/create", {"session_id": name})["message"]


def test_create_takes_no_body_at_all(api):
    answer = api.http.post("/v1/bash/sessions/create")
    assert answer.status_code == 200 and answer.json()["data"]["status"] == "ready"


def test_create_with_a_missing_exec_dir_is_told(api):
    assert "/nowhere" in api.fails("/v1/bash/sessions/create", {"exec_dir": "/nowhere"})["message"]


def test_create_again_with_a_missing_exec_dir_is_told_and_changes_nothing(api, session):
    assert "/nowhere" in api.fails("/v1/bash/sessions/create", {"session_id": session, "exec_dir": "/nowhere"})["message"]
    assert api.bash("pwd", session_id=session)["exit_code"] == 0


def test_create_again_with_an_exec_dir_changes_it(api, session):
    assert api.data("/v1/bash/sessions/create", {"session_id": session, "exec_dir": "/usr"})["working_dir"] == "/usr"
    assert api.bash("pwd", session_id=session)["stdout"] == "/usr\n"


def test_a_snapshot_is_sourced_before_each_command(api, session):
    api.bash("echo 'export SNAP=1; alias hi=\"echo hello\"; shopt -s expand_aliases' > ~/snap.sh", session_id=session)
    made = api.data("/v1/bash/sessions/create", {"snapshot_path": "/home/gem/snap.sh"})["session_id"]
    assert api.bash("echo $SNAP\nhi", session_id=made)["stdout"] == "1\nhello\n"
    api.bash("rm ~/snap.sh")


def test_a_missing_snapshot_is_told(api):
    assert "snapshot_path" in api.fails("/v1/bash/sessions/create", {"snapshot_path": "/nowhere.sh"})["message"]


def test_the_list_tells_what_a_session_does(api, session):
    api.bash("sleep 60", session_id=session, async_mode=True)
    listed = {s["session_id"]: s for s in api.data("/v1/bash/sessions", method="GET")}[session]
    assert (listed["status"], listed["current_command"], listed["command_count"]) == ("ready", "sleep 60", 1)


def test_a_closed_session_is_gone(api):
    made = api.data("/v1/bash/sessions/create")["session_id"]
    api.data(f"/v1/bash/sessions/{made}/close")
    assert made not in [s["session_id"] for s in api.data("/v1/bash/sessions", method="GET")]
    assert api.post("/v1/bash/exec", {"command": "true", "session_id": made}).status_code == 404


def test_closing_a_session_answers_who_waits_for_its_command(api):
    made = api.data("/v1/bash/sessions/create")["session_id"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waiting = pool.submit(api.bash, "echo begun; sleep 60", session_id=made)
        while not api.data("/v1/bash/output", {"session_id": made, "wait": True, "wait_timeout": 1})["stdout"]:
            assert not waiting.done()
        api.data(f"/v1/bash/sessions/{made}/close")
        assert waiting.result(60)["status"] == "killed"


def test_the_longest_idle_session_makes_room(launch, contract):
    launcher = launch(MAX_BASH_SESSIONS="2")
    api = Api(launcher.url, launcher.key, contract)
    ids = [api.data("/v1/bash/sessions/create")["session_id"] for _ in range(3)]
    assert sorted(s["session_id"] for s in api.data("/v1/bash/sessions", method="GET")) == sorted(ids[1:])


def test_a_busy_session_never_makes_room(launch, contract):
    launcher = launch(MAX_BASH_SESSIONS="1")
    api = Api(launcher.url, launcher.key, contract)
    api.bash("sleep 60", async_mode=True)
    assert "bash sessions" in api.fails("/v1/bash/exec", {"command": "true"})["message"]
