"""The opener: sessions use secrets that they never have."""

import base64
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import pytest
import stage
import world
from harness import eventually
from opening import HELD, TOKEN, Opening, authority, server_context
from whole import Whole

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
URL = "https://api.test/x"
BEARER = ["-H", f"Authorization: Bearer {HELD}"]


@pytest.fixture
def opening(internet, tmp_path):
    one = Opening(internet, tmp_path)
    yield one
    one.close()


@pytest.fixture
def bound(opening):
    opening.bind()
    return opening


def test_a_placeholder_goes_out_as_the_secret(bound):
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and said.endswith("ok")
    assert f"Authorization: Bearer {TOKEN}" in bound.heads[0] and HELD not in bound.heads[0]
    record = bound.record(event="connection")
    assert (record["host"], record["secrets"], record["method"], record["path"], record["status"]) == ("api.test", ["token"], "GET", "/x", 200)
    assert TOKEN not in str(record) and HELD not in str(record)


def test_user_and_password_of_basic(bound):
    assert bound.curl(URL, "-u", f"git:{HELD}")[0] == 0
    assert base64.b64encode(f"git:{TOKEN}".encode()).decode() in bound.heads[0]


@pytest.mark.parametrize("argv", [["-H", f"X-Copy: {HELD}"], ["-H", f"Authorization: Bearer x{HELD}"], ["-b", f"a={HELD}"]], ids=["field", "part", "cookie"])
def test_a_placeholder_elsewhere_is_an_alarm(bound, argv):
    code, said = bound.curl(URL, *argv)
    assert code == 0 and " 403 " in said and "placeholder_elsewhere" in said
    assert bound.heads == []
    assert bound.record(event="refusal", refusal="placeholder_elsewhere")["secrets"] == ["token"]


def test_a_secret_that_has_not_come_is_a_refusal(opening):
    code, said = opening.curl(URL, *BEARER)
    assert code == 0 and " 403 " in said and "placeholder_unbound" in said and opening.heads == []
    opening.bind()
    assert opening.curl(URL, *BEARER)[1].endswith("ok")


def test_other_requests_to_a_bound_host_pass_as_they_are(bound):
    data = "x" * 300_000
    (bound.folder / "data").write_text(data)
    assert bound.curl(URL, "--data-binary", f"@{bound.folder / 'data'}", "-H", "Authorization: Bearer mine")[0] == 0
    assert "Authorization: Bearer mine" in bound.heads[0] and bound.bodies[0] == data.encode()
    assert bound.record(event="connection")["secrets"] == []


def test_requests_of_one_connection(bound):
    assert bound.curl(URL, URL, URL, *BEARER)[0] == 0
    assert len(bound.heads) == 3 and bound.connections == 1


def chunked(*parts):
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body


def sized(body, fields=b""):
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (fields, len(body), body)


def test_the_last_secret_is_searched_for_too(bound):
    """A server may have kept it, and still take it."""
    bound.bind(secret="another-secret-0000000000")
    bound.answer = lambda *_: sized(b"before: " + SECRET + b", now: another-secret-0000000000")
    code, said = bound.curl(URL)
    assert code == 0 and "before: *" in said and TOKEN not in said and "another-secret" not in said


SECRET = TOKEN.encode()
ANSWERS = {
    "with a length": sized(b"you sent " + SECRET + b"!"),
    "in chunks": chunked(b"you sent " + SECRET[:5], SECRET[5:] + b"!"),
    "chunks of a byte": chunked(*(bytes([byte]) for byte in b"you sent " + SECRET + b"!")),
    "a field": sized(b"!", b"X-Echo: " + SECRET + b"\r\n"),
    "base64": sized(base64.b64encode(b"user:" + SECRET + b"!!") + b"!"),
    "until the end": b"HTTP/1.0 200 OK\r\n\r\nyou sent " + SECRET + b"!",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_answers_do_not_have_it(bound, answer):
    bound.answer = lambda head, body: answer
    bound.closes = answer.startswith(b"HTTP/1.0")
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and said.endswith("!") and "****" in said, said
    assert TOKEN not in said and base64.b64encode(TOKEN[2:17].encode()).decode()[1:-1] not in said
    assert bound.record(event="connection")["scrubbed"] >= 1


def test_an_answer_that_cannot_be_searched_is_none(bound):
    bound.answer = lambda head, body: sized(b"\x1f\x8b whatever", b"Content-Encoding: gzip\r\n")
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and " 502 " in said and "whatever" not in said
    assert "Accept-Encoding: identity" in bound.heads[0]


def test_what_is_revoked_is_not_used_any_more(bound):
    with session(bound) as tls:
        tls.sendall(f"GET / HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer {HELD}\r\n\r\n".encode())
        said = b""
        while not said.endswith(b"ok"):
            said += tls.recv(4096)
        bound.set_lists(generation=2, bindings=[world.binding("other", "another-placeholder", "api.test")])
        assert ended(tls)  # a connection that could still use it
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and TOKEN not in bound.heads[-1] and said.endswith("ok")


def test_a_newer_list_ends_what_is_open(bound):
    with session(bound) as tls:
        bound.rules.append(world.rule("more.test"))
        bound.set_lists(generation=2)
        assert ended(tls)


def test_a_secret_that_is_gone_is_not_used_any_more(bound):
    assert bound.curl(URL, *BEARER)[1].endswith("ok")
    bound.bind(secret="")
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and "placeholder_unbound" in said and len(bound.heads) == 1


def test_a_use_is_on_record_where_the_connection_is_ended(bound):
    asked = threading.Event()
    bound.answer = lambda head, body: (asked.set(), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun")[1]
    with session(bound) as tls:
        tls.sendall(f"GET /x HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer {HELD}\r\n\r\n".encode())
        assert asked.wait(60)
        bound.bind(secret="another-secret-0000000000")
        world.read_all(tls)
    assert bound.record(event="connection", ended="closed")["secrets"] == ["token"]


def test_half_an_answer_does_not_end_as_a_whole_one(bound):
    bound.answer = lambda head, body: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n"
    bound.closes = True
    context = ssl.create_default_context(cafile=bound.pem)
    context.options &= ~0x80  # SSL_OP_IGNORE_UNEXPECTED_EOF
    plain = bound.internet.connect("api.test", bound.port)
    with context.wrap_socket(plain, server_hostname="api.test", suppress_ragged_eofs=False) as tls:
        tls.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        with pytest.raises(OSError):  # TLS ends without its word for it
            while tls.recv(4096):
                pass
    bound.record(event="connection", ended="reset")


def test_a_rule_that_permits_to_read_permits_no_more(bound):
    bound.rules = [world.rule("api.test", ports=[bound.port], read_only=True)]
    bound.set_lists(generation=2)
    assert bound.curl(URL, *BEARER)[1].endswith("ok")
    code, said = bound.curl(URL, "-X", "DELETE", *BEARER)
    assert code == 0 and " 403 " in said and "method" in said and len(bound.heads) == 1
    assert bound.record(event="refusal", refusal="method")["method"] == "DELETE"


@pytest.mark.parametrize("argv", [["-X", "GET", "--data", "x"], ["--data", "x", "-H", "Expect: 100-continue"]], ids=["body of a GET", "expect"])
def test_what_may_be_misread_is_the_last_of_its_connection(bound, argv):
    assert bound.curl(URL, URL, *argv)[0] == 0
    assert (len(bound.heads), bound.connections) == (2, 2)


def session(opening, host="api.test"):
    context = ssl.create_default_context(cafile=opening.pem)
    return context.wrap_socket(opening.internet.connect(host, opening.port), server_hostname=host)


def ended(tls):
    try:
        return tls.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_server_that_nobody_vouches_for_gets_nothing(bound, tmp_path):
    (tmp_path / "false").mkdir()
    bound.context = server_context(tmp_path / "false", authority(tmp_path / "false", "false"), "api.test")
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and " 502 " in said and bound.heads == []
    assert "certificate" in bound.record(event="refusal", refusal="certificate")["detail"]


def test_a_server_that_is_another_gets_nothing(bound):
    bound.context = server_context(bound.folder, bound.by, "another.test")
    code, said = bound.curl(URL, *BEARER)
    assert code == 0 and " 502 " in said and bound.heads == []


def test_the_authority_is_for_bound_hosts_alone(bound):
    text = subprocess.run(["openssl", "x509", "-in", bound.pem, "-noout", "-text"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "Permitted:\n                  DNS:api.test\n" in text and "CA:TRUE, pathlen:0" in text and "prime256v1" in text
    assert f"Excluded:\n                  IP:0.0.0.0/0.0.0.0\n                  IP:{':'.join('0' * 8)}/" in text
    with session(bound) as tls:
        assert tls.version() == "TLSv1.3" and tls.getpeercert()["subjectAltName"] == (("DNS", "api.test"),)


def test_a_host_that_is_not_bound_is_not_opened(bound):
    context = server_context(bound.folder, bound.by, "other.test")

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(4096)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nother")

    bound.internet.serve(world.OTHER, bound.port, handle)
    assert bound.curl("https://other.test/", "--cacert", bound.by[1], trusted=False)[1].endswith("other")


def handed(bound, host="api.test", domain="bash", workspace=1, to=None):
    """As if the door were owned: the test hands over connections in its place. Our ends of the session's and the server's."""
    line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stage.send(bound.opener.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    theirs.close()
    (ours, client), (far, server) = socket.socketpair(), socket.socketpair()
    head = struct.pack("QHHHH", workspace, bound.port, len(host), len(domain), 0)
    head += host.encode() + domain.encode()
    stage.send(line, head, [client.fileno(), server.fileno()])
    for one in (client, server):
        one.close()
    for one in (ours, far):
        one.settimeout(60)
    return line, ours, far


@pytest.mark.parametrize("host, domain, workspace", [("other.test", "bash", 1), ("api.test", "none", 1), ("api.test", "bash", 2)])
def test_an_owned_door_gets_nothing_opened_that_no_list_binds(bound, host, domain, workspace):
    line, ours, far = handed(bound, host, domain, workspace)
    assert world.read_all(far).removesuffix(b"RST") == b"" and world.read_all(ours).removesuffix(b"RST") == b""
    line.close()


def test_an_owned_door_cannot_be_the_server(bound, tmp_path):
    """What it hands over in the server's place has to have the server's certificate."""
    (tmp_path / "false").mkdir()
    context = server_context(tmp_path / "false", authority(tmp_path / "false", "false"), "api.test")
    line, ours, far = handed(bound)
    with pytest.raises(OSError):  # the opener does not believe it
        with context.wrap_socket(far, server_side=True) as tls:
            assert TOKEN.encode() not in tls.recv(4096)
            tls.recv(4096)
    bound.record(event="refusal", refusal="certificate")
    ours.close()
    line.close()


def held(pid, wanted):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if "rw" in line and "[v" not in line:
                memory.seek(low)
                if wanted in memory.read(high - low):
                    return True
    return False


def test_the_secret_is_in_the_opener_alone(bound):
    assert bound.curl(URL, *BEARER)[0] == 0
    assert held(bound.opener.pid, SECRET)
    for service in (bound.internet.door, bound.internet.dialer):
        assert not held(service.pid, SECRET), service.name


@pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers has no seal")
def test_it_is_sealed(bound):
    assert bound.curl(URL, *BEARER)[0] == 0
    assert (bound.opener.status("Uid").split()[0], bound.opener.status("CapEff"), bound.opener.status("Seccomp")) == ("995", "0" * 16, "2")
    files = [os.readlink(f"/proc/{bound.opener.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{bound.opener.pid}/fd") if int(fd) > 2]
    assert not [path for path in files if path.startswith("/") and "memfd" not in path], files


def test_what_a_session_says_instead_of_http(bound):
    with session(bound) as tls:
        tls.sendall(b"\x00\x01 nothing of HTTP\r\n\r\n")
        assert b" 400 " in tls.recv(4096)
    bound.record(event="refusal", refusal="framing")
    with session(bound) as tls:
        tls.sendall(b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert b" 403 " in tls.recv(4096)
    bound.record(event="refusal", refusal="host_differs")
    assert bound.heads == []


def test_it_is_reached_by_connect_too(bound):
    """The door's own port as a proxy: the tunnel to a bound host is opened as any connection to it."""
    with bound.internet.connect("127.0.0.1", bound.port) as client:
        client.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        context = ssl.create_default_context(cafile=bound.pem)
        with context.wrap_socket(client, server_hostname="api.test") as tls:
            tls.sendall(f"GET / HTTP/1.1\r\nHost: api.test\r\nX: y\r\nAuthorization: token {HELD}\r\n\r\n".encode())
            assert tls.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert f"token {TOKEN}" in bound.heads[0]


def test_websocket_after_its_head_is_relayed(bound):
    bound.answer = lambda head, body: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"
    fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    with session(bound) as tls:
        tls.sendall(f"GET /w HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer {HELD}\r\n{fields}\r\n".encode())
        said = b""
        while not said.endswith(b"\x81\x02hi"):
            said += tls.recv(4096)
    assert said.startswith(b"HTTP/1.1 101 ") and f"Bearer {TOKEN}" in bound.heads[0]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_git_over_https(bound):
    """What git sends to a server that asks for a password: Basic, with the placeholder as it has it."""
    refs = b"001e# service=git-upload-pack\n0000" + b"0000"
    fields = b"Content-Type: application/x-git-upload-pack-advertisement\r\n"
    denied = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\n\r\n"
    basic = base64.b64encode(f"git:{TOKEN}".encode()).decode()
    bound.answer = lambda head, body: sized(refs, fields) if basic in head else denied
    done = subprocess.run(["git", "-c", f"http.sslCAInfo={bound.pem}", "ls-remote", f"https://git:{HELD}@api.test/one.git"], capture_output=True, text=True,
                          preexec_fn=bound.internet.as_workspace, check=False, timeout=120, env={"PATH": os.environ["PATH"], "GIT_TERMINAL_PROMPT": "0"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert basic in bound.heads[-1] and HELD not in "".join(bound.heads)


@pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers has no seal")
def test_as_the_launcher_starts_it(internet, tmp_path):
    """Gate, door, dialer and opener in earnest; the secret comes from its file, and from a newer one with a newer list."""
    by = authority(tmp_path, "servers")
    context, heads = server_context(tmp_path, by, "api.test"), []

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            heads.append(tls.recv(65536).decode())
            tls.sendall(sized(b"you sent " + SECRET + b"!"))

    internet.names.zone.update({"api.test": [world.PUBLIC]})
    internet.serve(world.PUBLIC, 443, handle)
    (tmp_path / "secret").write_text(TOKEN + "\n")
    lists = world.list_of(world.rule("api.test"), bindings=[world.binding("token", HELD, "api.test", file=str(tmp_path / "secret"))])
    whole = Whole(internet, lists, lambda: world.bind({"/etc/ssl/certs/ca-certificates.crt": by[1]}))
    try:
        code, said = whole.curl("-k", URL, *BEARER)
        assert (code, said) == (0, "you sent " + "*" * len(TOKEN) + "!") and f"Bearer {TOKEN}" in heads[0]
        record = whole.told_until("connection", via="opened")
        assert (record["workspace"], record["host"], record["secrets"], record["scrubbed"]) == ("default", "api.test", ["token"], 1)
        (tmp_path / "secret").write_text("another-secret-0000000000\n")
        whole.set_lists(lists, 2)
        eventually(lambda: whole.curl("-k", URL, *BEARER)[0] == 0 and "Bearer another-secret-0000000000" in heads[-1])
        whole.told_until("connection", via="opened", generation=2)
        whole.set_lists(world.list_of(world.rule("api.test")), 3)
        # Not opened any more: what the session says goes to the server as it is.
        eventually(lambda: whole.curl("-k", URL, *BEARER)[0] == 0 and f"Bearer {HELD}" in heads[-1])
    finally:
        whole.close()
