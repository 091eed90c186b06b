"""What programs of others rely on, called as they call it, with the official SDK unmodified. None of them reads `success`: what the SDK
parses is done, and their model is told so. A failure must therefore raise, or a model goes on as if its file were written."""
import base64
import re
import secrets

import pytest
import sdk

pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")


@pytest.fixture(scope="module")
def sandbox(api):
    return sdk.sandbox_of(api)


@pytest.fixture
def place(sandbox):
    """A directory of the test's own: a file `f` of two lines, `two` with a word twice, and a directory `d`."""
    name = f"{sandbox.sandbox.get_context().home_dir}/clients-{secrets.token_hex(4)}"
    sandbox.bash.exec(command=f"mkdir -p {name}/d && cd {name} && printf 'one\\ntwo\\n' >f && echo a a >two")
    yield name
    sandbox.bash.exec(command=f"rm -rf {name}")


# --- deer-flow: a tool's answer is what its model reads ---


class DeerFlow:
    """The tools of bytedance/deer-flow on its AIO sandbox (backend/packages/harness: community/aio_sandbox, sandbox/tools)."""

    def __init__(self, sandbox):
        self.file, self.shell, self.bash = sandbox.file, sandbox.shell, sandbox.bash

    def told(self, act) -> str:
        try:
            return act() or "OK"
        except Exception as why:  # it catches whatever the SDK raises
            return f"Error: {why}"

    def read(self, path: str) -> str:
        return self.told(lambda: self.file.read_file(file=path).data.content or "(empty)")

    def write(self, path: str, content: str, append=False) -> str:
        before = self.read(path) if append else "Error:"
        whole = content if before.startswith("Error:") else before + content
        return self.told(lambda: self.file.write_file(file=path, content=whole) and None)

    def update(self, path: str, content: bytes) -> str:
        text = base64.b64encode(content).decode()
        return self.told(lambda: self.file.write_file(file=path, content=text, encoding="base64") and None)

    def replace(self, path: str, old: str, new: str) -> str:
        content = self.read(path)
        if old not in content:
            return f"Error: String to replace not found in file: {path}"
        return self.write(path, content.replace(old, new, 1))

    def ls(self, path: str) -> str:
        found = self.shell.exec_command(command=f"test -d {path} || echo __missing__; find {path} -maxdepth 2 -type f -o -type d 2>/dev/null"
                                                " | head -500", no_change_timeout=600).data.output
        return f"Error: Directory not found: {path}" if "__missing__" in found.split("\n") else found

    def grep(self, path: str, pattern: str) -> str:
        def search():
            found = self.file.grep_files(path=path, pattern=pattern, case_insensitive=True, fixed_strings=False, max_results=400,
                                         max_file_size="1M", recursive=True).data
            return "\n".join(f"{m.file}:{m.line_number}: {m.line_content}" for m in found.matches or []) or "No matches found"
        return self.told(search)

    def run(self, command: str, env=None) -> str:
        if env:
            done = self.bash.exec(command=command, env=env, hard_timeout=600.0).data
            output = done.stdout + (f"\nStd Error:\n{done.stderr}" if done.stderr else "")
        else:
            done = self.shell.exec_command(command=command, no_change_timeout=600).data
            output = done.output
        if done.exit_code not in (0, None):
            return f"{output}\nExit Code: {done.exit_code}" if output else f"Command exited with code {done.exit_code}"
        return output or "(no output)"


@pytest.fixture(scope="module")
def deer_flow(sandbox):
    return DeerFlow(sandbox)


@pytest.mark.parametrize("act", [
    lambda tools, place: tools.read(f"{place}/missing"),
    lambda tools, place: tools.read(place),
    lambda tools, place: tools.write("/usr/x", "x"),
    lambda tools, place: tools.write(f"{place}/f/x", "x"),
    lambda tools, place: tools.write(f"{place}/d", "x"),
    lambda tools, place: tools.write("/etc/passwd", "x", append=True),
    lambda tools, place: tools.update("/usr/x", b"x"),
    lambda tools, place: tools.replace("/etc/passwd", "root", "toor"),
    lambda tools, place: tools.replace(f"{place}/f", "no such text", "x"),
    lambda tools, place: tools.ls(f"{place}/missing"),
    lambda tools, place: tools.grep(f"{place}/missing", "one"),
    lambda tools, place: tools.grep(place, "one("),
], ids=["read-missing", "read-directory", "write-read-only", "write-below-a-file", "write-directory", "append-read-only", "update-read-only",
        "replace-read-only", "replace-no-match", "ls-missing", "grep-missing", "grep-bad-pattern"])
def test_deer_flow_tells_its_model_of_a_failure(deer_flow, place, act):
    assert act(deer_flow, place).startswith("Error: ")


def test_deer_flow_tells_its_model_ok_only_of_what_was_done(deer_flow, place):
    assert deer_flow.write(f"{place}/new/a", "1\n") == "OK" and deer_flow.write(f"{place}/new/a", "2\n", append=True) == "OK"
    assert deer_flow.replace(f"{place}/new/a", "2", "zwei") == "OK" and deer_flow.read(f"{place}/new/a") == "1\nzwei\n"
    assert deer_flow.update(f"{place}/bytes", bytes(range(256))) == "OK"
    assert b"".join(deer_flow.file.download_file(path=f"{place}/bytes")) == bytes(range(256))
    assert f"{place}/new/a" in deer_flow.ls(place).split("\n")
    assert deer_flow.grep(place, "ZWE(?=i)") == f"{place}/new/a:2: zwei"
    assert f"{place}/new/a" in deer_flow.file.find_files(path=place, glob="**/a").data.files


def test_deer_flow_tells_its_model_how_a_command_ended(deer_flow):
    assert deer_flow.run("echo x; (exit 3)") == "x\nExit Code: 3"
    assert deer_flow.run("false") == "Command exited with code 1"
    assert deer_flow.run("true") == "(no output)"
    assert deer_flow.run("echo $T; echo e >&2; exit 4", {"T": "s"}) == "s\n\nStd Error:\ne\n\nExit Code: 4"
    assert deer_flow.run("echo [$T]", {"OTHER": "1"}) == "[]\n"


# --- AIO's own backend for deepagents (examples/langgraph-deepagents-integration) ---


def edit(sandbox, path: str, old: str, new: str, every=False) -> int:
    """The places that its model is told were replaced."""
    done = sandbox.file.str_replace_editor(command="str_replace", path=path, old_str=old, new_str=new, replace_mode="ALL" if every else None)
    return done.data.old_content.count(old)


@pytest.mark.parametrize("name, old", [("missing", "one"), ("d", "one"), ("f", "no such text"), ("two", "a")])
def test_an_edit_of_deepagents_that_did_not_happen_raises(sandbox, place, name, old):
    def content():
        return sandbox.bash.exec(command=f"cat {place}/f {place}/two").data.stdout

    before = content()
    with pytest.raises(ValueError):  # pydantic's
        edit(sandbox, f"{place}/{name}", old, "x")
    assert content() == before


def test_an_edit_of_deepagents_tells_how_many_places_it_replaced(sandbox, place):
    assert edit(sandbox, f"{place}/f", "one", "1") == 1
    assert edit(sandbox, f"{place}/two", "a", "b", every=True) == 2
    assert sandbox.file.read_file(file=f"{place}/two", start_line=0, end_line=2000).data.content.strip() == "b b"


def test_deepagents_takes_a_read_that_raises_for_a_file_that_is_not_there(sandbox, place):
    # Its write refuses what it can read; it lists and finds nothing where nothing is.
    with pytest.raises(ValueError):
        sandbox.file.read_file(file=f"{place}/missing", start_line=0, end_line=1)
    assert sandbox.file.read_file(file=f"{place}/f", start_line=0, end_line=1).success
    assert not sandbox.file.list_path(path=f"{place}/missing", include_size=True).data.files
    assert not sandbox.file.find_files(path=f"{place}/missing", glob="*").data.files


def test_deepagents_finds_by_the_shell_with_names_that_end_at_a_nul(sandbox, place):
    found = sandbox.shell.exec_command(command=f"grep -rHnFZ -e o {place}/f || true", truncate=False).data
    assert found.exit_code == 0
    assert [tuple(re.split("\0|:", line, maxsplit=2)) for line in found.output.split("\n")] == [(f"{place}/f", "1", "one"), (f"{place}/f", "2", "two")]


# --- verl's rewards (verl/utils/reward_score/sandbox_fusion): its verdict of a program and a case ---


def verdict(api, code: str, given: str, wanted: str, language="python", timeout=20):
    answer = api.post("/run_code", {"compile_timeout": 60, "run_timeout": timeout, "code": code, "stdin": given, "memory_limit_MB": 1024,
                                    "language": language, "files": {}, "fetch_files": []}).json()
    compiled, run = answer["compile_result"], answer["run_result"]
    if answer["status"] == "SandboxError":
        return "sandbox"
    if answer["status"] == "Failed":
        if compiled and (compiled["status"] in ("Error", "TimeLimitExceeded") or (compiled["status"] == "Finished" and compiled["return_code"])):
            return "compile"
        return {"TimeLimitExceeded": "timeout", "Finished": "runtime" if run["return_code"] else "unknown"}[run["status"]]
    assert answer["status"] == "Success" and run["status"] == "Finished"
    return run["stdout"].rstrip("\n") == wanted.rstrip("\n")


@pytest.mark.parametrize("code, wanted, is_", [
    ("print(sum(map(int, input().split())))", "3\n", True),
    ("print(sum(map(int, input().split())))", "4\n", False),
    ("print(1 / 0)", "3\n", "runtime"),
    ("import sys; sys.exit(3)", "3\n", "runtime"),
], ids=["right", "wrong", "raises", "exits"])
def test_verl_gives_a_program_its_verdict(api, code, wanted, is_):
    assert verdict(api, code, "1 2\n", wanted) == is_


def test_verl_tells_a_timeout_a_compiler_and_a_language_apart(api):
    assert verdict(api, "while True: pass", "", "", timeout=1) == "timeout"
    assert verdict(api, "x", "", "", language="lean") == "sandbox"
    assert verdict(api, "int main() { return x; }", "", "", language="cpp") in ("compile", "sandbox")
