"""A server that leaves bodies unread takes them for requests: none that nobody has judged reaches it, and no answer is another's."""

import contextlib
import http.server
import shutil

import pytest
import world
from opening import Opening
from test_opener import session

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
PATHS = {"paths": ["/api/"], "why": "issues are read"}


class Careless(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def any(self):
        self.server.append((self.command, self.path))
        body = f"content of {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = do_OPTIONS = any

    def log_message(self, *_):
        pass

    def finish(self):  # what is unread would reset the connection, and take the answer along
        super().finish()
        self.request.settimeout(2)
        with contextlib.suppress(OSError):
            while self.request.recv(65536):
                pass


class Opened(Opening):
    def __init__(self, *arguments, **named):
        self.asked = []
        super().__init__(*arguments, **named)

    def serve(self, connection):
        with contextlib.suppress(OSError), self.context.wrap_socket(connection, server_side=True) as tls:
            Careless(tls, ("client", 0), self.asked)


@pytest.fixture
def opened(internet, tmp_path):
    made = []

    def begin(**limits):
        made.append(Opened(internet, tmp_path, bindings=[], rules=[world.rule("api.test", ports=[443], inspect=True, **limits)]))
        return made[-1]

    yield begin
    for one in made:
        one.close()


@pytest.fixture
def plain(internet):
    """The same server without TLS; what it was asked."""
    internet.names.zone["api.test"] = [world.PUBLIC]
    asked = []

    def serve(connection):
        with contextlib.suppress(OSError):
            Careless(connection, ("client", 0), asked)

    internet.serve(world.PUBLIC, 80, serve)
    internet.start_dialer()
    internet.start_door()
    internet.join()
    internet.open(world.rule("api.test", ports=[80], **PATHS), port=80)
    return asked


def request(line, body=b"", fields=b""):
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return line + b" HTTP/1.1\r\nHost: api.test\r\n" + length + fields + b"\r\n" + body


INNER = request(b"GET /admin/secrets")


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS", b"DELETE"])
def test_a_body_where_there_is_none_as_a_rule_is_refused(opened, method):
    opening = opened(**PATHS)
    with session(opening) as tls:
        tls.sendall(request(method + b" /api/x", INNER))
        assert b" 403 " in world.read_all(tls)
    assert opening.asked == []
    assert opening.record(event="refusal", refusal="framing")["method"] == method.decode()


def test_after_a_body_the_server_gets_no_other_request(opened):
    opening = opened(**PATHS)
    with session(opening) as tls:
        tls.sendall(request(b"POST /api/x", INNER) + request(b"GET /api/y"))
        said = world.read_all(tls)
    assert said.count(b"content of") == 1 and b"content of /api/x" in said
    assert ("GET", "/admin/secrets") not in opening.asked


def test_the_same_at_the_door(internet, plain):
    with internet.connect("api.test", 80) as stream:
        stream.sendall(request(b"GET /api/x", INNER))
        assert b"refused: framing" in world.read_all(stream)
    assert plain == []
    with internet.connect("api.test", 80) as stream:
        stream.sendall(request(b"POST /api/x", INNER) + request(b"GET /api/y") + request(b"GET /api/z", fields=b"Connection: close\r\n"))
        said = world.read_all(stream)
    assert [b"content of /api/%b" % part in said for part in (b"x", b"y", b"z")] == [True] * 3
    assert b"admin" not in said and ("GET", "/admin/secrets") not in plain


@pytest.mark.parametrize("field", [b"X-Original-URL", b"X_Original_URL", b"X-Original-Uri", b"x_http_method_override", b"X-Forwarded-Host"])
def test_no_field_makes_another_request_of_it_however_it_is_spelled(opened, field):
    opening = opened(**PATHS)
    with session(opening) as tls:
        tls.sendall(request(b"GET /api/x", fields=field + b": /admin\r\n"))
        assert b" 403 " in world.read_all(tls)
    assert opening.asked == []


def test_nor_does_a_trailer(opened):
    opening = opened(**PATHS)
    with session(opening) as tls:
        tls.sendall(request(b"POST /api/x", fields=b"Transfer-Encoding: chunked\r\n") + b"1\r\nx\r\n0\r\nX-Original-URL: /admin\r\n\r\n")
        said = world.read_all(tls)
    assert b"content of /admin" not in said and ("POST", "/admin") not in opening.asked
