"""/v1/file/upload and /v1/file/download."""
import contextlib
import hashlib
import threading

import pytest
from conftest import eventually

HOME = "/home/gem"


@pytest.fixture
def place(api):
    name = api.bash("mktemp -d -p ~ t-XXXXXX")["stdout"].strip()
    yield name
    api.bash(f"rm -rf {name}")


def upload(api, content, path=None, name="given.bin", order="path"):
    """As a form; order: which part comes first (the Python SDK sends path, browsers' FormData often the file)."""
    parts = [("path", (None, path))] if path is not None else []
    parts = [*parts, ("file", (name, content))] if order == "path" else [("file", (name, content)), *parts]
    return api.http.post("/v1/file/upload", files=parts)


def sha(api, path):
    return api.bash(f"sha256sum < {path}")["stdout"].split()[0]


@pytest.mark.parametrize("order", ["path", "file"])
@pytest.mark.parametrize("size", [0, 1, 70_000, 3_000_000])
def test_an_upload_is_there_byte_for_byte(api, place, size, order):
    content = bytes(i * 7 % 251 for i in range(size))
    answer = upload(api, content, f"{place}/new/up.bin", order=order).json()
    assert answer["success"] is True and answer["data"] == {"file_path": f"{place}/new/up.bin", "file_size": size, "success": True}
    assert sha(api, f"{place}/new/up.bin") == hashlib.sha256(content).hexdigest()


def test_trap_19_unnamed_bytes_are_called_upload(api, place):
    assert upload(api, b"x", place, name="upload").json()["data"]["file_path"] == f"{place}/upload"


def test_a_shorter_upload_replaces_a_longer_one(api, place):
    upload(api, b"long content", f"{place}/f")
    upload(api, b"short", f"{place}/f")
    assert api.bash(f"cat {place}/f")["stdout"] == "short"


def test_content_that_looks_like_a_boundary_is_content(api, place):
    content = b"\r\n--\r\n--boundary\r\n\r\n----" * 1000
    upload(api, content, f"{place}/f")
    assert sha(api, f"{place}/f") == hashlib.sha256(content).hexdigest()


def test_without_a_path_it_goes_into_the_home_under_its_own_name(api):
    assert upload(api, b"x", name="../../own-name.txt").json()["data"]["file_path"] == f"{HOME}/own-name.txt"
    api.bash("rm ~/own-name.txt")


def test_a_form_without_a_file_is_422_and_a_broken_one_400(api, place):
    assert api.http.post("/v1/file/upload", data={"path": f"{place}/x"}).status_code == 422
    assert api.post("/v1/file/upload", {"path": f"{place}/x"}).status_code == 422
    head = {"content-type": "multipart/form-data; boundary=b"}
    assert api.http.post("/v1/file/upload", content=b"--b\r\n\r\nx\r\n--b--", headers=head).status_code == 400
    cut = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nhalf'
    assert api.http.post("/v1/file/upload", content=cut, headers=head).status_code == 400


def test_an_upload_that_cannot_be_kept_is_a_failure_of_the_tool(api):
    answer = upload(api, b"x" * 2_000_000, "/usr/lib/x").json()
    assert answer["success"] is False and not {"success", "file_path", "file_size"} & set(answer["data"])
    assert answer["data"]["errno_name"] in ("EROFS", "EACCES")


def test_an_upload_is_not_held_in_memory(api, native, place):
    before = native.memory_peaks()["agent"]

    def pieces():
        head = f'--b\r\nContent-Disposition: form-data; name="path"\r\n\r\n{place}/big\r\n'
        yield (head + '--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\n').encode()
        for _ in range(300):
            yield b"z" * (1 << 20)
        yield b"\r\n--b--\r\n"

    answer = api.http.post("/v1/file/upload", content=pieces(), headers={"content-type": "multipart/form-data; boundary=b"})
    assert answer.json()["data"]["file_size"] == 300 << 20
    assert native.memory_peaks()["agent"] - before < 32 << 20


# --- download ---

@pytest.fixture
def file(api, place):
    api.bash(f"seq 1 500000 > '{place}/nu mbers.txt'")
    return f"{place}/nu mbers.txt"


def download(api, path, **options):
    return api.http.get("/v1/file/download", params={"path": path}, **options)


def test_a_download_is_the_file(api, file):
    answer = download(api, file)
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/octet-stream"
    assert answer.content == "".join(f"{i}\n" for i in range(1, 500001)).encode()
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "nu mbers.txt" in answer.headers["content-disposition"] and "nu%20mbers.txt" in answer.headers["content-disposition"]


def test_the_connection_is_used_again_after_a_download(api, file):
    with api.raw() as raw:
        raw.send(api.request(f"GET /v1/file/download?path={file.replace(' ', '%20')}"))
        first = raw.answer()
        raw.send(api.request("GET /v1/ping"))
        assert first.status == raw.answer().status == 200


def test_ranges(api, file):
    whole = download(api, file).content
    part = lambda text: download(api, file, headers={"range": f"bytes={text}"})  # noqa: E731
    for text, wanted in (("0-0", whole[:1]), ("100-2000000", whole[100:2000001]), ("-5", whole[-5:]), ("3000000-", whole[3000000:])):
        answer = part(text)
        assert (answer.status_code, answer.content) == (206, wanted), text
        assert answer.headers["content-range"].endswith(f"/{len(whole)}")
    assert part("99999999-").status_code == 416
    assert part("x").status_code == 200 and part("5-2").status_code == 200
    tag = part("0-0").headers["etag"]
    assert download(api, file, headers={"range": "bytes=0-0", "if-range": tag}).status_code == 206
    assert download(api, file, headers={"range": "bytes=0-0", "if-range": '"other"'}).status_code == 200


def test_head_tells_the_size(api, file):
    answer = api.http.head("/v1/file/download", params={"path": file})
    assert answer.status_code == 200 and int(answer.headers["content-length"]) > 3_000_000 and answer.content == b""


def test_an_empty_file_is_an_empty_download(api, place):
    api.bash(f"touch {place}/empty")
    assert download(api, f"{place}/empty").content == b""


def test_trap_12_failures_of_a_download_are_http_codes(api, place):
    missing = download(api, "/tmp/missing.txt")
    assert missing.status_code == 404 and missing.json()["data"]["errno_name"] == "ENOENT"
    assert download(api, "/etc").status_code == 400
    assert api.http.get("/v1/file/download").status_code == 422
    assert api.http.get("/v1/file/download", params={"path": "/etc/passwd", "change_policy": "x"}).status_code == 422


@pytest.mark.parametrize("change", ["printf x >> growing", "printf x | dd of=growing conv=notrunc status=none", "touch new && mv new growing"])
def test_a_file_that_changes_ends_a_download_that_asked_for_it(api, place, change):
    api.bash(f"head -c 200000000 /dev/zero > {place}/growing")
    with api.http.stream("GET", "/v1/file/download", params={"path": f"{place}/growing", "change_policy": "abort"}) as answer:
        pieces = answer.iter_raw(1 << 16)
        next(pieces)
        assert api.bash(change, exec_dir=place)["exit_code"] == 0
        with pytest.raises(Exception, match="closed|peer|incomplete"):
            for _ in pieces:
                pass
    assert download(api, f"{place}/growing").status_code == 200


def test_a_file_that_changes_is_sent_on_where_changes_are_ignored(api, place):
    api.bash(f"head -c 50000000 /dev/zero > {place}/growing")
    with api.http.stream("GET", "/v1/file/download", params={"path": f"{place}/growing"}) as answer:
        pieces = answer.iter_raw(1 << 16)
        begun = len(next(pieces))
        api.bash(f"printf x >> {place}/growing")
        assert begun + sum(map(len, pieces)) == 50000000 == int(answer.headers["content-length"])


@contextlib.contextmanager
def growing(api, path):
    """While it lasts, a session appends to the file as fast as it can."""
    api.bash(f"printf start > {path}")
    thread = threading.Thread(target=api.bash, args=(f"until [ -e {path}.stop ]; do printf x >> {path}; done",), kwargs={"timeout": 50})
    thread.start()
    try:
        eventually(lambda: len(download(api, path).content) > len("start"))
        yield
    finally:
        api.bash(f"touch {path}.stop")
        thread.join()


@pytest.mark.parametrize("headers, status", [({}, 200), ({"range": "bytes=0-3"}, 206)])
def test_a_change_before_the_first_byte_is_409_where_that_was_asked_for(api, place, headers, status):
    asked = {"path": f"{place}/busy", "change_policy": "abort"}
    with growing(api, f"{place}/busy"):
        refused = eventually(lambda: (got := api.http.get("/v1/file/download", params=asked, headers=headers)).status_code == 409 and got)
        assert refused.json() == {"success": False, "message": "The file changed before it was sent", "data": None}
        for _ in range(20):  # changes are ignored where that was not asked for
            assert download(api, f"{place}/busy", headers=headers).status_code == status
    assert api.http.get("/v1/file/download", params=asked, headers=headers).status_code == status
