"""An upstream proxy that the policy names, or the container's variables: what clients change of it, and where its credential comes from."""

import shutil

import pytest
import world
from proxies import HttpProxy, SocksProxy
from whole import Whole
from world import OTHER, PRIVATE, PUBLIC, list_of, rule, upstream

pytestmark = [
    pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal"),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]
RULES = (rule("api.test"), rule("aside.test"), rule("denied.test", deny=True))
PLACES = {("api.test", 80): (OTHER, 8080), ("aside.test", 80): (OTHER, 8080), ("denied.test", 80): (OTHER, 8080)}


@pytest.fixture
def out(internet):
    """The internet with servers, and what was asked of them without a proxy."""
    internet.names.zone.update({"api.test": [PUBLIC], "aside.test": [PUBLIC], "denied.test": [OTHER], "proxy.test": [PRIVATE]})

    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    internet.direct = internet.serve(PUBLIC, 80, handle)
    internet.serve(OTHER, 8080, handle)
    return internet


@pytest.fixture
def start(out):
    """start(lists, variables=…): a Whole."""
    made = []

    def begin(*arguments, **named):
        made.append(Whole(out, *arguments, **named))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def test_what_the_policy_names_stands_whatever_clients_set(out, start):
    proxy = HttpProxy(out, PRIVATE, 3128, PLACES)
    whole = start(list_of(*RULES, rule("proxy.test", ports=[3128], private=True), through=upstream("http://proxy.test:3128")))
    assert whole.ask("get")["upstream"] == {"addr": "proxy.test:3128", "username": None, "password": None}
    for op, members in (("set_upstream", {"server": "proxy.test:3128"}), ("remove_upstream", {})):
        error, what = whole.ask(op, **members)
        assert error == "permission_denied" and "the policy names" in what
    whole.ask("add_exclude", pattern="api.test")
    assert whole.curl("http://api.test/") == (0, "served")
    assert proxy.asked == [("api.test", 80, None)] and out.direct == []
    assert whole.curl("http://denied.test/")[0] == 6 and len(proxy.asked) == 1  # no such name


@pytest.mark.parametrize("within", ["%s", "agent:%s"])
def test_its_secret_is_read_when_it_is_needed_and_anew_when_it_is_not_taken(out, start, tmp_path, within):
    file = tmp_path / "secret"
    file.write_text(within % "first password" + "\n")
    proxy = HttpProxy(out, PRIVATE, 3128, PLACES, "agent:first password")
    user = "" if ":" in within else "agent"
    whole = start(list_of(*RULES, through=upstream("http://proxy.test:3128", user=user, secret=str(file))))
    assert whole.curl("http://api.test/") == (0, "served")
    file.write_text(within % "second password")
    proxy.credential = "agent:second password"
    assert whole.curl("http://api.test/") == (0, "served")
    assert [credential for *_, credential in proxy.asked] == ["agent:first password", "agent:first password", "agent:second password"]
    assert "password" not in str({k: v for k, v in whole.ask("get")["upstream"].items() if k != "password"})
    assert out.direct == []


def test_a_secret_that_cannot_be_read_is_told_and_nothing_goes_past_the_proxy(out, start, tmp_path):
    HttpProxy(out, PRIVATE, 3128, PLACES, "agent:password")
    whole = start(list_of(*RULES, through=upstream("http://proxy.test:3128", user="agent", secret=str(tmp_path / "nothing"))))
    assert "nothing" in whole.told_until("exit", workspace="default")["why"]
    assert "407" in whole.curl("http://api.test/")[1]
    assert out.direct == []


def test_the_container_s_variables_are_what_clients_find_set(out, start):
    proxy = SocksProxy(out, PRIVATE, 1080, PLACES, "agent:p@ss")
    variables = {"PROXY_SERVER": "socks5://agent:p%40ss@proxy.test:1080", "PROXY_EXCLUDE": "aside.test, .local.test", "PROXY_MAP": "app.test=:3000"}
    whole = start(list_of(*RULES, rule("app.test")), variables=variables)
    whole.serve(3000, "inside")
    found = whole.ask("get")
    assert found["upstream"] == {"addr": "socks5://proxy.test:1080", "username": "agent", "password": None}
    assert found["excludes"] == ["aside.test", ".local.test"] and [one["source"] for one in found["mappings"]] == ["app.test"]
    assert whole.curl("http://api.test/") == (0, "served") and out.direct == []
    assert whole.curl("http://aside.test/") == (0, "served") and len(out.direct) == 1
    assert whole.curl("http://app.test/x")[1].startswith("inside /x")
    assert [host for host, *_ in proxy.asked] == ["api.test"]
    assert whole.ask("remove_upstream")["upstream"] is None
    assert whole.curl("http://api.test/") == (0, "served") and len(out.direct) == 2


def test_with_an_include_nothing_else_goes_through(out, start):
    proxy = HttpProxy(out, PRIVATE, 3128, PLACES)
    whole = start(list_of(*RULES), variables={"PROXY_SERVER": f"{PRIVATE}:3128", "PROXY_INCLUDE": "api.test"})
    assert whole.curl("http://api.test/") == (0, "served") and whole.curl("http://aside.test/") == (0, "served")
    assert [host for host, *_ in proxy.asked] == ["api.test"] and len(out.direct) == 1


@pytest.mark.parametrize(
    "variables",
    [{"PROXY_SERVER": "ftp://proxy.test:21"}, {"PROXY_INCLUDE": "api.test"}, {"PROXY_AUTH_CMD": "x"}, {"PROXY_AUTH_CMD": "x\n", "PROXY_SERVER": "proxy.test:1"}, {"PROXY_EXCLUDE": "a b"}, {"PROXY_MAP": "app.test"}, {"PROXY_MAP": "app.test=:312"}],
)
def test_a_variable_that_cannot_be_read_lets_nothing_out(start, variables):
    with pytest.raises(AssertionError) as failed:
        start(list_of(*RULES), variables=variables)
    assert f"{next(iter(variables))}: " in str(failed.value)
