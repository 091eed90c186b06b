"""Through an upstream proxy: curl in a session, gate, door and dialer sealed, little proxies of the test's own."""

import os
import shutil

import pytest
import world
from proxies import HttpProxy, SocksProxy
from whole import Whole
from world import OTHER, PRIVATE, PUBLIC, list_of, rule

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
SECRET = "p4ss:w0rd@ for the proxy"


@pytest.fixture
def whole(internet):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    internet.names.zone.update({"api.test": [PUBLIC], "aside.test": [PUBLIC], "denied.test": [OTHER], "proxy.test": [PRIVATE], "moved.test": [PRIVATE]})

    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    internet.direct = internet.serve(PUBLIC, 80, handle)
    internet.behind = internet.serve(OTHER, 8080, handle)
    one = Whole(
        internet,
        list_of(
            rule("api.test", ports=[80, 443, 2222]),
            rule("aside.test"),
            rule("inside.test"),
            rule("denied.test", deny=True),
            rule("proxy.test", ports=[3128, 1080], private=True),
            rule("moved.test", ports=[3128]),
        ),
    )
    yield one
    one.close()


PLACES = {("api.test", 80): (OTHER, 8080), ("inside.test", 80): (OTHER, 8080), (PUBLIC, 80): (OTHER, 8080)}


def test_without_one_it_goes_directly(whole):
    assert whole.ask("get")["upstream"] is None
    assert whole.curl("http://api.test/") == (0, "served")
    assert len(whole.internet.direct) == 1


@pytest.mark.parametrize(("kind", "server"), [(HttpProxy, "{}proxy.test:3128"), (HttpProxy, "http://{}proxy.test:3128"), (SocksProxy, "socks5://{}proxy.test:1080")])
@pytest.mark.parametrize("credential", [None, f"agent:{SECRET}"])
def test_curl_goes_through_it(whole, kind, server, credential):
    proxy = kind(whole.internet, PRIVATE, 3128 if kind is HttpProxy else 1080, PLACES, credential)
    said = "" if credential is None else (credential if "://" not in server else "agent:p4ss%3Aw0rd%40%20for%20the%20proxy") + "@"
    shown = whole.ask("set_upstream", server=server.format(said))["upstream"]
    assert shown == {"addr": server.format("").removeprefix("http://"), "username": credential and "agent", "password": None}
    assert whole.curl("http://api.test/") == (0, "served")
    assert proxy.asked == [("api.test", 80, credential)]
    record = whole.told_until("connection", host="api.test")
    assert record["upstream"] == 1 and record["address"] == PRIVATE and record["rule"] == 0
    assert whole.internet.direct == []
    assert whole.ask("remove_upstream")["upstream"] is None
    assert whole.curl("http://api.test/") == (0, "served")
    assert len(whole.internet.direct) == 1 and len(proxy.asked) == 1


def test_the_list_is_asked_all_the_same(whole):
    proxy = HttpProxy(whole.internet, PRIVATE, 3128, {("denied.test", 80): (OTHER, 8080), ("unknown.test", 80): (OTHER, 8080)})
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.curl("http://denied.test/")[0] == 6
    assert "not_listed" in whole.curl("http://unknown.test/")[1]
    assert proxy.asked == []


def test_only_a_proxy_that_the_policy_permits_is_taken(whole):
    for server in ("elsewhere.test:3128", "proxy.test:3129", "127.0.0.1:3128", "169.254.169.254:80", f"{PRIVATE}:3128", "denied.test:80"):
        error, what = whole.ask("set_upstream", server=server)
        assert error == "permission_denied" and "egress" in what, server
    for server in ("", "proxy.test", "proxy.test:0", "proxy.test:70000", "ftp://proxy.test:3128", "user@proxy.test:3128\r\nX: y", "a" * 300 + ":b@proxy.test:3128"):
        error, what = whole.ask("set_upstream", server=server)
        assert error == "invalid_argument" and "a" * 300 not in what, server
    assert whole.ask("get")["upstream"] is None


def test_a_name_that_leads_to_a_private_address_needs_the_rules_word(whole):
    proxy = HttpProxy(whole.internet, PRIVATE, 3128, PLACES)
    whole.ask("set_upstream", server="moved.test:3128")
    status, text = whole.curl("http://api.test/")
    assert status == 0 and "upstream" in text and "no address that is permitted" in text
    assert proxy.asked == [] and whole.internet.direct == []


def test_names_are_the_proxys_business_and_addresses_the_lists(whole):
    proxy = HttpProxy(whole.internet, PRIVATE, 3128, PLACES)
    whole.ask("set_upstream", server="proxy.test:3128")
    whole.internet.names.zone["inside.test"] = [PRIVATE]
    assert whole.curl("http://inside.test/") == (0, "served")
    assert [asked[0] for asked in proxy.asked] == ["inside.test"]
    assert "address" in whole.curl(f"http://{PRIVATE}/")[1]
    assert len(proxy.asked) == 1


def test_what_it_answers_is_told(whole):
    places = {("api.test", 80): 403}
    HttpProxy(whole.internet, PRIVATE, 3128, places)
    whole.ask("set_upstream", server="proxy.test:3128")
    for answer, status in (
        (403, 403), (407, 502), (500, 502), (502, 502), (503, 502), (504, 504), (301, 502),
        (b"SSH-2.0-OpenSSH\r\n\r\n", 502), (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 502), (b"", 502),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 4000 + b"\r\n", 502),
    ):  # fmt: skip
        places["api.test", 80] = answer
        assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://api.test/") == (0, str(status)), answer
    places["api.test", 80] = (OTHER, 8080)
    assert whole.curl("http://api.test/") == (0, "served")
    assert whole.internet.direct == []


def test_one_that_is_not_there_is_no_reason_to_go_directly(whole):
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://api.test/") == (0, "502")
    assert whole.internet.direct == []


def test_a_proxy_that_announces_its_answer_without_end_is_one_that_fails(whole):
    def without_end(connection):
        connection.recv(65536)
        while True:
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    whole.internet.serve(PRIVATE, 3128, without_end)
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://api.test/") == (0, "502")
    whole.ask("remove_upstream")
    assert whole.curl("http://api.test/") == (0, "served")


def test_it_is_known_to_a_dialer_that_was_started_anew(whole):
    from test_whole import command_of, parent_of

    proxy = HttpProxy(whole.internet, PRIVATE, 3128, PLACES, f"agent:{SECRET}")
    whole.ask("set_upstream", server=f"agent:{SECRET}@proxy.test:3128")
    assert whole.curl("http://api.test/") == (0, "served")
    pid = next(int(p) for p in os.listdir("/proc") if p.isdigit() and command_of(p) == "caisson-egress dialer" and parent_of(p) == whole.process.pid)
    os.kill(pid, 9)
    whole.told_until("start", process="dialer")
    assert whole.curl("--retry", "20", "--retry-all-errors", "--retry-delay", "1", "-f", "http://api.test/")[1].startswith("served")
    assert whole.internet.direct == [] and len(proxy.asked) == 2
