"""The way out in the image, in each tier: a session reaches the one host that its policy names, here this machine's end of the container's
network, and nothing else."""

import http.server
import json
import shutil
import threading

import pytest
from conftest import ROOT, sh

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
def mounted(server, tmp_path_factory):
    """mounted(domain): what mounts policies with which this domain may reach the permitted server. Others keep theirs."""

    def make(domain):
        policies = shutil.copytree(ROOT / "policies", tmp_path_factory.mktemp("mounted") / "policies")
        policy = json.loads((policies / f"{domain}.json").read_text())
        rule = {"host": HOST, "ports": [server[0].server_port], "private": True, "why": "what a test needs"}
        weaken = [*policy.get("weaken", []), {"field": "/network", "why": "what a test needs"}]
        (policies / f"{domain}.json").write_text(json.dumps(policy | {"network": "allowlist", "egress": [rule], "weaken": weaken}))
        return "-v", f"{policies}:/etc/caisson/policies:U"

    return make


@pytest.fixture(scope="module")
def gateway(engine):
    """This machine's address in the containers' network."""
    if engine != "podman":
        pytest.skip("the address of this machine is asked of podman")
    return sh("podman", "network", "inspect", "podman", "-f", "{{(index .Subnets 0).Gateway}}").stdout.strip()


@pytest.fixture(scope="module", params=["T3", "T2", "T0"])
def out(request, start, mounted, gateway, docker_default):
    docker = ("--security-opt", f"seccomp={docker_default}") if request.param == "T0" else ()
    return start("--tier", request.param, "--", *docker, *mounted("bash"), "--add-host", f"{HOST}:{gateway}")


def fetched(served, url):
    return served.bash(f"curl -sS --max-time 60 {url} 2>&1")["stdout"]


def test_the_host_that_is_named_is_reached_and_on_record(out, server):
    url = f"http://{HOST}:{server[0].server_port}/"
    assert fetched(out, url) == "served"
    assert server[0].seen[-1] == f"{HOST}:{server[0].server_port}"

    def recorded():
        lines = out.exec("sh", "-c", "cat /var/log/caisson/audit/launcher.ndjson").stdout.splitlines()
        return [r for r in map(json.loads, lines) if r["event"] == "egress_connection" and r.get("host") == HOST]

    out.eventually(recorded)


def test_nothing_else_is(out, server, gateway):
    permitted, other = (one.server_port for one in server)
    for url in (f"http://{HOST}:{other}/", f"http://{gateway}:{permitted}/", f"http://{gateway}:{other}/", "http://169.254.169.254/", "http://other.test/"):
        assert fetched(out, url) != "served", url
    assert server[1].seen == []


def test_a_domain_without_one_has_none(out, server):
    said = out.http.post("/v1/shell/exec", json={"command": f"curl -sS --max-time 20 http://{HOST}:{server[0].server_port}/"}).json()["data"]["output"]
    assert "served" not in said and "curl:" in said


def test_door_and_dialer_are_users_of_their_own_without_rights(out):
    assert fetched(out, "http://169.254.169.254/") != "served"
    found = ("for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in */caisson-egress' '*) "
             "grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' $p/status;; esac; done")
    told = out.exec("sh", "-c", found).stdout
    lines = [line.split() for line in told.splitlines()]
    assert {line[1] for line in lines if line[0] == "Uid:"} == {"993", "994"}
    assert {line[1] for line in lines if line[0] == "CapEff:"} == {"0" * 16} and {line[1] for line in lines if line[0] == "NoNewPrivs:"} == {"1"}
    assert {line[1] for line in lines if line[0] == "Seccomp:"} == {"2"}
