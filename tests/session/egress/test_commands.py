"""Secrets that are in no file: what a command prints in a session of the domain `credentials`, and what an operator hands over."""

import json
import shutil
import socket
import subprocess

import places
import pytest
from bound import BEARER, placeholder, run, used
from connected import REQUIRED
from harness import CLI, edit, eventually
from opening import TOKEN
from outgoing import RULES, handle, reach, records
from proxies import HttpProxy
from world import OTHER, PRIVATE, PUBLIC

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
OWN = {"extends": "base", "home": "private", "tmp": "private"}


def credentials(launcher, *files, weaken=(), **members):
    """The domain, which may read these files."""
    grants = [{"path": str(file), "access": "read"} for file in files]
    reasons = [*weaken, *({"field": f"/grants{file}", "why": "what a test needs"} for file in files)]
    (launcher.policies / "credentials.json").write_text(json.dumps({**OWN, **members, "grants": grants, "weaken": reasons}))


def start(one):
    control = one.start()
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace: see the test of that tier")
    return control


class Printing:
    """The secret of `bound` comes from this command, which may read the file that it was in."""

    def __init__(self, bound, **members):
        self.bound, self.source = bound, bound.file
        bound.secret.pop("file")
        bound.secret.update(members)
        edit(bound.launcher.policies / "bash.json", secrets=[bound.secret])
        bound.file.chmod(0o644)
        credentials(bound.launcher, bound.file)


def printed(launcher):
    return [r for r in launcher.records() if r["event"] == "egress_start" and "printed" in r]


def failures(launcher):
    return [r["why"] for r in launcher.records() if r["event"] == "egress_exit" and "command of secret" in r.get("why", "")]


def test_a_session_uses_what_a_command_prints(bound):
    Printing(bound, command=f"cat {bound.file}")
    control = start(bound)
    session = control.create()
    assert eventually(lambda: printed(bound.launcher))[0]["printed"] == "token"
    said = run(control, session, BEARER)
    assert said.startswith("you sent GET /x") and used(bound) and TOKEN not in said
    assert "No such file" in run(control, session, f"cat {bound.file}")
    assert TOKEN not in json.dumps(bound.launcher.records())


def test_it_runs_in_a_session_with_walls_and_a_log_of_its_own(bound):
    Printing(bound, command=f"cat {bound.file}; echo in vain >&2; ls -A $HOME /tmp >&2")
    control = start(bound)
    control.output(control.create(), "/bin/sh", "-c", "echo 'echo planted-0000000000' > $HOME/.profile; cp $HOME/.profile /tmp")
    eventually(lambda: printed(bound.launcher))
    logs = [path.stem for path in bound.launcher.audit.glob("s-*.ndjson") if '"domain":"credentials"' in path.read_text()]
    used_by = [r for log in logs for r in bound.launcher.records(log) if r["event"] == "session_create" or r.get("label", "").startswith("credential")]
    assert any("credential token" in json.dumps(r) for r in used_by)
    asked = [r["argv"] for log in logs for r in bound.launcher.records(log) if r["event"] == "exec_request"]
    assert asked == [["/bin/sh", "-c", "exec 2>/dev/null\n" + bound.secret["command"]]]


def test_a_secret_that_the_server_refuses_is_asked_for_again(bound):
    Printing(bound, command=f"cat {bound.file}")
    wanted = ["another-secret-0000000000"]
    handle_of = bound.serve

    def serve(connection):
        bound.status = b"200 OK" if wanted[0] in bound.file.read_text() else b"401 No"
        handle_of(connection)

    bound.serve = serve
    control = start(bound)
    session = control.create()
    eventually(lambda: printed(bound.launcher))
    run(control, session, BEARER)
    assert used(bound)
    bound.file.write_text(wanted[0])
    bound.status = b"401 No"
    eventually(lambda: (run(control, session, BEARER), wanted[0] in bound.heads[-1])[1], 60, "it is used")
    assert len(printed(bound.launcher)) == 2


def test_a_command_that_failed_runs_again_when_its_secret_is_needed(bound):
    Printing(bound, command=f"cat {bound.file}")
    bound.file.write_text("short")
    control = start(bound)
    session = control.create()
    eventually(lambda: failures(bound.launcher))
    bound.file.write_text(TOKEN)
    assert "placeholder_unbound" in run(control, session, BEARER)
    eventually(lambda: run(control, session, BEARER).startswith("you sent"), 60, "it is printed")
    assert used(bound) and len(printed(bound.launcher)) == 1


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo hidden-words-of-it >&2; exit 3", "it failed"),
        ("echo short", "no secret"),
        ("true", "printed nothing"),
        ("head -c 5000 /dev/zero | tr '\\0' x", "more than 1,024 bytes"),
        ("kill -9 $$", "it failed"),
        ("printf 'two lines-of-it\\nand more'", "no secret"),
    ],
)
def test_what_prints_no_secret_binds_none_and_is_told(bound, command, why):
    Printing(bound, command=command)
    control = start(bound)
    session = control.create()
    assert why in eventually(lambda: failures(bound.launcher))[0]
    assert "placeholder_unbound" in run(control, session, BEARER) and bound.heads == []
    assert "of-it" not in json.dumps(records(bound.launcher, "egress_exit"))


def test_a_command_that_hangs_holds_nothing_up(bound):
    Printing(bound, command="sleep 1000")
    control = start(bound)
    session = control.create()
    assert "placeholder_unbound" in run(control, session, BEARER)
    there = lambda: [one for one in control.call("session_list")[0]["sessions"] if one["domain"] == "credentials" and one["label"]]  # noqa: E731
    (one,) = eventually(there, 30, "its session is listed")
    assert one["label"] == "credential token" and one["session"] != session
    control.call("session_destroy", session=one["session"])
    assert eventually(lambda: failures(bound.launcher), 30) and control.output(session, "echo", "on") == "on\n"


def test_a_reload_without_it_ends_its_use(bound):
    Printing(bound, command=f"cat {bound.file}")
    control = start(bound)
    session = control.create()
    eventually(lambda: printed(bound.launcher))
    run(control, session, BEARER)
    edit(bound.launcher.policies / "bash.json", secrets=[{**bound.secret, "command": "exit 1"}])
    bound.launcher.reload()
    eventually(lambda: failures(bound.launcher))
    held = placeholder(control, control.create())
    assert "placeholder_unbound" in run(control, session, BEARER.replace("$API_TOKEN", held))


# As an operator does it.


def secret(launcher, *words, stdin=""):
    done = subprocess.run([CLI, "--run", launcher.run, "--json", "secret", *words], input=stdin, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout or done.stderr)


def test_what_an_operator_hands_over_is_used_until_it_is_taken_back(bound):
    bound.secret.pop("file")
    edit(bound.launcher.policies / "bash.json", secrets=[{**bound.secret, "handed": True}])
    bound.launcher.start(wrapper=bound.internet.wrapper())
    control = bound.launcher.control()
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace there is no way out")
    assert secret(bound.launcher, "set", "token", stdin=TOKEN + "\n") == (0, {"name": "token", "domains": ["bash"]})
    session = control.create()
    assert run(control, session, BEARER).startswith("you sent GET /x") and used(bound)
    assert secret(bound.launcher, "set", "token", stdin="another-secret-0000000000")[0] == 0
    run(control, session, BEARER)
    assert "another-secret-0000000000" in bound.heads[-1]
    assert secret(bound.launcher, "revoke", "token")[0] == 0
    eventually(lambda: "placeholder_unbound" in run(control, session, BEARER), 30, "it is taken back")
    assert [next(k for k in ("handed_over", "taken_back") if k in r) for r in bound.launcher.records() if "handed_over" in r or "taken_back" in r] == [
        "handed_over", "handed_over", "taken_back"
    ]
    assert TOKEN not in json.dumps(bound.launcher.records())
    for words, stdin, code in ((("set", "token"), "short", 2), (("set", "other"), TOKEN, 3), (("set", "token", "-w", "none"), TOKEN, 3)):
        assert secret(bound.launcher, *words, stdin=stdin)[0] == code, words


# The credential of an upstream proxy.


@pytest.fixture
def proxied(fresh, internet, kept):
    """Its bash goes out through a proxy that wants a credential."""
    internet.names.zone.update({"api.test": [PUBLIC], "proxy.test": [PRIVATE]})
    internet.serve(PUBLIC, 80, handle)
    internet.serve(OTHER, 8080, handle)
    fresh.proxy = HttpProxy(internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080)}, "agent:first password")
    fresh.source = kept / "credential"
    fresh.source.write_text("agent:first password\n")
    return fresh


@pytest.mark.parametrize("by", ["policy", "variables"])
def test_an_upstream_s_credential_is_printed_and_again_when_it_is_refused(proxied, internet, by):
    named = {"server": "proxy.test:3128", "command": f"cat {proxied.source}"}
    edit(proxied.policies / "bash.json", **RULES, **({"upstream": named} if by == "policy" else {}))
    credentials(proxied, proxied.source)
    variables = {} if by == "policy" else {"PROXY_SERVER": named["server"], "PROXY_AUTH_CMD": named["command"]}
    proxied.start(wrapper=internet.wrapper(), **variables)
    control = proxied.control()
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace there is no way out")
    session = control.create()
    assert reach(control, session, "api.test") == "served"
    proxied.source.write_text("agent:second: password")
    proxied.proxy.credential = "agent:second: password"
    eventually(lambda: reach(control, session, "api.test") == "served", 30, "it is asked for again")
    assert {credential for *_, credential in proxied.proxy.asked} >= {"agent:first password", "agent:second: password"}


def asked_of_way(control, op, **members):
    line = control.call("workspace_connect", workspace="default", port=0)[1][0]
    with socket.socket(fileno=line) as one:
        one.settimeout(60)
        one.setblocking(True)
        one.send(json.dumps({"op": op, **members}).encode())
        return json.loads(one.recv(1 << 16))


def test_clients_say_a_command_where_the_policy_lets_them(proxied, internet):
    rules = [*RULES["egress"], {"host": "proxy.test", "ports": [3128], "private": True, "why": "what a test needs"}]
    edit(proxied.policies / "bash.json", **{**RULES, "egress": rules})
    credentials(proxied, proxied.source)
    proxied.start(wrapper=internet.wrapper())
    control = proxied.control()
    if control.hello["tier"] not in ("T2", "T3"):
        pytest.skip("without a network namespace there is no way out")
    control.create()
    wanted = {"server": "proxy.test:3128", "auth_cmd": f"cat {proxied.source}"}
    assert asked_of_way(control, "set_upstream", **wanted)["error"] == "permission_denied"
    edit(proxied.policies / "bash.json", egress_auth_cmd=True)
    proxied.reload()
    assert asked_of_way(control, "set_upstream", **{**wanted, "auth_cmd": "two\nlines"})["error"] == "invalid_argument"
    said = asked_of_way(control, "set_upstream", **wanted)
    assert said["result"]["upstream"] == {"addr": "proxy.test:3128", "username": None, "password": None}
    eventually(lambda: reach(control, control.create(), "api.test") == "served", 30, "its credential is printed")
    assert proxied.proxy.asked[-1][2] == "agent:first password"
    edit(proxied.policies / "bash.json", egress_auth_cmd=False)
    proxied.reload()
    eventually(lambda: "502" in reach(control, control.create(), "api.test"), 30, "it is not used any more")


# Who reaches the domain, and what leads it.


def test_a_command_that_goes_out_is_led_by_no_client(bound, internet):
    """In T0, where sessions are told apart on every machine."""
    internet.names.zone["issuer.test"] = [PUBLIC]

    def issue(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(TOKEN), TOKEN.encode()))

    internet.serve(PUBLIC, 80, issue)
    Printing(bound, command="curl -sS --max-time 20 http://issuer.test/token")
    edit(bound.launcher.policies / "base.json", require=REQUIRED)
    rules = [{"host": "issuer.test", "why": "what a test needs"}]
    shared = {"home": "workspace", "tmp": "workspace", "why": {"/home": "T0 has no mounts", "/tmp": "T0 has no mounts"}}
    credentials(bound.launcher, network="allowlist", egress=rules, weaken=RULES["weaken"], **shared)
    bound.file.parent.chmod(0o711)
    bound.launcher.run = bound.file.parent / "run"
    control = bound.start(*places.wrapper("T0", bound.launcher.home))
    session = control.create()
    control.output(session, "/bin/sh", "-c", "echo url = http://denied.test/ > $HOME/.curlrc")
    program = "mkdir -p $HOME/.local/bin; printf '#!/bin/sh\\necho planted-0000000000' > $HOME/.local/bin/curl; chmod 755 $HOME/.local/bin/curl"
    control.output(session, "/bin/sh", "-c", program)
    assert "planted" in control.output(session, "/bin/sh", "-c", "curl")
    asked_of_way(control, "add_mapping", source="http://issuer.test", target="127.0.0.1:9999")
    edit(bound.launcher.policies / "bash.json", secrets=[{**bound.secret, "command": bound.secret["command"] + "/again"}])
    bound.launcher.reload()
    eventually(lambda: len(printed(bound.launcher)) == 2, 60)
    held = placeholder(control, control.create())
    assert "you sent GET /x" in run(control, session, "rm $HOME/.curlrc $HOME/.local/bin/curl; hash -r; " + BEARER.replace("$API_TOKEN", held)) and used(bound)
    assert len(records(bound.launcher, "egress_connection", host="issuer.test", domain="credentials")) == 2


def test_no_client_leads_it_off_the_operators_proxy(bound, internet):
    internet.names.zone.update({"issuer.test": [PUBLIC], "proxy.test": [PRIVATE]})

    def issue(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(TOKEN), TOKEN.encode()))

    direct = internet.serve(PUBLIC, 80, issue)
    internet.serve(OTHER, 8080, issue)
    HttpProxy(internet, PRIVATE, 3128, {("issuer.test", 80): (OTHER, 8080)})
    Printing(bound, command="curl -sS --max-time 20 http://issuer.test/token")
    edit(bound.launcher.policies / "base.json", require=REQUIRED)
    shared = {"home": "workspace", "tmp": "workspace", "why": {"/home": "T0 has no mounts", "/tmp": "T0 has no mounts"}}
    rules = [{"host": "issuer.test", "why": "what a test needs"}]
    credentials(bound.launcher, network="allowlist", egress=rules, weaken=RULES["weaken"], **shared)
    bound.file.parent.chmod(0o711)
    bound.launcher.run = bound.file.parent / "run"
    wrapper = [*internet.wrapper(), *places.wrapper("T0", bound.launcher.home)]
    bound.launcher.start(wrapper=wrapper, PROXY_SERVER="proxy.test:3128", PROXY_INCLUDE="issuer.test")
    control = bound.launcher.control()
    control.create()
    eventually(lambda: printed(bound.launcher), 60)
    for number, (op, members) in enumerate((("add_exclude", {"pattern": "issuer.test"}), ("remove_upstream", {})), 2):
        assert "result" in asked_of_way(control, op, **members)
        edit(bound.launcher.policies / "bash.json", secrets=[{**bound.secret, "command": f"{bound.secret['command']}/{number}"}])
        bound.launcher.reload()
        eventually(lambda: len(printed(bound.launcher)) == number, 60)
    assert direct == []


def test_the_domain_keeps_its_home_and_tmp_to_itself(bound):
    Printing(bound, command=f"cat {bound.file}")
    credentials(bound.launcher, home="workspace")
    done = subprocess.run([CLI, "--policies", bound.launcher.policies, "policy", "check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 21 and 'needs "home": "private" and "tmp": "private"' in done.stdout + done.stderr


def test_without_the_domain_a_command_is_a_problem(bound):
    Printing(bound, command=f"cat {bound.file}")
    (bound.launcher.policies / "credentials.json").unlink()
    done = subprocess.run([CLI, "--policies", bound.launcher.policies, "policy", "check"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 21 and "credentials.json" in done.stdout + done.stderr and "is missing" in done.stdout + done.stderr
