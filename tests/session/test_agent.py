"""The agent's side: what a hostile agent gets, and how the launcher looks after the real one."""

import base64
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess

import pytest
from harness import AGENT, API_KEY, ROOT, c_compiler, descendants, ended, eventually, open_files, processes


class Double:
    """A hostile agent, played by the test through agent_double."""

    def __init__(self, launcher):
        self.stream = eventually(lambda: self.connect(launcher.port), what="the double listens")
        self.stream.settimeout(60)
        self.events, self.next_id = [], 0

    @staticmethod
    def connect(port):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            return None

    def say(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.stream.sendall(struct.pack("<I", len(data)) + data)

    def hear(self):
        head = self.stream.recv(4, socket.MSG_WAITALL)
        length = struct.unpack("<I", head)[0] if len(head) == 4 else 0
        if length == 0:
            raise EOFError("the launcher ended the agent")
        return json.loads(self.stream.recv(length, socket.MSG_WAITALL))

    def ask(self, op, **arguments):
        self.next_id += 1
        self.say({"id": self.next_id, "op": op, **arguments})
        while (message := self.hear()).get("id") != self.next_id:
            self.events.append(message)
        return message


@pytest.fixture(scope="session")
def double_program(here, tmp_path_factory):
    program = tmp_path_factory.mktemp("double") / "agent-double"
    subprocess.run([c_compiler(), "-O1", "-o", program, pathlib.Path(__file__).with_name("agent_double.c")], check=True, timeout=60)
    return program


@pytest.fixture
def hostile(fresh, double_program):
    fresh.start("--agent", double_program)
    return Double(fresh)


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None  # it has ended in between


def agent_pid(launcher):
    # By its uid and its program: between the change of uid and the exec the child still has the launcher's descriptors.
    mine = (p for p in descendants(launcher.pid) if processes().get(p, ("", "", 0))[2] == 990)
    return next((p for p in mine if program(p) not in (None, program(launcher.pid))), None)


def test_an_agent_gets_no_session_of_another_client(fresh, hostile):
    session = fresh.control().create()
    hostile.ask("hello", protocol=1)
    for op, more in (
        ("session_stat", {}),
        ("session_report", {}),
        ("session_destroy", {}),
        ("session_exec", {"argv": ["true"]}),
        ("exec_signal", {"exec": "e-1", "signal": "SIGKILL"}),
    ):
        answer = hostile.ask(op, session=session, **more)
        assert (answer["ok"], answer["error"]["code"]) == (False, "not_found")
    assert hostile.ask("session_list")["sessions"] == []


def test_an_agent_gets_its_own_sessions(hostile):
    hostile.ask("hello", protocol=1)
    session = hostile.ask("session_create", domain="bash")["session"]
    assert [s["session"] for s in hostile.ask("session_list")["sessions"]] == [session]


def test_an_agent_gets_no_session_for_operators(fresh, double_program):
    """Whoever has taken it over runs nothing beside what prints credentials."""
    (fresh.policies / "credentials.json").write_text('{"extends": "base", "home": "private", "tmp": "private"}')
    fresh.start("--agent", double_program)
    hostile = Double(fresh)
    hostile.ask("hello", protocol=1)
    answer = hostile.ask("session_create", domain="credentials")
    assert (answer["ok"], answer["error"]["code"]) == (False, "permission_denied")
    assert fresh.control().create("credentials")


def test_another_clients_session_and_none_are_answered_alike(fresh, hostile):
    hostile.ask("hello", protocol=1)
    session = fresh.control().create()
    mine, none = (hostile.ask("session_stat", session=s)["error"] for s in (session, "s-0000000000000000"))
    assert mine["what"].replace(session, "X") == none["what"].replace("s-0000000000000000", "X")


@pytest.mark.parametrize(
    "message",
    [
        b"{}",
        b"not JSON",
        b'{"id":1,"op":"session_list"}',
        b'{"id":1,"op":"unknown"}',
        b'{"id":1,"op":"hello","protocol":1}' * 2,
        b"x" * 70000,
    ],
    ids=lambda m: m[:12].decode(),
)
def test_an_agent_that_breaks_the_protocol_is_killed_audited_and_started_again(fresh, hostile, message):
    first = eventually(lambda: agent_pid(fresh))
    hostile.say(message)
    eventually(lambda: agent_pid(fresh) not in (None, first), what="another agent runs")
    # It is on record a moment after it runs.
    events = eventually(lambda: (found := [r["event"] for r in fresh.records()]).count("agent_start") > 1 and found, what="its start is on record")
    assert "agent_violation" in events and events.count("agent_start") == 2


def test_the_sessions_of_an_agent_end_with_it(fresh, hostile):
    hostile.ask("hello", protocol=1)
    session = hostile.ask("session_create", domain="bash")["session"]
    hostile.say(b"broken")
    eventually(lambda: (fresh.audit / f"{session}.ndjson").exists() and fresh.records(session)[-1]["event"] == "session_end")
    control = fresh.control()
    eventually(lambda: control.call("session_list")[0]["sessions"] == [], what="it is off the list")


def test_an_agents_refused_request_is_on_record(fresh, hostile):
    hostile.ask("hello", protocol=1)
    hostile.ask("session_create", domain="bash", narrow={"grants": [{"path": "/etc/shadow"}]})
    refused = [r for r in fresh.records() if r["event"] == "request_refused"]
    assert len(refused) == 1 and refused[0]["op"] == "session_create" and "/etc/shadow" in refused[0]["what"]


@pytest.fixture
def real(fresh):
    if not AGENT.exists():
        pytest.skip(f"{AGENT} is not built")
    fresh.start()
    eventually(lambda: answers(fresh.port), what="the agent serves")
    return fresh


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return s.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def test_a_killed_agent_is_back_within_a_second_and_on_record(real):
    for kills in range(1, 5):  # the next pause is twice as long; a busy machine may add its own to one of them
        first = eventually(lambda: agent_pid(real))
        os.kill(first, signal.SIGKILL)
        eventually(lambda pid=first: agent_pid(real) not in (None, pid) and answers(real.port), what="the agent serves again")
        records = [r for r in real.records() if r["event"].startswith("agent_")]
        assert [r["event"] for r in records] == ["agent_start", *["agent_exit", "agent_start"] * kills]
        if (took := records[-1]["mono_us"] - records[-2]["mono_us"]) < 1_000_000:
            break
    assert 0 < took < 1_000_000


def test_a_killed_agent_leaves_the_sessions_of_others_alone(real):
    control = real.control()
    session = control.create()
    os.kill(eventually(lambda: agent_pid(real)), signal.SIGKILL)
    eventually(lambda: [r for r in real.records() if r["event"] == "agent_exit"])
    assert control.output(session, "echo", "on") == "on\n"


@pytest.mark.parametrize(
    "field, value", [("CapEff", 0), ("CapPrm", 0), ("CapInh", 0), ("CapBnd", 0), ("CapAmb", 0), ("NoNewPrivs", 1), ("Seccomp", 2)]
)
def test_the_agent_is_confined(real, field, value):
    status = pathlib.Path(f"/proc/{agent_pid(real)}/status")
    fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
    assert int(fields[field], 16) == value


def test_the_agent_has_no_descriptor_of_an_audit_log(real):
    real.control().create()
    agent = eventually(lambda: agent_pid(real))
    targets = open_files(agent)
    assert len(targets) > 3 and not [t for t in targets if t.startswith(str(real.audit)) or t == "/etc/passwd"]


def test_the_key_is_in_no_log(real):
    real.control().create()
    logs = [real.log, *real.audit.iterdir()]
    assert not [str(p) for p in logs if API_KEY in p.read_text()]


@pytest.mark.parametrize("stopped", [False, True])
def test_nothing_survives_a_killed_launcher(fresh, stopped):
    fresh.start()
    control = fresh.control()
    session = control.create()
    control.start(session, "sh", "-c", "trap '' TERM HUP; setsid sh -c 'setsid sleep 100' & sleep 100")
    eventually(lambda: control.call("session_stat", session=session)[0]["processes"] >= 4)
    below = descendants(fresh.pid)
    if stopped:  # a stopped process must not keep the others
        sleeper = eventually(lambda: next((p for p in below if processes().get(p, (0, ""))[1] == "sleep"), None))
        os.kill(sleeper, signal.SIGSTOP)
    fresh.process.kill()
    fresh.process.wait()
    assert len(below) > 4
    ended(below)


PUBLIC_KEY = b"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"  # RFC 8037, A.2


def test_every_setting_that_the_agents_readme_lists_reaches_it(fresh, double_program):
    table = re.findall(r"^\| (`[A-Z].*?) \|", (ROOT / "agent/README.md").read_text(), re.MULTILINE)
    names = {name for row in table for name in re.findall(r"`([A-Z_]+)`", row)}
    assert {"CAISSON_SESSION_IDLE_SECONDS", "CAISSON_OUTPUT_TOTAL_BYTES"} <= names
    own = {"CAISSON_PORT", "CAISSON_BIND", "SANDBOX_API_KEY"}  # the harness sets them
    others = {"CAISSON_AUTH": "key", "WORKSPACE": "/home/gem/w", "USER": "u", "TZ": "UTC", "CAISSON_ALLOW_ORIGIN": "http://a.example",
              "CAISSON_ALLOW_HOST": "a.example", "CAISSON_TRUSTED_PEERS": "192.0.2.1", "CAISSON_TRUSTED_PROXIES": "192.0.2.2",
              "CAISSON_ACCESS_LOG": "off", "CAISSON_PREVIEW_HOSTS": "a.example", "JWT_PUBLIC_KEY": base64.b64encode(PUBLIC_KEY).decode(),
              "CAISSON_JWKS_FILE": "/etc/caisson/auth/none", "CAISSON_JWKS_URL": "http://127.0.0.1:9/",
              "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9",
              "CAISSON_API_KEYS_FILE": "/etc/caisson/auth/none"}
    # A stand-in, which stays: the agent ends at once, as "8" is no certificate.
    fresh.start("--agent", double_program, **{n: others.get(n, "2097152" if n.endswith("_BYTES") else "8") for n in names - own})
    agent = eventually(lambda: (pid := agent_pid(fresh)) and program(pid) == str(double_program) and pid, what="it runs")
    given = pathlib.Path(f"/proc/{agent}/environ").read_text().split("\0")
    assert names <= {pair.split("=", 1)[0] for pair in given}
