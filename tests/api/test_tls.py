"""The port with a certificate (CAISSON_TLS_CERTIFICATE, CAISSON_TLS_KEY): it speaks TLS 1.2 and 1.3 alone, everything works as without,
the certificate may be replaced, and no client holds up the others."""
import asyncio
import concurrent.futures
import contextlib
import datetime
import ipaddress
import json
import os
import pathlib
import secrets
import socket
import ssl
import subprocess
import time

import httpx
import pytest
from conftest import Api, eventually
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from launcher_process import free_port
from proxied import ECHO, app
from raw_http import Raw
from test_proxy_streams import SOCKETS, STREAMS

websockets = pytest.importorskip("websockets")
FOLDER = pathlib.Path("/etc/caisson/tls")


class Issuer:
    """A certificate that signs others; of itself, or of another issuer."""

    def __init__(self, name: str, by=None):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = (by or self).sign(self.name, self.key, x509.BasicConstraints(ca=True, path_length=None))
        self.chain = [self.certificate, *by.chain] if by else []

    def sign(self, subject, key, *extensions):
        now = datetime.datetime.now(datetime.timezone.utc)
        made = x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number(), now - datetime.timedelta(hours=1),
                                       now + datetime.timedelta(days=2))
        for extension in extensions:
            made = made.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return made.sign(self.key, hashes.SHA256())

    def server(self, name="localhost"):
        """(certificate with chain, key), in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        chain = [self.sign(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), key, names), *self.chain]
        return b"".join(pem(one) for one in chain), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def pem(certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


class Pair:
    """The two files, replaced as an operator should: by rename."""

    def __init__(self):
        FOLDER.mkdir(parents=True, exist_ok=True)
        name = secrets.token_hex(6)
        self.certificate, self.key = FOLDER / f"test-{name}.crt", FOLDER / f"test-{name}.key"

    def write(self, certificate: bytes, key: bytes):
        for path, content in ((self.certificate, certificate), (self.key, key)):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.chmod(0o644)  # the agent has a uid of its own
            os.replace(new, path)

    def environment(self) -> dict:
        return {"CAISSON_TLS_CERTIFICATE": str(self.certificate), "CAISSON_TLS_KEY": str(self.key)}

    def remove(self):
        self.certificate.unlink(missing_ok=True)
        self.key.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def root():
    return Issuer("Test root")


@pytest.fixture(scope="module")
def pair():
    if os.geteuid() != 0:
        pytest.skip("the folder of certificates is root's")
    made = Pair()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def server(launch, root, pair):
    """A launcher whose certificate has a chain; clients trust the root alone."""
    pair.write(*Issuer("Test issuer", root).server())
    launcher = launch(**pair.environment())
    launcher.root = launcher.dir / "root.pem"
    launcher.root.write_bytes(pem(root.certificate))
    return launcher


def trusting(server, lowest=ssl.TLSVersion.TLSv1_2, highest=ssl.TLSVersion.TLSv1_3, protocols=("http/1.1",)) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=server.root)
    context.minimum_version, context.maximum_version = lowest, highest
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


@pytest.fixture(scope="module")
def api(server, contract):
    made = Api(server.url, server.key, contract)
    made.http = httpx.Client(base_url=server.url, headers={"X-AIO-API-Key": server.key}, timeout=60, trust_env=False,
                             verify=trusting(server), event_hooks={"response": [made.check]})
    return made


@pytest.fixture
def client(server):
    """Answers of previews are no part of the contract."""
    with httpx.Client(base_url=server.url, headers={"X-AIO-API-Key": server.key}, timeout=120, trust_env=False,
                      verify=trusting(server)) as made:
        yield made


def shake_hands(server, context=None, timeout=60.0) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port), timeout)
    return (context or trusting(server)).wrap_socket(plain, server_hostname="localhost")


def serial_of(server) -> int:
    with shake_hands(server) as tls:
        return x509.load_der_x509_certificate(tls.getpeercert(binary_form=True)).serial_number


def ends(connection: socket.socket, within: float) -> bytes:
    """What comes until the server ends the connection, in that time."""
    connection.settimeout(within)
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            got += piece
    return got


def access(server, path: str) -> list[dict]:
    lines = [line for line in server.log.read_text().splitlines() if '"log":"access"' in line]
    return [line for line in map(json.loads, lines) if line["path"] == path]


# What the port speaks

def test_curl_takes_the_certificate_with_its_chain(server):
    said = subprocess.run(["curl", "-sS", "--cacert", server.root, "-H", f"X-AIO-API-Key: {server.key}", "-o", "/dev/null", "-w",
                           "%{http_code} %{http_version} %{ssl_verify_result}", f"https://localhost:{server.port}/v1/sandbox"],
                          capture_output=True, text=True, timeout=30)
    assert (said.stdout, said.stderr) == ("200 1.1 0", "")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(server, version):
    with shake_hands(server, trusting(server, version, version)) as tls:
        assert (tls.version().replace(".", "_"), tls.selected_alpn_protocol()) == (version.name, "http/1.1")
        assert tls.compression() is None


def test_a_client_without_protocols_is_served(server):
    with shake_hands(server, trusting(server, protocols=())) as tls:
        tls.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        assert ends(tls, 60).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_older_versions_are_refused(server, version):
    context = trusting(server, version, version)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError, match="(?i)protocol.version"):
        shake_hands(server, context)


def test_a_client_of_another_protocol_is_refused(server):
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        shake_hands(server, trusting(server, protocols=("h2",)))


def test_a_request_without_tls_gets_400_and_no_more(server):
    with Raw(server.url) as raw:
        raw.send(b"GET /v1/ping HTTP/1.1\r\nHost: test\r\n\r\n")
        answer = raw.answer()
        assert answer.status == 400 and "plain HTTP request" in answer.json()["message"] and raw.closed()


@pytest.mark.parametrize("bytes_", [b"\x00" * 64, b"\x80\x2e\x01\x03\x01" + b"\x00" * 64, b"\x16\x03\x01\x00\x05\x02" + b"\x00" * 64,
                                    b"\x16\x03\x01\x40\x00\x01\x01\xff\xff" + b"\x00" * 64], ids=["zeros", "sslv2", "no hello", "128 KiB"])
def test_what_is_no_hello_ends_the_connection_at_once(server, bytes_):
    with socket.create_connection(("127.0.0.1", server.port), 60) as plain:
        plain.sendall(bytes_)
        assert not ends(plain, 8).startswith(b"HTTP")  # a handshake that does not end has ten seconds


def test_renegotiation_is_refused(server):
    """s_client asks for it at a line with R."""
    with subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2", "-CAfile", server.root],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as asking:
        asking.stdin.write(b"R\n")  # read once the hands are shaken
        asking.stdin.flush()
        with contextlib.suppress(subprocess.TimeoutExpired):
            asking.wait(60)  # a refusal ends it
        said = asking.communicate(timeout=60)[0].decode()
    assert "Secure Renegotiation IS supported" in said and "RENEGOTIATING" in said and "no renegotiation" in said, said


def test_a_session_is_resumed(server):
    context = trusting(server, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    with shake_hands(server, context) as first:
        session = first.session
    plain = socket.create_connection(("127.0.0.1", server.port), 60)
    with context.wrap_socket(plain, server_hostname="localhost", session=session) as second:
        assert second.session_reused


# Everything works as without

def test_the_sdk_works(server, api):
    from agent_sandbox import Sandbox
    with httpx.Client(timeout=60, trust_env=False, verify=trusting(server)) as http:
        sandbox = Sandbox(base_url=server.url, headers={"X-AIO-API-Key": server.key}, httpx_client=http)
        assert sandbox.bash.exec(command="echo over TLS").data.stdout == "over TLS\n"


def test_large_bodies_pass_both_ways(api):
    text = secrets.token_hex(1 << 21)
    api.data("/v1/file/write", {"file": "/tmp/large", "content": text})
    assert api.data("/v1/file/read", {"file": "/tmp/large"})["content"] == text


def test_pipelined_requests_are_answered_in_order(server):
    with shake_hands(server) as tls:
        request = f"GET /v1/sandbox HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: {server.key}\r\n"
        tls.sendall((request + "\r\n" + request + "Connection: close\r\n\r\n").encode())
        assert ends(tls, 60).count(b"HTTP/1.1 200 OK") == 2


def test_a_terminal_speaks_wss(server):
    async def talk():
        address = f"wss://localhost:{server.port}/v1/shell/ws?api_key={server.key}"
        async with websockets.connect(address, max_size=None, open_timeout=60, ssl=trusting(server)) as ws:
            text = ""
            await ws.send(json.dumps({"type": "input", "data": "echo $((6*7))x; seq 20000\n"}))
            while "42x" not in text or "\n20000" not in text:
                message = json.loads(await asyncio.wait_for(ws.recv(), 60))
                text += message["data"] if message["type"] == "output" else ""
    asyncio.run(talk())


def test_events_come_as_they_happen(api, client):
    session = api.data("/v1/shell/sessions/create")["session_id"]
    body = {"id": session, "command": "echo first; read x; echo last"}
    with client.stream("POST", "/v1/shell/exec", json=body, headers={"Accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert any("first" in line for line in lines)
        api.data("/v1/shell/write", {"id": session, "input": "", "press_enter": True})
        assert any("last" in line for line in lines)


def test_a_preview_knows_that_it_is_https(api, client):
    with app(api, ECHO) as port:
        seen = client.post(f"/proxy/{port}/x", content=b"y" * 300_000).json()
        headers = {name.lower(): value for name, value in seen["headers"]}
        assert (seen["target"], seen["size"], headers["x-forwarded-proto"]) == ("/x", 300_000, "https")


def test_a_preview_streams(api, client):
    with app(api, STREAMS) as port:
        size = 4 << 20
        assert client.get(f"/proxy/{port}/bytes/{size}").content == bytes(range(256)) * (size // 256)
        with client.stream("GET", f"/proxy/{port}/events/3") as answer:
            assert "".join(answer.iter_text()) == "data: 0\n\ndata: 1\n\ndata: 2\n\n"


def test_a_preview_has_websockets(server, api):
    if api.bash("/usr/bin/python3 -c 'import websockets'")["exit_code"] != 0:
        pytest.skip("python3-websockets is not installed")

    async def talk(port):
        address = f"wss://localhost:{server.port}/proxy/{port}/"
        async with websockets.connect(address, max_size=None, open_timeout=60, ssl=trusting(server),
                                      extra_headers={"X-AIO-API-Key": server.key}) as ws:
            for message in ("hello", b"\x00" * 1_000_000):
                await ws.send(message)
                assert await asyncio.wait_for(ws.recv(), 60) == message

    with app(api, SOCKETS) as port:
        asyncio.run(talk(port))


def test_a_client_that_leaves_is_noticed(server, api):
    """Its last bytes are the end of TLS, which looks like a request on the socket."""
    with app(api, STREAMS) as port, shake_hands(server) as tls:
        path = f"/proxy/{port}/silent"
        tls.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: {server.key}\r\n\r\n".encode())
        time.sleep(0.5)
        tls.close()
        line = eventually(lambda: access(server, path))[0]
    assert line["status"] is None and line["ms"] < 15_000


def test_the_cookie_of_a_page_is_secure(client, server):
    answer = client.post("/v1/page/login", json={"key": server.key}, headers={"Origin": server.url})
    cookie = answer.headers.get("set-cookie", "")
    assert answer.status_code == 200 and cookie.startswith("__Host-") and cookie.endswith("; Secure"), answer.text
    assert "strict-transport-security" not in answer.headers


def test_the_access_log_has_the_scheme(client, server):
    mark = secrets.token_hex(8)
    client.get(f"/v1/{mark}")
    assert eventually(lambda: access(server, f"/v1/{mark}"))[0]["scheme"] == "https"


# Who holds up whom

def test_a_handshake_has_a_time_limit(server):
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        trusting(server).wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    begun = hello.read()[:40]
    with contextlib.ExitStack() as kept, concurrent.futures.ThreadPoolExecutor(2) as both:
        started = time.monotonic()
        waiting = [kept.enter_context(socket.create_connection(("127.0.0.1", server.port), 60)) for _ in range(2)]
        waiting[1].sendall(begun)
        assert list(both.map(lambda one: ends(one, 40), waiting)) == [b"", b""]
        assert 8 < time.monotonic() - started < 30


def test_unfinished_handshakes_do_not_stop_others(server, client):
    def took() -> float:
        """A request with its handshake, the middle one of 20."""
        each = []
        for _ in range(20):
            started = time.monotonic()
            with shake_hands(server) as tls:
                tls.sendall(b"GET /v1/ping HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
                assert ends(tls, 60).startswith(b"HTTP/1.1 200 ")
            each.append(time.monotonic() - started)
        return sorted(each)[10]

    alone = took()
    with contextlib.ExitStack() as kept:
        for i in range(200):
            half = kept.enter_context(socket.create_connection(("127.0.0.1", server.port), 60))
            if i % 2:
                half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        beside = took()
        assert beside < max(0.5, 10 * alone), (beside, alone)
        assert client.get("/v1/sandbox").status_code == 200


# The files

def test_no_session_reads_the_key(api, pair):
    assert os.access(pair.key, os.R_OK)
    got = api.bash(f"cat {pair.key}; ls {FOLDER}")
    assert got["stdout"] == "" and got["exit_code"] != 0, got
    for path in (str(pair.key), str(FOLDER)):
        assert api.post("/v1/file/read", {"file": path}).json()["success"] is False


def test_a_new_pair_is_taken_and_a_wrong_one_is_not(server, root, pair):
    new = root.server()
    pair.write(*new)
    serial = x509.load_pem_x509_certificate(new[0]).serial_number
    eventually(lambda: serial_of(server) == serial)

    def complaint() -> list[str]:
        serial_of(server)
        return [line for line in server.log.read_text().splitlines() if "the certificate before stays in use" in line]

    before = len(complaint())
    pair.write(root.server()[0], new[1])
    said = eventually(lambda: complaint()[before:])
    assert "the key is not that of the certificate" in said[0] and str(pair.certificate) in said[0]
    pair.key.chmod(0o000)
    pair.key.unlink()
    missing = eventually(lambda: [line for line in complaint()[before:] if "No such file" in line])
    assert str(pair.key) in missing[0] and serial_of(server) == serial
    latest = root.server()
    pair.write(*latest)
    eventually(lambda: serial_of(server) == x509.load_pem_x509_certificate(latest[0]).serial_number)
    log = server.log.read_text()
    assert not any(line in log for key in (new[1], latest[1]) for line in key.decode().splitlines()[1:-1])


WRONG = {
    "mismatch": (lambda a, b: (a[0], b[1]), "the key is not that of the certificate"),
    "no certificate": (lambda a, b: (b"", a[1]), "there is no certificate in PEM"),
    "no key": (lambda a, b: (a[0], a[0]), "there is no private key in PEM"),
    "broken chain": (lambda a, b: (a[0] + b[0][:200] + b"\n-----END CERTIFICATE-----\n", a[1]), "a certificate of the chain cannot be read"),
    "absent": (None, "No such file"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_used_is_refused_at_start(server, root, wrong):
    made, why = WRONG[wrong]
    pair = Pair()
    try:
        if made:
            pair.write(*made(root.server(), root.server()))
        said = words_at_start(server, pair.environment())
    finally:
        pair.remove()
    assert why in said and "listens on" not in said, said


def test_a_certificate_without_its_key_is_refused_at_start(server, pair):
    said = words_at_start(server, {"CAISSON_TLS_CERTIFICATE": str(pair.certificate)})
    assert "must be set together" in said and "listens on" not in said, said


def words_at_start(server, environment: dict) -> str:
    """What another launcher of the same programs says before it ends, with its agent, with exit status 2."""
    for name, mode in (("other", 0o755), ("other/home", 0o755), ("other/audit", 0o700), ("other/run", 0o700)):
        (server.dir / name).mkdir(mode=mode, exist_ok=True)
    log = server.dir / "other/log"
    with log.open("w") as out:
        other = subprocess.Popen([server.dir / "bin/caisson-launcher", "--policies", server.dir / "policies", "--audit",
                                  server.dir / "other/audit", "--run", server.dir / "other/run", "--home", server.dir / "other/home", "--port",
                                  str(free_port()), "--bind", "127.0.0.1"], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                 env={"PATH": os.environ["PATH"], "SANDBOX_API_KEY": "k" * 32, **environment}, cwd="/")
    try:
        assert other.wait(60) == 2
        said = log.read_text()
        assert "the agent refuses its settings" in said and "started again" not in said, said
        return said
    finally:
        other.kill()
        other.wait(60)


def test_requests_under_way_are_answered_when_the_server_stops(server):
    """The last test: the server ends."""
    with shake_hands(server) as tls:
        body = json.dumps({"command": "sleep 2; echo done"})
        tls.sendall((f"POST /v1/bash/exec HTTP/1.1\r\nHost: localhost\r\nX-AIO-API-Key: {server.key}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        time.sleep(0.7)
        server.process.terminate()
        assert b"done\\n" in ends(tls, 60)
    assert server.process.wait(60) == 0
