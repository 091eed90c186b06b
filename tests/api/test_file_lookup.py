"""/v1/file: list, glob, find, search, grep."""
import os
import pathlib
import shutil
import signal
import threading
import time

import pytest

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed on this host")


@pytest.fixture(scope="module")
def tree(api):
    """A directory with files of known names, sizes and times."""
    top = api.bash("mktemp -d -p ~ tree-XXXXXX")["stdout"].strip()
    api.bash(f"""cd {top} && mkdir -p src/inner docs .hidden node_modules/x && printf 'import os\\nx = 1\\n' > src/a.py
        printf 'line one\\nNeedle here\\nline three\\nneedle again\\nlast\\n' > src/inner/b.py
        printf 'alpha\\nbeta\\ngamma\\ndelta\\n' > docs/c.txt; echo needle > .hidden/d.txt; echo needle > node_modules/x/e.js
        echo top > readme.md; ln -s docs linked; touch -d 2020-01-01 readme.md; chmod 640 readme.md""")
    yield top
    api.bash(f"rm -rf {top}")


def names(top, entries, key="path"):
    return [entry[key].removeprefix(top + "/") for entry in entries]


# --- list ---

def test_list_gives_what_is_there_once(api, tree):
    got = api.data("/v1/file/list", {"path": tree})
    assert names(tree, got["files"]) == [".hidden", "docs", "linked", "node_modules", "readme.md", "src"]
    assert (got["total_count"], got["directory_count"], got["file_count"]) == (6, 5, 1)
    readme = got["files"][4]
    assert (readme["size"], readme["extension"], readme["is_directory"]) == (4, ".md", False)
    assert readme["modified_time"].startswith("20") and readme["permissions"] is None


def test_list_options(api, tree):
    listed = lambda **fields: names(tree, api.data("/v1/file/list", {"path": tree, **fields})["files"])  # noqa: E731
    assert ".hidden" not in listed(show_hidden=False)
    assert "src/inner/b.py" in listed(recursive=True) and "linked/c.txt" not in listed(recursive=True)
    assert "src/inner/b.py" not in listed(recursive=True, max_depth=2)
    assert [n for n in listed(recursive=True, file_types=[".py"]) if "." in n and not n.startswith(".")] == ["src/a.py", "src/inner/b.py"]
    assert listed(sort_desc=True)[0] == "src"
    by_type = listed(sort_by="type")
    assert by_type[-1] == "readme.md"
    info = api.data("/v1/file/list", {"path": tree, "include_permissions": True, "include_size": False})["files"][4]
    assert (info["permissions"], info["size"]) == ("640", None)


# --- glob and find ---

def test_glob_patterns(api, tree):
    globbed = lambda pattern, **fields: names(tree, api.data("/v1/file/glob", {"path": tree, "pattern": pattern, **fields})["files"])  # noqa: E731
    assert globbed("**/*.py") == ["src/a.py", "src/inner/b.py"]
    assert globbed("*.py") == []
    assert globbed("src/*.py") == ["src/a.py"]
    assert globbed("**/?.{py,txt}") == ["docs/c.txt", "src/a.py", "src/inner/b.py"]
    assert globbed("**/[a-b].*") == ["src/a.py", "src/inner/b.py"]
    assert globbed("**", exclude=["node_modules", "*.md"]) == ["docs/c.txt", "src/a.py", "src/inner/b.py"]
    assert ".hidden/d.txt" in globbed("**/*.txt", include_hidden=True)
    assert globbed(".hidden/*") == [".hidden/d.txt"]
    assert "src" in globbed("*", files_only=False) and "src" not in globbed("*")


def test_glob_sorts_counts_and_cuts(api, tree):
    got = api.data("/v1/file/glob", {"path": tree, "pattern": "**/*.*", "max_results": 2, "sort_by": "size", "sort_desc": True})
    assert len(got["files"]) == 2 and got["total_count"] == 5 and got["truncated"] is True
    assert got["files"][0]["size"] >= got["files"][1]["size"]
    bare = api.data("/v1/file/glob", {"path": tree, "pattern": "*.md", "include_metadata": False})["files"][0]
    assert (bare["name"], bare["size"], bare["modified_time"]) == ("readme.md", None, None)
    assert api.post("/v1/file/glob", {"path": tree, "pattern": "*", "max_results": 50001}).status_code == 422


def test_find_takes_names_at_any_depth(api, tree):
    found = lambda glob: [f.removeprefix(tree + "/") for f in api.data("/v1/file/find", {"path": tree, "glob": glob})["files"]]  # noqa: E731
    assert found("*.py") == ["src/a.py", "src/inner/b.py"]
    assert found("src/*.py") == ["src/a.py"]
    assert found("nothing*") == []


@pytest.mark.parametrize("operation, more, usual, known", [("list", {"recursive": True}, "name", "name size modified type"),
                                                           ("glob", {"pattern": "**"}, "path", "path name size modified")])
def test_an_order_that_is_not_known_is_the_usual_one_and_said(api, tree, operation, more, usual, known):
    ask = lambda **fields: api.post(f"/v1/file/{operation}", {"path": tree, **more, **fields}).json()  # noqa: E731
    other = ask(sort_by="colour")
    assert other["success"] is True and "colour" in other["hint"] and other["hint"].endswith(f"Known values: {known}")
    assert other["data"] == ask()["data"] == ask(sort_by=usual)["data"]
    assert all(ask(sort_by=by)["hint"] is None for by in [*known.split(), None])


# --- search and grep ---

@needs_ripgrep
def test_trap_10_search_numbers_lines_from_1(api, tree):
    got = api.data("/v1/file/search", {"file": f"{tree}/src/inner/b.py", "regex": "(?i)needle"})
    assert got == {"file": f"{tree}/src/inner/b.py", "matches": ["Needle here", "needle again"], "line_numbers": [2, 4]}


@needs_ripgrep
def test_search_numbers_lines_of_a_file_with_null_bytes_as_read_counts_them(api, tree):
    api.bash(f"printf 'a\\0b\\0c\\nneedle\\0x\\n\\377 needle\\n' > {tree}/mixed.bin")
    got = api.data("/v1/file/search", {"file": f"{tree}/mixed.bin", "regex": "needle"})
    api.bash(f"rm {tree}/mixed.bin")
    assert (got["line_numbers"], got["matches"]) == ([2, 3], ["needle\0x", "\ufffd needle"])


@needs_ripgrep
def test_a_bad_expression_is_named(api, tree):
    for operation, field in (("search", {"file": f"{tree}/src/a.py", "regex": "("}), ("grep", {"path": tree, "pattern": "("})):
        answer = api.fails(f"/v1/file/{operation}", field)
        assert "regex" in answer["message"], answer


@needs_ripgrep
@pytest.mark.parametrize("pattern, found", [("(?<=line )three", ["line three"]), (r"(e)\1dle here", ["Needle here"]), (r"(?i)(e)\1dle (?!again)", ["Needle here"])])
def test_look_around_and_back_references_are_found(api, tree, pattern, found):
    file = f"{tree}/src/inner/b.py"
    assert api.data("/v1/file/search", {"file": file, "regex": pattern})["matches"] == found
    got = api.data("/v1/file/grep", {"path": file, "pattern": pattern})
    assert [m["line_content"] for m in got["matches"]] == found


@needs_ripgrep
@pytest.mark.parametrize("pattern, said", [("(?<=a+)b", "lookbehind"), ("(?=x)(x+x+)+[^x]", "limit exceeded"), ("(?R)+", "limit reached")])
def test_what_neither_engine_can_do_is_an_error_and_not_no_matches(api, tree, pattern, said):
    api.data("/v1/file/write", {"file": f"{tree}/hard", "content": "x" * 60 + "\n"})
    for operation, body in (("search", {"file": f"{tree}/hard", "regex": pattern}), ("grep", {"path": f"{tree}/hard", "pattern": pattern})):
        answer = api.fails(f"/v1/file/{operation}", body)
        assert answer["data"]["error_type"] == "invalid_target" and said in answer["message"], answer
    api.bash(f"rm {tree}/hard")


@needs_ripgrep
def test_a_file_that_cannot_be_read_is_no_error_of_the_search(api, tree):
    api.bash(f"echo secret > {tree}/closed; chmod 000 {tree}/closed")
    assert api.data("/v1/file/grep", {"path": tree, "pattern": "nowhere in it"})["match_count"] == 0
    api.bash(f"rm -f {tree}/closed")


@needs_ripgrep
def test_trap_10_grep_gives_matches_of_many_files_with_lines_from_1(api, tree):
    got = api.data("/v1/file/grep", {"path": tree, "pattern": "needle", "context_before": 1, "context_after": 1, "exclude": ["node_modules"]})
    assert [(m["file"].removeprefix(tree + "/"), m["line_number"], m["line_content"]) for m in got["matches"]] == [
        ("src/inner/b.py", 4, "needle again")]
    assert (got["matches"][0]["context_before"], got["matches"][0]["context_after"]) == (["line three"], ["last"])
    assert (got["match_count"], got["files_matched"], got["truncated"]) == (1, 1, False) and got["files_searched"] is None


@needs_ripgrep
def test_grep_options(api, tree):
    lines = lambda **fields: [(m["file"].removeprefix(tree + "/"), m["line_number"])  # noqa: E731
                              for m in api.data("/v1/file/grep", {"path": tree, **fields})["matches"]]
    assert lines(pattern="needle", case_insensitive=True, include=["*.py"]) == [("src/inner/b.py", 2), ("src/inner/b.py", 4)]
    assert lines(pattern="needle", type="js") == [("node_modules/x/e.js", 1)]
    assert lines(pattern="x = .", fixed_strings=True) == []
    assert lines(pattern="beta\ngam", multiline=True) == [("docs/c.txt", 2)]
    assert lines(pattern="top", recursive=False) == [("readme.md", 1)]
    assert lines(pattern="needle", max_file_size="5") == []
    assert lines(pattern="a", include=["c.txt"], max_results=1, offset=1) == [("docs/c.txt", 2)]
    assert api.fails("/v1/file/grep", {"path": tree, "pattern": "x", "type": "nosuchtype"})["message"]


@needs_ripgrep
def test_grep_in_one_file_names_it(api, tree):
    got = api.data("/v1/file/grep", {"path": f"{tree}/docs/c.txt", "pattern": "a$"})
    assert {m["file"] for m in got["matches"]} == {f"{tree}/docs/c.txt"} and got["match_count"] == 4


@needs_ripgrep
def test_neighbouring_matches_are_each_others_context(api, tree):
    got = api.data("/v1/file/grep", {"path": f"{tree}/docs/c.txt", "pattern": "beta|gamma", "context_before": 1, "context_after": 1})
    assert [(m["context_before"], m["context_after"]) for m in got["matches"]] == [(["alpha"], ["gamma"]), (["beta"], ["delta"])]


@needs_ripgrep
def test_a_search_that_was_killed_is_not_taken_for_one_that_found_nothing(api, native, tree):
    api.bash(f"head -c 700000000 /dev/zero | tr '\\0' 'x' > {tree}/big", timeout=100)

    def kill():
        def searches():
            return [p for p in pathlib.Path("/proc").glob("[0-9]*/comm") if _name(p) == "rg"]

        end = time.monotonic() + 100
        while not (found := searches()) and time.monotonic() < end:
            time.sleep(0.002)
        for comm in found:
            os.kill(int(comm.parent.name), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    answer = api.post("/v1/file/grep", {"path": f"{tree}/big", "pattern": "[xy]{50}z|y[xz]{20}"}).json()
    killer.join()
    assert answer["success"] is False and "ended by signal 9" in answer["message"], answer


def _name(comm):
    try:
        return comm.read_text().strip()
    except OSError:  # it has ended
        return ""
