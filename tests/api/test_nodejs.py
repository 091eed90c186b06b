"""/v1/nodejs: runs of their own, and REPLs with state. Numbers of traps are those of "Where a drop-in goes wrong"."""
import secrets
import time

import pytest
from conftest import NOT_FOUND, Api, eventually


@pytest.fixture
def run(api):
    def execute(code: str, **fields) -> dict:
        return api.data("/v1/nodejs/execute", {"code": code, **fields})
    return execute


@pytest.fixture
def repl(api):
    """A REPL of the test's own."""
    made = api.data("/v1/nodejs/sessions", {})["session_id"]
    yield made
    api.http.delete(f"/v1/nodejs/sessions/{made}")


# --- runs without state ---

def test_a_run_answers_the_whole_result(run):
    done = run("console.log('out'); console.error('err'); process.exitCode = 3")
    assert (done["language"], done["status"], done["exit_code"]) == ("javascript", "error", 3)
    assert (done["stdout"], done["stderr"]) == ("out\n", "err\n")
    assert [o["name"] for o in done["outputs"]] == ["stdout", "stderr"] and done["session_id"] is None


def test_trap_14_an_uncaught_error_is_an_output_too(run):
    done = run("function f() { throw new RangeError('far'); }\nf()")
    error = done["outputs"][-1]
    assert (done["exit_code"], error["output_type"], error["ename"], error["evalue"]) == (1, "error", "RangeError", "far")
    assert any("main.js:1" in line for line in error["traceback"]) and "RangeError: far" in done["stderr"]
    assert not any("[eval]" in line for line in error["traceback"])


def test_a_syntax_error_is_an_error(run):
    done = run("let x = ;")
    assert (done["status"], done["outputs"][-1]["ename"]) == ("error", "SyntaxError")


@pytest.mark.parametrize("code", ["process.exit(4)", "process.exitCode = 4", "setTimeout(() => process.exit(4), 1)",
                                  "import 'fs'; process.exit(4)"])
def test_every_way_to_end_is_an_exit_code(run, code):
    assert run(code)["exit_code"] == 4


def test_both_kinds_of_modules_run(run):
    assert run("const p = require('path'); console.log(p.sep, require.main === module)")["stdout"] == "/ true\n"
    assert run("import p from 'path'; console.log(p.sep, typeof require); await 0; export default 1")["stdout"] == "/ undefined\n"


def test_a_module_leaves_no_file_behind(api, run):
    done = run("import fs from 'fs'; await 0; console.log(fs.readdirSync('.').filter((f) => f.startsWith('.run-')).length)")
    assert done["status"] == "ok" and api.bash("ls -A | grep -c '^.run-'")["stdout"] == "0\n"


def test_stdin_is_what_was_given(run):
    done = run("process.stdin.on('data', (d) => process.stdout.write('got ' + d))", stdin="a\nb")
    assert done["stdout"] == "got a\nb"
    assert run("console.log(require('fs').readFileSync(0, 'utf8').length)", stdin="x" * 200_000)["stdout"] == "200000\n"
    assert run("console.log(require('fs').readFileSync(0, 'utf8').length)")["stdout"] == "0\n"


def test_files_are_there_before_and_gone_after(api, run):
    done = run("const {x} = require('./lib/a.js'); console.log(x, process.cwd())", files={"lib/a.js": "exports.x = 5", "none": None})
    x, cwd = done["stdout"].split()
    assert x == "5" and api.bash(f"test -e {cwd}")["exit_code"] == 1


def test_files_of_a_cwd_stay_there(api, run):
    name = f"node-{secrets.token_hex(4)}"
    api.bash(f"mkdir {name}")
    done = run("console.log(require('fs').readFileSync('a.txt', 'utf8'))", cwd=name, files={"a.txt": "text"})
    assert done["stdout"] == "text\n" and api.bash(f"cat {name}/a.txt; rm -r {name}")["stdout"] == "text"


def test_packages_of_the_workspace_can_be_required(api, run):
    api.bash("mkdir -p node_modules/own-thing && echo 'exports.x = 7' > node_modules/own-thing/index.js")
    assert run("console.log(require('own-thing').x)")["stdout"] == "7\n"
    assert run("import {x} from 'own-thing'; console.log(x)")["stdout"] == "7\n"
    api.bash("rm -r node_modules")


def test_a_timeout_keeps_what_was_written(run):
    done = run("console.log('part'); setInterval(() => {}, 1000)", timeout=5)
    assert (done["status"], done["exit_code"], done["stdout"]) == ("timeout", 124, "part\n")


def test_nothing_of_a_run_is_left_for_the_next(run):
    run("globalThis.left = 1; require('fs').writeFileSync('/dev/shm/left', '')")
    assert run("console.log(typeof left, require('fs').existsSync('/dev/shm/left'))")["stdout"] == "undefined false\n"


def test_outside_of_home_and_tmp_nothing_is_written(run):
    assert run("require('fs').writeFileSync('/usr/bin/x', '')")["outputs"][-1]["evalue"].startswith("E")


# --- REPLs ---

def test_trap_14_a_bare_expression_is_a_result(run):
    done = run("const x = 40; x + 2", stateful=True)
    result = done["outputs"][-1]
    assert (result["output_type"], result["data"], done["stdout"]) == ("execute_result", {"text/plain": "42"}, "")


def test_state_lasts_and_await_works_at_the_top_level(run, repl):
    run("const later = async (v) => { await new Promise((r) => setTimeout(r, 5)); return v; }; let n = 1", session_id=repl)
    done = run("n += await later(2); console.log(n)", session_id=repl)
    assert (done["stdout"], done["execution_count"], done["session_id"]) == ("3\n", 2, repl)


def test_a_constant_can_be_declared_again(run, repl):
    run("const again = 1", session_id=repl)
    assert run("const again = 2; again", session_id=repl)["outputs"][-1]["data"] == {"text/plain": "2"}


def test_import_statements_work_in_a_session(run, repl):
    done = run("import fs, {existsSync as there} from 'node:fs'\nimport * as path from 'path';\n[there('/'), fs.existsSync('/'), path.sep]",
               session_id=repl)
    assert done["outputs"][-1]["data"] == {"text/plain": "[ true, true, '/' ]"}


def test_an_error_keeps_the_state(run, repl):
    run("let kept = 1", session_id=repl)
    failed = run("kept = 2; throw new Error('no')", session_id=repl)
    assert (failed["status"], failed["exit_code"], failed["outputs"][-1]["evalue"]) == ("error", 1, "no")
    assert run("kept", session_id=repl)["outputs"][-1]["data"] == {"text/plain": "2"}


def test_what_fails_later_ends_nothing(run, repl):
    run("setTimeout(() => { throw new Error('late'); }, 1); let alive = 1", session_id=repl)
    eventually(lambda: "late" in run("alive", session_id=repl)["stderr"])


def test_stdin_and_files_of_a_session(run, repl):
    done = run("await new Promise((r) => process.stdin.on('data', (d) => { console.log('got ' + d); r(); })); require('./b.js')",
               session_id=repl, stdin="line", files={"b.js": "module.exports = 9"}, cwd="/tmp")
    assert done["stdout"] == "got line\n" and done["outputs"][-1]["data"] == {"text/plain": "9"}


def test_process_exit_ends_a_session_with_its_code(api, run):
    done = api.post("/v1/nodejs/execute", {"code": "console.log('bye'); process.exit(5)", "stateful": True}).json()
    assert (done["data"]["exit_code"], done["data"]["stdout"]) == (5, "bye\n") and "gone" in done["hint"]
    gone = api.http.get(f"/v1/nodejs/sessions/{done['data']['session_id']}")
    assert gone.status_code == 404


def test_values_of_every_kind_are_told(run, repl):
    for code, text in (("null", "null"), ("10n", "10n"), ("-0", "-0"), ("'s'", "'s'"), ("({a: 1})", "{ a: 1 }"), ("NaN", "NaN"),
                       ("(() => 1)", "[Function (anonymous)]"), ("Symbol('q')", "Symbol(q)")):
        assert run(code, session_id=repl)["outputs"][-1]["data"] == {"text/plain": text}, code
    assert run("undefined", session_id=repl)["outputs"] == []
    assert run("throw 3", session_id=repl)["outputs"][-1]["evalue"] == "3"


# --- sessions ---

def test_trap_14_requests_have_seconds_and_sessions_milliseconds(api):
    before = time.time() * 1000 - 1000
    made = api.data("/v1/nodejs/sessions", {"max_idle_time": 120})
    info = made["session"]
    assert made["created"] is True and info["max_idle_time"] == 120_000 and info["state"] == "IDLE"
    assert before < info["created_at"] <= info["last_used"] < before + 60_000 and info["age_seconds"] < 60
    api.http.delete(f"/v1/nodejs/sessions/{made['session_id']}")


def test_creating_a_session_again_gives_the_same(api):
    name = secrets.token_hex(4)
    first, second = (api.data("/v1/nodejs/sessions", {"session_id": name, "cwd": "/tmp"}) for _ in range(2))
    assert (first["created"], second["created"], second["session"]["cwd"]) == (True, False, "/tmp")
    assert list(api.data("/v1/nodejs/sessions", method="GET")["sessions"]).count(name) == 1
    assert api.http.delete(f"/v1/nodejs/sessions/{name}").json()["data"] == {"deleted": True}


def test_a_session_can_be_changed(api, run, repl):
    path = f"/v1/nodejs/sessions/{repl}"
    changed = api.data(path, {"max_idle_time": 60, "cwd": "/usr"}, method="PATCH")
    assert changed["updated"] is True and (changed["session"]["max_idle_time"], changed["session"]["cwd"]) == (60_000, "/usr")
    assert run("process.cwd()", session_id=repl)["outputs"][-1]["data"] == {"text/plain": "'/usr'"}
    failed = api.http.patch(path, json={"cwd": "/nowhere"}).json()
    assert failed["success"] is False and "/nowhere" in failed["message"]
    assert api.data(path, method="GET")["session"]["cwd"] == "/usr"


def test_trap_1_an_unknown_session_is_404_where_a_request_is_about_it(api):
    for method in ("GET", "PATCH", "DELETE"):
        answer = api.http.request(method, "/v1/nodejs/sessions/unheard-of", json={} if method == "PATCH" else None)
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


def test_trap_14_an_unknown_session_is_made_where_code_is_to_run(api):
    name = secrets.token_hex(4)
    answer = api.post("/v1/nodejs/execute", {"code": "1", "session_id": name}).json()
    assert answer["data"]["session_id"] == name and "new session" in answer["hint"]
    api.http.delete(f"/v1/nodejs/sessions/{name}")


def test_a_session_that_is_deleted_ends_its_processes(api, native):
    name = secrets.token_hex(4)
    api.data("/v1/nodejs/execute", {"code": "1", "session_id": name})
    sessions = lambda: [s for s in api.sessions() if s.get("label") == name]  # noqa: E731
    assert len(sessions()) == 1
    api.http.delete(f"/v1/nodejs/sessions/{name}")
    eventually(lambda: not sessions())


def test_an_idle_session_ends_and_a_used_one_does_not(launch, contract):
    launcher = launch(MAX_CODE_SESSIONS="2", CAISSON_WARM_SESSIONS="0")
    api = Api(launcher.url, launcher.key, contract)
    for name in ("a", "b", "c"):  # the one that is idle for longest makes room
        api.data("/v1/nodejs/sessions", {"session_id": name})
    assert set(api.data("/v1/nodejs/sessions", method="GET")["sessions"]) == {"b", "c"}


# --- versions ---

def test_info_tells_versions_and_packages(api, run):
    info = api.data("/v1/nodejs/info", method="GET")
    assert run("console.log(process.version)")["stdout"].strip() == info["node_version"]
    assert info["current_version"] == info["available_versions"][0] and info["supported_languages"] == ["javascript"]
    assert all(p["name"] and p["version"] for p in info["global_packages"]) and info["error"] is None


def test_versions_can_be_asked_for_by_all_their_names(api, run):
    version = api.data("/v1/nodejs/info", method="GET")["node_version"]
    major = version[1:].split(".")[0]
    for name in (major, f"node{major}", version):
        assert run("process.stdout.write(process.version)", version=name)["stdout"] == version
    made = api.http.post("/v1/nodejs/sessions", params={"version": major}, json={}).json()["data"]["session_id"]
    assert made in api.http.get("/v1/nodejs/sessions", params={"version": f"node{major}"}).json()["data"]["sessions"]
    assert api.http.get(f"/v1/nodejs/sessions/{made}", params={"version": "4"}).status_code == 404
    api.http.delete(f"/v1/nodejs/sessions/{made}", params={"version": major})


def test_a_version_that_is_absent_says_what_there_is(api):
    failed = api.fails("/v1/nodejs/execute", {"code": "1", "version": "node8"})
    assert "node8" in failed["message"] and api.data("/v1/nodejs/info", method="GET")["available_versions"][0] in failed["message"]


@pytest.mark.parametrize("path, body, where", [("execute", {"code": "1", "timeout": 301}, "timeout"), ("execute", {}, "code"),
                                               ("sessions", {"max_idle_time": 59}, "max_idle_time"),
                                               ("sessions", {"max_idle_time": 86401}, "max_idle_time")])
def test_a_wrong_request_is_422_and_names_the_field(api, path, body, where):
    answer = api.post(f"/v1/nodejs/{path}", body)
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", where]


def test_trap_13_any_accept_gets_json_and_a_failure_is_no_5xx(api):
    answer = api.post("/v1/nodejs/execute", {"code": "throw 1"}, headers={"Accept": "*/*"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
