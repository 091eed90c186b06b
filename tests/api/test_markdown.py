"""POST /v1/util/convert_to_markdown and its tools: documents of every format beside what markitdown itself makes of them, where they may come
from, and documents that were made to do harm."""
import base64
import http.server
import io
import json
import pathlib
import subprocess
import threading
import zipfile

import documents
import pytest
import sdk
from conftest import Api
from launcher_process import BUILD

LIBRARIES = BUILD / "launcher/tools/markitdown"
CONVERT = "/v1/util/convert_to_markdown"
if not LIBRARIES.is_dir():
    pytest.skip("markitdown is not installed (scripts/test does it)", allow_module_level=True)


@pytest.fixture(scope="module")
def own(launch, contract):
    launcher = launch(documents=True)
    return launcher, Api(launcher.url, launcher.key, contract)


@pytest.fixture(scope="module")
def api(own):
    return own[1]


@pytest.fixture(scope="module")
def put(api):
    def put_file(name: str, content: bytes) -> str:
        done = api.http.post("/v1/file/upload", files={"file": (name, content)}, data={"path": f"/home/gem/{name}"})
        assert done.json()["success"], done.text
        return f"/home/gem/{name}"
    return put_file


def directly(*arguments) -> str:
    done = subprocess.run(["/usr/bin/python3", "-I", pathlib.Path(__file__).with_name("documents.py"), LIBRARIES, *arguments],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for name, content in documents.plain_samples().items():
        (folder / name).write_bytes(content)
    directly("samples", folder)
    return folder


@pytest.mark.parametrize("name", ["word.docx", "book.epub", "page.pdf", "page.html", "table.csv", "data.json", "notes.txt", "files.zip",
                                  "slides.pptx", "sheet.xlsx", "picture.jpg"])
def test_a_format_becomes_what_markitdown_makes_of_it(api, put, samples, name):
    got = api.data(CONVERT, {"uri": put(name, (samples / name).read_bytes())})
    expected = json.loads(directly("convert", samples / name))
    if name == "files.zip":  # its first line names the file, which the converter does not know
        got, expected = got.split("\n", 1)[1], expected.split("\n", 1)[1]
    assert got.strip() and got.splitlines()[:5] == expected.splitlines()[:5]


def test_macros_are_not_looked_at(api, put, samples):
    assert api.data(CONVERT, {"uri": put("macros.docm", (samples / "macros.docm").read_bytes())}) == "With macros"


@pytest.mark.parametrize("uri", ["/home/gem/t.csv", "t.csv", "~/t.csv", "file:///home/gem/t.csv", "file://localhost/home/gem/t%2Ecsv"])
def test_paths_and_file_uris_name_the_same_file(api, put, uri):
    put("t.csv", b"a,b\n1,2\n")
    assert api.data(CONVERT, {"uri": uri}).startswith("| a | b |")


def test_data_uris(api):
    html = base64.b64encode(b"<h1>T</h1>").decode()
    assert api.data(CONVERT, {"uri": f"data:text/html;base64,{html}"}) == "# T"
    assert api.data(CONVERT, {"uri": "data:text/html;charset=utf-8,%3Ch1%3E%C3%BC%3C/h1%3E"}) == "# ü"
    assert api.data(CONVERT, {"uri": "data:,plain"}) == "plain"
    assert "base64" in api.fails(CONVERT, {"uri": "data:;base64,???"})["message"]
    assert "comma" in api.fails(CONVERT, {"uri": "data:text/html"})["message"]


def test_what_the_policies_do_not_grant_is_not_read(api):
    assert "cannot be read" in api.fails(CONVERT, {"uri": "/etc/shadow"})["message"]
    assert "cannot be read" in api.fails(CONVERT, {"uri": "file:///root/.bashrc"})["message"]
    assert "cannot be read" in api.fails(CONVERT, {"uri": "no-such-file.pdf"})["message"]
    assert "other.example" in api.fails(CONVERT, {"uri": "file://other.example/etc/passwd"})["message"]
    for uri in ("ftp://127.0.0.1/x", "javascript:alert(1)", "gopher://x"):
        assert "http, https, file and data" in api.fails(CONVERT, {"uri": uri})["message"]
    assert "is a directory" in api.fails(CONVERT, {"uri": "/home/gem"})["message"].lower()
    assert api.post(CONVERT, {}).status_code == 422


def test_http_is_what_the_workspace_reaches(api):
    """A server in the workspace is reached over its loopback; one of the host is not, as no policy names it."""
    api.bash("mkdir -p web && cd web && echo '<h1>Served</h1>' >page.html && (setsid python3 -m http.server 8377 >/dev/null 2>&1 &) ; "
             "for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:8377/ && break; sleep 0.1; done", timeout=30)
    assert api.data(CONVERT, {"uri": "http://127.0.0.1:8377/page.html"}) == "# Served"
    assert "404" in api.fails(CONVERT, {"uri": "http://127.0.0.1:8377/none"})["message"]
    api.bash("cat >web/aside.py <<'E'\nimport http.server\nclass Aside(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n"
             "        self.send_response(302)\n        self.send_header('Location', 'file:///etc/passwd')\n        self.end_headers()\n"
             "http.server.HTTPServer(('127.0.0.1', 8379), Aside).serve_forever()\nE\n"
             "(setsid python3 web/aside.py >/dev/null 2>&1 &) ; for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:8379/ && break; sleep 0.1; done",
             timeout=30)
    aside = api.fails(CONVERT, {"uri": "http://127.0.0.1:8379/"})
    assert "cannot be fetched" in aside["message"] and "root:" not in json.dumps(aside)
    outside = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=outside.serve_forever, daemon=True).start()
    try:
        failed = api.fails(CONVERT, {"uri": f"http://127.0.0.1:{outside.server_address[1]}/"})
        assert "cannot be fetched, with the network of the domain bash" in failed["message"]
    finally:
        outside.shutdown()
    assert "cannot be fetched" in api.fails(CONVERT, {"uri": "https://outside.example/"})["message"]


def test_a_file_that_is_too_large_is_not_read(api):
    api.bash("truncate -s 2G sparse.pdf")
    assert "larger than 32 MiB" in api.fails(CONVERT, {"uri": "sparse.pdf"})["message"]
    api.bash("truncate -s 40M web/large.pdf; cd web && (setsid python3 -m http.server 8378 >/dev/null 2>&1 &) ; "
             "for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:8378/ && break; sleep 0.1; done", timeout=30)
    assert "larger than 32 MiB" in api.fails(CONVERT, {"uri": "http://127.0.0.1:8378/large.pdf"})["message"]


def bomb() -> bytes:
    return documents.package({f"{n}.txt": b"\0" * (100 << 20) for n in range(3)})


def lying_bomb() -> bytes:
    """Says that it unpacks to a few bytes."""
    data, size = documents.package({"a.txt": b"\0" * (20 << 20)}), (20 << 20).to_bytes(4, "little")
    return data.replace(size, (10).to_bytes(4, "little"))


def nested(depth: int) -> bytes:
    data = b"a,b\n1,2\n"
    for _ in range(depth):
        data = documents.package({"in.zip" if data[:2] == b"PK" else "t.csv": data})
    return data


def many_parts() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for n in range(20_000):
            archive.writestr(str(n), b"")
    return out.getvalue()


LAUGHS = "<!DOCTYPE x [<!ENTITY a 'lol'>" + "".join(f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9)) + "]>"
OUTSIDE = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
HOSTILE = {
    "bomb.zip": (bomb, "when unpacked"),
    "lies.zip": (lying_bomb, "cannot be unpacked"),
    "parts.zip": (many_parts, "more than 10000 parts"),
    "nested.zip": (lambda: nested(5), "deep"),
    "damaged.zip": (lambda: documents.package({"a": b"b"})[:-10], "cannot be read"),
    "xxe.docx": (lambda: documents.docx("&e;", OUTSIDE), "XML entities"),
    "utf16.docx": (lambda: documents.docx(**{"word/more.xml": OUTSIDE.encode("utf-16")}), "XML entities"),
    "laughs.docx": (lambda: documents.docx("&j;", LAUGHS), "XML entities"),
    "dtd.docx": (lambda: documents.docx("x", '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">'), "document type"),
    "xxe.epub": (lambda: documents.epub(OUTSIDE.replace("x [", "html [")), "XML entities"),
    "broken.pdf": (lambda: b"%PDF-1.7\n" + b"[" * 100_000, ""),
    "random.bin": (lambda: bytes(range(256)) * 64, ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_and_says_why(api, put, name):
    make, words = HOSTILE[name]
    failed = api.fails(CONVERT, {"uri": put(name, make())})
    assert words in failed["message"], failed
    assert "root:" not in json.dumps(failed)


def test_external_entities_of_plain_xml_stay_words(api, put):
    got = api.post(CONVERT, {"uri": put("x.xml", f'<?xml version="1.0"?>{OUTSIDE}<x>&e;</x>'.encode())}).json()
    assert "gem:" not in json.dumps(got) and "nobody:" not in json.dumps(got)


TOO_MUCH = {"deep.html": lambda: b"<div>" * 200_000, "deep.json": lambda: b"[" * 1_000_000,
            "large.html": lambda: b"<table>" + b"<tr><td>x</td></tr>" * 800_000 + b"</table>",
            "large.docx": lambda: documents.docx("</w:t></w:r></w:p>" + "<w:p/>" * 10_000_000 + "<w:p><w:r><w:t>")}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_takes_too_much_ends_alone(api, put, name):
    """Whatever becomes of it, an answer comes, and the next document is converted."""
    answer = api.post(CONVERT, {"uri": put(name, TOO_MUCH[name]())}).json()
    assert answer["success"] or answer["message"]
    if name in ("large.html", "large.docx"):
        assert "for want of memory" in answer["message"]
    assert api.data(CONVERT, {"uri": "data:text/html,<h1>next</h1>"}) == "# next"


def test_a_document_that_takes_too_long_ends(launch, contract):
    def shorter(folder):
        file = folder / "document.json"
        policy = json.loads(file.read_text())
        policy["limits"]["cpu_seconds"] = 8
        file.write_text(json.dumps(policy))
    launcher = launch(policies=shorter, documents=True)
    api = Api(launcher.url, launcher.key, contract)
    slow = "data:text/html," + "<table>" + "<tr><td>x</td></tr>" * 100_000 + "</table>"
    message = api.fails(CONVERT, {"uri": slow})["message"]
    assert message == "the conversion: it was ended when its processor time was over"
    assert api.data(CONVERT, {"uri": "data:text/html,<h1>next</h1>"}) == "# next"


def test_the_converter_has_no_network_no_home_and_no_other_document(own):
    launcher, api = own
    api.data(CONVERT, {"uri": "data:text/html,<h1>seen</h1>"})
    logs = [json.loads(line) for path in (launcher.dir / "audit").glob("*.ndjson") for line in path.read_text().splitlines()
            if "to_markdown.py" in line or '"domain":"document"' in line]
    assert any("to_markdown.py" in json.dumps(record) for record in logs)
    policy = api.data("/v1/policies/document", method="GET")
    assert (policy["network"], policy["home"], policy["tmp"], policy["exec_writable"]) == ("none", "private", "private", False)


def test_two_at_once_and_more_wait(api):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        got = list(pool.map(lambda n: api.data(CONVERT, {"uri": f"data:text/html,<h1>{n}</h1>"}), range(5)))
    assert got == [f"# {n}" for n in range(5)]


def test_the_tools(api, put):
    for path in ("sandbox/tools/sandbox_convert_to_markdown", "markitdown/tools/convert_to_markdown"):
        result = api.data(f"/v1/mcp/{path}", {"uri": "data:text/html,<h1>tool</h1>"})
        assert result["content"] == [{"type": "text", "text": "# tool"}] and result["isError"] is False
        assert api.data(f"/v1/mcp/{path}", {"uri": "no-such.pdf"})["isError"] is True
    assert "markitdown" in api.data("/v1/mcp/servers", method="GET")


def test_the_sdk(api):
    pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")
    assert sdk.sandbox_of(api).util.convert_to_markdown(uri="data:text/html,<h1>sdk</h1>").data == "# sdk"


def test_scopes(api):
    for scopes, status in ((["util"], 200), (["file", "bash"], 403)):
        token = api.data("/v1/tokens", {"label": f"util {scopes}", "scopes": scopes, "seconds": 60})["token"]
        assert api.http.post(CONVERT, json={"uri": "data:,x"}, headers={"X-AIO-API-Key": token}).status_code == status


def test_without_markitdown_the_answer_says_what_to_install(launch, contract):
    launcher = launch()
    failed = Api(launcher.url, launcher.key, contract).fails(CONVERT, {"uri": "data:text/html,<h1>x</h1>"})
    assert "markitdown is not installed" in failed["message"] and "image/markitdown/requirements.txt" in failed["message"]
