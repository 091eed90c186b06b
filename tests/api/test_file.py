"""/v1/file: what is in files. Every answer that the contract describes is validated against it (conftest.Api.check)."""
import base64
import contextlib
import os

import pytest
from conftest import eventually
from launcher_process import WORKSPACE_UID

HOME = "/home/gem"


@pytest.fixture
def place(api):
    """A directory of the test's own in the home."""
    name = api.bash("mktemp -d -p ~ t-XXXXXX")["stdout"].strip()
    yield name
    api.bash(f"chmod -R u+rwX {name}; rm -rf {name}")


def read(api, path, **fields):
    return api.data("/v1/file/read", {"file": path, **fields})


def write(api, path, content, **fields):
    return api.data("/v1/file/write", {"file": path, "content": content, **fields})


def error_of(api, path, body):
    answer = api.fails(path, body)
    assert answer["data"]["message"] == answer["message"]
    return answer["data"]


# --- read and write ---

def test_what_is_written_is_read_and_is_the_shells(api, place):
    assert write(api, f"{place}/a.txt", "one\ntwo\n") == {"file": f"{place}/a.txt", "bytes_written": 8}
    got = read(api, f"{place}/a.txt")
    assert (got["content"], got["file"], got["line_count"]) == ("one\ntwo\n", f"{place}/a.txt", 2)
    assert api.bash(f"cat {place}/a.txt; stat -c %U:%a {place}/a.txt")["stdout"] == "one\ntwo\ngem:644\n"


def test_tmp_is_the_workspaces(api):
    api.bash("echo hello > /tmp/of-the-shell")
    assert read(api, "/tmp/of-the-shell")["content"] == "hello\n"
    api.bash("rm /tmp/of-the-shell")


def test_relative_paths_start_at_the_home(api, place):
    relative = place.removeprefix(HOME + "/") + "/r.txt"
    assert write(api, relative, "x")["file"] == f"{place}/r.txt"
    assert read(api, relative)["file"] == f"{place}/r.txt"


def test_missing_directories_are_made(api, place):
    write(api, f"{place}/deep/er/x.txt", "x")
    assert api.bash(f"cat {place}/deep/er/x.txt")["stdout"] == "x"


def test_encodings(api, place):
    write(api, f"{place}/b", base64.b64encode(bytes(range(256))).decode(), encoding="base64")
    assert api.bash(f"od -An -tu1 -v {place}/b | tr -s ' \\n' ' '")["stdout"].split() == [str(i) for i in range(256)]
    write(api, f"{place}/r", "".join(map(chr, range(256))), encoding="raw")
    assert api.bash(f"cmp {place}/b {place}/r")["exit_code"] == 0
    assert error_of(api, "/v1/file/write", {"file": f"{place}/x", "content": "a$b", "encoding": "base64"})["error_type"] == "decode_error"
    assert error_of(api, "/v1/file/write", {"file": f"{place}/x", "content": "\u20ac", "encoding": "raw"})["error_type"] == "decode_error"
    assert api.post("/v1/file/write", {"file": "x", "content": "", "encoding": "utf-16"}).status_code == 422


def test_append_and_line_breaks(api, place):
    write(api, f"{place}/a", "1", trailing_newline=True)
    assert write(api, f"{place}/a", "2", append=True, leading_newline=True, trailing_newline=True)["bytes_written"] == 3
    assert read(api, f"{place}/a")["content"] == "1\n\n2\n"
    write(api, f"{place}/a", "short")
    assert read(api, f"{place}/a")["content"] == "short"


def test_trap_10_lines_are_counted_from_0_and_the_end_is_not_included(api, place):
    write(api, f"{place}/l", "zero\none\ntwo\nthree")
    lines = lambda first, end: read(api, f"{place}/l", start_line=first, end_line=end)["content"]  # noqa: E731
    assert lines(0, 1) == "zero"
    assert lines(1, 3) == "one\ntwo"
    assert lines(2, None) == "two\nthree"
    assert lines(None, 2) == "zero\none"
    assert lines(3, 100) == "three"
    assert lines(4, 9) == lines(2, 1) == ""
    assert lines(-2, None) == "two\nthree"


def test_text_that_is_no_utf_8_is_a_decode_error(api, place):
    api.bash(f"printf 'ab\\xff' > {place}/x")
    error = error_of(api, "/v1/file/read", {"file": f"{place}/x"})
    assert (error["error_type"], error["exception_type"]) == ("decode_error", "UnicodeDecodeError")
    assert "can't decode byte 0xff in position 2" in error["message"]


@pytest.mark.parametrize("text", [b"\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xfe", b"\xc3(", b"\xc3", b"\xe0\x80\x80", b"\xe2\x82",
                                  b"\xe2\x82(", b"\xe2(\x82", b"\xed\xa0\x80", b"\xf0\x80\x80\x80", b"\xf0\x9f\x98", b"\xf0\x9f\x98(",
                                  b"\xf0\x9f(", b"\xf4\x90\x80\x80", "\u00e4\u20ac\U0001f600".encode() + b"\xe2\x82\n"])
def test_what_cannot_be_decoded_is_said_in_the_words_of_pythons_codec(api, place, text):
    write(api, f"{place}/x", base64.b64encode(b"line\n" + text).decode(), encoding="base64")
    with pytest.raises(UnicodeDecodeError) as why:
        (b"line\n" + text).decode()
    assert error_of(api, "/v1/file/read", {"file": f"{place}/x"})["message"] == f"Failed to read file: {why.value}"


def test_a_file_that_is_too_large_for_an_answer_says_so_and_gives_its_lines(api, place):
    api.bash(f"head -c 20000000 /dev/zero | tr '\\0' x > {place}/big; echo >> {place}/big; echo last >> {place}/big")
    error = error_of(api, "/v1/file/read", {"file": f"{place}/big"})
    assert error["errno_name"] == "EFBIG" and "start_line" in error["message"]
    assert read(api, f"{place}/big", start_line=1, end_line=2)["content"] == "last"


@contextlib.contextmanager
def little_memory(native):
    """Neither the agent nor what opens the files grows by 64 MiB."""
    before = native.memory_peaks()
    yield
    grown = {name: peak - before[name] for name, peak in native.memory_peaks().items()}
    assert max(grown.values()) < 64 << 20, grown


def test_a_file_of_3_gb_is_searched_for_its_last_line_in_little_memory(api, native, place):
    api.bash(f"truncate -s 3G {place}/sparse && printf '\\nend' >> {place}/sparse")
    with little_memory(native):
        assert read(api, f"{place}/sparse", start_line=1)["content"] == "end"


def test_memory_stays_bounded_on_a_sparse_file_of_10_gb(api, native):
    """Made outside, where no limit of the policy's holds (file_size_bytes is 4 GiB)."""
    size = 10 << 30
    big = native.dir / "home" / "sparse"
    try:
        with big.open("wb") as file:
            file.write(b"first\nsecond\n")
            file.seek(size)
            file.write(b"\nend")
        os.chown(big, WORKSPACE_UID, WORKSPACE_UID)
        with little_memory(native):
            assert read(api, "sparse", start_line=1, end_line=2)["content"] == "second"
            assert error_of(api, "/v1/file/read", {"file": "sparse"})["errno_name"] == "EFBIG"
            assert error_of(api, "/v1/file/replace", {"file": "sparse", "old_str": "first", "new_str": "1st"})["errno_name"] == "EFBIG"
            assert "too large" in error_of(api, "/v1/file/str_replace_editor", {"command": "view", "path": "sparse"})["message"]
            last = api.http.get("/v1/file/download", params={"path": "sparse"}, headers={"Range": f"bytes={size + 1}-"})
            assert (last.status_code, last.content, last.headers["content-range"]) == (206, b"end", f"bytes {size + 1}-{size + 3}/{size + 4}")
            with api.http.stream("GET", "/v1/file/download", params={"path": "sparse"}) as answer:
                assert int(answer.headers["content-length"]) == size + 4
                got = 0
                for piece in answer.iter_raw(1 << 20):
                    got += len(piece)
                    if got > 300_000_000:
                        break
    finally:
        big.unlink()


# --- replace ---

def test_replace_counts_and_replaces_every_occurrence(api, place):
    write(api, f"{place}/r", "a b a b a")
    assert api.data("/v1/file/replace", {"file": f"{place}/r", "old_str": "a", "new_str": "xyz"})["replaced_count"] == 3
    assert read(api, f"{place}/r")["content"] == "xyz b xyz b xyz"
    assert api.data("/v1/file/replace", {"file": f"{place}/r", "old_str": "no", "new_str": ""})["replaced_count"] == 0
    assert api.data("/v1/file/replace", {"file": f"{place}/r", "old_str": "xyz ", "new_str": ""})["replaced_count"] == 2
    assert read(api, f"{place}/r")["content"] == "b b xyz"


# --- errors ---

ERRORS = [
    ("read", {"file": "/tmp/missing.txt"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("read", {"file": "/etc"}, "invalid_target", "EISDIR", "IsADirectoryError"),
    ("read", {"file": "/etc/passwd/x"}, "invalid_target", "ENOTDIR", "NotADirectoryError"),
    ("read", {"file": "/" + "x" * 5000}, "invalid_path", "ENAMETOOLONG", "OSError"),
    ("write", {"file": "/usr/x", "content": ""}, None, None, None),
    ("replace", {"file": "/tmp/missing.txt", "old_str": "a", "new_str": "b"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("search", {"file": "/tmp/missing.txt", "regex": "a"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("find", {"path": "/tmp/missing", "glob": "*"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("grep", {"path": "/tmp/missing", "pattern": "a"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("glob", {"path": "/tmp/missing", "pattern": "*"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("list", {"path": "/tmp/missing"}, "not_found", "ENOENT", "FileNotFoundError"),
    ("list", {"path": "/etc/passwd"}, "invalid_target", "ENOTDIR", "NotADirectoryError"),
    ("str_replace_editor", {"command": "view", "path": "/tmp/missing"}, "not_found", "ENOENT", "FileNotFoundError"),
]
# The members of the contract's FileOperationError.
MEMBERS = {"path", "operation", "message", "error_type", "retryable", "errno", "errno_name", "exception_type"}


@pytest.mark.parametrize("operation, body, kind, name, exception", ERRORS)
def test_trap_12_errors_are_200_with_a_bare_file_operation_error(api, operation, body, kind, name, exception):
    error = error_of(api, f"/v1/file/{operation}", body)
    assert error["operation"] == operation
    if kind is None:  # depends on which wall is met first
        assert error["errno_name"] in ("EROFS", "EACCES")
        assert error["error_type"] in ("read_only_filesystem", "permission_denied")
    else:
        assert (error["error_type"], error["errno_name"], error["exception_type"]) == (kind, name, exception)
    assert error["path"] == (body.get("file") or body.get("path"))
    assert set(error) == MEMBERS


def test_trap_12_the_text_is_pythons(api):
    error = error_of(api, "/v1/file/read", {"file": "/tmp/missing.txt"})
    assert error["message"] == "Failed to read file: [Errno 2] No such file or directory: '/tmp/missing.txt'"


def test_sudo_is_refused_clearly(api, place):
    write(api, f"{place}/s", "x")
    for operation, more in (("read", {}), ("write", {"content": "y"}), ("replace", {"old_str": "x", "new_str": "y"}), ("search", {"regex": "x"})):
        error = error_of(api, f"/v1/file/{operation}", {"file": f"{place}/s", "sudo": True, **more})
        assert (error["error_type"], error["errno_name"]) == ("permission_denied", "EPERM")
        assert "sudo is not permitted" in error["message"]
    assert read(api, f"{place}/s")["content"] == "x"


@pytest.mark.parametrize("made", ["mkfifo {}", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"{}\")'", "ln -s /dev/tty {}",
                                  "ln -s /dev/zero {}"])
def test_what_is_no_file_is_refused_at_once(api, place, made):
    path = f"{place}/thing"
    assert api.bash(made.format(path))["exit_code"] == 0
    for operation, more in (("read", {}), ("write", {"content": "y"}), ("replace", {"old_str": "x", "new_str": "y"}), ("search", {"regex": "x"})):
        error = error_of(api, f"/v1/file/{operation}", {"file": path, **more})
        assert error["error_type"] in ("invalid_target", "permission_denied"), (operation, error)
    assert api.http.get("/v1/file/download", params={"path": path}).status_code in (400, 403)


def test_a_null_byte_in_a_path_is_an_invalid_path(api):
    assert error_of(api, "/v1/file/read", {"file": "/tmp/a\0b"})["error_type"] == "invalid_path"


# --- the worker ---

def test_a_worker_that_is_killed_is_started_again(api, native, place):
    write(api, f"{place}/k", "x")
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/exe").endswith("caisson-file-worker") and native.owns(int(entry)):
                    os.kill(int(entry), 9)
            except OSError:
                continue
    assert eventually(lambda: api.post("/v1/file/read", {"file": f"{place}/k"}).json()["success"])


def test_the_workers_session_is_one_of_the_domain_file(api, place):
    write(api, f"{place}/k", "x")
    eventually(lambda: len([s for s in api.sessions() if s["domain"] == "file"]) == 1)  # that of a killed one may still end


def test_workspaces_have_files_of_their_own(api, place):
    api.data("/v1/workspaces", {"name": "files-apart"})
    try:
        headers = {"X-Caisson-Workspace": "files-apart"}
        write(api, f"{HOME}/apart", "default")
        assert api.post("/v1/file/read", {"file": f"{HOME}/apart"}, headers=headers).json()["success"] is False
        assert api.post("/v1/file/write", {"file": f"{HOME}/apart", "content": "theirs"}, headers=headers).json()["success"] is True
        assert read(api, f"{HOME}/apart")["content"] == "default"
    finally:
        api.http.delete("/v1/workspaces/files-apart")
        api.bash("rm -f ~/apart")
