"""A refused name becomes a question. What an operator allows passes, for that session and that time; nothing else does."""

import contextlib
import json
import os
import signal
import subprocess

import places
import pytest
import stage
from connected import REQUIRED
from harness import CLI, edit, eventually
from outgoing import RULES, handle, reach, records
from proxies import HttpProxy
from whole import Whole
from world import METADATA, OTHER, PRIVATE, PUBLIC, client_hello, echo, list_of, rule, upstream


def asking(launcher, internet, who="operator"):
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER], "new.test": [OTHER], "inside.test": [PRIVATE]})
    internet.serve(PUBLIC, 80, handle)
    internet.elsewhere = internet.serve(OTHER, 80, handle)
    internet.private = internet.serve(PRIVATE, 80, handle)
    edit(launcher.policies / "bash.json", **RULES, egress_ask=who)
    return launcher


@pytest.fixture
def out(fresh, internet):
    asking(fresh, internet).start(wrapper=internet.wrapper())
    if fresh.control().hello["tier"] not in ("T2", "T3"):
        pytest.skip("this machine gives no network namespace: sessions with a connector are tested beside this")
    return fresh


@pytest.fixture
def apart(fresh, internet):
    """Without namespaces a session's connector speaks for it: it is known without cgroup v2, too."""
    asking(fresh, internet)
    edit(fresh.policies / "base.json", require=REQUIRED)
    fresh.start(wrapper=[*internet.wrapper(), *places.wrapper("T0", fresh.home)], CAISSON_READY_SESSIONS="0")
    return fresh


def ask(launcher, *words, workspace=None):
    at = ["--workspace", workspace] if workspace else []
    return subprocess.run([CLI, "--run", launcher.run, "--json", "ask", *words, *at], capture_output=True, timeout=60, check=False)


def listed(launcher):
    done = ask(launcher, "ls")
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def asked(launcher, host):
    return eventually(lambda: next((one for one in listed(launcher)["asked"] if one["host"] == host), None), what=f"{host} is asked for")


def allow(launcher, host, how="once", *more):
    done = ask(launcher, "allow", "--for", how, *more, str(asked(launcher, host)["id"]))
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def test_the_refused_program_is_told_and_the_question_says_who_asks_for_what(apart):
    control = apart.control()
    session = control.create()
    text = control.output(session, "curl", "-s", "http://new.test/x")
    assert "new.test:80: refused: not_listed" in text and "the operator may allow it" in text
    one = asked(apart, "new.test")
    assert (one["session"], one["domain"], one["port"], one["refusal"], one["times"]) == (session, "bash", 80, "not_listed", 1)
    assert records(apart, "egress_refused", host="new.test", asked=one["id"])
    assert "403" in reach(control, session, "new.test"), "to be asked allows nothing"
    assert eventually(lambda: asked(apart, "new.test")["times"] == 2)


def test_once_is_one_connection_of_that_session(apart, internet):
    control = apart.control()
    session, other = control.create(), control.create()
    assert "403" in reach(control, session, "new.test")
    grant = allow(apart, "new.test", "once", "--who", "alice")
    assert (grant["by"], grant["who"], grant["for"], grant["session"]) == ("operator", "alice", "once", session)
    assert "403" in reach(control, other, "new.test")
    assert reach(control, session, "new.test") == "served"
    assert "403" in reach(control, session, "new.test")
    assert len(internet.elsewhere) == 1
    assert eventually(lambda: records(apart, "egress_connection", host="new.test", grant=grant["id"]))
    assert records(apart, "egress_start", ask="allow", who="alice", host="new.test")
    assert [one["used"] for one in listed(apart)["granted"]] == [True]


def test_a_session_s_is_every_connection_of_it_to_that_port(apart):
    control = apart.control()
    session, other = control.create(), control.create()
    assert "403" in reach(control, session, "new.test")
    allow(apart, "new.test", "session")
    assert [reach(control, session, "new.test") for _ in range(3)] == ["served"] * 3
    assert "403" in reach(control, other, "new.test")
    control.output(session, "/usr/bin/python3", "-c", "import contextlib, socket\nwith contextlib.suppress(OSError): socket.create_connection(('new.test', 2222), 20).recv(1)")
    assert eventually(lambda: [one for one in listed(apart)["asked"] if one["port"] == 2222]), "another port is another question"


def test_a_time_is_for_the_domain_and_ends(out):
    control = out.control()
    session, other = control.create(), control.create()
    assert "403" in reach(control, session, "new.test")
    allow(out, "new.test", "3600")
    assert reach(control, session, "new.test") == reach(control, other, "new.test") == "served"
    (grant,) = listed(out)["granted"]
    assert ask(out, "revoke", str(grant["id"])).returncode == 0 and listed(out)["granted"] == []
    assert "403" in reach(control, session, "new.test")
    allow(out, "new.test", "1")
    eventually(lambda: listed(out)["granted"] == [], what="its time is over")
    assert "403" in reach(control, session, "new.test")


def test_for_good_is_a_rule_for_the_policy_and_allows_nothing(out):
    control = out.control()
    session = control.create()
    assert "403" in reach(control, session, "new.test")
    rule = allow(out, "new.test", "policy")["rule"]
    assert "403" in reach(control, session, "new.test")
    edit(out.policies / "bash.json", egress=[*RULES["egress"], rule])
    out.reload()
    assert reach(control, control.create(), "new.test") == "served"


def test_a_no_is_final_and_silence_is_one(out):
    control = out.control()
    session = control.create()
    assert "403" in reach(control, session, "new.test")
    number = asked(out, "new.test")["id"]
    assert ask(out, "deny", str(number)).returncode == 0
    assert "403" in reach(control, session, "new.test") and listed(out)["asked"] == []
    assert ask(out, "allow", str(number)).returncode == 3


def test_what_a_rule_denies_and_what_is_not_public_is_no_question(out, internet):
    control = out.control()
    session = control.create()
    assert reach(control, session, "denied.test") == "no name"
    for host in (METADATA, PRIVATE, "127.0.0.1"):
        reach(control, session, host)
    assert "403" in reach(control, session, "inside.test")
    allow(out, "inside.test", "3600")
    assert "403" in reach(control, session, "inside.test") and internet.private == [], "the grant leads to public addresses alone"
    assert [one["host"] for one in listed(out)["asked"]] == []


def test_a_grant_ends_with_the_policy_s_word_and_not_with_a_process(out):
    control = out.control()
    session = control.create()
    assert "403" in reach(control, session, "new.test")
    allow(out, "new.test", "3600")
    for name in ("door", "dialer"):
        pid = records(out, "egress_start", process=name)[-1]["pid"]
        os.kill(pid, signal.SIGKILL)
        eventually(lambda one=name, gone=pid: records(out, "egress_start", process=one)[-1]["pid"] != gone)
    assert eventually(lambda: reach(control, session, "new.test") == "served")
    edit(out.policies / "bash.json", egress_ask="nobody")
    out.reload()
    assert "operator" not in control.output(control.create(), "curl", "-s", "http://new.test/")
    assert listed(out) == {"asked": [], "granted": []}


def test_nobody_is_asked_unless_the_policy_says_so(fresh, internet):
    asking(fresh, internet)
    edit(fresh.policies / "bash.json", egress_ask="nobody")
    fresh.start(wrapper=internet.wrapper())
    control = fresh.control()
    assert "operator" not in control.output(control.create(), "curl", "-s", "http://new.test/")
    assert listed(fresh) == {"asked": [], "granted": []}


@pytest.mark.parametrize("words", [["allow", "x"], ["allow", "0"], ["allow", "99"], ["allow", "--for", "forever", "1"], ["allow", "--for", "0", "1"], ["allow", "--for", "86401", "1"], ["allow", "--for", "time", "1"], ["deny", "99"], ["revoke", "99"]])
def test_what_decides_nothing_says_why(out, words):
    control = out.control()
    assert "403" in reach(control, control.create(), "new.test")
    asked(out, "new.test")
    done = ask(out, *words)
    assert done.returncode in (2, 3) and json.loads(done.stdout)["error"]["what"]
    assert listed(out)["granted"] == []


@pytest.mark.parametrize("who, answer", [("operator", "permission_denied"), ("api", None)])
def test_the_agent_has_a_say_where_the_policy_gives_it_one(internet, who, answer):
    whole = Whole(internet, list_of(rule("api.test", ports=[80]), ask={"operator": 1, "api": 2}[who]))
    internet.names.zone["new.test"] = [OTHER]
    internet.serve(OTHER, 80, handle)
    try:
        assert "not_listed" in whole.curl("http://new.test/")[1]
        (one,) = eventually(lambda: whole.ask("asks")["asked"])
        done = whole.ask("allow", id=one["id"], **{"for": "once"})
        if answer:
            assert done[0] == answer and whole.ask("asks")["granted"] == []
            done = stage.ask(whole.socket, "allow", 1, order=stage.OPERATOR_LINE, id=one["id"], **{"for": "once"})
        assert done["by"] == ("operator" if answer else "api")
        assert whole.curl("http://new.test/") == (0, "served")
    finally:
        whole.close()


def test_a_tunnel_that_was_allowed_leads_to_that_server_name_alone(out, internet):
    internet.serve(OTHER, 443, echo)
    control = out.control()
    session = control.create()
    code = "import socket,sys\ns=socket.create_connection((sys.argv[1],443),20)\ns.sendall(bytes.fromhex(sys.argv[2]))\nprint(s.recv(100)[:1].hex())"
    say = lambda name: control.output(session, "/usr/bin/python3", "-c", code, "new.test", client_hello(name).hex()).strip()  # noqa: E731
    assert say("new.test") == "15", "an alert"
    allow(out, "new.test", "3600")
    assert say("new.test") == "16" and say("other.test") == "15"



def test_one_session_s_many_questions_take_no_place_of_another_s(apart):
    control = apart.control()
    session, other = control.create(), control.create()
    assert "403" in reach(control, other, "new.test")
    first = asked(apart, "new.test")["id"]
    control.output(session, "curl", "-s", "-o", os.devnull, "http://n[1-40].test/")
    eventually(lambda: any(one["host"] == "n40.test" for one in listed(apart)["asked"]))
    questions = listed(apart)["asked"]
    assert len(questions) == 32 and [one["id"] for one in questions if one["session"] == other] == [first]


@pytest.fixture
def whole(internet):
    """Gate, door and dialer; api.test is permitted, the operator is asked of the rest; through the proxy of the policy's, where a test has one."""
    internet.names.zone.update({"new.test": [OTHER], "inside.test": [PRIVATE], "proxy.test": [PRIVATE]})
    internet.serve(OTHER, 80, handle)
    made = []

    def start(**more):
        made.append(Whole(internet, list_of(rule("api.test", ports=[80]), ask=1, **more)))
        return made[-1]

    yield start
    for one in made:
        one.close()


def by_operator(one, op, **members):
    return stage.ask(one.socket, op, 1, order=stage.OPERATOR_LINE, **members)


def test_an_upstream_proxy_is_led_to_public_addresses_alone(whole, internet):
    proxy = HttpProxy(internet, PRIVATE, 3128, {("inside.test", 80): (OTHER, 80), (OTHER, 80): (OTHER, 80)})
    one = whole(through=upstream("http://proxy.test:3128"))
    for host, served in (("inside.test", False), ("new.test", True)):
        assert "not_listed" in one.curl(f"http://{host}/")[1]
        (question,) = eventually(lambda name=host: [q for q in one.ask("asks")["asked"] if q["host"] == name])
        assert by_operator(one, "allow", id=question["id"], **{"for": "time", "seconds": 60})["host"] == host
        assert (one.curl(f"http://{host}/")[1] == "served") is served
    assert [asked[:2] for asked in proxy.asked] == [(OTHER, 80)], "the dialer has resolved it"


def test_what_the_launcher_does_not_record_is_not_allowed(whole):
    """It reads nothing here until its socket is full."""
    one = whole()
    assert "not_listed" in one.curl("http://new.test/")[1]
    (question,) = eventually(lambda: one.ask("asks")["asked"])
    one.curl("-o", os.devnull, "http://new.test/[1-450]")
    error, what = by_operator(one, "allow", id=question["id"], **{"for": "time", "seconds": 60})
    assert error == "unavailable" and "nothing was decided" in what
    assert "not_listed" in one.curl("http://new.test/")[1] and one.ask("asks")["granted"] == []


def test_an_agent_that_asks_without_end_keeps_no_operator_out(whole):
    one = whole()
    assert "not_listed" in one.curl("http://new.test/")[1]
    (question,) = eventually(lambda: one.ask("asks")["asked"])
    with contextlib.ExitStack() as stack:
        for _ in range(520):
            stack.enter_context(stage.line_to(one.socket, 1, None))
        assert by_operator(one, "allow", id=question["id"], **{"for": "once"})["by"] == "operator"
        assert by_operator(one, "revoke", id=question["id"])["ask"] == "revoke"
