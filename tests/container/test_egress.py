"""The way out in the image, in each tier and without nf_tables: a session reaches what its policy names, here this machine's end of the
container's network and one host of an internet around it, and nothing else, whatever it tries (tests/session/egress/attacks.py)."""

import http.server
import json
import threading

import pytest
from conftest import ROOT, sh
from way_out import Out, Policies, attacks, flags, ports_in, without_nf_tables

HOST = "outside.test"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(self.headers["Host"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"served")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    """(a permitted server, one that no rule names) on every address of this machine."""
    both = [http.server.ThreadingHTTPServer(("0.0.0.0", 0), Handler) for _ in range(2)]
    for one in both:
        one.seen = []
        threading.Thread(target=one.serve_forever, daemon=True).start()
    yield both
    for one in both:
        one.shutdown()


@pytest.fixture(scope="module")
def gateway(engine):
    """This machine's address in the containers' network."""
    if engine != "podman":
        pytest.skip("the address of this machine is asked of podman")
    return sh("podman", "network", "inspect", "podman", "-f", "{{(index .Subnets 0).Gateway}}").stdout.strip()


# Which flags, and how sessions meet the door there.
STANDS = {
    "T3": attacks.DOOR,
    "T3 without nf_tables": attacks.PORTS,
    "T2": attacks.DOOR,
    "T2 without nf_tables": attacks.PORTS,
    "T1": attacks.BEHALF,
    "T0": attacks.BEHALF,
}


@pytest.fixture(scope="module", params=STANDS)
def out(request, start, server, gateway, docker_default, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    tier, _, lacks = request.param.partition(" ")
    profile = docker_default if tier in ("T0", "T1") else None
    if lacks:
        profile = folder / "seccomp.json"
        profile.write_text(json.dumps(without_nf_tables(json.loads((ROOT / "image/seccomp.json").read_text()))))
    here = {"host": HOST, "ports": [server[0].server_port], "private": True, "why": "what a test needs"}
    policies = Policies(folder, bash=[here, *attacks.NAMED])
    seccomp = ("--security-opt", f"seccomp={profile}") if profile else ()
    served = start("--tier", tier, "--", *seccomp, *flags(policies, folder), "--add-host", f"{HOST}:{gateway}")
    one = Out(served, policies, folder, STANDS[request.param])
    yield one
    one.close()


def fetched(out, url):
    return out.served.bash(f"curl -sS --max-time 60 {url} 2>&1")["stdout"]


def test_the_host_that_is_named_is_reached_and_on_record(out, server):
    url = f"http://{HOST}:{server[0].server_port}/"
    assert fetched(out, url) == "served"
    assert server[0].seen[-1] == f"{HOST}:{server[0].server_port}"
    out.served.eventually(lambda: [r for r in out.records() if r["event"] == "egress_connection" and r.get("host") == HOST])


def test_nothing_else_is(out, server, gateway):
    permitted, other = (one.server_port for one in server)
    for url in (f"http://{HOST}:{other}/", f"http://{gateway}:{permitted}/", f"http://{gateway}:{other}/", "http://169.254.169.254/", "http://unknown.test/"):
        assert fetched(out, url) != "served", url
    assert server[1].seen == []


def test_a_domain_without_one_has_none(out, server):
    command = f"curl -sS --max-time 20 http://{HOST}:{server[0].server_port}/"
    said = out.served.http.post("/v1/shell/exec", json={"command": command}).json()["data"]["output"]
    assert "served" not in said and "curl:" in said


def test_door_and_dialer_have_no_rights_and_are_users_of_their_own(out):
    """In T1 there is one user for all."""
    assert fetched(out, "http://169.254.169.254/") != "served"
    found = ("for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in */caisson-egress' '*) "
             "grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' $p/status;; esac; done")
    told = out.served.exec("sh", "-c", found).stdout
    lines = [line.split() for line in told.splitlines()]
    assert {line[1] for line in lines if line[0] == "Uid:"} == ({"1000"} if out.tier == "T1" else {"993", "994"})
    assert {line[1] for line in lines if line[0] == "CapEff:"} == {"0" * 16} and {line[1] for line in lines if line[0] == "NoNewPrivs:"} == {"1"}
    assert {line[1] for line in lines if line[0] == "Seccomp:"} == {"2"}


@pytest.mark.parametrize("table", attacks.TABLES)
def test_ways_around_the_list_fail_as_they_should_and_are_on_record(out, table):
    attacks.try_all(out, table)


@pytest.mark.parametrize("how", attacks.HOWS)
def test_no_spelling_of_another_host_is_reached_by_the_door(out, how):
    attacks.try_spellings(out, attacks.HOWS[how])


def test_names_carry_nothing_out(out):
    attacks.try_names(out)


# Those whose answer need not be waited for; natively all are tried.
CONTROLS = ["a port in no rule", "IPv6", "MPTCP", "UDP", "UDP over IPv6", "ICMP", "a cloud's metadata", "a name server of one's own"]


def test_what_is_tried_arrives_from_the_container_itself(out):
    out.seen.packets()
    codes, protocols, addresses, _ = zip(*(attacks.ATTACKS[name] for name in CONTROLS), strict=True)
    said = attacks.unconfined(out.world, *codes)
    assert out.seen.packets() >= set(zip(protocols, addresses, strict=True)), said


def test_what_a_session_may_do_it_can(out):
    out.seen.packets()
    assert out.inside("proxied(b'api.test:80')", "requested((b'api.test', API + b'Connection: close\\r\\n'))")[1].endswith("served")
    assert (attacks.TCP, attacks.PUBLIC) in out.seen.packets()


def test_what_is_lost_without_nf_tables_is_what_the_report_says(out, server):
    """The ports where the door listens, of which the report has every one."""
    permitted = server[0].server_port
    works = json.loads(out.served.exec("caisson", "probe", "--json").stdout)["works"]
    starts = [r for r in out.records() if r["event"] == "egress_start" and r.get("workspace")]
    said = out.residual().get("named-ports")
    if out.kind == attacks.PORTS:
        assert works["egress_tproxy"] == {"works": False, "errno": "EPROTONOSUPPORT", "step": "rules"} and works["egress_ports"] == {"works": True}
        assert [r["without_nf_tables"] for r in starts] == ["EPROTONOSUPPORT"]
        met = f"[p for p in (*range(1, 10000), {permitted}) if socket.socket().connect_ex((PUBLIC, p)) == 0]"
        assert json.loads(out.inside(met)[0]) == ports_in(said) == [22, 53, 80, 443, permitted]
    else:
        assert said is None and starts and not any("without_nf_tables" in r for r in starts)
        assert works["egress_tproxy"]["works"] == (out.kind == attacks.DOOR)
    wanted = {attacks.DOOR: "served", attacks.PORTS: "EADDRINUSE", attacks.BEHALF: "EACCES"}
    assert out.inside(f"served('127.0.0.1', {permitted})") == [wanted[out.kind]]


def reached(out):
    return "served" in out.inside("requested((b'api.test', API + b'Connection: close\\r\\n'))")[0]


def test_where_sessions_are_not_told_apart_nothing_goes_out_while_their_lists_differ(out):
    """Without cgroup v2, which the report says."""
    told_apart = "ways-alike" not in out.residual()
    out.reload(bash=attacks.NAMED, shell=attacks.NAMED[:1])
    out.served.eventually(lambda: reached(out) == told_apart)
    why = [r["why"] for r in out.records() if r["event"] == "egress_exit"]
    assert any(one.startswith("its domains have different lists, and here sessions are not told apart") for one in why) != told_apart, why
    out.reload(bash=attacks.NAMED, shell=attacks.NAMED)
    out.served.eventually(lambda: reached(out))


def test_a_list_without_rules_permits_nothing(out):
    out.reload(bash=[], shell=[])
    out.served.eventually(lambda: not reached(out))
    out.seen.packets()
    assert "403" in out.inside("proxied(b'api.test:80')")[0]
    assert not out.seen.packets()
