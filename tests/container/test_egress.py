"""The way out in the image: a session reaches the one host that its policy names, here this machine's end of the container's network, and
nothing else; where the tier has none, the domain says so."""

import http.server
import json
import shutil
import threading

import pytest
from conftest import ROOT

HOST = "host.containers.internal"


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
def policies(server, tmp_path_factory, engine):
    if engine != "podman":
        pytest.skip(f"{HOST} is podman's name")
    policies = shutil.copytree(ROOT / "policies", tmp_path_factory.mktemp("mounted") / "policies")
    policy = json.loads((policies / "bash.json").read_text())
    rule = {"host": HOST, "ports": [server[0].server_port], "private": True, "why": "what a test needs"}
    policy |= {"network": "allowlist", "egress": [rule], "weaken": [{"field": "/network", "why": "what a test needs"}]}
    (policies / "bash.json").write_text(json.dumps(policy))
    return policies


@pytest.fixture(scope="module", params=["T3", "T2"])
def out(request, start, policies, tmp_path_factory):
    own = shutil.copytree(policies, tmp_path_factory.mktemp(request.param) / "policies")
    return start("--tier", request.param, "--", "-v", f"{own}:/etc/caisson/policies:U")


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


def test_nothing_else_is(out, server):
    address = out.exec("sh", "-c", f"awk '$2 == \"{HOST}\" || $3 == \"{HOST}\" {{print $1}}' /etc/hosts").stdout.split()[0]
    permitted, other = (one.server_port for one in server)
    for url in (f"http://{HOST}:{other}/", f"http://{address}:{permitted}/", f"http://{address}:{other}/", "http://169.254.169.254/", "http://other.test/"):
        assert fetched(out, url) != "served", url
    assert server[1].seen == []
    assert out.bash("python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"10.88.0.1\", 9))' 2>&1; "
                    "getent hosts other.test; echo end")["stdout"].endswith("end\n")


def test_a_domain_without_one_has_none(out, server):
    said = out.http.post("/v1/shell/exec", json={"command": f"curl -sS --max-time 20 http://{HOST}:{server[0].server_port}/"}).json()["data"]["output"]
    assert "served" not in said and "curl:" in said


def test_door_and_dialer_are_users_of_their_own_without_rights(out):
    assert fetched(out, "http://169.254.169.254/") != "served"
    told = out.exec("sh", "-c", "for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline 2>/dev/null) in *caisson-egress*) grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' $p/status;; esac; done").stdout
    lines = [line.split() for line in told.splitlines()]
    assert {line[1] for line in lines if line[0] == "Uid:"} == {"993", "994"}
    assert {line[1] for line in lines if line[0] == "CapEff:"} == {"0" * 16} and {line[1] for line in lines if line[0] == "NoNewPrivs:"} == {"1"}
    assert {line[1] for line in lines if line[0] == "Seccomp:"} == {"2"}


def test_a_tier_without_network_namespaces_says_so(start, policies, docker_default, tmp_path_factory):
    own = shutil.copytree(policies, tmp_path_factory.mktemp("T0") / "policies")
    served = start("--tier", "T0", "--", "--security-opt", f"seccomp={docker_default}", "-v", f"{own}:/etc/caisson/policies:U")
    answer = served.http.post("/v1/bash/exec", json={"command": "true"})
    assert "way out" in answer.text or "T2" in answer.text, answer.text
    said = served.http.post("/v1/shell/exec", json={"command": "echo on"}).json()
    assert said["success"] and "on" in said["data"]["output"], said
