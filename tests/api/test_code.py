"""/v1/code: Python and JavaScript in confined sessions of their own. Numbers of traps are those of "Where a drop-in goes wrong"."""
import json
import pathlib
import secrets
import threading
import time

import pytest
from conftest import Api, eventually


@pytest.fixture
def run(api):
    def execute(code: str, language="python", **fields) -> dict:
        return api.data("/v1/code/execute", {"language": language, "code": code, **fields})
    return execute


def with_version(api, language: str, code: str, version: str) -> dict:
    return api.post("/v1/code/execute", {"language": language, "code": code}, params={"version": version}).json()


def processes_with(word: str) -> list[str]:
    """Command lines of this host's processes that hold the word."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


# --- the shape of an answer ---

def test_trap_14_streams_are_flattened_and_listed(run):
    done = run("import sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert (done["status"], done["exit_code"], done["stdout"], done["stderr"]) == ("ok", 0, "out\n", "err\n")
    streams = [(o["output_type"], o["name"], o["text"]) for o in done["outputs"]]
    assert streams == [("stream", "stdout", "out\n"), ("stream", "stderr", "err\n")]


def test_trap_14_a_bare_expression_is_a_result_and_not_stdout(run):
    done = run("x = 20\nx + 22")
    assert done["stdout"] == ""
    assert [(o["output_type"], o["data"]) for o in done["outputs"]] == [("execute_result", {"text/plain": "42"})]


def test_trap_14_an_error_has_a_name_a_value_and_a_traceback(run):
    done = run("def f():\n    return 1/0\nf()")
    assert (done["status"], done["exit_code"], done["stderr"]) == ("error", 1, "")
    error = done["outputs"][-1]
    assert (error["output_type"], error["ename"], error["evalue"]) == ("error", "ZeroDivisionError", "division by zero")
    assert done["traceback"] == error["traceback"] and "    return 1/0" in done["traceback"]
    assert not any("caisson" in line for line in done["traceback"])


def test_trap_6_a_failing_program_is_a_successful_request(api):
    answer = api.post("/v1/code/execute", {"language": "python", "code": "raise SystemExit(7)"})
    assert answer.status_code == 200 and answer.json()["success"] is True and answer.json()["data"]["exit_code"] == 7


@pytest.mark.parametrize("code, expected", [("import os; os._exit(3)", 3), ("import sys; sys.exit(4)", 4), ("import sys; sys.exit()", 0),
                                            ("import os; os.kill(os.getpid(), 9)", 137), ("import os; os.abort()", 134),
                                            ("import sys; sys.exit('why')", 1), ("x = (", 1)])
def test_every_way_to_end_is_an_exit_code(run, code, expected):
    done = run(code, timeout=60)
    assert (done["exit_code"], done["status"]) == (expected, "error" if expected else "ok")


def test_javascript_goes_through_the_same_operation(run):
    done = run("console.log([1, 2].map((x) => x * 2)); console.error('e')", "javascript")
    assert (done["status"], done["stdout"], done["stderr"], done["exit_code"]) == ("ok", "[ 2, 4 ]\n", "e\n", 0)


def test_a_javascript_error_is_told_like_a_python_error(run):
    done = run("throw new TypeError('no')", "javascript")
    error = done["outputs"][-1]
    assert (done["status"], done["exit_code"], error["ename"], error["evalue"]) == ("error", 1, "TypeError", "no")


def test_await_works_at_the_top_level(run):
    assert run("import asyncio\nawait asyncio.sleep(0)\nprint('slept')")["stdout"] == "slept\n"


def test_what_is_displayed_is_listed_by_media_type(run):
    code = "class Page:\n    def _repr_html_(self): return '<b>x</b>'\n    def __repr__(self): return 'x'\ndisplay(Page())"
    assert run(code)["outputs"] == [{"output_type": "display_data", "data": {"text/plain": "x", "text/html": "<b>x</b>"}, "metadata": {}}]


def test_an_empty_program_is_fine(run):
    assert run("")["status"] == run("", "javascript")["status"] == "ok"


def test_text_that_is_no_unicode_arrives_all_the_same(run):
    assert run("import os; os.write(1, b'a\\xffb')")["stdout"] == "a\ufffdb"
    assert run("raise ValueError('\\udc80')")["outputs"][-1]["ename"] == "ValueError"


# --- where it runs ---

def test_files_of_the_workspace_are_there(api, run):
    name = f"seen-{secrets.token_hex(4)}.txt"
    api.bash(f"echo from bash > {name}")
    assert run(f"print(open('{name}').read(), end='')")["stdout"] == "from bash\n"
    run(f"open('{name}', 'w').write('from python')")
    assert api.bash(f"cat {name}; rm {name}")["stdout"] == "from python"


def test_cwd_is_where_it_runs(run):
    assert run("import os; print(os.getcwd())", cwd="/usr")["stdout"] == "/usr\n"


def test_a_cwd_that_is_not_there_is_a_clear_failure(api):
    for language in ("python", "javascript"):
        failed = api.fails("/v1/code/execute", {"language": language, "code": "1", "cwd": "/nowhere"})
        assert "/nowhere" in failed["message"]


def test_nothing_of_a_run_is_left_for_the_next(run):
    run("import builtins; builtins.left = 1; open('/dev/shm/left', 'w')")
    done = run("import builtins, os; print(hasattr(builtins, 'left'), os.path.exists('/dev/shm/left'))")
    assert done["stdout"] == "False False\n"


def test_input_is_at_its_end(run):
    assert run("input()")["outputs"][-1]["ename"] == "EOFError"


# --- limits ---

@pytest.mark.parametrize("language, code", [("python", "print('part', flush=True)\nimport time; time.sleep(600)"),
                                            ("python", "print('part')\nwhile True: pass"),
                                            ("javascript", "console.log('part'); while (true);")])
def test_a_timeout_keeps_what_was_written(run, language, code):
    done = run(code, language, timeout=5)
    assert (done["status"], done["exit_code"], done["stdout"]) == ("timeout", 124, "part\n")


def test_a_timeout_that_is_refused_is_enforced(run):
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('part', flush=True)\ntime.sleep(600)"
    assert run(code, timeout=1)["status"] == "timeout"


def test_what_a_run_left_running_ends_with_its_session(native, api, run):
    mark = f"{secrets.randbelow(10**9)}.25"
    run(f"import subprocess; subprocess.Popen(['sleep', '{mark}'], start_new_session=True)")
    eventually(lambda: not processes_with(mark))


def test_a_run_whose_client_has_gone_is_ended(native, api, run):
    mark = f"{secrets.randbelow(10**9)}.75"
    body = json.dumps({"language": "python", "timeout": 300, "code": f"import subprocess; subprocess.run(['sleep', '{mark}'])"})
    with api.raw() as raw:
        raw.send(api.request("POST /v1/code/execute", body, "Content-Type: application/json"))
        eventually(lambda: processes_with(mark))
    eventually(lambda: not processes_with(mark))


def test_a_flood_is_bounded_and_its_end_is_kept(run):
    done = run("import sys\nfor i in range(400): sys.stdout.write('x' * 100000 + '\\n')\nprint('last')", timeout=120)
    assert done["status"] == "ok" and done["stdout"].endswith("last\n")
    assert "bytes of output dropped" in done["stdout"] and len(done["stdout"]) < 10 << 20


def test_forks_stop_at_the_limit_and_the_neighbours_go_on(api, run):
    code = "import os, time\nfor _ in range(400):\n  if os.fork() == 0:\n    time.sleep(90); os._exit(0)\ntime.sleep(50)\nprint('all')"
    done = run(code, timeout=60)  # without cgroup v2 the watchdog counts, and needs a moment
    assert done["status"] == "error" and "all" not in done["stdout"]
    assert api.bash("echo fine")["stdout"] == "fine\n" and run("print(1)")["stdout"] == "1\n"


def test_memory_stops_at_the_limit_and_the_neighbours_go_on(api, run):
    done = run("x = []\nwhile True: x.append(bytearray(b'x' * (32 << 20)))", timeout=60)
    assert done["status"] == "error" and done["exit_code"] in (1, 137)
    assert api.bash("echo fine")["stdout"] == "fine\n" and run("print(1)")["stdout"] == "1\n"


def test_a_program_reaches_its_own_server(run):
    code = """import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname(), 5)
server.accept()[0].sendall(b'served')
print(client.recv(6).decode())"""
    assert run(code)["stdout"] == "served\n"


def test_outside_of_home_and_tmp_nothing_is_written(run):
    for path in ("/usr/bin/x", "/etc/x", "/x"):
        assert run(f"open('{path}', 'w')")["outputs"][-1]["ename"] in ("OSError", "PermissionError")


def test_runs_side_by_side_do_not_meet(run):
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: run(f"print({n})")["stdout"]})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: f"{n}\n" for n in range(8)}


# --- prepared sessions ---

def code_sessions(api) -> set[str]:
    found, after = set(), ""
    while True:
        page = api.http.get("/v1/sessions", params={"after": after}).json()["data"]
        found |= {s["session"] for s in page["sessions"] if s.get("domain") == "code" and s.get("label") == "run"}
        if not (after := page.get("next")):
            return found


def test_a_prepared_session_serves_once(api, run):
    run("1")
    before = eventually(lambda: code_sessions(api))
    eventually(lambda: len(code_sessions(api)) >= 2)
    before = code_sessions(api)
    run("1")
    eventually(lambda: not before <= code_sessions(api))
    assert len(eventually(lambda: code_sessions(api) - before)) >= 1


def test_prepared_sessions_do_not_outlive_their_policy(launch, contract):
    launcher = launch()
    api = Api(launcher.url, launcher.key, contract)
    api.data("/v1/code/execute", {"language": "python", "code": "1"})
    eventually(lambda: len(code_sessions(api)) == 2)
    before = code_sessions(api)
    policy = launcher.dir / "policies/code.json"
    policy.write_text(policy.read_text().replace('"processes": 128', '"processes": 128, "open_files": 100'))
    assert api.http.post("/v1/policies/reload").json()["success"] is True
    eventually(lambda: not before & code_sessions(api))
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])"
    assert api.data("/v1/code/execute", {"language": "python", "code": code})["stdout"] == "100\n"


def test_without_prepared_sessions_all_is_as_with_them(launch, contract):
    launcher = launch(CAISSON_WARM_SESSIONS="0", MAX_CODE_SESSIONS="1")
    api = Api(launcher.url, launcher.key, contract)
    assert api.data("/v1/code/execute", {"language": "python", "code": "print(1)"})["stdout"] == "1\n"
    eventually(lambda: not code_sessions(api))
    code = "import os, time\nwhile not os.path.exists('over'): time.sleep(0.05)"
    thread = threading.Thread(target=api.post, args=("/v1/code/execute", {"language": "python", "code": code, "timeout": 120}))
    thread.start()
    eventually(lambda: code_sessions(api))
    assert "MAX_CODE_SESSIONS" in api.fails("/v1/code/execute", {"language": "python", "code": "1"})["message"]
    api.bash("touch over")
    thread.join()


# --- state ---

def test_variables_last_in_a_session(run):
    first = run("x = 41", stateful=True)
    again = run("x + 1", session_id=first["session_id"])
    assert again["outputs"][-1]["data"] == {"text/plain": "42"} and again["session_id"] == first["session_id"]


def test_trap_14_a_session_id_without_stateful_keeps_state(run):
    name = secrets.token_hex(4)
    assert run("y = 1", session_id=name)["session_id"] == name
    assert run("print(y)", session_id=name)["stdout"] == "1\n"


def test_a_run_without_state_names_no_session(run):
    assert run("1")["session_id"] is None


@pytest.mark.parametrize("language, endless", [("python", "while True: pass"), ("javascript", "while (true);"),
                                               ("javascript", "await new Promise(() => {})")])
def test_state_survives_a_timeout(run, language, endless):
    name = secrets.token_hex(4)
    run("z = 5", language, session_id=name)
    late = run(endless, language, session_id=name, timeout=1)
    assert (late["status"], late["exit_code"]) == ("timeout", 124)
    done = run("z", language, session_id=name)
    assert done["outputs"][-1]["data"] == {"text/plain": "5"}


def test_a_session_that_cannot_be_interrupted_is_ended_and_says_so(api):
    name = secrets.token_hex(4)
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('part', flush=True)\ntime.sleep(600)"
    answer = api.post("/v1/code/execute", {"language": "python", "code": code, "session_id": name, "timeout": 5}).json()
    assert (answer["data"]["status"], answer["data"]["stdout"]) == ("timeout", "part\n") and "gone" in answer["hint"]
    again = api.post("/v1/code/execute", {"language": "python", "code": "1", "session_id": name}).json()
    assert again["data"]["status"] == "ok" and "new session" in again["hint"]


def test_an_error_keeps_the_state(run):
    name = secrets.token_hex(4)
    run("a = 1\n1/0", session_id=name)
    assert run("print(a)", session_id=name)["stdout"] == "1\n"
    assert run("import sys; sys.exit(3)", session_id=name)["exit_code"] == 3
    assert run("print(a)", session_id=name)["stdout"] == "1\n"


def test_os_exit_ends_a_session_with_its_code(run):
    name = secrets.token_hex(4)
    done = run("print('bye', flush=True)\nimport os; os._exit(3)", session_id=name)
    assert (done["status"], done["exit_code"], done["stdout"]) == ("error", 3, "bye\n")
    assert run("print('new')", session_id=name)["stdout"] == "new\n"


def test_trap_3_requests_for_one_session_queue(run):
    name = secrets.token_hex(4)
    run("n = 0", session_id=name)
    code = "import time\nm = n\ntime.sleep(0.05)\nn = m + 1"
    threads = [threading.Thread(target=run, args=(code,), kwargs={"session_id": name}) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run("print(n)", session_id=name)["stdout"] == "5\n"


def test_a_session_of_one_workspace_is_unknown_in_another(launch, contract):
    launcher = launch()
    api = Api(launcher.url, launcher.key, contract)
    assert api.http.post("/v1/workspaces", json={"name": "other"}).status_code == 200
    there = {"X-Caisson-Workspace": "other"}
    job = {"language": "python", "session_id": "same"}
    api.post("/v1/code/execute", {**job, "code": "secret = 1; open('file', 'w')"})
    answer = api.post("/v1/code/execute", {**job, "code": "import os; print('secret' in globals(), 'file' in os.listdir())"}, headers=there)
    assert answer.json()["data"]["stdout"] == "False False\n"


# --- requests ---

def test_a_version_that_is_absent_says_what_there_is(api):
    for language, version, there in (("python", "python2.7", "python3."), ("javascript", "node8", "node")):
        failed = with_version(api, language, "1", version)
        assert failed["success"] is False and version in failed["message"] and there in failed["message"].split("available: ")[1]
        assert ("--build-arg PYTHON_VERSIONS=" in (failed["hint"] or "")) == (language == "python")


def test_a_version_that_is_there_is_used(api, run):
    details = {i["language"]: i for i in api.data("/v1/code/info", method="GET")["languages"]}
    name = details["python"]["details"]["versions"][0]
    code = "import sys; print('python%d.%d' % sys.version_info[:2])"
    assert with_version(api, "python", code, name)["data"]["stdout"] == name + "\n" and run(code)["stdout"] == name + "\n"


def test_a_further_python_is_offered_and_used_by_its_version(launch, contract):
    launcher = launch()
    program = launcher.dir / "pythons/3.99/bin/python3"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\ncase $3 in *platform*) echo 3.99.1;; *) FURTHER=yes exec python3 "$@";; esac\n')
    program.chmod(0o755)
    policy = launcher.dir / "policies/base.json"
    value = json.loads(policy.read_text())
    next(grant for grant in value["grants"] if grant["path"] == "/opt/python")["source"] = str(launcher.dir / "pythons")
    policy.write_text(json.dumps(value))
    api = Api(launcher.url, launcher.key, contract)
    assert api.http.post("/v1/policies/reload").json()["success"] is True
    code = "import os; print(os.environ.get('FURTHER'))"
    assert with_version(api, "python", code, "python3.99")["data"]["stdout"] == "yes\n"
    assert with_version(api, "python", code, "")["data"]["stdout"] == "None\n"
    assert "python3.99 (3.99.1)" in with_version(api, "python", code, "3.98")["message"]


def test_info_tells_the_versions_and_the_limits(api):
    info = api.data("/v1/code/info", method="GET")["languages"]
    assert [i["language"] for i in info] == ["python", "javascript"]
    assert all(i["runtime_version"] and (i["default_timeout"], i["max_timeout"]) == (30, 300) for i in info)


@pytest.mark.parametrize("change, where", [({"language": "cobol"}, "language"), ({"timeout": 0}, "timeout"), ({"timeout": 301}, "timeout"),
                                           ({"code": None}, "code")])
def test_a_wrong_request_is_422_and_names_the_field(api, change, where):
    answer = api.post("/v1/code/execute", {"language": "python", "code": "1", **change})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", where]


def test_nulls_are_absent_fields(run):
    assert run("print(1)", timeout=None, cwd=None, session_id=None)["stdout"] == "1\n"


def test_trap_13_any_accept_gets_json_and_a_failure_is_no_5xx(api):
    answer = api.post("/v1/code/execute", {"language": "python", "code": "1/0"}, headers={"Accept": "*/*"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"


def test_code_larger_than_a_message_of_the_launcher_runs(run):
    assert run("x = '" + "y" * 300_000 + "'\nprint(len(x))")["stdout"] == "300000\n"


def test_time_is_spent_on_the_program_and_not_on_waiting(run):
    run("1")
    began = time.monotonic()
    slow = run("import time; time.sleep(0.5); print('slept')")
    assert slow["stdout"] == "slept\n" and time.monotonic() - began >= 0.5
