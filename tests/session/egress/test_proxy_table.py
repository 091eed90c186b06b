"""What tinyproxy documents (tinyproxy.conf(5), its source for what it answers), what it does, and what the door does in its place. Both are
asked the same by the same bytes; where they differ the row says why."""

import base64
import contextlib
import dataclasses
import shutil
import socket
import subprocess

import pytest
import stage
import world
from harness import eventually
from proxies import HttpProxy, SocksProxy
from whole import Whole
from world import OTHER, PRIVATE, PUBLIC, list_of, read_all, rule, upstream

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
CREDENTIAL, PROXY = "agent:secret", "proxy.test"
BASIC = f"Proxy-Authorization: Basic {base64.b64encode(CREDENTIAL.encode()).decode()}\r\n"
DENIED_PORT, DOOR, TINY = 2222, 312, 8888
RULES = (
    rule("api.test", ports=[80, 443, 81]),
    rule("denied.test", deny=True),
    rule(suffix="via.test", ports=[443]),
    rule("aside.via.test", ports=[443]),
    rule("nowhere.test"),
    rule(PROXY, ports=[3128, 1080], private=True),
)
CONF = f"""
User root
Group root
Port {TINY}
Listen 127.0.0.1
Timeout 60
LogLevel Critical
MaxClients 100
ConnectPort 443
ConnectPort 81
"""


def get(host, fields="", method="GET"):
    return f"{method} http://{host}/ HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n"


def connect(place, fields=""):
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{fields}\r\n"


@dataclasses.dataclass
class Row:
    """documented: what tinyproxy's manual says, by its keyword. tiny, door: the status of the answer; `sees`: a part of the head that the
    server must (or, with "!", must not) be sent by the one and by the other."""

    documented: str
    ask: str
    tiny: int
    door: int
    conf: str = ""
    through: bytes = b""
    proxy: str = ""  # of the places behind an upstream: "http", "socks5", with "+" for one that wants a credential
    answers: int = 0  # what that proxy answers instead of connecting
    asked: list | None = None  # of that proxy, by both
    sees: tuple = ()
    why: str = ""


VIA = f'Upstream http {PROXY}:3128 ".via.test"\n'
THROUGH = upstream(f"http://{PROXY}:3128", include=["*.via.test"])
TABLE = {
    "a request": Row("Port", get("api.test"), 200, 200),
    "CONNECT": Row("ConnectPort: permitted", connect("api.test:443"), 200, 200),
    "CONNECT to another port": Row("ConnectPort: 'if ConnectPort lines are there, only these ports'", connect(f"api.test:{DENIED_PORT}"), 403, 403),
    "a host that is filtered": Row("Filter: a blacklist", get("denied.test"), 403, 403, conf='Filter "{folder}/denied"\n'),
    "CONNECT to one": Row("Filter: of CONNECT, too", connect("denied.test:443"), 403, 403, conf='Filter "{folder}/denied"\n'),
    "a host that no line names": Row("FilterDefaultDeny: a whitelist", get("other.test"), 403, 403, conf='Filter "{folder}/permitted"\nFilterDefaultDeny Yes\n'),
    "CONNECT to no such host": Row("FilterDefaultDeny: of CONNECT, too", connect("other.test:443"), 403, 403, conf='Filter "{folder}/permitted"\nFilterDefaultDeny Yes\n'),
    "part of a name": Row("Filter: an expression found anywhere in a name", get("xapi.test"), 500, 403, conf='Filter "{folder}/permitted"\nFilterDefaultDeny Yes\n',
                          why="rules of the door name hosts as a whole, or what is below one"),
    "no credential": Row("BasicAuth: only for authenticated users", get("api.test"), 407, 200, conf="BasicAuth agent secret\n",
                         why="who asks is known by its network namespace and cgroup: no program is asked for a password, or could lose one"),
    "a credential": Row("BasicAuth: authenticated", get("api.test", BASIC), 200, 200, conf="BasicAuth agent secret\n", sees=("!Proxy-Authorization", "!Proxy-Authorization")),
    "a client that is not permitted": Row("Deny: clients by their addresses", get("api.test"), 403, 200, conf="Deny 127.0.0.1\n",
                                          why="whose a connection is decides which list is asked: test_identity.py"),
    "upstream by domain": Row("Upstream: .name", connect("api.via.test:443"), 200, 200, VIA, THROUGH, "http", asked=[("api.via.test", 443, None)]),
    "no upstream for others": Row("Upstream: the others directly", connect("api.test:443"), 200, 200, VIA, THROUGH, "http", asked=[]),
    "upstream none": Row("Upstream none: directly", connect("aside.via.test:443"), 200, 200, VIA + 'Upstream none "aside.via.test"\n',
                         upstream(f"http://{PROXY}:3128", include=["*.via.test"], exclude=["aside.via.test"]), "http", asked=[]),
    "an upstream of SOCKS 5": Row("Upstream socks5", connect("api.via.test:443"), 200, 200, f'Upstream socks5 {PROXY}:1080 ".via.test"\n',
                                  upstream(f"socks5://{PROXY}:1080", include=["*.via.test"]), "socks5", asked=[("api.via.test", 443, None)]),
    "an upstream that wants a credential": Row("Upstream: user:pass@host", connect("api.via.test:443"), 407, 502, VIA, THROUGH, "http+",
                                               asked=[("api.via.test", 443, None)], why="the credential is the operator's: the session could not answer a 407"),
    "an upstream that refuses": Row("Upstream", connect("api.via.test:443"), 403, 403, VIA, THROUGH, "http", 403, [("api.via.test", 443, None)]),
    "an upstream that cannot": Row("Upstream", connect("api.via.test:443"), 502, 502, VIA, THROUGH, "http", 502, [("api.via.test", 443, None)]),
    "an upstream that is late": Row("Upstream", connect("api.via.test:443"), 504, 504, VIA, THROUGH, "http", 504, [("api.via.test", 443, None)]),
    "a server that refuses": Row("'Unable to connect'", connect("api.test:81"), 500, 502, why="502 is for what is behind a gateway (RFC 9110)"),
    "a name that is none": Row("'Unable to connect'", get("nowhere.test"), 500, 403, why="a rule permits it, and there is no such name: asking again does not help"),
    "no request": Row("'Bad Request'", "what is this\r\n\r\n", 400, 400),
    "via": Row("Via: is added", get("api.test"), 200, 200, sees=("Via: ", "!Via: "), why="servers learn nothing of the door"),
    "no via": Row("DisableViaHeader", get("api.test"), 200, 200, conf="DisableViaHeader Yes\n", sees=("!Via: ", "!Via: ")),
    "fields of the connection": Row("RFC 9110 7.6.1", get("api.test", "X-Own: 1\r\nProxy-Connection: x\r\n"), 200, 200, sees=("!Proxy-Connection", "!Proxy-Connection")),
    "fields that it lets through": Row("Anonymous: only the ones listed", get("api.test", "X-Own: 1\r\n"), 200, 200, conf='Anonymous "Host"\n', sees=("!X-Own", "X-Own: 1"),
                                       why="the door takes nothing away that belongs to server and client"),
    "its own page": Row("StatHost: statistics", get("tinyproxy.stats"), 200, 403, why="what the door counts is in /metrics, which no session reads"),
}  # fmt: skip


@pytest.fixture
def out(internet):
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER], "other.test": [OTHER], "aside.via.test": [PUBLIC], PROXY: [PRIVATE]})
    internet.heads = []

    def handle(connection):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(4096) or b"\r\n\r\n"
        internet.heads.append(head.decode())
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    internet.serve(PUBLIC, 80, handle)
    internet.serve(PUBLIC, 443, world.echo)
    internet.serve(PUBLIC, DENIED_PORT, world.echo)
    internet.elsewhere = [internet.serve(OTHER, port, world.echo) for port in (80, 443)]
    return internet


def behind(out, row):
    """The upstream proxy of a row, if it has one."""
    if not row.proxy:
        return None
    kind, port = (SocksProxy, 1080) if row.proxy == "socks5" else (HttpProxy, 3128)
    places = {("api.via.test", 443): row.answers or (PUBLIC, 443)}
    return kind(out, PRIVATE, port, places, CREDENTIAL if row.proxy.endswith("+") else None)


def holds(row, answer, status, seen, proxy, out):
    assert answer.split(b" ")[:2] == [answer.split(b" ")[0], str(status).encode()] and answer.startswith(b"HTTP/1."), answer
    if "BasicAuth" in row.conf and status == 407:
        assert b"Proxy-Authenticate: Basic" in answer
    for part in seen:
        assert out.heads and (part.removeprefix("!") in out.heads[-1]) != part.startswith("!"), out.heads
    if row.asked is not None:
        assert proxy.asked == row.asked
    assert not any(out.elsewhere), "what is denied is not connected to"


def answered(client, text, status):
    client.sendall(text.encode())
    if not text.startswith("CONNECT") or status != 200:
        return read_all(client)
    return client.recv(4096)


@pytest.mark.parametrize("name", TABLE)
def test_the_door(out, name):
    row = TABLE[name]
    proxy = behind(out, row)
    whole = Whole(out, list_of(*RULES, through=row.through))
    with contextlib.closing(whole):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            code = "import array, socket; s = socket.create_connection(('127.0.0.1', 312), 60); o = socket.socket(fileno=0)"
            code += "; o.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [s.fileno()]))])"
            subprocess.run(["/usr/bin/python3", "-I", "-c", code], preexec_fn=whole.place.enter, stdin=theirs, check=True, timeout=90)
            _, fds = stage.receive(ours)
        with socket.socket(fileno=fds[0]) as client:
            client.settimeout(60)
            holds(row, answered(client, row.ask, row.door), row.door, row.sees[1:], proxy, out)


@pytest.mark.skipif(not shutil.which("tinyproxy"), reason="tinyproxy is not installed")
@pytest.mark.parametrize("name", TABLE)
def test_tinyproxy(out, name, tmp_path):
    row = TABLE[name]
    proxy = behind(out, row)
    (tmp_path / "denied").write_text("^denied\\.test$\n")
    (tmp_path / "permitted").write_text("api\\.test\n")
    conf = tmp_path / "tinyproxy.conf"
    conf.write_text(CONF + row.conf.format(folder=tmp_path))
    tiny = subprocess.Popen(["tinyproxy", "-d", "-c", str(conf)], preexec_fn=out.as_container, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        client = eventually(lambda: there(out) or tiny.poll() is not None, 60, "tinyproxy listens")
        assert client is not True, "it ended"
        with client:
            holds(row, answered(client, row.ask, row.tiny), row.tiny, row.sees[:1], proxy, out)
    finally:
        tiny.kill()
        tiny.wait()


def there(out):
    client = out.out.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        client.connect(("127.0.0.1", TINY))
        return client
    except ConnectionRefusedError:
        client.close()
        return None
