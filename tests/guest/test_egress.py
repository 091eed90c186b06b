"""Where sessions have cgroups, they are told apart at the door: each reaches what its own domain's list permits, in one namespace with others, and
its records stand in its own log."""

import json
import pathlib
import subprocess
import sys

import pytest
from harness import CLI, edit, eventually

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "session" / "egress"))
from world import OTHER, PUBLIC, World  # noqa: E402

ASK = """
import json, socket, sys
def get(host):
    try:
        with socket.create_connection((host, 80), 60) as s:
            s.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % host.encode())
            text = b""
            while data := s.recv(4096): text += data
            return text.decode().partition("\\r\\n\\r\\n")[2]
    except OSError as e: return repr(e)
print(json.dumps([get(host) for host in sys.argv[1:]]))
"""


def serve(text):
    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(text), text))

    return handle


@pytest.fixture
def out(fresh, tmp_path):
    """A launcher whose bash may reach one host and whose shell another; code has no way out."""
    internet = World(tmp_path)
    internet.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER]})
    internet.serve(PUBLIC, 80, serve(b"api"))
    internet.serve(OTHER, 80, serve(b"other"))
    for domain, host in (("bash", "api.test"), ("shell", "other.test")):
        edit(
            fresh.policies / f"{domain}.json",
            network="allowlist",
            egress=[{"host": host, "why": "what a test needs"}],
            egress_ask="operator",
            weaken=[{"field": "/network", "why": "what a test needs"}],
        )
    fresh.start(wrapper=internet.wrapper())
    yield fresh
    internet.close()


def asked(control, session, *hosts):
    return json.loads(control.output(session, "/usr/bin/python3", "-I", "-c", ASK, *hosts))


def egress(launcher, log, host):
    return [r for r in launcher.records(log) if r["event"].startswith("egress_") and r.get("host") == host]


def test_each_session_reaches_what_its_own_domain_permits(out):
    control = out.control()
    bash, shell, code = (control.create(domain) for domain in ("bash", "shell", "code"))
    for session, reached, refused in ((bash, ("api.test", "api"), "other.test"), (shell, ("other.test", "other"), "api.test")):
        ours, theirs = asked(control, session, reached[0], refused)
        assert ours == reached[1], ours
        assert theirs not in ("api", "other"), theirs
    assert not {"api", "other"} & set(asked(control, code, "api.test", "other.test"))


def test_records_name_the_session_and_stand_in_its_log(out):
    control = out.control()
    sessions = [control.create() for _ in range(2)]
    for session in sessions:
        assert asked(control, session, "api.test", "other.test")[0] == "api"
    for session in sessions:
        found = eventually(lambda session=session: egress(out, session, "api.test"), what="the connection is in the session's log")
        assert found[0]["event"] == "egress_connection" and found[0]["domain"] == "bash" and found[0]["up"] > 0 and found[0]["down"] > 0
        assert found[0]["why"] == "what a test needs"
        eventually(lambda session=session: [r for r in egress(out, session, "other.test") if r["event"] == "egress_refused"], what="the refusal, too")
    named = {r["session"] for r in egress(out, "launcher", "api.test")}
    assert named == set(sessions)


def test_a_session_that_ends_takes_nothing_of_another_with_it(out):
    control = out.control()
    first, second = control.create(), control.create()
    assert asked(control, first, "api.test") == asked(control, second, "api.test") == ["api"]
    control.destroy(first)
    assert asked(control, second, "api.test") == ["api"]
    third = control.create()
    assert asked(control, third, "api.test") == ["api"]


def caisson_ask(launcher, *words):
    done = subprocess.run([CLI, "--run", launcher.run, "--json", "ask", *words], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def test_what_a_session_was_refused_is_asked_for_it_alone(out):
    control = out.control()
    session, other = control.create(), control.create()
    for one in (session, other):
        assert asked(control, one, "other.test") != ["other"]
    questions = eventually(lambda: (found := caisson_ask(out, "ls")["asked"])[1:] and found, what="both are asked for")
    (question,) = (one for one in questions if one["session"] == session)
    assert question["host"] == "other.test" and any(name.startswith("python3") for name in question["programs"])
    assert caisson_ask(out, "allow", "--for", "session", str(question["id"]))["session"] == session
    assert asked(control, session, "other.test") == ["other"]
    assert asked(control, other, "other.test") != ["other"]
