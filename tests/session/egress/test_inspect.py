"""Rules that have TLS opened at their host: methods and paths hold there, for each request."""

import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading

import places
import pytest
import world
from bound import BEGIN, is_openers
from connected import REQUIRED
from harness import edit, eventually
from opening import HELD, TOKEN, Opening, authority, read_request, server_context
from outgoing import RULES, records
from proxies import HttpProxy
from test_opener import handed, session, sized
from whole import Whole

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
API = world.rule("api.test", ports=[443], inspect=True, paths=["/api/", "/repos/acme"], why="issues are read")
BELOW = world.rule(suffix="files.test", inspect=True, read_only=True, why="what is fetched")
URL = "https://api.test"


def contexts(folder, by, *hosts):
    """What speaks for whichever of these hosts a client names."""
    of = {host: server_context(folder, by, host) for host in hosts}
    first = of[hosts[0]]
    first.sni_callback = lambda tls, name, _: setattr(tls, "context", of.get(name, first))
    return first


@pytest.fixture
def opening(internet, tmp_path):
    names = ("a.files.test", "b.c.files.test")
    internet.names.zone.update({name: [world.PUBLIC] for name in names})
    one = Opening(internet, tmp_path, bindings=[], rules=[API, BELOW, world.rule("other.test", ports=[443])])
    one.context = contexts(tmp_path, one.by, "api.test", *names)
    yield one
    one.close()


def ask(tls, line, fields="", host="api.test"):
    """Status and text of one answer."""
    tls.sendall(f"{line} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n".encode())
    said = b""
    while b"\r\n\r\n" not in said or len(said.split(b"\r\n\r\n", 1)[1]) < int(said.lower().split(b"content-length: ")[1].split(b"\r\n")[0]):
        more = tls.recv(65536)
        assert more, said
        said += more
    return int(said.split(b" ")[1]), said.split(b"\r\n\r\n", 1)[1].decode()


def refused(opening, refusal="path", **wanted):
    record = opening.record(event="refusal", refusal=refusal, **wanted)
    assert record["via"] == "opened" and record["domain"] == "bash"
    return record


def test_a_request_that_the_rule_permits_passes_and_is_on_record(opening):
    code, said = opening.curl(f"{URL}/api/issues?state=open", "--data", "x")
    assert code == 0 and said.endswith("ok") and opening.heads[0].startswith("POST /api/issues?state=open HTTP/1.1\r\nHost: api.test\r\n")
    record = opening.record(event="connection")
    told = {name: record[name] for name in ("via", "host", "port", "method", "path", "status", "rule", "why", "secrets")}
    assert told == {"via": "opened", "host": "api.test", "port": 443, "method": "POST", "path": "/api/issues", "status": 200, "rule": 0,
                    "why": "issues are read", "secrets": []}  # fmt: skip


def test_another_path_is_refused_with_a_text_that_says_which_are_permitted(opening):
    code, said = opening.curl(f"{URL}/admin?token=1234")
    assert code == 0 and " 403 " in said
    assert said.endswith("caisson: api.test:443: refused: path: the rule permits other paths: /api/, /repos/acme (rule 0: issues are read)\n")
    record = refused(opening)
    assert (record["host"], record["method"], record["path"], record["rule"], record["why"]) == ("api.test", "GET", "/admin", 0, "issues are read")
    assert "1234" not in json.dumps(record) and opening.heads == []


@pytest.mark.parametrize("target", ["/", "/api", "/apix", "/repos", "/repos/acme2", "/API/x"])
def test_paths_are_permitted_by_whole_segments(opening, target):
    with session(opening) as tls:
        assert ask(tls, f"GET {target}")[0] == 403
    assert opening.heads == [] and refused(opening)["path"] == target


AMBIGUOUS = ["/api/../admin", "/api/..", "/api/./x", "/api/%2e%2e/admin", "/api/%2E%2e%2fadmin", "/api/..%5cadmin", "/api\\..\\admin", "/api//admin", "//admin",
             "/api/%2fadmin", "/api/..;/admin", "/api/%c0%ae%c0%ae/admin", "/api/%252e%252e/admin", "/%61pi/x", "/api/%00"]  # fmt: skip


@pytest.mark.parametrize("target", AMBIGUOUS)
def test_a_path_that_can_be_read_in_two_ways_is_refused(opening, target):
    with session(opening) as tls:
        assert ask(tls, f"GET {target}")[0] == 403
    refused(opening)
    assert opening.heads == []


def test_what_a_client_makes_plain_itself_passes(opening):
    """curl takes out dot segments before it asks: what it asks for is what counts."""
    assert " 403 " in opening.curl(f"{URL}/api/../admin")[1] and opening.heads == []
    assert opening.curl(f"{URL}/x/../api/y")[1].endswith("ok") and opening.heads[0].startswith("GET /api/y ")


@pytest.mark.parametrize("field", ["X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL"])
def test_no_field_makes_another_request_of_it(opening, field):
    code, said = opening.curl(f"{URL}/api/x", "-H", f"{field}: /admin")
    assert code == 0 and " 403 " in said and "Override" in said
    refused(opening, "method")
    assert opening.heads == []


def test_each_request_of_a_connection_is_judged(opening):
    with session(opening) as tls:
        assert ask(tls, "GET /api/one") == (200, "ok")
        assert ask(tls, "GET /repos/acme") == (200, "ok")
        status, text = ask(tls, "GET /admin")
        assert status == 403 and "/api/, /repos/acme" in text
        assert tls.recv(1) == b""
    assert [head.split(" ")[1] for head in opening.heads] == ["/api/one", "/repos/acme"]
    with session(opening) as tls:  # one right behind the other, before there is an answer
        tls.sendall(b"GET /api/two HTTP/1.1\r\nHost: api.test\r\n\r\nGET /admin HTTP/1.1\r\nHost: api.test\r\n\r\n")
        said = world.read_all(tls)
    assert said.startswith(b"HTTP/1.1 200 ") and b"HTTP/1.1 403 " in said and len(opening.heads) == 3


def test_a_request_to_another_host_is_none_of_this_one(opening):
    with session(opening) as tls:
        assert ask(tls, "GET /api/x", host="a.files.test")[0] == 403
    assert opening.heads == [] and refused(opening, "host_differs")


@pytest.mark.parametrize("host", ["a.files.test", "b.c.files.test"])
def test_a_host_below_a_suffix(opening, host):
    assert opening.curl(f"https://{host}/any//path")[1].endswith("ok")
    code, said = opening.curl(f"https://{host}/x", "-X", "DELETE")
    assert code == 0 and " 403 " in said and "GET, HEAD and OPTIONS" in said and len(opening.heads) == 1
    record = refused(opening, "method", host=host)
    assert (record["method"], record["rule"], record["why"]) == ("DELETE", 1, "what is fetched")
    with session(opening, host) as tls:
        assert tls.getpeercert()["subjectAltName"] == (("DNS", host),)


def test_the_authority_is_for_inspected_hosts_alone(opening):
    text = subprocess.run(["openssl", "x509", "-in", opening.pem, "-noout", "-text"], capture_output=True, text=True, check=True, timeout=60).stdout
    permitted = text.partition("Permitted:")[2].partition("Excluded:")[0].split()
    assert permitted == ["DNS:files.test", "DNS:api.test"]


def test_a_host_that_no_rule_inspects_keeps_its_servers_certificate(opening):
    context = server_context(opening.folder, opening.by, "other.test")

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(4096)
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nother")

    opening.internet.serve(world.OTHER, 443, handle)
    assert opening.curl("https://other.test/any", "--cacert", opening.by[1], trusted=False)[1].endswith("other")
    assert opening.curl("https://other.test/any")[0] == 60, "not the opener's"


def test_a_client_without_the_authority_asks_for_nothing(opening):
    assert opening.curl(f"{URL}/api/x", "--cacert", opening.by[1], trusted=False)[0] == 60
    assert refused(opening, "certificate")["detail"].startswith("the session does not believe") and opening.heads == []


@pytest.mark.parametrize("wrong", ["authority", "name"])
def test_a_server_that_does_not_prove_who_it_is_gets_nothing(opening, tmp_path, wrong):
    (tmp_path / "false").mkdir()
    by = authority(tmp_path / "false", "false") if wrong == "authority" else opening.by
    opening.context = server_context(tmp_path / "false", by, "api.test" if wrong == "authority" else "another.test")
    code, said = opening.curl(f"{URL}/api/x")
    assert code == 0 and " 502 " in said and opening.heads == []
    refused(opening, "certificate")


def test_an_owned_door_changes_nothing(opening):
    """The opener judges each connection by its own list, whatever the door hands over."""
    for host in ("other.test", "files.test", "x.api.test"):
        line, ours, far = handed(opening, host)
        assert world.read_all(far).removesuffix(b"RST") == b"" and world.read_all(ours).removesuffix(b"RST") == b""
        line.close()
    line, ours, far = handed(opening)
    threading.Thread(target=opening.serve, args=(far,), daemon=True).start()
    with ssl.create_default_context(cafile=opening.pem).wrap_socket(ours, server_hostname="api.test") as tls:
        assert ask(tls, "GET /api/x") == (200, "ok")
        assert ask(tls, "GET /admin")[0] == 403
    assert len(opening.heads) == 1
    line.close()


@pytest.mark.parametrize("rules, mode", [([API], 1), ([API, world.rule(address=world.PUBLIC, ports=[443], sni_optional=True)], 0)], ids=["monitor", "address"])
def test_an_inspected_host_is_not_met_by_its_address_or_another_name(internet, rules, mode):
    internet.names.zone.update({"api.test": [world.PUBLIC], "alias.test": [world.PUBLIC]})
    reached = []
    internet.serve(world.PUBLIC, 443, lambda connection: reached.append(connection.recv(4096)))
    internet.open(*rules, mode=mode, port=443)
    for place in (world.PUBLIC, *(["alias.test"] if mode else [])):
        with internet.connect(place, 443) as client:
            client.sendall(world.client_hello("api.test"))
            assert client.recv(100) == b"\x15\x03\x03\x00\x02\x02\x31"  # access_denied
        assert "ask for it by this name" in internet.record(event="refusal", refusal="sni")["detail"]
    assert reached == []
    with internet.connect(world.PUBLIC, 443) as client:
        client.sendall(world.client_hello("alias.test"))
        eventually(lambda: len(reached) == 1, 60, "the rules do not inspect that one")


def test_answers_may_be_compressed_and_in_parts_where_no_secret_is_bound(opening):
    opening.answer = lambda head, body: sized(b"\x1f\x8b1234", b"Content-Encoding: gzip\r\n").replace(b"200 OK", b"206 Partial Content")
    with session(opening) as tls:
        tls.sendall(b"GET /api/x HTTP/1.1\r\nHost: api.test\r\nRange: bytes=0-5\r\nAccept-Encoding: gzip\r\n\r\n")
        said = tls.recv(4096)
        while not said.endswith(b"\x1f\x8b1234"):
            said += tls.recv(4096)
    assert said.startswith(b"HTTP/1.1 206 ") and "Range: bytes=0-5\r\nAccept-Encoding: gzip" in opening.heads[0]


def test_a_secret_is_bound_to_an_inspected_host(opening):
    opening.bindings = [world.binding("token", HELD, "api.test", path="/repos")]
    opening.set_lists(generation=2)
    opening.bind()
    held = ["-H", f"Authorization: Bearer {HELD}"]
    assert opening.curl(f"{URL}/repos/acme", *held)[1].endswith("ok") and TOKEN in opening.heads[0] and "Accept-Encoding: identity" in opening.heads[0]
    assert "the rule permits other paths" in opening.curl(f"{URL}/repos/other", *held)[1], "the binding permits it, the rule does not"
    assert "placeholder_elsewhere" in opening.curl(f"{URL}/api/x", *held)[1], "the rule permits it, the binding does not"
    assert len(opening.heads) == 1


def test_a_websocket_is_judged_by_its_head(opening):
    opening.answer = lambda head, body: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"
    fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    with session(opening) as tls:
        assert ask(tls, "GET /socket", fields)[0] == 403
    assert opening.heads == []
    with session(opening) as tls:
        tls.sendall(f"GET /api/socket HTTP/1.1\r\nHost: api.test\r\n{fields}\r\n".encode())
        said = b""
        while not said.endswith(b"\x81\x02hi"):
            said += tls.recv(4096)
    assert said.startswith(b"HTTP/1.1 101 ")


def test_a_newer_list_holds_for_what_comes_then(opening):
    with session(opening) as tls:
        assert ask(tls, "GET /api/one")[0] == 200
        opening.rules[0] = world.rule("api.test", ports=[443], inspect=True, paths=["/other"])
        opening.set_lists(generation=2)
        assert world.read_all(tls).removesuffix(b"RST") == b""
    assert " 403 " in opening.curl(f"{URL}/api/one")[1] and opening.curl(f"{URL}/other/x")[1].endswith("ok")


@pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
def test_behind_an_upstream_proxy_and_in_diagnoses(internet, tmp_path):
    by, heads = authority(tmp_path, "servers"), []
    context = server_context(tmp_path, by, "api.test")

    def handle(connection):
        with context.wrap_socket(connection, server_side=True) as tls:
            if head := tls.recv(65536):
                heads.append(head.decode())
                tls.sendall(sized(b"served"))

    internet.names.zone.update({"api.test": [world.PUBLIC], "proxy.test": [world.PRIVATE]})
    internet.serve(world.OTHER, 8443, handle)
    direct = internet.serve(world.PUBLIC, 443, handle)
    proxy = HttpProxy(internet, world.PRIVATE, 3128, {("api.test", 443): (world.OTHER, 8443)})
    lists = world.list_of(API, through=world.upstream("http://proxy.test:3128"))
    whole = Whole(internet, lists, lambda: world.bind({"/etc/ssl/certs/ca-certificates.crt": by[1]}))
    try:
        assert whole.curl("-k", f"{URL}/api/x") == (0, "served") and proxy.asked[0] == ("api.test", 443, None) and direct == []
        code, said = whole.curl("-k", f"{URL}/admin")
        assert code == 0 and "refused: path" in said and len(heads) == 1
        record = whole.told_until("refused", refusal="path")
        assert (record["workspace"], record["via"], record["path"]) == ("default", "opened", "/admin")
        found = whole.ask("diagnose", url=f"{URL}/api/x")
        assert "TLS is opened there: its requests are seen" in found["steps"] and found["route"] == "upstream"
        assert "the rule permits what is at and below /api/, /repos/acme" in found["steps"]
        assert whole.ask("diagnose", url=f"{URL}/admin")["refusal"] == "path"
    finally:
        whole.close()


EGRESS = [
    {"host": "api.test", "inspect": True, "methods": "read", "paths": ["/api/"], "why": "issues are read"},
    {"host": "*.files.test", "inspect": True, "why": "what is fetched"},
    {"host": "other.test", "why": "what a test needs"},
]


class Inspected:
    """A launcher, not yet started, whose bash has TLS opened, and a server for all of its hosts."""

    def __init__(self, launcher, internet, folder):
        self.launcher, self.internet, self.heads = launcher, internet, []
        self.by = authority(folder, "servers")
        hosts = ("api.test", "a.files.test", "other.test")
        internet.names.zone.update({host: [world.PUBLIC] for host in hosts})
        self.context = contexts(folder, self.by, *hosts)
        internet.serve(world.PUBLIC, 443, self.serve)
        files = internet.files
        internet.files = lambda: {**files(), "/etc/ssl/certs/ca-certificates.crt": self.by[1]}
        edit(launcher.policies / "bash.json", **{**RULES, "egress": EGRESS})

    def serve(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as tls:
            while request := read_request(tls):
                self.heads.append(request[0])
                tls.sendall(sized(b"served"))

    def start(self, *wrapper):
        self.launcher.start(wrapper=[*self.internet.wrapper(), *wrapper])
        trust = self.launcher.run / "trust" / "opened" / "ca-certificates.crt"
        eventually(lambda: trust.exists() and is_openers(trust.read_text().rpartition(BEGIN)[2]), 60, "the opener's authority is known")
        return self.launcher.control()


@pytest.fixture
def inspected(fresh, internet, tmp_path):
    return Inspected(fresh, internet, tmp_path)


@pytest.fixture
def control(inspected):
    one = inspected.start()
    if one.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace: see the test of that tier")
    return one


def run(control, session_, line):
    return control.output(session_, "/bin/bash", "-c", f"{line} 2>&1; true")


def issuer(control, session_, host):
    return run(control, session_, f"openssl s_client -servername {host} -connect {host}:443 </dev/null 2>/dev/null | grep ^issuer")


def test_sessions_of_a_policy(inspected, control):
    bash = control.create()
    assert run(control, bash, f"curl -sS --max-time 60 {URL}/api/x") == "served"
    assert run(control, bash, "curl -sS --max-time 60 https://a.files.test/x") == run(control, bash, "curl -sS --max-time 60 https://other.test/x") == "served"
    said = run(control, bash, f"curl -sS --max-time 60 {URL}/admin?token=1234")
    assert said == "caisson: api.test:443: refused: path: the rule permits other paths: /api/ (rule 0: issues are read)\n"
    assert "refused: method" in run(control, bash, f"curl -sS --max-time 60 -X PUT {URL}/api/x") and len(inspected.heads) == 3
    assert "Caisson" in issuer(control, bash, "api.test") and "Caisson" not in issuer(control, bash, "other.test")
    found = eventually(lambda: records(inspected.launcher, "egress_refused", refusal="path"), 10, "it is on record")[0]
    assert (found["host"], found["method"], found["path"], found["rule"], found["why"]) == ("api.test", "GET", "/admin", 0, "issues are read")
    assert found.get("session", bash) == bash, "where sessions are told apart"
    assert eventually(lambda: records(inspected.launcher, "egress_connection", via="opened", path="/api/x", rule=0), 10, "and so is what passed")


def test_a_reload_that_inspects_no_more_is_for_new_sessions_and_old_ones(inspected, control):
    bash = control.create()
    assert "refused: path" in run(control, bash, f"curl -sS --max-time 60 {URL}/admin")
    edit(inspected.launcher.policies / "bash.json", egress=[{"host": "api.test", "why": "what a test needs"}])
    inspected.launcher.reload()
    for one in (bash, control.create()):
        eventually(lambda: run(control, one, f"curl -sS --max-time 60 {URL}/admin") == "served", 60, "nobody looks into it")  # noqa: B023


@pytest.mark.parametrize("tier", ["T0", None])
def test_another_domain_has_its_own_certificates(inspected, internet, tier):
    """Its rules do not inspect the same host: its sessions meet the server's certificate, and do not believe the opener."""
    launcher = inspected.launcher
    edit(launcher.policies / "shell.json", **{**RULES, "egress": [{"host": "api.test", "why": "what a test needs"}]})
    with tempfile.TemporaryDirectory(prefix="caisson-inspect-", dir="/var/lib") as kept:
        pathlib.Path(kept).chmod(0o711)  # what is on the way to a launcher's own directory, of which /tmp/pytest-of-root is not
        if tier:
            edit(launcher.policies / "base.json", require=REQUIRED)
            launcher.run = pathlib.Path(kept) / "run"
        control = inspected.start(*(places.wrapper(tier, launcher.home) if tier else ()))
        assert control.hello["tier"] == tier if tier else control.hello["tier"] in ("T2", "T3")
        bash, shell = control.create(), control.create("shell")
        store = "cat ${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
        believed = [[is_openers(one) for one in run(control, session_, store).split(BEGIN)[1:]] for session_ in (bash, shell)]
        assert believed[0].count(True) == 1 and believed[1] and not any(believed[1])
        if "ways-alike" in json.dumps(control.call("attest", session=shell)[0]):
            pytest.skip("sessions are not told apart: everything is refused where their rules differ")
        fetch = f"curl -sS --max-time 60 {URL}/admin"
        eventually(lambda: run(control, shell, fetch) == "served", 60, "nobody looks into it")
        assert "refused: path" in run(control, bash, fetch) and len(inspected.heads) == 1
        assert "servers" in issuer(control, shell, "api.test") and "Caisson" in issuer(control, bash, "api.test")
        launcher.stop()
