"""The official Python SDK, unmodified: every method of bash.*, shell.*, jupyter.*, code.*, nodejs.* and sandbox.* in the way users call them.
The SDK's own models check required fields; every raw body is also validated against the contract (see conftest.Api.check)."""
import os
import re

import httpx
import pytest
import sdk
from cells import needs_kernel
from conftest import NOT_FOUND, Api

agent_sandbox = pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")
from agent_sandbox import Sandbox  # noqa: E402
from agent_sandbox.core.api_error import ApiError  # noqa: E402
from agent_sandbox.errors import UnprocessableEntityError  # noqa: E402

AREAS = ("bash", "shell", "jupyter", "code", "nodejs", "sandbox")


@pytest.fixture(scope="module")
def sandbox(api, contract):
    return sdk.sandbox_of(api)


@pytest.fixture(scope="module")
def recorded(sandbox, contract):
    return {area: sdk.Recorded(getattr(sandbox, area), area, contract) for area in AREAS}


@pytest.fixture(scope="module")
def bash(recorded):
    return recorded["bash"]


@pytest.fixture(scope="module")
def shell(recorded):
    return recorded["shell"]


@pytest.fixture(scope="module")
def jupyter(recorded):
    return recorded["jupyter"]


@pytest.fixture(scope="module")
def code(recorded):
    return recorded["code"]


@pytest.fixture(scope="module")
def nodejs(recorded):
    return recorded["nodejs"]


@pytest.fixture(scope="module")
def box(recorded):
    return recorded["sandbox"]


# --- sandbox ---

def test_trap_15_get_context_describes_the_environment(box):
    context = box.get_context()
    assert context.home_dir and context.detail.system.arch
    assert context.data.startswith(f"System Environment (v{context.version})")
    assert all(isinstance(port, str) for port in context.detail.system.occupied_ports)


def test_trap_15_the_home_of_the_context_is_the_home_of_the_sessions(sandbox, bash):
    assert bash.exec(command="printf %s $HOME").data.stdout == sandbox.sandbox.get_context().home_dir


def test_the_runtimes_of_the_context_exist_in_sessions(sandbox, bash):
    runtime = sandbox.sandbox.get_context().detail.runtime
    programs = [entry.bin for entry in [*runtime.python, *runtime.nodejs]]
    assert programs and bash.exec(command="ls " + " ".join(programs)).data.exit_code == 0


def test_the_packages_of_both_languages_are_names_and_versions(box):
    for listed in (box.get_python_packages(), box.get_nodejs_packages()):
        assert listed.success is True and all(p["name"] and p["version"] for p in listed.data)


def test_a_hook_is_registered_listed_and_removed(box):
    made = box.register_hook(name="sdk-hook", command="true", timeout=5, priority=7).data
    assert (made.name, made.event, made.source, made.priority) == ("sdk-hook", "shutdown", "api", 7)
    assert [h.name for h in box.list_hooks(event="shutdown").data] == ["sdk-hook"]
    assert box.remove_hook("sdk-hook").success is True and box.list_hooks().data == []


def test_a_hook_s_wrong_name_is_the_sdks_validation_error(box):
    with pytest.raises(UnprocessableEntityError) as raised:
        box.register_hook(name="not a name", command="true")
    assert raised.value.body.detail[0].loc == ["body", "name"]


def test_an_observation_from_beginning_to_end(box, sandbox):
    """The methods of newer SDKs, where this one has them."""
    if not hasattr(sandbox.sandbox, "observe_start"):
        pytest.skip("this SDK has no observe_* (the operations are tested in test_sandbox_observe.py)")
    begun = box.observe_start(mode="capture", interval_seconds=0.5).data
    assert box.observe_status().data.session_id == begun.session_id
    assert box.observe_live(top_rows=3).data.mode == "capture"
    assert box.observe_stop().data.stopped is True
    report = box.observe_export(session_id=begun.session_id).data.report_id
    assert report in [r.report_id for r in box.observe_reports().data]
    assert b"".join(box.observe_report_download(report))[:2] == b"\x1f\x8b"
    assert box.observe_report_delete(report).data.report_id == report


# --- bash ---

def test_bash_exec_answers_the_whole_result(bash):
    done = bash.exec(command="echo out; echo err >&2; exit 2", env={"A": None, "B": "x"}, timeout=30)
    assert done.success is True
    assert (done.data.stdout, done.data.stderr, done.data.exit_code) == ("out\n", "err\n", 2)


def test_bash_a_build_that_is_polled_to_its_end(bash):
    session = bash.create_session().data.session_id
    began = bash.exec(command="for i in 1 2 3; do echo step $i; read -t 0.1 x; done", session_id=session, async_mode=True).data
    text, offset = "", 0
    while True:
        got = bash.output(session_id=session, command_id=began.command_id, offset=offset, wait=True, wait_timeout=10).data
        text, offset = text + got.stdout, got.offset
        if got.command.status == "completed":
            break
    text += bash.output(session_id=session, command_id=began.command_id, offset=offset).data.stdout
    assert text == "step 1\nstep 2\nstep 3\n"
    bash.close_session(session)


def test_bash_a_program_that_asks_and_is_answered(bash):
    session = bash.create_session(exec_dir="/tmp").data.session_id
    bash.exec(command="read -p 'name? ' n; echo hello $n", session_id=session, async_mode=True)
    assert bash.write(session_id=session, input="you\n").success is True
    got = bash.output(session_id=session, wait=True, wait_timeout=10).data
    assert got.stdout == "hello you\n" or got.command.status == "running"
    bash.close_session(session)


def test_bash_a_server_that_is_started_listed_and_killed(bash):
    session = bash.create_session().data.session_id
    bash.exec(command="python3 -m http.server 0", session_id=session, async_mode=True)
    mine = next(s for s in bash.sessions().data if s.session_id == session)
    assert mine.current_command == "python3 -m http.server 0"
    assert bash.kill(session_id=session, signal="SIGKILL").success is True
    bash.output(session_id=session, wait=True, wait_timeout=10)
    assert bash.output(session_id=session).data.command.status == "killed"
    bash.close_session(session)


def test_bash_close_session_makes_it_unknown(bash):
    session = bash.create_session().data.session_id
    assert bash.close_session(session).success is True
    with pytest.raises(ApiError) as raised:
        bash.exec(command="true", session_id=session)
    assert (raised.value.status_code, raised.value.body) == (404, NOT_FOUND)


def test_a_failing_tool_is_returned_and_not_raised(bash):
    done = bash.exec(command="pwd", exec_dir="/nowhere")
    assert done.success is False and "/nowhere" in done.message


# --- shell ---

def test_shell_a_session_from_beginning_to_end(shell):
    made = shell.create_session(exec_dir="/tmp", no_change_timeout=60).data
    assert made.working_dir == "/tmp"
    done = shell.exec_command(id=made.session_id, command="cd /usr && pwd").data
    assert (done.status, done.output, done.exit_code) == ("completed", "/usr", 0)
    seen = shell.view(id=made.session_id).data
    assert seen.command == "cd /usr && pwd" and seen.console[-1].output == "/usr"
    assert shell.list_sessions().data.sessions[made.session_id].working_dir == "/usr"
    assert shell.cleanup_session(made.session_id).success is True


def test_shell_a_question_that_is_answered(shell):
    session = shell.create_session().data.session_id
    assert shell.exec_command(id=session, command="read x; echo got $x", timeout=0.3).data.status == "running"
    assert shell.write_to_process(id=session, input="this", press_enter=True).data.status in ("running", "completed")
    assert shell.wait_for_process(id=session, seconds=60).data.status == "completed"
    assert any(line.endswith("got this") for line in shell.view(id=session).data.output.splitlines())  # the prompt may not be there yet
    shell.cleanup_session(session)


def test_shell_a_command_that_is_killed(shell):
    session = shell.create_session().data.session_id
    shell.exec_command(id=session, command="sleep 60", async_mode=True)
    assert shell.kill_process(id=session).data.status == "terminated"
    shell.cleanup_session(session)


def test_shell_settings_can_be_updated(shell):
    session = shell.create_session(id="sdk-updated").data.session_id
    assert session == "sdk-updated"
    assert shell.update_session(id=session, no_change_timeout=1).success is True
    assert shell.exec_command(id=session, command="sleep 60").data.status == "no_change_timeout"
    shell.cleanup_session(session)


def test_shell_stats_and_terminal_url(shell):
    assert "/terminal?session_id=" in shell.get_terminal_url().data
    stats = shell.get_session_stats().data
    assert stats.total_sessions >= 1 and stats.max_sessions >= stats.total_sessions


# --- code and nodejs ---

def test_code_runs_both_languages(code):
    python = code.execute_code(language="python", code="print(1)\n2 + 3", timeout=None, cwd=None, session_id=None).data
    assert (python.status, python.stdout, python.exit_code, python.outputs[-1]["data"]["text/plain"]) == ("ok", "1\n", 0, "5")
    assert code.execute_code(language="javascript", code="console.log(2)").data.stdout == "2\n"


def test_code_keeps_variables_and_tells_errors(code):
    session = code.execute_code(language="python", code="x = 1", stateful=True).data.session_id
    failed = code.execute_code(language="python", code="x / 0", session_id=session).data
    assert (failed.status, failed.exit_code) == ("error", 1) and failed.traceback[-1] == "ZeroDivisionError: division by zero"


def test_code_info_lists_the_languages(code):
    assert {entry.language for entry in code.get_info().data.languages} == {"python", "javascript"}


def test_nodejs_a_session_from_beginning_to_end(nodejs):
    made = nodejs.create_session(session_id=None, cwd="/tmp", max_idle_time=600).data
    assert made.created is True and made.session.max_idle_time == 600_000
    session = made.session_id
    nodejs.execute_code(code="let x = await Promise.resolve(1)", session_id=session)
    assert nodejs.execute_code(code="x + 1", session_id=session, stateful=True).data.outputs[0].data == {"text/plain": "2"}
    assert nodejs.update_session(session, max_idle_time=60, cwd="/usr").data.session.cwd == "/usr"
    assert nodejs.get_session(session).data.session.state == "IDLE" and session in nodejs.list_sessions().data.sessions
    assert nodejs.delete_session(session).data.deleted is True


def test_nodejs_files_and_input(nodejs):
    done = nodejs.execute_code(code="console.log(require('./a').x + require('fs').readFileSync(0, 'utf8'))", stdin="in",
                               files={"a.js": "exports.x = 'file '", "b.js": None}, timeout=30, version=None).data
    assert (done.stdout, done.exit_code, done.language) == ("file in\n", 0, "javascript")


def test_nodejs_info_names_the_version(nodejs):
    info = nodejs.get_info().data
    assert info.node_version.startswith("v") and info.current_version in info.available_versions


def test_shell_create_session_without_an_argument_sends_no_body_and_works(shell):
    assert shell.create_session().data.session_id


def test_shell_nulls_are_absent_fields(shell):
    made = shell.create_session(id=None, exec_dir=None, no_change_timeout=None, preserve_symlinks=None)
    done = shell.exec_command(id=made.data.session_id, command="echo x", exec_dir=None, timeout=None, strict=None,
                              no_change_timeout=None, hard_timeout=None, preserve_symlinks=None)
    assert done.data.output == "x"


def test_an_unknown_shell_session_is_an_api_error_with_404(shell):
    with pytest.raises(ApiError) as raised:
        shell.view(id="unheard-of")
    assert (raised.value.status_code, raised.value.body) == (404, NOT_FOUND)


def test_a_missing_field_is_the_sdks_validation_error(shell):
    with pytest.raises(UnprocessableEntityError) as raised:
        shell.exec_command(command=None)
    assert raised.value.body.detail[0].loc == ["body", "command"]


# --- jupyter ---

@needs_kernel
def test_jupyter_a_notebook_from_beginning_to_end(jupyter):
    made = jupyter.create_session(session_id="sdk-notebook", kernel_name="python3", cwd="/tmp").data
    assert (made.session_id, made.kernel_name) == ("sdk-notebook", "python3")
    jupyter.execute_code(code="import os; x = 20", session_id=made.session_id)
    done = jupyter.execute_code(code="print(os.getcwd())\nx + 22", session_id=made.session_id, timeout=30).data
    assert (done.status, done.execution_count, done.session_id) == ("ok", 2, made.session_id)
    assert [o.output_type for o in done.outputs] == ["stream", "execute_result"]
    assert done.outputs[0].text == "/tmp\n" and done.outputs[1].data["text/plain"] == "42"
    assert jupyter.list_sessions().data.sessions[made.session_id].kernel_name == "python3"
    assert jupyter.delete_session(made.session_id).success is True


@needs_kernel
def test_trap_14_jupyter_an_exception_is_an_output_and_not_raised(jupyter):
    done = jupyter.execute_code(code="1/0")
    assert done.success is True and done.data.status == "error"
    assert (done.data.outputs[0].ename, bool(done.data.outputs[0].traceback)) == ("ZeroDivisionError", True)
    jupyter.delete_session(done.data.session_id)


@needs_kernel
def test_jupyter_info_names_kernels_that_work(jupyter):
    info = jupyter.get_info().data
    assert info.default_kernel in info.available_kernels and info.max_sessions >= 1
    for name in info.available_kernels:
        done = jupyter.execute_code(code="1", kernel_name=name, session_id=None, cwd=None, timeout=None).data
        assert (done.status, done.kernel_name) == ("ok", name)


@needs_kernel
def test_jupyter_create_session_without_an_argument_sends_no_body_and_works(jupyter):
    assert jupyter.create_session().data.session_id in jupyter.list_sessions().data.sessions
    assert jupyter.delete_sessions().success is True
    assert jupyter.list_sessions().data.sessions == {}


@pytest.fixture
def alone(request, contract):
    """A server whose sessions are nobody else's: a launcher of its own, or the one at CAISSON_URL, which serves nobody but this run."""
    if "CAISSON_URL" in os.environ:
        return request.getfixturevalue("api")
    launcher = request.getfixturevalue("launch")()
    return Api(launcher.url, launcher.key, contract)


def test_cleanup_all_sessions_closes_them(alone, contract):
    shell = sdk.Recorded(sdk.sandbox_of(alone).shell, "shell", contract)
    shell.create_session()
    assert shell.cleanup_all_sessions().success is True
    assert shell.list_sessions().data.sessions == {}


@pytest.mark.parametrize("header", ["X-AIO-API-Key", "Authorization"])
def test_the_key_in_either_header_works(api, header):
    value = api.key if header != "Authorization" else f"Bearer {api.key}"
    client = Sandbox(base_url=api.url, headers={header: value}, httpx_client=httpx.Client(trust_env=False, timeout=60))
    assert client.sandbox.get_context().success is True


def test_a_wrong_key_is_an_api_error_with_401(api):
    client = Sandbox(base_url=api.url, headers={"X-AIO-API-Key": "wrong"}, httpx_client=httpx.Client(trust_env=False, timeout=60))
    with pytest.raises(ApiError) as raised:
        client.sandbox.get_context()
    assert raised.value.status_code == 401


def test_the_asynchronous_client_works_too(api):
    import asyncio

    async def use():
        headers = {"X-AIO-API-Key": api.key}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            client = agent_sandbox.AsyncSandbox(base_url=api.url, headers=headers, httpx_client=http)
            return await asyncio.gather(*[client.bash.exec(command=f"echo {n}") for n in range(10)])
    assert [r.data.stdout for r in asyncio.run(use())] == [f"{n}\n" for n in range(10)]


@needs_kernel
def test_every_method_of_the_areas_was_called(recorded):
    assert {area: one.uncalled() for area, one in recorded.items() if one.uncalled()} == {}


def test_every_checked_answer_was_valid_and_had_no_field_beyond_the_contract(contract):
    areas = ("/v1/bash", "/v1/shell", "/v1/sandbox", "/v1/jupyter", "/v1/code", "/v1/nodejs")
    served = {name for name in contract.checked if name.split(" ")[1].startswith(areas)}
    assert len(served) >= 29
    # `end` is ours: why what was started is over, beside the contract's own fields.
    extra = {name: sorted(f for f in contract.extra[name] if not re.search(r"\bend$", f)) for name in served}
    beyond = {name: fields for name, fields in extra.items() if fields}
    # A process is known by its number and its session: the contract has the number only.
    assert beyond.pop("GET /v1/sandbox/observe/live", []) in ([], ["data.top_processes[].session_id"])
    assert beyond == {}
