"""The tools sandbox_* by the official Python SDK, with every argument of the contract; their results beside the REST operations' answers."""
import asyncio

import pytest

HOME = "/home/gem/mcp-arguments"
LONG = "seq -w 1 12000"


def cases(api):
    """{label: (tool, arguments, the REST operation's answer as the tool tells it)}, in the order in which they are called."""
    def shell(command, **more):
        data = api.data("/v1/shell/exec", {"command": command, "id": "rest", "truncate": True, **more})
        return {name: data[name] for name in ("status", "output", "exit_code")}

    def packages(language):
        return [f"{one['name']}=={one['version']}" for one in api.data(f"/v1/sandbox/packages/{language}", method="GET")]

    def code(source, language):
        data = api.data("/v1/code/execute", {"code": source, "language": language})
        return {name: data[name] for name in ("status", "stdout", "exit_code")}

    def file(operation, **body):
        return api.data(f"/v1/file/{operation}", body)

    def editor(**body):
        return lambda: api.data("/v1/file/str_replace_editor", body)["output"]

    path = f"{HOME}/a.txt"
    return {
        "context": ("sandbox_get_context", {}, lambda: api.http.get("/v1/sandbox").json()["data"]),
        "python packages": ("sandbox_get_packages", {"language": "python"}, lambda: packages("python")),
        "node packages": ("sandbox_get_packages", {"language": "nodejs"}, lambda: packages("nodejs")),
        "both": ("sandbox_get_packages", {}, lambda: packages("python") + packages("nodejs")),
        "make": ("sandbox_execute_bash", {"cmd": f"mkdir -p {HOME}/sub && cd {HOME} && pwd"}, lambda: shell(f"mkdir -p {HOME}/sub && cd {HOME} && pwd")),
        "cwd": ("sandbox_execute_bash", {"cmd": "pwd", "cwd": f"{HOME}/sub"}, lambda: shell("pwd", exec_dir=f"{HOME}/sub")),
        "kept": ("sandbox_execute_bash", {"cmd": "pwd"}, lambda: shell("pwd")),
        "new session": ("sandbox_execute_bash", {"cmd": "echo ${KEPT-none}; exit 3", "new_session": True},
                        lambda: shell("echo ${KEPT-none}; exit 3", id="")),
        "timeout": ("sandbox_execute_bash", {"cmd": "echo first; sleep 60", "timeout": 1},
                    lambda: shell("echo first; sleep 60", hard_timeout=1, no_change_timeout=61)),
        "links": ("sandbox_execute_bash", {"cmd": "ln -sfn sub link && cd link && pwd", "cwd": HOME, "preserve_symlinks": True},
                  lambda: shell("ln -sfn sub link && cd link && pwd", exec_dir=HOME, preserve_symlinks=True)),
        "truncated": ("sandbox_execute_bash", {"cmd": LONG}, lambda: shell(LONG)),
        "whole": ("sandbox_execute_bash", {"cmd": LONG, "truncate": False}, lambda: shell(LONG, truncate=False)),
        "python": ("sandbox_execute_code", {"code": "print(6 * 7)", "language": "python"}, lambda: code("print(6 * 7)", "python")),
        "javascript": ("sandbox_execute_code", {"code": "console.log(6 * 7)", "language": "javascript", "timeout": 20},
                       lambda: code("console.log(6 * 7)", "javascript")),
        "write": ("sandbox_file_operations", {"action": "write", "path": path, "content": "one\ntwo\n"}, lambda: file("write", file=path, content="one\ntwo\n")),
        "base64": ("sandbox_file_operations", {"action": "write", "path": f"{HOME}/b.bin", "content": "AAEC", "encoding": "base64"},
                   lambda: file("write", file=f"{HOME}/b.bin", content="AAEC", encoding="base64")),
        "append": ("sandbox_file_operations", {"action": "write", "path": path, "content": "three\n", "append": True},
                   lambda: {"file": path, "bytes_written": 6}),
        "read": ("sandbox_file_operations", {"action": "read", "path": path}, lambda: file("read", file=path)["content"]),
        "lines": ("sandbox_file_operations", {"action": "read", "path": path, "start_line": 1, "end_line": 2},
                  lambda: file("read", file=path, start_line=1, end_line=2)["content"]),
        "list": ("sandbox_file_operations", {"action": "list", "path": HOME}, lambda: file("list", path=HOME)),
        "list all": ("sandbox_file_operations", {"action": "list", "path": HOME, "recursive": True, "max_depth": 2, "show_hidden": True},
                     lambda: file("list", path=HOME, recursive=True, max_depth=2, show_hidden=True)),
        "find": ("sandbox_file_operations", {"action": "find", "path": HOME, "pattern": "*.txt"}, lambda: file("find", path=HOME, glob="*.txt")),
        "search": ("sandbox_file_operations", {"action": "search", "path": path, "pattern": "t.o"}, lambda: file("search", file=path, regex="t.o")),
        "replace": ("sandbox_file_operations", {"action": "replace", "path": path, "old_str": "two", "new_str": "2"},
                    lambda: {"file": path, "replaced_count": 1}),
        "view": ("sandbox_str_replace_editor", {"command": "view", "path": path, "view_range": [1, 2]}, editor(command="view", path=path, view_range=[1, 2])),
        "create": ("sandbox_str_replace_editor", {"command": "create", "path": f"{HOME}/new.py", "file_text": "x = 1\n"},
                   lambda: f"File created successfully at: {HOME}/new.py"),
        "edit": ("sandbox_str_replace_editor", {"command": "str_replace", "path": f"{HOME}/new.py", "old_str": "1", "new_str": "2"}, None),
        "insert": ("sandbox_str_replace_editor", {"command": "insert", "path": f"{HOME}/new.py", "insert_line": 1, "new_str": "y = 3\n"}, None),
        "undo": ("sandbox_str_replace_editor", {"command": "undo_edit", "path": f"{HOME}/new.py"}, None),
        "edited": ("sandbox_file_operations", {"action": "read", "path": f"{HOME}/new.py"}, lambda: "x = 2\n"),
    }


@pytest.fixture(scope="module")
def called(api):
    """{label: (result, what REST says)}."""
    mcp, httpx2 = pytest.importorskip("mcp"), pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client
    rows = cases(api)
    api.data("/v1/shell/sessions/create", {"id": "rest"})

    async def use():
        out = {}
        async with httpx2.AsyncClient(headers={"X-AIO-API-Key": api.key}, timeout=120) as http, \
                mcp.Client(streamable_http_client(f"{api.url}/mcp", http_client=http), mode="legacy") as client:
            for label, (tool, arguments, _) in rows.items():
                out[label] = await client.call_tool(tool, arguments)
                rest[label] = await asyncio.to_thread(rows[label][2]) if rows[label][2] else None
        return out

    rest = {}
    results = asyncio.run(use())
    return {label: (results[label], rest[label]) for label in rows}


def text(result):
    return result.content[0].text


@pytest.mark.parametrize("label", list(cases(None)))
def test_the_tool_and_the_operation_agree(called, label):
    result, rest = called[label]
    assert not result.is_error, text(result)
    if rest is None:
        assert "has been edited" in text(result) or "undone" in text(result), text(result)
    elif label == "context":
        assert text(result).splitlines()[0] == rest.splitlines()[0]
    elif label == "both":
        lines = text(result).splitlines()
        assert [line for line in lines if line and not line.endswith(" Packages:")] == rest
        assert lines[0] == "Python Packages:" and "Node.js Packages:" in lines
    elif label.endswith("packages"):
        assert text(result).splitlines()[1:] == rest
    elif isinstance(rest, str):
        assert text(result) == rest
    else:
        told = result.structured_content
        for name, value in rest.items():
            if name in ("execution_time_ms", "files"):
                continue
            assert told[name] == value, (label, name, told[name], value)
        if "files" in rest:
            assert [one["path"] if isinstance(one, dict) else one for one in told["files"]] == \
                [one["path"] if isinstance(one, dict) else one for one in rest["files"]]
