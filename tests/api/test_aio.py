"""aio against a running server: each group of commands."""
import json
import os
import pathlib
import re
import secrets
import subprocess

import pytest
from aio_program import Aio, pack
from conftest import eventually
from screen import needs_desktop


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return pack(tmp_path_factory.mktemp("aio") / "aio")


@pytest.fixture(scope="module")
def aio(program, api):
    return Aio(program, api.url, api.key)


@pytest.fixture
def name(api):
    """Of a file in the home."""
    made = "aio-" + secrets.token_hex(4)
    yield made
    api.bash(f"rm -rf ~/{made}*")


def bash_sessions(api):
    return {one["session_id"] for one in api.data("/v1/bash/sessions", method="GET")}


# --- exec ---

def test_exec_gives_both_streams_and_the_exit_code(aio):
    done = aio("exec", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


@pytest.mark.parametrize("words, said", [
    (["--", "printf", "%s|", "a b", "c'd", "$HOME", ""], "a b|c'd|$HOME||"),
    (["printf", "%s|", "--json", "x"], "--json|x|"),
    (["printf '%s|' a $((1+1))"], "a|2|"),
    (["--", "echo $((1+1))"], None),
    (["--cwd", "/usr", "--", "pwd"], "/usr\n"),
    (["-e", "A=b c", "-e", "B", "echo $A$B"], "b cfrom here\n"),
])
def test_words_of_exec(aio, words, said):
    done = aio("exec", *words, B="from here")
    if said is None:
        assert done.returncode == 127  # a program of that name
    else:
        assert (done.returncode, done.stdout.decode(), done.stderr) == (0, said, b"")


@pytest.mark.parametrize("words, code", [(["kill -9 $$"], 137), (["exit 255"], 255), (["--", "-x"], 127)])
def test_exit_codes_are_the_commands(aio, words, code):
    assert aio("exec", *words).returncode == code


def test_a_timeout_of_exec_is_no_exit_code_of_the_command(aio):
    done = aio("exec", "--timeout", "0.5", "echo begun; sleep 60")
    assert (done.returncode, done.stdout, done.stderr) == (255, b"begun\n", b"aio: the command was ended after 0.5 s\n")


def test_output_comes_and_input_goes_while_the_command_runs(aio):
    with aio.start("exec", "echo one; read x; echo got $x; cat") as running:
        assert running.stdout.readline() == b"one\n"
        running.stdin.write(b"go\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"got go\n"
        assert running.communicate("end €".encode(), timeout=50) == ("end €".encode(), b"") and running.returncode == 0


def test_a_large_input_and_a_large_output_arrive_whole(aio):
    text = b"0123456789abcde\n" * 150_000
    assert aio("exec", "tee /dev/stderr | wc -c", input=text).stdout == b"2400000\n"
    assert aio("exec", "seq 200000").stdout == b"".join(b"%d\n" % n for n in range(1, 200001))


@pytest.mark.parametrize("given, read", [(b"\x04\n", b"\x04\n"), (b"a\x04b", b"a\x04b")])
def test_a_control_d_within_the_input_is_a_byte_of_it(aio, given, read):
    assert aio("exec", "cat", input=given).stdout == read


@pytest.mark.parametrize("given", [b"begins well, then \xff\xfe", b"\x04"])
def test_half_of_an_input_is_not_taken_for_all_of_it(aio, name, given):
    assert "stdin is" in aio.fails(255, "exec", f"cat >{name} && echo done", input=given)


def test_exec_goes_on_while_the_agent_is_replaced(aio, native):
    with aio.start("exec", "echo one; read x; echo two; read x; echo $x") as running:
        assert running.stdout.readline() == b"one\n"
        dying = native.agent_pid
        os.kill(dying, 9)
        # What reaches the dying one is lost, and ends the command (test_aio_alone).
        eventually(lambda: not pathlib.Path(f"/proc/{dying}").exists())
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"two\n"
        assert running.communicate(b"three\n", timeout=50) == (b"three\n", b"") and running.returncode == 0


def test_descriptors_that_are_closed_are_empty_and_take_everything(aio):
    def run(redirection, command):
        return subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *aio.argv("exec", command)], env=aio.environment, capture_output=True, check=False)

    assert run("<&-", "cat; echo end").stdout == b"end\n"
    assert (run(">&-", "echo out; exit 3").returncode, run("2>&-", "echo out >&2; exit 4").returncode) == (3, 4)


def test_exec_ends_though_its_stdin_stays_open(aio):
    with aio.start("exec", "echo done") as running:
        assert running.stdout.read() == b"done\n" and running.wait(50) == 0


def test_without_stdin_the_command_finds_its_end(aio):
    assert aio("exec", "-n", "cat; echo end", input=b"text").stdout == b"end\n"


@pytest.mark.parametrize("signal, code, name", [(2, 130, "INT"), (15, 143, "TERM")])
def test_an_interrupt_ends_the_command_after_its_last_words(aio, api, signal, code, name):
    before = bash_sessions(api)
    with aio.start("exec", f"trap 'echo bye; exit' {name}; echo ready; while :; do sleep 0.05; done") as running:
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(signal)
        assert running.communicate(timeout=50)[0] == b"bye\n" and running.returncode == code
    assert bash_sessions(api) <= before


def test_a_command_that_ignores_the_interrupt_is_ended_with_its_children(aio, api):
    before = bash_sessions(api)
    with aio.start("exec", "trap '' INT; sleep 600 & echo ready; wait; sleep 600") as running:
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(2)
        assert running.wait(50) == 130
    eventually(lambda: bash_sessions(api) <= before)


def test_a_reader_that_goes_away_ends_the_command_silently(aio, api):
    before = bash_sessions(api)
    with aio.start("exec", "while echo line; do sleep 0.01; done") as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(50) == 141 and running.stderr.read() == b""
    eventually(lambda: bash_sessions(api) <= before)


def test_exec_as_one_document(aio):
    made = json.loads(aio("exec", "--json", "echo out; echo err >&2; exit 3").stdout)
    assert (made["stdout"], made["stderr"], made["exit_code"], made["status"], made["end"]["reason"]) == ("out\n", "err\n", 3, "completed", "exit")


def test_what_exec_could_not_start_is_255(aio):
    assert "exec_dir does not exist" in aio.fails(255, "exec", "--cwd", "/nope", "true")
    assert "wrong API key" in aio.fails(255, "exec", "true", AIO_API_KEY="0123456789abcdef")


def test_a_workspace_is_named(aio, named):
    one = named()
    one.data("/v1/file/write", {"file": "theirs", "content": "x"})
    assert aio.text("exec", "--workspace", one.workspace, "ls") == "theirs\n"
    assert [entry["name"] for entry in aio.json("files", "ls", AIO_WORKSPACE=one.workspace)["files"] if entry["name"] == "theirs"]


# --- files ---

def test_files_go_there_and_back(aio, name, tmp_path):
    content = bytes(range(256)) * 20_000
    (tmp_path / name).write_bytes(content)
    sent = aio.json("files", "put", tmp_path / name, ".")
    assert sent["path"].endswith("/" + name) and sent["bytes"] == len(content)
    assert aio("files", "get", name, "-").stdout == content == aio("files", "cat", name).stdout
    got = aio.json("files", "get", name, "back", cwd=tmp_path)
    assert got["bytes"] == len(content) and (tmp_path / "back").read_bytes() == content
    assert aio.json("files", "put", "-", name + "-in", input=content)["bytes"] == len(content)
    assert aio.text("exec", f"cmp {name} {name}-in; ls -d {name}*").split() == [name, name + "-in"]


def test_nothing_is_replaced_unless_it_is_forced(aio, name, tmp_path):
    (tmp_path / "old").write_text("old")
    aio.text("exec", f"echo there >{name}; chmod 751 {name}")
    assert "--force" in aio.fails(1, "files", "put", tmp_path / "old", name)
    assert "--force" in aio.fails(6, "files", "get", name, tmp_path / "old")
    assert aio.text("files", "cat", name) == "there\n" and (tmp_path / "old").read_text() == "old"
    aio.text("files", "put", "--force", tmp_path / "old", name)
    assert aio.text("exec", f"cat {name}; stat -c %a {name}") == "old751\n"
    aio.text("files", "get", "--force", "/etc/hostname", tmp_path / "old")
    assert [entry.name for entry in tmp_path.iterdir()] == ["old"] and (tmp_path / "old").read_text() != "old"
    assert aio.text("exec", f"ls -d {name}*") == name + "\n"


def test_a_transfer_needs_little_memory(aio, name, tmp_path):
    """Of a file of 96 MiB, with 48 MiB for all data of the program."""
    with (tmp_path / name).open("wb") as file:
        file.truncate(96 << 20)
    for words in (["put", tmp_path / name, name], ["get", "-f", name, tmp_path / name]):
        done = subprocess.run(["prlimit", f"--data={48 << 20}", *aio.argv("files", *words)], env=aio.environment, capture_output=True, check=False)
        assert done.returncode == 0 and json.loads(done.stdout)["bytes"] == 96 << 20, done


def test_what_the_workspace_refuses_is_said(aio, name, tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    assert "/usr/file" in aio.fails(1, "files", "put", tmp_path / "file", "/usr")
    aio.text("exec", f"touch {name}; chmod 0 {name}")
    assert "Permission denied" in aio.fails(4, "files", "get", name, "-")


def test_a_program_stays_one(aio, name, tmp_path):
    (tmp_path / name).write_text("#!/bin/sh\necho runs\n")
    (tmp_path / name).chmod(0o755)
    aio.text("files", "put", tmp_path / name, name)
    assert aio.text("exec", f"./{name}") == "runs\n"


def test_folders_are_listed_searched_copied_and_removed(aio, name, tmp_path):
    aio.text("exec", f"mkdir -p {name}/sub; echo needle >{name}/sub/a.txt; touch {name}/b.py")
    assert {(one["name"], one["is_directory"]) for one in aio.json("files", "ls", name)["files"]} == {("sub", True), ("b.py", False)}
    assert re.search(r"^7\d\d .* sub/$", aio.text("files", "ls", name, "--human"), re.MULTILINE)
    assert aio.text("files", "find", "**/*.txt", name, "--human").endswith(f"{name}/sub/a.txt\n")
    assert aio.text("files", "grep", "NEEDLE", name, "-i", "--human").endswith("a.txt:1:needle\n")
    assert aio.json("files", "get", "-r", name, "copy", cwd=tmp_path)["files"] == 2
    assert (tmp_path / "copy/sub/a.txt").read_text() == "needle\n" and (tmp_path / "copy/b.py").is_file()
    assert "exists already" in aio.fails(6, "files", "get", "-r", name, "copy", cwd=tmp_path)
    assert "Is a directory" in aio.fails(1, "files", "rm", name)
    aio.text("files", "rm", "-r", f"~/{name}")
    assert "No such file" in aio.fails(5, "files", "ls", name)
    assert "No such file" in aio.fails(5, "files", "get", name, "-")


# --- code, sandbox, mcp ---

def test_code_runs_from_everywhere(aio, tmp_path):
    (tmp_path / "program.py").write_text("print(6 * 7)")
    assert aio.json("code", "python", tmp_path / "program.py")["stdout"] == "42\n"
    assert aio.text("code", "javascript", "-c", "console.log(6 * 7)", "--human") == "42\n"
    assert aio.text("code", "python", "--human", "--cwd", "/usr", input=b"import os; print(os.getcwd())") == "/usr\n"
    done = aio("code", "python", "-c", "print('before'); 1/0", "--human")
    assert (done.returncode, done.stdout) == (1, b"before\n") and done.stderr.endswith(b"ZeroDivisionError: division by zero\n")
    assert aio("code", "python", "-c", "while True: pass", "--timeout", "1").returncode == 8
    assert "either a file" in aio.fails(2, "code", "python", "-c", "1", "file")


def test_a_session_of_code_keeps_its_variables(aio, name):
    aio.text("code", "python", "-c", "x = 41", "--session", name)
    assert aio.text("code", "python", "-c", "print(x + 1)", "--session", name, "--human") == "42\n"


def test_the_sandbox_is_described(aio, api):
    assert aio.json("sandbox", "info")["home_dir"] == api.http.get("/v1/sandbox").json()["home_dir"]
    assert aio.text("sandbox", "info", "--human").startswith("System Environment (v")
    assert {"name", "version"} <= aio.json("sandbox", "packages", "python")[0].keys()
    assert set(aio.json("sandbox", "packages")) == {"python", "nodejs"}
    assert "memory" in aio.text("sandbox", "usage", "--human")
    assert aio.text("sandbox", "wait", "--human") == "ready\n"


def test_tools_are_listed_and_called(aio):
    assert "sandbox" in aio.text("mcp", "list", "--human").split()
    assert "sandbox sandbox_execute_bash cmd [cwd]" in aio.text("mcp", "tools", "sandbox", "--human")
    assert {tool["server"] for tool in aio.json("mcp", "tools")} >= {"sandbox", "browser"}
    result = aio.json("mcp", "call", "sandbox", "sandbox_execute_bash", "cmd=echo hi", "timeout=20")
    assert result["structuredContent"]["output"] == "hi"
    assert aio.json("mcp", "call", "sandbox", "sandbox_execute_bash", '{"cmd": "echo hi"}')["isError"] is False
    refused = aio("mcp", "call", "sandbox", "sandbox_execute_code", "language=cobol", "code=x")
    assert refused.returncode != 0 and (refused.stderr or json.loads(refused.stdout)["isError"])
    assert "not found" in aio.fails(5, "mcp", "call", "sandbox", "nope")


def test_a_skill_is_added_listed_shown_and_removed(aio, api, name, tmp_path):
    if api.http.get("/v1/skills/metadatas").status_code == 404:
        pytest.skip("this server has no /v1/skills")
    (tmp_path / name).mkdir()
    (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: told\n---\nthe text\n")
    assert [one["name"] for one in aio.json("skills", "add", tmp_path / name)["registered"]] == [name]
    assert name in [one["name"] for one in aio.json("skills", "list")["skills"]]
    assert "the text" in aio.text("skills", "show", name, "--human")
    assert aio.json("skills", "remove", name)["name"] == name
    gone = aio("skills", "show", name)
    assert gone.returncode == 1 and b"there is no skill" in gone.stderr


# --- browser and screen ---

PAGE = b"""<title>page</title><style>body {height: 4000px}</style><button id=press onclick="document.title = 'pressed'">Press me</button>
<input id=field value=old><select id=list><option value=a>A</option><option value=b>B</option></select><p>words</p>"""


@needs_desktop
def test_a_page_is_opened_used_and_read(aio, api, name, tmp_path):
    aio.text("files", "put", "-", name + ".html", input=PAGE)
    address = f"file://{api.http.get('/v1/sandbox').json()['home_dir']}/{name}.html"
    assert aio.json("browser", "navigate", address)["title"] == "page"
    assert "Press me" in aio.text("browser", "elements", "--human")
    aio.text("browser", "click", "#press")
    assert re.search(r"^\*  \d+  pressed  file:", aio.text("browser", "tabs", "--human"), re.MULTILINE)
    aio.text("browser", "fill", "new", "#field")
    aio.text("browser", "select", "#list", "--value", "b")
    assert aio.json("browser", "evaluate", "[field.value, list.value]") == ["new", "b"]
    assert "words" in aio.text("browser", "text", "--human") and "words" in aio.json("browser", "markdown")["markdown"]
    taken = aio.json("browser", "screenshot", "-o", tmp_path / "page.png")
    assert taken["content_type"] == "image/png" and (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG")
    assert aio("browser", "screenshot", "-o", "-", "--format", "jpeg").stdout.startswith(b"\xff\xd8")
    assert "Timeout" in aio.fails(1, "browser", "wait", "selector", "--selector", "#none", "--timeout", "0.5")


@needs_desktop
def test_the_screen_is_seen_and_used(aio, tmp_path):
    taken = aio.json("gui", "screenshot", "-o", tmp_path / "screen.png")
    assert taken["width"] > 0 and (tmp_path / "screen.png").read_bytes().startswith(b"\x89PNG")
    assert aio.json("gui", "click", "5", "5")["action_performed"] == "CLICK"
    assert aio.json("gui", "move", "10", "10")["action_performed"] == "MOVE_TO"
    assert aio.json("gui", "press", "shift+a")["action_performed"] == "HOTKEY"
    assert aio.json("gui", "scroll", "-1")["action_performed"] == "SCROLL"
    assert "both X and Y" in aio.fails(2, "gui", "click", "5")
    assert aio.json("gui", "record", "status")["status"] in ("idle", "stopped")


# --- alone ---

def test_it_runs_where_nothing_of_ours_is(program, aio, tmp_path):
    """Its bytes are all that it needs, and Python's own search path brings nothing along."""
    (tmp_path / "aio").write_bytes(program.read_bytes())
    (tmp_path / "aio").chmod(0o755)
    done = subprocess.run([tmp_path / "aio", "sandbox", "info"], cwd=tmp_path, env={**aio.environment, "PYTHONNOUSERSITE": "1"}, capture_output=True, check=True)
    assert json.loads(done.stdout)["version"]
