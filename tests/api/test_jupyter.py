"""/v1/jupyter: cells in real kernels. Numbers of traps are those of the contract's list "where a drop-in goes wrong"."""
import base64
import concurrent.futures
import json
import secrets
import struct
import time
import zlib

import pytest
from cells import FORGETFUL, Cells, error_of, needs_kernel, text_of
from conftest import NOT_FOUND, Api, eventually

pytestmark = needs_kernel


@pytest.fixture
def cells(api):
    """A session of the test's own."""
    made = Cells(api, "t-" + secrets.token_hex(6))
    yield made
    api.http.delete(f"/v1/jupyter/sessions/{made.session}")


def a_png() -> bytes:
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = zlib.compress(b"\0\xff\0\0" * 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


# --- the shapes of outputs ---

def test_trap_14_a_bare_expression_is_an_execute_result_and_not_stdout(cells):
    done = cells.run("6 * 7")
    assert (done["status"], done["execution_count"], done["code"]) == ("ok", 1, "6 * 7")
    only, = done["outputs"]
    assert (only["output_type"], only["data"], only["execution_count"]) == ("execute_result", {"text/plain": "42"}, 1)
    assert done["msg_id"] and done["session_id"] == cells.session and done["kernel_name"] == "python3"


def test_cd_gives_no_warning_where_ipython_remembers_no_directories(cells):
    done = cells.run(FORGETFUL + "%cd /usr")
    assert (text_of(done), text_of(done, "stderr")) == ("/usr\n", "")


def test_trap_14_a_failing_cell_is_an_error_output_and_keeps_what_came_before(cells):
    done = cells.run("print('before')\n1/0")
    assert done["status"] == "error" and text_of(done) == "before\n"
    error = error_of(done)
    assert (error["ename"], error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert any("1/0" in line for line in error["traceback"]) or "ZeroDivisionError" in "".join(error["traceback"])
    assert cells.value("1 + 1") == "2"


def test_trap_6_an_error_in_the_code_is_no_failure_of_the_tool(cells):
    assert cells.whole("raise SystemError('x')")["success"] is True


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream", "application/json"])
def test_trap_13_the_answer_is_json_whatever_is_accepted_and_never_a_5xx(cells, accept):
    answer = cells.api.post("/v1/jupyter/execute", {"code": "1/0", "session_id": cells.session}, headers={"Accept": accept}, timeout=120)
    assert answer.status_code == 200 and answer.json()["data"]["status"] == "error"


def test_streams_are_merged_and_keep_their_order(cells):
    done = cells.run("import sys\nfor i in range(3): print(i, flush=True)\nprint('e', file=sys.stderr, flush=True)\nprint('end')")
    assert [(o["name"], o["text"]) for o in done["outputs"]] == [("stdout", "0\n1\n2\n"), ("stderr", "e\n"), ("stdout", "end\n")]


def test_what_child_processes_and_c_code_write_belongs_to_their_cell(cells):
    assert cells.printed("import os\nos.system('echo from a child')\nNone") == "from a child\n"
    assert cells.printed("os.write(1, b'from a descriptor\\n'); None") == "from a descriptor\n"
    assert cells.printed("pass") == ""


def test_images_come_in_base64_with_their_type(cells):
    png = base64.b64encode(a_png()).decode()
    done = cells.run(f"import base64\nfrom IPython.display import Image, display\ndisplay(Image(data=base64.b64decode('{png}')))")
    only, = done["outputs"]
    assert only["output_type"] == "display_data" and base64.b64decode(only["data"]["image/png"]) == a_png()


def test_a_plot_comes_out_as_a_png(cells):
    if cells.value("import importlib.util as u; u.find_spec('matplotlib') is not None") != "True":
        pytest.skip("python3-matplotlib is not installed for sessions")
    done = cells.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()", timeout=120)
    images = [o["data"]["image/png"] for o in done["outputs"] if o["data"] and "image/png" in o["data"]]
    assert len(images) == 1 and base64.b64decode(images[0]).startswith(b"\x89PNG")


def test_displays_are_updated_and_cleared_as_in_a_notebook(cells):
    done = cells.run("from IPython.display import display, clear_output\nd = display('one', display_id=True)\nd.update('two')")
    assert [o["data"]["text/plain"] for o in done["outputs"]] == ["'two'"]
    done = cells.run("print('gone')\nclear_output()\nprint('stays')")
    assert text_of(done) == "stays\n"


def test_input_is_refused_and_does_not_wait(cells):
    assert error_of(cells.run("input('? ')"))["ename"] == "StdinNotImplementedError"


# --- sessions ---

def test_variables_live_as_long_as_the_session(cells):
    cells.run("x = 41")
    assert cells.value("x + 1") == "42"
    assert cells.api.http.delete(f"/v1/jupyter/sessions/{cells.session}").json()["success"] is True
    assert error_of(cells.run("x"))["ename"] == "NameError"  # the id is free again


def test_a_session_that_nobody_named_can_be_used_again_by_the_id_of_the_answer(api):
    first, second = Cells(api), Cells(api)
    first.run("x = 1")
    second.run("x = 2")
    assert first.session != second.session
    assert (first.value("x"), second.value("x")) == ("1", "2")
    for one in (first, second):
        api.http.delete(f"/v1/jupyter/sessions/{one.session}")


def test_create_returns_the_session_of_that_id_if_there_is_one(cells):
    made = cells.api.data("/v1/jupyter/sessions/create", {"session_id": cells.session, "cwd": "/usr"})
    assert (made["session_id"], made["kernel_name"], made["message"]) == (cells.session, "python3", "Session created")
    cells.run("x = 1")
    again = cells.api.data("/v1/jupyter/sessions/create", {"session_id": cells.session})
    assert again["message"] == "Session exists" and cells.value("x") == "1"
    assert cells.value("import os; os.getcwd()") == "'/usr'"


def test_the_list_names_each_session_with_its_kernel_and_age(cells):
    cells.run("pass")
    listed = cells.api.data("/v1/jupyter/sessions", method="GET")["sessions"][cells.session]
    assert listed["kernel_name"] == "python3" and 0 <= listed["age_seconds"] < 60
    assert abs(listed["last_used"] - time.time()) < 60


def test_an_unknown_session_cannot_be_deleted(api):
    answer = api.http.delete("/v1/jupyter/sessions/unheard-of")
    assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


@pytest.mark.parametrize("name", ["a/b", "..", "x" * 129, "a\nb"])
def test_an_id_that_cannot_be_part_of_a_path_is_refused(api, name):
    assert "session_id" in api.fails("/v1/jupyter/execute", {"code": "1", "session_id": name})["message"]


def test_cwd_is_where_the_code_runs_and_stays(cells):
    assert cells.value("import os; os.getcwd()", cwd="/tmp") == "'/tmp'"
    assert cells.value("os.getcwd()") == "'/tmp'"
    assert cells.value("os.getcwd()", cwd="/usr") == "'/usr'"


def test_a_cwd_that_is_not_there_runs_nothing(cells):
    assert "/nowhere" in cells.api.fails("/v1/jupyter/execute", {"code": "1", "session_id": cells.session, "cwd": "/nowhere"})["message"]
    cells.run("x = 1")
    assert "/nowhere" in cells.api.fails("/v1/jupyter/execute", {"code": "x = 2", "session_id": cells.session, "cwd": "/nowhere"})["message"]
    assert cells.value("x") == "1"


@pytest.mark.parametrize("timeout", [0, 301, "soon"])
def test_a_timeout_beyond_the_contract_is_422(api, timeout):
    answer = api.post("/v1/jupyter/execute", {"code": "1", "timeout": timeout})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "timeout"]


# --- kernels ---

def test_trap_14_kernels_are_named_as_they_are_installed(api, cells):
    info = api.data("/v1/jupyter/info", method="GET")
    assert info["default_kernel"] == info["available_kernels"][0] == "python3" and len(info["available_kernels"]) >= 2
    assert info["session_timeout_seconds"] == 1800 and info["max_sessions"] >= 1
    named = info["available_kernels"][1]
    assert cells.value("import sys; 'python%d.%d' % sys.version_info[:2]", kernel_name=named) == repr(named)
    assert cells.run("1")["kernel_name"] == named


def test_trap_14_a_kernel_that_is_absent_says_what_there_is(api):
    for path in ("/v1/jupyter/execute", "/v1/jupyter/sessions/create"):
        said = api.fails(path, {"code": "1", "kernel_name": "python3.99"})
        assert "'python3.99' is not installed" in said["message"] and "available: python3, python3." in said["message"]
        assert '--build-arg PYTHON_VERSIONS="3.10 3.11 3.12"' in said["hint"]


def test_only_a_python_that_is_absent_has_the_hint_on_how_to_build_it_in(api):
    for body in ({"code": "1", "kernel_name": "ir"}, {"code": "1", "kernel_name": "python3", "cwd": "/nowhere"}):
        assert api.fails("/v1/jupyter/execute", body)["hint"] is None


# Not another version, but what is found of one: a program in /opt/python that says so, and runs behind `first`.
OTHER = r"""mount -t tmpfs -o mode=755 none /opt && mkdir -p /opt/python/3.12.4/bin && cat > /opt/python/3.12.4/bin/python3 <<'END'
#!/bin/sh
if [ "$1" = -I ]; then echo 3 12 4 1; else first; exec /usr/bin/python3 "$@"; fi
END
chmod 755 /opt/python/3.12.4/bin/python3 && exec "$@" """


def with_other(launch, contract, first: str, **environment) -> Api:
    script = OTHER.replace("first", first)
    other = launch(before=["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"], **environment)
    return Api(other.url, other.key, contract)


def test_trap_14_other_pythons_below_opt_are_kernels_by_their_version(launch, contract):
    api = with_other(launch, contract, "export THIS_IS=other", PYTHON_VERSION="3.12")
    info = api.data("/v1/jupyter/info", method="GET")
    assert info["default_kernel"] == "python3.12" and "python3.12" in info["available_kernels"][2:]
    for name in (None, "python3", "python3.12"):
        done = Cells(api, f"s{name}").run("import os; os.environ.get('THIS_IS')", kernel_name=name)
        assert done["outputs"][0]["data"]["text/plain"] == "'other'" and done["kernel_name"] == (name or "python3.12")


def test_a_kernel_that_starts_slowly_starts(launch, contract):
    """Whatever it was asked meanwhile it answers at once, and must not stop itself by that."""
    api = with_other(launch, contract, "sleep 15")
    done = Cells(api, "slow").run("print('here'); 6 * 7", kernel_name="python3.12")
    assert done["status"] == "ok" and text_of(done) == "here\n"


def test_a_session_keeps_its_kernel(api, cells):
    cells.run("x = 1")
    named = api.data("/v1/jupyter/info", method="GET")["available_kernels"][1]
    assert cells.value("x", kernel_name=named) == "1"  # the same one by its other name


# --- time, and several clients ---

def test_a_cell_beyond_its_timeout_is_interrupted_and_keeps_what_it_printed(cells):
    began = time.monotonic()
    body = cells.whole("import time\nprint('partial', flush=True)\ntime.sleep(120)", timeout=5)
    assert time.monotonic() - began < 100
    done = body["data"]
    assert done["status"] == "timeout" and text_of(done) == "partial\n" and "interrupted after 5 s" in body["hint"]
    assert cells.value("1 + 1") == "2"  # the same kernel


def test_a_cell_that_ignores_the_interrupt_is_killed_with_its_kernel(cells):
    cells.run("x = 1")
    body = cells.whole("import time\nprint('partial', flush=True)\nwhile True:\n  try: time.sleep(9)\n  except KeyboardInterrupt: pass", timeout=5)
    assert body["data"]["status"] == "timeout" and text_of(body["data"]) == "partial\n"
    assert error_of(body["data"])["ename"] == "DeadKernelError"
    assert cells.session not in cells.api.data("/v1/jupyter/sessions", method="GET")["sessions"]
    assert error_of(cells.run("x"))["ename"] == "NameError"


@pytest.mark.parametrize("code", ["exit()", "quit()", "print('last words')\nexit()"])
def test_a_kernel_that_exit_ended_is_restarted_at_once(cells, code):
    cells.run("x = 1")
    done = cells.run(code)
    assert done["status"] == "ok" and "The kernel was restarted" in text_of(done, "stderr"), done
    assert ("last words" in code) == ("last words\n" in text_of(done))
    for _ in range(2):  # the first cell is sent while the old kernel ends
        assert cells.value("6 * 7") == "42"
    assert error_of(cells.run("x"))["ename"] == "NameError"
    assert cells.session in cells.api.data("/v1/jupyter/sessions", method="GET")["sessions"]


def test_a_forged_exit_costs_its_own_session_a_restart(cells):
    cells.run("get_ipython().payload_manager.write_payload({'source': 'ask_exit', 'keepkernel': None})")
    assert cells.value("6 * 7") == "42"


def test_cells_of_several_clients_run_one_after_another(cells):
    cells.run("n = 0; inside = 0")
    code = "import time\ninside += 1\nassert inside == 1\ntime.sleep(0.05)\nn += 1\ninside -= 1\nn"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        counts = sorted(int(v) for v in pool.map(lambda _: cells.value(code), range(8)))
    assert counts == list(range(1, 9))


def test_two_requests_for_one_new_session_share_its_kernel(api):
    name = "t-" + secrets.token_hex(6)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        kernels = set(pool.map(lambda _: Cells(api, name).value("import os; os.getpid(), open('/proc/self/stat').read().split()[21]"), range(4)))
    assert len(kernels) == 1
    api.http.delete(f"/v1/jupyter/sessions/{name}")


def test_a_client_that_leaves_ends_neither_its_cell_nor_the_session(cells):
    cells.run("done = 0")
    body = json.dumps({"session_id": cells.session, "code": "import time; open('/tmp/began', 'w'); time.sleep(1); done += 1"})
    with cells.api.raw() as raw:
        raw.send(cells.api.request("POST /v1/jupyter/execute", body, "Content-Type: application/json"))
        eventually(lambda: cells.api.bash("rm /tmp/began")["exit_code"] == 0)
    assert cells.value("done") == "1"


def test_a_session_that_is_deleted_while_it_runs_answers(cells):
    cells.run("pass")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(cells.run, "import time\nprint('began', flush=True)\ntime.sleep(3)\nopen('/tmp/began', 'w')\ntime.sleep(100)")
        eventually(lambda: cells.api.bash("rm /tmp/began")["exit_code"] == 0)
        assert cells.api.http.delete(f"/v1/jupyter/sessions/{cells.session}").json()["success"] is True
        done = running.result(60)
    assert done["status"] == "error" and error_of(done)["ename"] == "DeadKernelError" and text_of(done) == "began\n"


def test_kernels_need_no_network_and_no_shared_home(launch, contract):
    try:
        strict = launch(CAISSON_PRESET="finance")
    except AssertionError as why:
        if "weaker than" not in str(why) and "min_tier" not in str(why):
            raise
        pytest.skip("the preset demands a tier that is not to be had here")
    cells = Cells(Api(strict.url, strict.key, contract))
    assert cells.value("1 + 1") == "2"
    assert error_of(cells.run("import socket; socket.socket(socket.AF_INET)"))["ename"] == "PermissionError"


# --- limits, and kernels that are ready ---

def test_at_the_cap_the_longest_idle_session_makes_room_and_a_busy_one_never(launch, contract):
    small = launch(MAX_JUPYTER_SESSIONS="2")
    api = Api(small.url, small.key, contract)
    names = lambda: set(api.data("/v1/jupyter/sessions", method="GET")["sessions"])
    for name in ("a", "b", "c"):
        Cells(api, name).run("pass")
    assert names() == {"b", "c"}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wait = "import os, time\nopen('/tmp/run-%s', 'w')\nwhile os.path.exists('/tmp/run-%s'): time.sleep(0.05)"
        running = [pool.submit(Cells(api, name).run, wait % (name, name)) for name in ("b", "c")]
        eventually(lambda: api.bash("ls /tmp/run-b /tmp/run-c")["exit_code"] == 0)
        assert "all 2 jupyter sessions" in api.fails("/v1/jupyter/execute", {"code": "1", "session_id": "d"})["message"]
        api.bash("rm /tmp/run-*")
        assert [r.result(60)["status"] for r in running] == ["ok", "ok"]


def test_idle_sessions_end(launch, contract):
    quick = launch(CAISSON_JUPYTER_IDLE_SECONDS="1")
    api = Api(quick.url, quick.key, contract)
    Cells(api, "idle").run("pass")
    assert api.data("/v1/jupyter/info", method="GET")["session_timeout_seconds"] == 1
    assert eventually(lambda: not api.data("/v1/jupyter/sessions", method="GET")["sessions"], 60)


@pytest.fixture(scope="module")
def ready(launch, contract):
    """A launcher that has kernels ready before the first request."""
    launcher = launch(CAISSON_KERNEL_POOL="1")
    return Api(launcher.url, launcher.key, contract)


def started(cells) -> float:
    """When the kernel's process began, in seconds of the machine's uptime."""
    return int(cells.value("open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19]")[1:-1]) / 100


def uptime() -> float:
    return float(open("/proc/uptime").read().split()[0])


def prepared(api) -> int:
    return sum(s["domain"] == "jupyter" for s in api.sessions())


def test_a_first_cell_runs_in_a_kernel_that_was_started_before_it_was_asked_for(ready):
    eventually(lambda: prepared(ready) == 1, 60)

    def first_cell_was_expected(pause):
        time.sleep(pause)  # a session is in the list before its kernel runs, and a kernel that was taken is replaced
        asked = uptime()
        first = Cells(ready)
        warm = started(first) < asked
        ready.http.delete(f"/v1/jupyter/sessions/{first.session}")
        return warm
    assert any(map(first_cell_was_expected, (0.5, 1, 2, 4, 8, 16)))


def test_a_prepared_kernel_is_used_once_and_replaced(ready):
    kernels = set()
    for _ in range(3):
        one = Cells(ready)
        kernels.add(one.value("import os; open('/proc/sys/kernel/random/boot_id').read(), open('/proc/self/stat').read().split()[21]"))
        assert one.run("left = 1")["status"] == "ok"
        assert ready.http.delete(f"/v1/jupyter/sessions/{one.session}").json()["success"] is True
        assert error_of(Cells(ready, one.session).run("left"))["ename"] == "NameError"
        ready.http.delete("/v1/jupyter/sessions")
    assert len(kernels) == 3
    eventually(lambda: prepared(ready) == 1, 60)
