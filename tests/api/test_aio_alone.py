"""aio against a server that says what a test wants: credentials, hostile answers, terminals, completion, and its own papers."""
import ast
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

import pytest
from aio_program import SOURCE, Aio, FakeServer, form_of, pack, terminal

sys.path.append(str(SOURCE.parent))

KEY = "key-" + "k" * 20
NASTY = "\x1b]0;owned\x07\u202e\x9b31m\r\n"
SHOWN = "\\e]0;owned\\x07\\u202e\\x9b31m\\r\\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return pack(tmp_path_factory.mktemp("aio") / "aio")


@pytest.fixture
def fake():
    one = FakeServer()
    yield one
    one.close()


@pytest.fixture
def aio(program, fake):
    return Aio(program, fake.url, KEY)


def refusal(status, message="no"):
    return status, {"Content-Type": "application/json"}, json.dumps({"success": False, "message": message}).encode()


# --- credentials ---

@pytest.mark.parametrize("environment, header, value", [
    ({"AIO_TOKEN": "t1", "AIO_API_KEY": "k1"}, "Authorization", "Bearer t1"),
    ({"AIO_API_KEY": "k1", "SANDBOX_API_KEY": "k2"}, "X-AIO-API-Key", "k1"),
    ({"AIO_API_KEY": None, "SANDBOX_API_KEY": "k2"}, "X-AIO-API-Key", "k2"),
    ({"AIO_API_KEY": None}, "X-AIO-API-Key", None),
])
def test_one_credential_is_sent(aio, fake, environment, header, value):
    fake.answers["GET /v1/mcp/servers"] = []
    aio.json("mcp", "list", **environment)
    [(_, _, headers, _)] = fake.requests
    assert headers[header] == value
    assert [name for name in ("Authorization", "X-AIO-API-Key") if headers[name]] == ([header] if value else [])


def test_a_key_file_counts_first_and_is_nobody_elses(aio, fake, tmp_path):
    fake.answers["GET /v1/mcp/servers"] = []
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o600)
    aio.json("mcp", "list", "--key-file", file, AIO_TOKEN="t")
    assert fake.requests[0][2]["X-AIO-API-Key"] == "from-file" and not fake.requests[0][2]["Authorization"]
    file.chmod(0o640)
    assert "chmod 600" in aio.fails(6, "mcp", "list", "--key-file", file)
    assert "No such file" in aio.fails(6, "mcp", "list", "--key-file", tmp_path / "none")
    assert "not a regular file" in aio.fails(6, "mcp", "list", "--key-file", "/dev/null")
    file.write_bytes(b"two words")
    file.chmod(0o600)
    assert "two words" not in aio.fails(2, "mcp", "list", "--key-file", file)
    assert len(fake.requests) == 1


def test_the_key_goes_to_no_other_address_and_into_no_message(aio, fake):
    other = FakeServer()
    fake.answers["GET /v1/mcp/servers"] = (302, {"Location": other.url + "/v1/mcp/servers"}, b"")
    said = aio.fails(7, "mcp", "list")
    assert other.url in said and not other.requests
    fake.answers["GET /v1/mcp/servers"] = refusal(401)
    refused = aio.fails(4, "mcp", "list", http_proxy=other.url, ALL_PROXY=other.url)
    assert "AIO_API_KEY" in refused and KEY not in said + refused and not other.requests
    other.close()


@pytest.mark.parametrize("url", ["http://user:pass@host", "ftp://host", "host:8080", "http://host/?a=b", "http://host:99999", "http://", "http://a b"])
def test_addresses_that_are_none(aio, url):
    said = aio.fails(2, "mcp", "list", "--api-url", url)
    assert "--api-url" in said and "pass" not in said.replace("password", "")


# --- answers ---

@pytest.mark.parametrize("answer, code, said", [
    (refusal(403, "no scope"), 4, "no scope"), (refusal(404, "gone"), 5, "gone"), (refusal(200, "tool failed"), 1, "tool failed"),
    (refusal(409, "changed"), 1, "changed"), (refusal(500, "broken"), 7, "broken"), (refusal(429, "later"), 1, "later"),
    ((422, {}, b'{"detail": [{"loc": ["body", "url"], "msg": "Field required", "type": "missing"}]}'), 2, "body.url: Field required"),
    ((200, {}, b"<html>"), 7, "no JSON"), ((200, {}, b"[" * 100_000), 7, "no JSON"), ((200, {}, b"[]"), 7, "no JSON"),
    ((200, {"Content-Length": "1000", "Connection": "close"}, b"{}"), 7, "too early"), (refusal(200, NASTY), 1, SHOWN), (refusal(404, "x" * 100_000), 5, "x" * 1000),
    ((200, {}, b'{"success": true, "data": {"tools": 5}}'), 0, None),
])
def test_answers_become_codes_and_one_line(aio, fake, answer, code, said):
    fake.answers["GET /v1/mcp/servers"] = answer
    done = aio("mcp", "list")
    assert done.returncode == code and len(done.stderr) < 3000, done
    if said:
        assert said in done.stderr.decode() and done.stderr.count(b"\n") == 1 and not done.stdout


def test_answers_of_the_wrong_shape_are_told_without_a_traceback(aio, fake):
    fake.answers["POST /v1/file/list"] = {"path": 5, "files": [{"name": [1]}]}
    assert "not understood" in aio.fails(7, "files", "get", "-r", "x")
    fake.answers["POST /v1/bash/exec"] = {"nothing": 1}
    assert "not understood" in aio.fails(255, "exec", "true")


def test_nobody_there_is_said_with_what_to_do(aio):
    assert "AIO_API_URL" in aio.fails(3, "mcp", "list", AIO_API_URL="http://127.0.0.1:1")
    assert "AIO_API_URL" in aio.fails(255, "exec", "true", AIO_API_URL="http://127.0.0.1:1")
    assert "not ready within 0.2 s" in aio.fails(3, "sandbox", "wait", "--timeout", "0.2", AIO_API_URL="http://127.0.0.1:1")


@pytest.mark.parametrize("words, said", [
    (["nope"], "invalid choice"), (["browser", "click", "--nope"], "--nope"), (["gui", "click", "nan", "1"], "not within"),
    (["code", "python", "--timeout", "301"], "not within"), (["mcp", "call", "a", "b", "novalue"], "key=value"), (["exec"], "no command"),
    (["exec", "-e", "=x", "true"], "NAME=VALUE"), (["browser", "screenshot"], "--output"), (["files", "get", "/"], "no name"),
])
def test_wrong_command_lines_are_one_line_and_2_or_255_of_exec(aio, fake, words, said):
    assert said in aio.fails(255 if words[0] == "exec" else 2, *words)
    assert not fake.requests


# --- downloads ---

def download(content, **headers):
    return 200, {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=../../evil", **headers}, content


def test_a_download_that_ends_early_leaves_nothing(aio, fake, tmp_path):
    fake.answers["GET /v1/file/download"] = download(b"half", **{"Content-Length": "8", "Connection": "close"})
    assert "4 bytes too early" in aio.fails(7, "files", "get", "/a/file", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_server_does_not_choose_the_name(aio, fake, tmp_path):
    fake.answers["GET /v1/file/download"] = download(b"content")
    aio.text("files", "get", "/a/file", cwd=tmp_path)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"content")]


@pytest.mark.parametrize("path", ["/root/../../evil", "/elsewhere/evil", "/root//evil/../x", "/root/a\0b", "/root", "/rootevil"])
def test_a_listing_cannot_lead_out_of_the_new_folder(aio, fake, tmp_path, path):
    fake.answers["POST /v1/file/list"] = {"path": "/root", "files": [{"name": "x", "path": path, "is_directory": False}]}
    fake.answers["GET /v1/file/download"] = download(b"content")
    assert "not below" in aio.fails(7, "files", "get", "-r", "/root", "new", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_is_not_written_through_a_link_or_over_a_device(aio, fake, tmp_path):
    fake.answers["GET /v1/browser/screenshot"] = (200, {"Content-Type": "image/png", "x-image-width": "3", "x-image-height": "2"}, b"\x89PNG")
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "link").symlink_to("victim")
    assert aio.json("gui", "screenshot", "-o", tmp_path / "link")["width"] == 3
    assert (tmp_path / "victim").read_text() == "mine" and not (tmp_path / "link").is_symlink()
    assert "regular file" in aio.fails(6, "gui", "screenshot", "-o", "/dev/null")


# --- skills and MCP ---

def test_skills_are_packed_registered_listed_shown_and_removed(aio, fake, tmp_path):
    skill = tmp_path / "my-skill"
    (skill / ".git").mkdir(parents=True)
    (skill / ".git/config").write_text("private")
    (skill / "SKILL.md").write_text("---\nname: my-skill\n---\n")
    (skill / "run.sh").write_text("echo")
    (skill / "run.sh").chmod(0o755)
    made = {"name": "my-skill", "path": "/skills/my-skill", "metadata": {"description": NASTY}}
    failed = {"command": ["pip", "install", "x"], "success": False, "stderr": "no network"}
    fake.answers["POST /v1/skills/register"] = {"count": 1, "registered": [{**made, "dependency_commands": [failed]}]}
    done = aio("skills", "add", skill, "--name", "other")
    assert json.loads(done.stdout)["count"] == 1 and b"my-skill: pip install x: no network" in done.stderr
    form = form_of(fake.requests[0])
    (tmp_path / "got.zip").write_bytes(form["file"])
    with zipfile.ZipFile(tmp_path / "got.zip") as archive:
        assert sorted(archive.namelist()) == ["my-skill/SKILL.md", "my-skill/run.sh"] and form["name"] == b"other"
        assert archive.getinfo("my-skill/run.sh").external_attr >> 16 & 0o111
    aio("skills", "add", skill / "SKILL.md")
    aio("skills", "add", tmp_path / "got.zip")
    assert form_of(fake.requests[2])["file"] == form["file"] and b"my-skill/SKILL.md" in form_of(fake.requests[1])["file"]
    fake.answers["GET /v1/skills/metadatas"] = {"skills": [made]}
    fake.answers["GET /v1/skills/my-skill/content"] = {"name": "my-skill", "path": "/", "content": "# Text\n" + NASTY}
    fake.answers["DELETE /v1/skills/my-skill"] = made
    assert aio.text("skills", "list", "--human") == f"my-skill  {SHOWN}\n"
    assert aio.json("skills", "show", "my-skill")["content"].endswith(NASTY)
    assert aio.text("skills", "remove", "my-skill", "--human") == "removed my-skill\n"


def test_what_is_no_skill_is_not_sent(aio, fake, tmp_path):
    (tmp_path / "a").mkdir()
    assert "no SKILL.md" in aio.fails(6, "skills", "add", tmp_path / "a")
    (tmp_path / "a/SKILL.md").symlink_to("/etc/passwd")
    assert "a link" in aio.fails(6, "skills", "add", tmp_path / "a")
    assert "zip archive" in aio.fails(2, "skills", "add", "/etc/passwd")
    assert not fake.requests


def test_text_that_cannot_be_sent_or_shown_is_no_crash(aio, fake):
    assert "not UTF-8" in aio.fails(2, "skills", "show", os.fsdecode(b"\xff"))
    fake.answers["GET /v1/skills/x/content"] = (200, {}, b'{"success": true, "data": {"name": "x", "path": "/", "content": "\\ud800 \\u00e4"}}')
    assert aio.text("skills", "show", "x", "--human", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0") == "\\ud800 \\xe4\n"
    assert aio.json("skills", "show", "x")["content"] == "\ud800 \u00e4"


def test_names_are_one_segment_of_the_address(aio, fake):
    for name in ("../../sandbox", "..", "a/b?c#d", "ä"):
        aio("skills", "show", name)
    assert [path for _, path, _, _ in fake.requests] == [
        "/v1/skills/..%2F..%2Fsandbox/content", "/v1/skills/%2E%2E/content", "/v1/skills/a%2Fb%3Fc%23d/content", "/v1/skills/%C3%A4/content"]


def test_arguments_and_pictures_of_a_tool(aio, fake, tmp_path):
    picture = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"\x89PNG").decode()}
    fake.answers["POST /v1/mcp/s/tools/t"] = {"content": [picture, {"type": "text", "text": NASTY}], "isError": True}
    done = aio("mcp", "call", "s", "t", "a=1", "b=text", "c=[1, 2]", "d=", "e=x=y", "--human", "-o", tmp_path / "p")
    assert json.loads(fake.requests[0][3]) == {"a": 1, "b": "text", "c": [1, 2], "d": "", "e": "x=y"}
    assert done.returncode == 1 and re.search(rb"\[image image/png, \d B\]", done.stdout)
    assert b"\x1b" not in done.stdout and (tmp_path / "p").read_bytes() == b"\x89PNG"


# --- terminals ---

def test_a_terminal_gets_text_and_a_pipe_gets_json(aio, fake):
    tabs = [{"index": 0, "title": NASTY, "url": "http://x/" + NASTY, "active": True}]
    fake.answers["GET /v1/browser/tabs"] = tabs
    code, shown = aio.on_terminal("browser", "tabs")
    assert code == 0 and SHOWN in shown and not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", shown)
    assert aio.json("browser", "tabs") == tabs and aio("browser", "tabs").stdout.isascii()
    assert json.loads(aio.on_terminal("browser", "tabs", "--json")[1]) == tabs


def test_exec_passes_terminal_sequences_and_does_not_read_the_terminal(aio, fake):
    fake.answers["POST /v1/bash/exec"] = {"session_id": "s", "command_id": "c"}
    fake.answers["POST /v1/bash/write"] = None
    outputs = [{"stdout": "\x1b[1mbold", "offset": 8, "stderr_offset": 0, "command": {"status": "completed", "exit_code": 4}},
               {"stdout": "", "offset": 8, "stderr_offset": 0, "command": {"status": "completed", "exit_code": 4}}]
    fake.answers["POST /v1/bash/output"] = lambda _: outputs.pop(0)
    assert aio.on_terminal("exec", "true") == (4, "\x1b[1mbold")
    assert [json.loads(body)["input"] for _, path, _, body in fake.requests if path.endswith("/write")] == ["\x04"]


def test_exec_goes_on_where_the_connection_was_lost(aio, fake):
    fake.answers["POST /v1/bash/exec"] = {"session_id": "s", "command_id": "c"}
    fake.answers["POST /v1/bash/write"] = None
    running, ended = {"status": "running"}, {"status": "completed", "exit_code": 0}
    outputs = [{"stdout": "one ", "offset": 4, "stderr_offset": 0, "command": running}, refusal(503), (200, {"Connection": "close", "Content-Length": "9"}, b""),
               {"stdout": "two", "offset": 7, "stderr_offset": 0, "command": ended}, {"stdout": "", "offset": 7, "stderr_offset": 0, "command": ended}]
    fake.answers["POST /v1/bash/output"] = lambda _: outputs.pop(0)
    assert aio.text("exec", "true") == "one two"
    assert [json.loads(body)["offset"] for _, path, _, body in fake.requests if path.endswith("/output")] == [0, 4, 4, 4, 7]


def test_exec_ends_a_command_whose_input_was_lost_while_the_server_was_replaced(aio, fake):
    """It would wait for that input for ever. The server is still away when the command is to be ended."""
    state, closed = {"status": "running"}, [refusal(503), refusal(503)]
    fake.answers["POST /v1/bash/exec"] = {"session_id": "s", "command_id": "c"}
    fake.answers["POST /v1/bash/write"] = (200, {"Connection": "close", "Content-Length": "9"}, b"")

    def close(_):
        if closed:
            return closed.pop()
        state.update(status="killed")
        return None
    fake.answers["POST /v1/bash/sessions/s/close"] = close
    fake.answers["POST /v1/bash/output"] = lambda _: time.sleep(0.05) or {"stdout": "", "offset": 0, "stderr_offset": 0, "command": dict(state)}
    assert "stdin could not be passed on" in aio.fails(255, "exec", "read x", input=b"x\n") and not closed


def test_transfers_show_progress_on_a_terminal_and_bytes_of_files_stay_off_it(aio, fake, tmp_path):
    fake.answers["GET /v1/file/download"] = download(b"x" * 3_000_000)
    code, shown = aio.on_terminal("files", "get", "/a/" + "\x1bname", "here", cwd=tmp_path)
    assert code == 0 and "100%  2.9 MiB" in shown and "\\ename" in shown
    code, shown = aio.on_terminal("files", "get", "/a/name", "-")
    assert code == 2 and "pipe them on" in shown and "xxx" not in shown


# --- completion, manual, package ---

@pytest.mark.parametrize("typed, becomes", [
    ("aio browser navi\t", "aio browser navigate "), ("aio --api-url http://x sk\t", "skills "), ("aio gui screenshot --format p\t", "png "),
    ("aio files put {}/onlyf\t", "/onlyfile "), ("aio sandbox packages nod\t", "nodejs "), ("aio browser click --ind\t", "--index "),
])
def test_bash_completes(program, tmp_path, typed, becomes):
    (tmp_path / "onlyfile").touch()
    (tmp_path / "aio").symlink_to(program)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "$ ", "HISTFILE": "", "INPUTRC": "/dev/null"}
    with terminal(["bash", "--norc", "--noprofile", "-i"], environment) as one:
        one.send(f"source <({sys.executable} {program} completion bash); echo READ''Y\n".encode())
        one.read_until(b"READY\r\n")
        one.send(typed.replace("{}", str(tmp_path)).encode())
        one.read_until(becomes.encode())


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_scripts_of_both_shells_parse(aio, shell):
    script = aio("completion", shell).stdout
    assert b"navigate" in script
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n"], input=script, check=True)


def test_the_manual_has_the_tables_of_the_program():
    from aio import manual

    page = manual.README.read_text()
    assert manual.renewed(page) == page, "PYTHONPATH=agent python3 -m aio.manual writes it"


def test_every_operation_is_one_of_the_contract():
    from aio.commands import COMMANDS

    paths = json.loads((SOURCE.parents[1] / "tests/api/contract.json").read_text())["paths"]
    known = {f"{method.upper()} {re.sub('{.*?}', '{}', path)}" for path, operations in paths.items() for method in operations}
    assert [command.operation for command in COMMANDS if command.operation and re.sub(r"\{\w+\}", "{}", command.operation) not in known] == []


def test_the_file_is_the_same_from_the_same_sources_and_needs_python_3_9_alone(program, tmp_path):
    assert pack(tmp_path / "again").read_bytes() == program.read_bytes() and program.stat().st_mode & 0o777 == 0o755
    for source in SOURCE.glob("*.py"):
        tree = ast.parse(source.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert all(name.split(".")[0] in {*sys.stdlib_module_names, "aio"} for name in names), (source, names)
