"""Through an upstream proxy that speaks TLS: the opener does so for the dialer. Gate, door, dialer and opener sealed, an authority of the test's own."""

import os
import shutil
import signal

import pytest
import world
from harness import eventually
from opening import authority, server_context
from proxies import HttpsProxy
from whole import Whole
from world import OTHER, PRIVATE, PUBLIC, list_of, rule, upstream

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
PLACES = {("api.test", 80): (OTHER, 8080)}
MANY = 3_000_000


def handle(connection):
    """Answers with as many bytes as the path says, and how many came."""
    data = connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
    while len(body) < length and (more := connection.recv(65536)):
        body += more
    answer = b"x" * int(lines[0].split("/")[1].split(" ")[0]) + b" got %d" % len(body)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(answer), answer))


class Out:
    """rules permit proxy.test; `start` makes a workspace whose opener believes the authority `by`."""

    def __init__(self, internet, folder):
        self.internet, self.folder, self.whole = internet, folder, None
        self.by = authority(folder, "proxies")
        internet.names.zone.update({"api.test": [PUBLIC], "proxy.test": [PRIVATE]})
        self.direct = internet.serve(PUBLIC, 80, handle)
        internet.serve(OTHER, 8080, handle)

    def proxy(self, host="proxy.test", by=None, credential=None):
        return HttpsProxy(self.internet, PRIVATE, 3129, PLACES, server_context(self.folder, by or self.by, host), credential)

    def start(self, through=b"", variables=None):
        rules = [rule("api.test", ports=[80]), rule("proxy.test", ports=[3129], private=True)]
        trusting = lambda: world.bind({"/etc/ssl/certs/ca-certificates.crt": self.by[1]})  # noqa: E731
        self.whole = Whole(self.internet, list_of(*rules, through=through), prepare=trusting, variables=variables)
        return self.whole

    def curl(self, *argv):
        return self.whole.curl(*argv)


@pytest.fixture
def out(internet, tmp_path):
    for tool in ("curl", "openssl"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    one = Out(internet, tmp_path)
    yield one
    if one.whole:
        one.whole.close()


def served(out):
    return eventually(lambda: (answer := out.curl("http://api.test/1"))[1].startswith("x got") and answer, what="it goes through the proxy")


@pytest.mark.parametrize("credential", [None, "agent:p4ss:w0rd"])
def test_a_client_sets_it(out, credential):
    proxy = out.proxy(credential=credential)
    whole = out.start()
    server = f"https://{credential.replace(':', '%3A').replace('%3A', ':', 1) + '@' if credential else ''}proxy.test:3129"
    assert whole.ask("set_upstream", server=server)["upstream"] == {"addr": "https://proxy.test:3129", "username": credential and "agent", "password": None}
    assert served(out) == (0, "x got 0")
    assert set(proxy.asked) == {("api.test", 80, credential)} and out.direct == []
    record = whole.told_until("connection", host="api.test", ended="done")
    assert record["upstream"] == 1 and record["address"] == PRIVATE


@pytest.mark.parametrize("named", ["policy", "variable"])
def test_it_is_named_from_the_start(out, named):
    proxy = out.proxy()
    out.start(**({"through": upstream("https://proxy.test:3129")} if named == "policy" else {"variables": {"PROXY_SERVER": "https://proxy.test:3129"}}))
    assert out.curl("http://api.test/1") == (0, "x got 0"), "the workspace is made when the opener serves"
    assert proxy.asked == [("api.test", 80, None)]


def test_much_goes_both_ways(out):
    out.proxy()
    out.start(through=upstream("https://proxy.test:3129"))
    file = os.path.realpath("/usr/bin/python3")  # which sessions can read
    status, text = out.curl("--data-binary", f"@{file}", "-H", "Expect:", f"http://api.test/{MANY}")
    assert status == 0 and text == "x" * MANY + f" got {os.path.getsize(file)}"


@pytest.mark.parametrize("wrong", ["name", "authority", "no TLS"])
def test_only_the_host_s_own_certificate_will_do(out, wrong):
    proxy = None
    if wrong == "no TLS":
        out.internet.serve(PRIVATE, 3129, lambda connection: (connection.recv(100), connection.sendall(b"HTTP/1.1 400 no\r\n\r\n")))
    else:
        proxy = out.proxy(*(("other.test",) if wrong == "name" else ("proxy.test", authority(out.folder, "nobody"))))
    whole = out.start(through=upstream("https://proxy.test:3129"))
    status, text = out.curl("-s", "-o", os.devnull, "-w", "%{http_code}", "http://api.test/1")
    assert (status, text) == (0, "502")
    record = whole.told_until("refused", via="upstream", host="proxy.test")
    assert record["refusal"] == ("not_tls" if wrong == "no TLS" else "certificate") and record["detail"]
    assert out.direct == [] and (proxy is None or proxy.asked == [])


def test_an_opener_that_ends_is_started_again(out):
    out.proxy()
    whole = out.start(through=upstream("https://proxy.test:3129"))
    pid = whole.told_until("start", process="opener")["pid"]
    assert served(out)
    os.kill(pid, signal.SIGKILL)
    assert whole.told_until("start", process="opener")["pid"] != pid
    assert served(out) and out.direct == []


def silence(connection):
    while connection.recv(65536):
        pass


def test_a_proxy_that_says_nothing_is_given_up(out):
    out.internet.serve(PRIVATE, 3129, silence)
    out.start(through=upstream("https://proxy.test:3129"))
    assert out.curl("-s", "-m", "30", "-o", os.devnull, "-w", "%{http_code}", "http://api.test/1") == (0, "504")
