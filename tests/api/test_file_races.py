"""Files whose names lead elsewhere from one moment to the next: what is looked at, shown and taken away is what was opened."""

import pytest
from conftest import eventually
from raw_http import Raw

SWAP = """
import ctypes, sys
libc, (a, b) = ctypes.CDLL(None), (name.encode() for name in sys.argv[1:])
while True: libc.renameat2(-100, a, -100, b, 2)  # RENAME_EXCHANGE
"""


@pytest.fixture
def place(api):
    """A directory of the home, gone afterwards with whoever still works in it."""
    path = api.bash("mktemp -d -p ~")["stdout"].strip()
    session = api.data("/v1/bash/sessions/create", {})["session_id"]

    def swap(a, b):
        api.bash(f"cd {path}; exec python3 -c '{SWAP}' {a} {b}", session_id=session, async_mode=True)

    yield path, swap
    api.post(f"/v1/bash/sessions/{session}/close", {})
    api.bash(f"rm -rf {path}")


def test_facts_of_a_list_are_those_of_the_directory_that_was_read(api, place):
    path, swap = place
    api.bash(f"cd {path}; mkdir -p top/d other; for i in $(seq 500); do echo >top/d/x$i; echo longer >other/x$i; done; ln -s other link")
    swap("top/d", "link")
    seen = set()
    for _ in range(50):
        files = api.data("/v1/file/list", {"path": f"{path}/top", "recursive": True, "include_size": True})["files"]
        seen |= {f["size"] for f in files if "/d/x" in f["path"]}
    assert seen == {1}


@pytest.mark.parametrize("make", ["mkfifo f", "mkdir f", "ln -s f f", "ln -s /dev/zero f"], ids=["fifo", "directory", "loop", "device"])
def test_a_name_that_changes_its_kind_is_answered_as_one_of_them(api, place, make):
    """Never with the content of one and the kind or size of the other, and never by waiting."""
    path, swap = place
    api.bash(f"cd {path}; echo text >kept; {make}")
    swap("f", "kept")
    for operation, body in [
        ("read", {"file": f"{path}/f"}),
        ("str_replace_editor", {"command": "view", "path": f"{path}/f"}),
        ("search", {"file": f"{path}/f", "regex": "text"}),
        ("write", {"file": f"{path}/f", "content": "text\n"}),
        ("replace", {"file": f"{path}/f", "old_str": "text", "new_str": "text"}),
    ]:
        done, texts = [], []

        def both_kinds(operation=operation, body=body, done=done, texts=texts):
            """Not at once: the program that swaps them may not have begun."""
            done += [api.post(f"/v1/file/{operation}", body).json() for _ in range(20)]
            texts[:] = [d["data"].get("content") or d["data"].get("output") or "" for d in done if d["success"]]
            return {d["success"] for d in done} | {"2 levels deep" in t for t in texts} == {True, False}

        eventually(both_kinds)
        assert operation not in ("read", "str_replace_editor") or all("text" in t or "2 levels deep" in t for t in texts)


def test_an_upload_that_is_given_up_takes_away_its_own_file_only(api, place):
    """Its directory has been replaced meanwhile by a link to another one with a file of that name."""
    path, _ = place
    api.bash(f"cd {path}; mkdir other; echo kept >other/f")
    head = "\r\n".join([
        "POST /v1/file/upload HTTP/1.1", "Host: x", f"X-AIO-API-Key: {api.key}", "Content-Type: multipart/form-data; boundary=b",
        "Content-Length: 100000", "", "--b", 'Content-Disposition: form-data; name="path"', "", f"{path}/d/f",
        "--b", 'Content-Disposition: form-data; name="file"; filename="f"', "", "half of it"])
    with Raw(api.url) as client:
        client.send(head.encode())
        eventually(lambda: api.bash(f"ls {path}/d/f")["exit_code"] == 0)
        api.bash(f"cd {path}; mv d gone; ln -s other d")
    eventually(lambda: api.bash(f"ls {path}/gone/f")["exit_code"] != 0)
    assert api.bash(f"cat {path}/other/f")["stdout"] == "kept\n"
