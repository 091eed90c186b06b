"""Mappings lead a session's requests by plain HTTP to servers of its own workspace; excludes and diagnosis. Gate, door and dialer sealed."""

import os
import shutil
import struct

import pytest
import stage
import world
from proxies import HttpProxy
from whole import Whole
from world import METADATA, OTHER, PRIVATE, PUBLIC, list_of, rule

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")


@pytest.fixture
def whole(internet):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    internet.names.zone.update({"api.test": [PUBLIC], "aside.test": [PUBLIC], "inside.test": [PRIVATE], "proxy.test": [PRIVATE], "closed.test": [OTHER]})
    internet.names.zone["narrow.test"] = [PUBLIC]

    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved")
        connection.recv(4096)

    internet.direct = internet.serve(PUBLIC, 80, handle)
    internet.behind = internet.serve(OTHER, 8080, handle)
    rules = [
        rule("api.test", ports=[80, 443], why="the API"),
        rule("aside.test", ports=[80]),
        rule("inside.test"),
        rule("closed.test", ports=[81]),
        rule("denied.test", deny=True, why="never"),
        rule("proxy.test", ports=[3128], private=True),
        rule("narrow.test", ports=[80], paths=["/pub"], why="a mirror"),
    ]
    one = Whole(internet, list_of(*rules))
    yield one
    one.close()


def test_a_mapping_leads_to_a_server_of_the_workspace(whole):
    whole.serve(3000, "mine")
    state = whole.ask("add_mapping", source="myapp.com", target=":3000")
    assert state["mappings"] == [{"source": "myapp.com", "target": "127.0.0.1:3000", "source_host": "myapp.com", "source_path": "/", "internal_port": 312}]
    assert whole.curl("http://myapp.com/a?b=c") == (0, "mine /a?b=c myapp.com")
    record = whole.told_until("connection", host="myapp.com")
    assert record["mapped"] == 1 and record["address"] == "127.0.0.1" and record["rule"] == -1
    assert whole.curl("-x", "http://127.0.0.1:312", "http://myapp.com/") == (0, "mine / myapp.com")
    assert "not_listed" in whole.curl("http://other.com/")[1]
    assert whole.ask("remove_mapping", source="myapp.com")["mappings"] == []
    assert "not_listed" in whole.curl("http://myapp.com/")[1]


def test_paths_and_names_below(whole):
    whole.serve(3000, "one")
    whole.serve(3001, "two")
    whole.ask("add_mapping", source="api.test/v1/*", target="3000/")
    whole.ask("add_mapping", source="http://*.staging.app.com", target="localhost:3001")
    assert whole.curl("http://api.test/v1/x/y") == (0, "one /x/y api.test")
    assert whole.curl("http://api.test/v2") == (0, "served")
    assert whole.curl("http://a.b.staging.app.com/") == (0, "two / a.b.staging.app.com")
    assert "not_listed" in whole.curl("http://staging.app.com/")[1]
    # One connection of the client, and none to the outside is used for what is mapped.
    status, text = whole.curl("http://api.test/v2", "http://api.test/v1/x", "http://api.test/v2")
    assert (status, text) == (0, "servedone /x api.testserved")


def test_where_nobody_listens_it_says_so(whole):
    whole.ask("add_mapping", source="myapp.com", target="3000")
    assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://myapp.com/") == (0, "502")
    assert whole.told_until("connection", host="myapp.com")["error"] == "ECONNREFUSED"


def test_a_mapping_grants_nothing(whole):
    for target in (f"{PRIVATE}:80", "unknown.test:80", f"{METADATA}:80", "api.test:22", "127.0.0.2:80"):
        error, what = whole.ask("add_mapping", source="myapp.com", target=target)
        assert error == "permission_denied" and "egress" in what, target
    assert whole.ask("add_mapping", source="myapp.com", target="127.0.0.1:312")[0] == "invalid_argument"
    assert whole.ask("add_mapping", source="https://myapp.com", target="3000")[0] == "invalid_argument"
    assert whole.ask("remove_mapping", source="myapp.com")[0] == "not_found"
    whole.serve(3000, "mine")
    whole.ask("add_mapping", source="denied.test", target="3000")
    assert whole.curl("http://denied.test/")[0] == 6
    assert "rule" in whole.curl("-x", "http://127.0.0.1:312", "http://denied.test/")[1]


def test_it_may_lead_to_another_host_that_the_policy_permits(whole):
    whole.ask("add_mapping", source="myapp.com", target="api.test:80")
    assert whole.curl("http://myapp.com/") == (0, "served")
    record = whole.told_until("connection", mapped=1)
    assert record["host"] == "api.test" and record["rule"] == 0
    whole.set_lists(list_of(rule("aside.test")), 2)  # what is permitted now counts
    assert "403" in whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://myapp.com/")[1]


def test_the_paths_of_a_rule_hold_where_it_leads(whole):
    whole.ask("add_mapping", source="myapp.com/x/*", target="narrow.test:80/pub/")
    whole.ask("add_mapping", source="myapp.com/y/*", target="narrow.test:80/other/")
    assert whole.curl("http://myapp.com/x/a") == (0, "served")
    for path in ("/y/pub", "/x/../y", "/x/%2e%2e/other"):
        assert "refused: path" in whole.curl("--path-as-is", f"http://myapp.com{path}")[1], path
    assert len(whole.internet.direct) == 1
    assert whole.ask("diagnose", url="http://myapp.com/x/a")["route"] == "mapping"
    found = whole.ask("diagnose", url="http://myapp.com/y/pub")
    assert (found["route"], found["refusal"], found["why"]) == ("denied", "path", "a mirror")
    assert "the rule permits what is at and below /pub" in found["steps"]


def test_another_workspaces_mappings_are_not_its_own(whole):
    whole.serve(3000, "mine")
    whole.ask("add_mapping", source="myapp.com", target="3000")
    other = stage.Namespaces()
    try:
        ours, theirs = stage.socket.socketpair(stage.socket.AF_UNIX, stage.socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        file = stage.memory_file(list_of(rule("api.test", ports=[80])))
        stage.send(whole.socket, struct.pack("IIQ", stage.MAKE, 1, 2) + b"other", [file, theirs.fileno(), other.user])
        theirs.close()
        assert stage.answer_of(ours, other) == "made"
        assert whole.ask("get", workspace=2)["mappings"] == []
        mine, whole.place = whole.place, other
        assert "not_listed" in whole.curl("http://myapp.com/")[1]
        whole.ask("add_mapping", workspace=2, source="myapp.com", target="3000")
        assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://myapp.com/") == (0, "502")  # its own loopback has no server
        whole.place = mine
        assert whole.curl("http://myapp.com/") == (0, "mine / myapp.com")
    finally:
        other.close()


def test_excludes_go_beside_the_proxy_and_never_beside_the_list(whole):
    proxy = HttpProxy(whole.internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080), ("aside.test", 80): (OTHER, 8080)})
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.ask("add_exclude", pattern="*.test")["excludes"] == ["*.test"]
    assert whole.curl("http://api.test/") == (0, "served") and len(whole.internet.direct) == 1 and proxy.asked == []
    assert "not_listed" in whole.curl("http://unknown.test/")[1]
    assert "rebinding" in whole.curl("http://inside.test/")[1]
    assert whole.ask("remove_exclude", pattern="*.TEST")["excludes"] == []
    whole.ask("add_exclude", pattern=".aside.test")
    whole.ask("add_exclude", pattern="10.0.0.0/8")
    assert whole.curl("http://api.test/") == (0, "served") and len(whole.internet.direct) == 1 and len(proxy.asked) == 1
    assert whole.curl("http://aside.test/") == (0, "served") and len(whole.internet.direct) == 2
    for pattern in ("", "a b", "*", "10.0.0.1/8", "http://x.test"):
        assert whole.ask("add_exclude", pattern=pattern)[0] == "invalid_argument", pattern
    assert whole.ask("remove_exclude", pattern="nowhere.test")[0] == "not_found"


def test_the_longest_excludes_end_nobody(whole):
    """What a client sets is told to the dialer as one message: it bounds the text of all, not their number alone."""
    names = [f"{at:03}{'x' * 60}." + ".".join(letter * 63 for letter in "abc")[:189] for at in range(128)]
    answers = [whole.ask("add_exclude", pattern=name) for name in names]
    taken = [answer for answer in answers if "excludes" in answer]
    assert len(taken) > 20 and all(error == "limit" and "bytes together" in what for error, what in answers[len(taken) :]) and len(taken) < 128
    HttpProxy(whole.internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080)})
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.ask("remove_exclude", pattern=names[0])["excludes"] == names[1 : len(taken)]
    assert whole.curl("http://api.test/") == (0, "served") and whole.internet.direct == []
    assert whole.ask("health")["dialer"]


def test_a_connection_that_is_kept_is_not_used_once_there_is_a_proxy(whole):
    proxy = HttpProxy(whole.internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080)})
    assert whole.curl("http://api.test/") == (0, "served")
    whole.ask("set_upstream", server="proxy.test:3128")
    assert whole.curl("http://api.test/") == (0, "served")
    assert len(proxy.asked) == 1 and len(whole.internet.direct) == 1


def test_diagnosis(whole):
    def found(url, **members):
        answer = whole.ask("diagnose", url=url, **members)
        return (answer["route"], answer["target_reachable"], answer["resolved_target"], answer.get("refusal")), " / ".join(answer["steps"])

    got, steps = found("http://api.test/x")
    assert got == ("direct", True, f"{PUBLIC}:80", None) and "rule 0 (the API) permits it" in steps and f"connected at {PUBLIC}" in steps
    assert whole.told_until("connection", via="diagnose")["host"] == "api.test"
    assert found("https://api.test")[0] == ("direct", False, f"{PUBLIC}:443", None)
    got, steps = found("http://denied.test")
    assert got == ("denied", False, None, "rule") and "never" in steps
    assert whole.told_until("refused", via="diagnose")["refusal"] == "rule"
    assert found("http://unknown.test:8080")[0] == ("denied", False, None, "not_listed")
    assert found("http://closed.test")[0] == ("denied", False, None, "port")
    assert found("http://inside.test")[0] == ("denied", False, None, "rebinding")
    assert found(f"http://{METADATA}/latest")[0][3] in ("not_listed", "address")
    for url in ("ftp://api.test", "", "http://", "http://a b", "http://api.test:0", "http://user@api.test"):
        assert whole.ask("diagnose", url=url)[0] == "invalid_argument", url
    assert whole.ask("diagnose", url="http://api.test", domain="shell")[0] == "not_found"
    whole.ask("add_mapping", source="myapp.com/v1/*", target="3000")
    got, steps = found("http://myapp.com/v1/x")
    assert got == ("mapping", False, "127.0.0.1:3000", None) and "no server of the workspace answers" in steps
    whole.serve(3000, "mine")
    assert found("http://myapp.com/v1/x")[0] == ("mapping", True, "127.0.0.1:3000", None)
    HttpProxy(whole.internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080)})
    whole.ask("set_upstream", server="proxy.test:3128")
    got, steps = found("http://api.test/x")
    assert got == ("upstream", True, "api.test:80", None) and "proxy.test:3128" in steps
    got, steps = found("http://aside.test/x")
    assert got == ("upstream", False, None, "upstream") and "403" in steps


def test_health(whole):
    assert whole.ask("health") == {"door": True, "dialer": True, "consistent": True, "inconsistencies": []}
