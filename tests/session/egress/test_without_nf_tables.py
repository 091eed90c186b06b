"""Where the kernel has no nf_tables the door listens at the ports that rules name: those work as they do elsewhere, and what is lost is what
the report says. Ways around it are tried in test_attacks.py, who is told apart from whom in test_identity.py."""

import json
import os
import shutil
import signal

import places
import pytest
import without
import world
from harness import edit, eventually, inside
from outgoing import RULES, handle, reach, records
from test_whole import command_of, parent_of
from whole import Whole
from world import METADATA, OTHER, PUBLIC, PUBLIC6, echo, list_of, rule

pytestmark = [
    pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal"),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]
PORT, OTHER_PORT, RANGE = 8443, 9000, (8000, 8010)
LIST = (
    rule("api.test", ports=[80, PORT]),
    rule(address=PUBLIC6, ports=[PORT]),
    rule("wide.test", ports=[RANGE]),
    rule("denied.test", ports=[OTHER_PORT], deny=True),
)
TRIED = """
def tcp(host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.settimeout(60)
    return tried(s.connect, (host, port)), s
def echoed(host, port):
    state, s = tcp(host, port)
    if state != "ok": return state
    try:
        s.sendall(b"there and back")
        return s.recv(100).decode()
    except OSError as e: return name(e.errno)
def asked(server, question=bytes.fromhex("00070100000100000000000003617069047465737400") + b"\\0\\1\\0\\1"):
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    s.connect((server, 53))
    s.send(question)
    return socket.inet_ntoa(s.recv(512)[-4:])
"""


@pytest.fixture
def served(internet):
    internet.names.zone.update({"api.test": [PUBLIC], "wide.test": [PUBLIC], "other.test": [OTHER]})
    internet.serve(PUBLIC, 80, handle)
    for address in (PUBLIC, PUBLIC6):
        for port in (PORT, OTHER_PORT, RANGE[1]):
            internet.serve(address, port, echo)
    internet.elsewhere = internet.serve(OTHER, 80, echo)
    return internet


@pytest.fixture
def whole(served):
    one = Whole(served, list_of(*LIST), without.take_away)
    yield one
    one.close()


def test_the_start_of_the_way_says_so(whole):
    assert whole.told_until("start", workspace="default")["without_nf_tables"] == "EPROTONOSUPPORT"


def test_with_nf_tables_it_does_not(served):
    one = Whole(served, list_of(*LIST))
    assert "without_nf_tables" not in one.told_until("start", workspace="default")
    one.close()


def test_a_program_reaches_what_the_list_permits(whole):
    assert whole.curl("http://api.test/") == (0, "served")
    record = whole.told_until("connection", host="api.test")
    assert (record["port"], record["address"], record["rule"]) == (80, PUBLIC, 0)
    there = whole.place.run(f"{TRIED}\nout = [echoed(asked('127.0.0.53'), {PORT}), echoed({PUBLIC6!r}, {PORT})]")
    assert there == ["there and back"] * 2
    wide = whole.curl("http://wide.test:8010/", "--http0.9")  # an echo: the request comes back
    assert wide[1].startswith("GET / HTTP/1.1"), wide


def test_names_are_answered_whichever_server_is_asked(whole):
    answers = whole.place.run(f"{TRIED}\nout = [asked(s) for s in ('127.0.0.53', '8.8.8.8', '2001:4860:4860::8888')]")
    assert len(set(answers)) == 1 and answers[0].startswith("198.18."), answers


def test_what_no_rule_permits_is_refused_on_record_at_these_ports(whole):
    assert "not_listed" in whole.curl("http://unknown.test/")[1]
    assert "canary" in whole.curl(f"http://{METADATA}/")[1]
    assert whole.told_until("refused", refusal="canary")["address"] == METADATA
    assert whole.place.run(f"{TRIED}\nout = [echoed({PUBLIC!r}, p) for p in (22, 443, {PORT})]") == ["ECONNRESET"] * 3
    assert whole.told_until("refused", port=22)["refusal"] == "unresolved"
    assert whole.internet.elsewhere == []


@pytest.mark.parametrize("address", [PUBLIC, PUBLIC6, "10.0.0.1", METADATA, "127.0.0.1", "::1"])
def test_every_other_port_is_refused_at_once(whole, address):
    ports = (1, 21, 8080, OTHER_PORT, RANGE[1] + 1, 65535)
    assert whole.place.run(f"{TRIED}\nout = [tcp({address!r}, p)[0] for p in {ports}]") == ["ECONNREFUSED"] * len(ports)


def test_the_doors_own_port_is_a_proxy(whole):
    for scheme in ("http", "socks5h"):
        assert whole.curl("-x", f"{scheme}://127.0.0.1:312", "http://api.test/") == (0, "served"), scheme
    assert whole.place.run(f"{TRIED}\nout = tcp({PUBLIC!r}, 312)[0]") == "ECONNREFUSED"


SERVERS = """
def bound(address, port):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT): s.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        s.bind((address, port))
        s.listen()
        return "ok"
    except OSError as e: return name(e.errno)
ADDRESSES = ('127.0.0.1', '0.0.0.0', '93.184.216.34', '::1', '::')
"""


def test_sessions_serve_at_other_ports_and_never_at_these(whole):
    code = f"{SERVERS}\nout = [[bound(a, p) for a in ADDRESSES] for p in ({PORT}, {RANGE[0]}, 80, {OTHER_PORT})]"
    assert whole.place.run(code) == [["EADDRINUSE"] * 5, ["EADDRINUSE"] * 5, ["EACCES"] * 5, ["ok"] * 5]


def test_what_the_report_calls_lost_a_server_at_every_address_is_met(whole):
    code = f"""{TRIED}
server = socket.create_server(("0.0.0.0", {OTHER_PORT}))
state, kept = tcp({PUBLIC!r}, {OTHER_PORT})
out = [state, server.accept()[1][0] == kept.getsockname()[0]]
"""
    assert whole.place.run(code) == ["ok", True]


def test_a_newer_list_brings_its_ports(whole):
    assert whole.place.run(f"{TRIED}\nout = tcp({PUBLIC!r}, {OTHER_PORT})[0]") == "ECONNREFUSED"
    whole.set_lists(list_of(rule("api.test", ports=[80]), rule(address=PUBLIC, ports=[OTHER_PORT])), 2)
    code = f"{TRIED}\nout = [echoed({PUBLIC!r}, {OTHER_PORT}), echoed({PUBLIC!r}, {PORT})]"
    eventually(lambda: whole.place.run(code) == ["there and back", "ECONNRESET"], 60, "the newer list counts")


def test_a_port_that_a_session_has_already_stays_its_and_nothing_goes_out_by_it(whole):
    whole.serve(OTHER_PORT, "mine")
    whole.set_lists(list_of(rule("api.test", ports=[80, OTHER_PORT])), 2)
    why = whole.told_until("exit", workspace="default")["why"]
    assert why == f"no listener at {OTHER_PORT}: a program of the workspace has them; nothing goes out by them until the policies are loaded anew"
    assert whole.curl("http://api.test/") == (0, "served")


def test_more_ports_than_there_are_listeners_are_told(served):
    lists = list_of(rule("api.test", ports=[80, PORT]), rule("wide.test", ports=[(20000, 29999)]))
    one = Whole(served, lists, without.take_away)
    assert "more ports than can be listened at" in one.told_until("exit")["why"]
    found = one.place.run(f"{TRIED}\nout = [tcp({PUBLIC!r}, p)[0] for p in (80, 443, {PORT}, 20000, 20058, 20059, 29999)]")
    assert found == ["ok"] * 5 + ["ECONNREFUSED"] * 2
    served.serve(PUBLIC, 29999, handle)
    assert one.curl("-x", "http://127.0.0.1:312", "http://wide.test:29999/") == (0, "served"), "by the proxy all are reached"
    told = [one.ask("diagnose", url=f"http://wide.test:{port}/")["steps"] for port in (29999, 20000)]
    assert ["only programs that use the proxy" in " ".join(map(str, steps)) for steps in told] == [True, False]
    one.close()


def test_a_mapping_to_a_port_of_the_doors_leads_nowhere(whole):
    """It would lead to the door, and from there the same way again."""
    whole.ask("add_mapping", source="http://api.test", target=str(PORT))
    assert whole.curl("-o", os.devnull, "-w", "%{http_code}", "http://api.test/") == (0, "502")
    assert whole.ask("diagnose", url="http://api.test/")["target_reachable"] is False
    whole.serve(OTHER_PORT, "mine")
    whole.ask("add_mapping", source="http://api.test", target=str(OTHER_PORT))
    assert whole.curl("http://api.test/")[1].startswith("mine ")


def test_it_goes_on_after_the_door_was_killed(whole):
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and command_of(p) == "caisson-egress door" and parent_of(p) == whole.process.pid]
    assert len(pids) == 1
    os.kill(pids[0], signal.SIGKILL)
    whole.told_until("start", process="door")
    code = f"{TRIED}\nout = echoed({PUBLIC6!r}, {PORT})"
    eventually(lambda: whole.place.run(code) == "there and back", 60, "the next one has all ports")


@pytest.fixture(params=["T3", "T2"])
def launcher(fresh, internet, request):
    """Without nf_tables, and natively without cgroup v2 as well."""
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER]})
    for port in (80, PORT):
        internet.serve(PUBLIC, port, handle)
    edit(fresh.policies / "bash.json", **{**RULES, "egress": [{"host": "api.test", "ports": [80, PORT], "why": "what a test needs"}, RULES["egress"][1]]})
    fresh.start(wrapper=[*internet.wrapper(), *places.wrapper(request.param, fresh.home), *without.wrapper()])
    if fresh.control().hello["tier"] != request.param:
        pytest.skip(f"this kernel does not give tier {request.param}")
    return fresh


def stated(control, session):
    return {r["id"]: r["what"] for r in control.call("session_report", session=session)[0]["report"]["residual"]}


def test_the_report_names_the_ports_and_they_are_what_works(launcher):
    control = launcher.control()
    session = control.create()
    what = stated(control, session)["named-ports"]
    assert what.startswith(f"without nf_tables the door has these ports alone, at every address, the loopback's too: 22, 53, 80, 443, {PORT}; "), what
    found = inside(control, session, f"{TRIED}\nout = [p for p in range(1, 10000) if tcp({PUBLIC!r}, p)[0] == 'ok']")
    assert found == [22, 53, 80, 443, PORT]
    assert reach(control, session, "api.test") == "served" and reach(control, session, "denied.test") == "no name"
    assert "403" in reach(control, session, METADATA)
    eventually(lambda: records(launcher, "egress_start", workspace="default", without_nf_tables="EPROTONOSUPPORT"), 60, "it is on record")


def test_where_nothing_is_lost_the_report_says_nothing(launcher):
    control = launcher.control()
    private = [control.create(isolation="private")] if control.hello["tier"] == "T3" else []
    for session in (control.create("shell"), control.create(narrow={"network": "none"}), *private):
        assert "named-ports" not in stated(control, session)


def test_a_server_cannot_have_such_a_port_and_can_have_others(launcher):
    control = launcher.control()
    session = control.create()
    assert inside(control, session, f"{SERVERS}\nout = [bound('127.0.0.1', p) for p in ({PORT}, {OTHER_PORT})]") == ["EADDRINUSE", "ok"]


def test_without_cgroups_as_well_both_are_stated_and_no_more_is_lost(launcher):
    """Natively there is no cgroup v2: sessions are not told apart, and while their lists differ nothing goes out."""
    control = launcher.control()
    session = control.create()
    if "ways-alike" not in stated(control, session):
        pytest.skip("there is a cgroup v2 here: test_identity.py takes it away")
    assert reach(control, session, "api.test") == "served"
    eventually(lambda: records(launcher, "egress_connection", host="api.test"), 60, "the connection is on record")
    assert all("session" not in r for r in records(launcher, "egress_connection"))
    egress = json.loads((launcher.policies / "bash.json").read_text())["egress"]
    edit(launcher.policies / "shell.json", **{**RULES, "egress": egress[:1]})
    launcher.reload()
    eventually(lambda: records(launcher, "egress_exit", workspace="default"), 60, "it is told that the lists differ")
    eventually(lambda: reach(control, session, "api.test") != "served", 60, "the newer lists count")
    edit(launcher.policies / "shell.json", **{**RULES, "egress": egress})
    launcher.reload()
    eventually(lambda: reach(control, session, "api.test") == "served", 60, "they are alike again")


# Of each field of a list another value than bash has.
OTHERWISE = {
    "network": "monitor",
    "egress": RULES["egress"],
    "egress_ask": "operator",
    "egress_limits": {"connections": 100},
    "upstream": {"server": f"{OTHER}:3128"},
    "secrets": [{"name": "one", "host": "api.test", "port": PORT, "file": "/etc/caisson/secrets/one", "env": "ONE", "why": "what a test needs"}],
}


def test_every_field_of_a_list_that_differs_closes_the_way_and_the_report_names_it(launcher):
    control = launcher.control()
    session = control.create()
    if not (said := stated(control, session).get("ways-alike")):
        pytest.skip("there is a cgroup v2 here")
    same = {**RULES, "egress": json.loads((launcher.policies / "bash.json").read_text())["egress"]}
    shell, before = launcher.policies / "shell.json", (launcher.policies / "shell.json").read_text()
    for field, value in OTHERWISE.items():
        edit(shell, **{**same, field: value})
        launcher.reload()
        eventually(lambda: reach(control, session, "api.test") != "served", what=f"{field} counts")
        assert field in said.replace(",", " ").split(), said
        shell.write_text(before)
        edit(shell, **same)
        launcher.reload()
        eventually(lambda: reach(control, session, "api.test") == "served", what=f"without {field} they are alike again")


def test_the_probe_says_which_step_failed_and_that_ports_work(here):
    from harness import CLI, subprocess

    done = subprocess.run([*without.wrapper(), CLI, "probe", "--json"], capture_output=True, text=True, timeout=120, check=False)
    works = json.loads(done.stdout)["works"]
    assert works["egress_tproxy"] == {"works": False, "errno": "EPROTONOSUPPORT", "step": "rules"}
    assert works["egress_ports"] == {"works": True}
