"""The official Python SDK, unmodified: every method of file.* in the way users call it."""
import pytest
import sdk

pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")

# Beyond the contract's schema, as its documentation has it.
KNOWN_EXTRA = {"POST /v1/file/read": {"data.line_count"}}


@pytest.fixture(scope="module")
def file(api, contract):
    return sdk.Recorded(sdk.sandbox_of(api).file, "file", contract)


@pytest.fixture(scope="module")
def place(api):
    name = api.bash("mktemp -d -p ~ sdk-XXXXXX")["stdout"].strip()
    yield name
    api.bash(f"rm -rf {name}")


def test_read_write_replace(file, place):
    assert file.write_file(file=f"{place}/a.py", content="one\ntwo\n", append=False, trailing_newline=True).data.bytes_written == 9
    assert file.read_file(file=f"{place}/a.py", start_line=0, end_line=1).data.content == "one"
    assert file.replace_in_file(file=f"{place}/a.py", old_str="two", new_str="2").data.replaced_count == 1


def test_lookups(file, place):
    file.write_file(file=f"{place}/b.py", content="import os\n")
    assert file.list_path(path=place, include_permissions=True).data.total_count >= 1
    assert f"{place}/b.py" in file.find_files(path=place, glob="*.py").data.files
    assert file.glob_files(path=place, pattern="**/*.py", include_metadata=True).data.total_count >= 1
    assert file.search_in_file(file=f"{place}/b.py", regex="^import").success in (True, False)
    assert file.grep_files(path=place, pattern="import", include=["*.py"], max_results=5).success in (True, False)


def test_upload_and_download(file, place):
    assert file.upload_file(file=b"bytes", path=f"{place}/up").data.file_size == 5
    assert b"".join(file.download_file(path=f"{place}/up")) == b"bytes"


def test_the_editor(file, place):
    path = f"{place}/edit.txt"
    assert "File created successfully" in file.str_replace_editor(command="create", path=path, file_text="a\n").data.output
    assert "has been edited" in file.str_replace_editor(command="str_replace", path=path, old_str="a", new_str="b").data.output
    assert file.str_replace_editor(command="undo_edit", path=path).data.new_content == "a\n"


@pytest.mark.parametrize("method, arguments", [
    ("read_file", {"file": "/tmp/missing"}),
    ("write_file", {"file": "/usr/x", "content": ""}),
    ("replace_in_file", {"file": "/tmp/missing", "old_str": "a", "new_str": "b"}),
    ("search_in_file", {"file": "/tmp/missing", "regex": "x"}),
    ("grep_files", {"path": "/tmp/missing", "pattern": "x"}),
    ("glob_files", {"path": "/tmp/missing", "pattern": "*"}),
    ("upload_file", {"file": b"x", "path": "/usr/x"}),
    ("str_replace_editor", {"command": "view", "path": "/tmp/missing"}),
])
def test_a_failure_raises_in_this_sdk_which_no_caller_takes_for_success(file, method, arguments):
    from pydantic import ValidationError
    with pytest.raises(ValidationError) as raised:
        getattr(file, method)(**arguments)
    assert "'errno': " in str(raised.value)  # what a model is shown of it says why


def test_a_failure_of_find_and_list_is_an_answer_without_files(file):
    # Only `path` is required of these two results in the SDK, and a FileOperationError has one: it parses.
    for failed in (file.list_path(path="/tmp/missing"), file.find_files(path="/tmp/missing", glob="*")):
        assert failed.success is False and failed.message and not failed.data.files


def test_watching(file, place):
    watcher = file.watch_create(path=place, debounce=50)["watcher_id"]
    assert watcher in [w["watcher_id"] for w in file.watch_list()["watchers"]]
    file.write_file(file=f"{place}/seen", content="x")
    got = file.watch_poll(watcher, since=0, limit=10, timeout=60)
    assert "seen" in [e["relative_path"] for e in got["events"]]
    assert file.watch_poll(watcher)["watcher_id"] == watcher
    assert len(file.watch_events(watcher)["events"]) >= 1
    assert file.watch_wait(path=f"{place}/seen", timeout=20)["event"]["type"] == "create"
    assert file.watch_stop(watcher)["stopped"] is True


def test_every_method_of_file_was_called(file):
    assert file.uncalled() == set()


def test_every_answer_was_valid_and_its_extra_fields_are_known(contract):
    served = {name: extra for name, extra in contract.extra.items() if name.split(" ")[1].startswith("/v1/file")}
    assert len(served) >= 16  # a download is bytes
    assert {name: extra - KNOWN_EXTRA.get(name, set()) for name, extra in served.items() if extra - KNOWN_EXTRA.get(name, set())} == {}
