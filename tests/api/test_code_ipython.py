"""IPython's syntax in /v1/code/execute: code that was written for notebooks runs, and plain code pays nothing for that."""
import secrets
import subprocess

import pytest
from cells import FORGETFUL

# Of the sessions' own interpreter, which is Debian's.
INSTALLED = subprocess.run(["/usr/bin/python3", "-I", "-c", "import IPython"], capture_output=True, check=False).returncode == 0
pytestmark = pytest.mark.skipif(not INSTALLED, reason="python3-ipython is not installed (scripts/setup --test)")


@pytest.fixture
def run(api):
    def execute(code: str, **fields) -> dict:
        return api.data("/v1/code/execute", {"language": "python", "code": code, "timeout": 60, **fields})
    return execute


@pytest.fixture(params=["alone", "in a session"])
def both(request, run):
    """Runs code once for itself, or in a session that keeps its state."""
    fields = {} if request.param == "alone" else {"session_id": secrets.token_hex(4)}
    return lambda code, **more: run(code, **fields, **more)


def test_commands_of_the_shell_run_in_order_with_what_is_printed(both):
    done = both("word = 'of'\nprint('a')\n!echo b {word} $word; echo e >&2\nprint('c')\nfound = !echo d\nprint(found)")
    assert (done["status"], done["exit_code"], done["stdout"], done["stderr"]) == ("ok", 0, "a\nb of of\nc\n['d']\n", "e\n")


def test_a_command_that_fails_leaves_its_code_and_ends_nothing(both):
    assert both("!exit 3\nprint(_exit_code)")["stdout"] == "3\n"


@pytest.mark.parametrize("code, wanted", [
    ("%cd /usr\nimport os; print(os.getcwd())", "/usr\n/usr\n"),
    ("%%bash\ncd /usr\npwd", "/usr\n"),
    ("%timeit -n1 -r1 pass", "1 loop each)\n"),
    ("%pip --version", " from "),
    ("pip --version", " from "),
    ("ls -d /usr", "/usr"),
    ("len?", "Return the number of items in a container."),
    ("import asyncio\n%cd -q /usr\nawait asyncio.sleep(0)\nprint('slept')", "slept\n"),
    ("get_ipython().system('echo called')", "called\n"),
    (">>> print('pasted')", "pasted\n"),
])
def test_what_notebooks_take_runs(run, code, wanted):
    done = run(code)
    assert (done["status"], done["stderr"]) == ("ok", "") and wanted in done["stdout"]


def test_the_last_expression_is_a_result_as_without_magics(both):
    assert both("!true\n6 * 7")["outputs"] == [
        {"output_type": "execute_result", "data": {"text/plain": "42"}, "metadata": {}, "execution_count": 1}]


def test_an_error_keeps_its_name_its_line_and_its_exit_code(both):
    done = both("!echo first\n1/0")
    assert (done["exit_code"], done["stdout"], done["outputs"][-1]["ename"]) == (1, "first\n", "ZeroDivisionError")
    assert "    1/0" in done["traceback"] and not any("caisson" in line for line in done["traceback"])
    assert both("!true\nraise SystemExit(7)")["exit_code"] == 7
    assert both("%%bash\nexit 3")["outputs"][-1]["ename"] == "CalledProcessError"
    assert both("%no_such_magic")["outputs"][-1]["ename"] == "UsageError"


def test_what_is_no_syntax_at_all_stays_a_syntax_error(both):
    for code in ("x = (", "x = (\n!ls", "print 'x'", "def f(:\n  pass"):
        done = both(code)
        assert (done["exit_code"], done["outputs"][-1]["ename"]) == (1, "SyntaxError")
    assert both("undefined")["outputs"][-1]["ename"] == "NameError"


def test_what_is_displayed_is_listed_by_media_type(both):
    shown = both("%cd -q /usr\nfrom IPython.display import HTML\ndisplay(HTML('<b>x</b>'))")["outputs"]
    assert [o["data"]["text/html"] for o in shown] == ["<b>x</b>"]


def test_plain_code_does_not_import_ipython(both):
    code = "import asyncio, sys\nawait asyncio.sleep(0)\nprint([m for m in sys.modules if m.split('.')[0] in ('IPython', 'traitlets')])"
    assert both(code)["stdout"] == "[]\n"


def test_a_session_keeps_what_magics_did(run):
    name = secrets.token_hex(4)
    run("%cd /usr\nfound = !echo kept", session_id=name)
    assert run("import os\nprint(os.getcwd(), found)", session_id=name)["stdout"] == "/usr ['kept']\n"


def test_a_timeout_interrupts_a_command_and_keeps_the_session(run):
    name = secrets.token_hex(4)
    run("!true\nkept = 1", session_id=name)  # IPython is there then, which takes its time
    late = run("!echo begins; sleep 600", session_id=name, timeout=6)
    assert (late["status"], late["stdout"]) == ("timeout", "begins\n")
    assert run("!echo $kept", session_id=name)["stdout"] == "1\n"


def test_without_ipython_the_error_says_what_is_missing(run):
    name = secrets.token_hex(4)
    run("import sys; sys.modules['IPython'] = None", session_id=name)
    done = run("print('never')\n!ls /usr", session_id=name)
    error = done["outputs"][-1]
    assert (done["stdout"], error["ename"]) == ("", "ModuleNotFoundError")
    assert error["evalue"].startswith("!ls /usr is IPython's syntax, and this Python (/") and "pip install ipython" in error["evalue"]
    assert run("x = (", session_id=name)["outputs"][-1]["ename"] == "SyntaxError"


def test_cd_gives_no_warning_where_ipython_remembers_no_directories(both):
    done = both(FORGETFUL + "%cd /usr")
    assert (done["stdout"], done["stderr"]) == ("/usr\n", "")
