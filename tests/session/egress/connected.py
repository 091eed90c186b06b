"""Launchers of the tiers without network namespaces (T0, T1) whose policy goes out, and what stands around their sessions."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

import places
import pytest
from harness import AGENT, c_compiler, descendants, edit, eventually, inside, processes
from over_http import OverHttp
from run import PLACE
from sight import CarelessLauncher
from outgoing import RULES, handle
from world import OTHER, PUBLIC, PUBLIC6, echo

REQUIRED = ["capabilities", "no_new_privs", "landlock", "seccomp"]
PORT = 9000
NAMED = [
    {"host": "api.test", "ports": [80, PORT], "why": "what a test needs"},
    {"host": PUBLIC6, "ports": [PORT], "why": "what a test needs"},
    {"host": "denied.test", "deny": True, "why": "what a test needs"},
]


def prepared(launcher, internet):
    """Its bash goes out; what is there to be reached."""
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER]})
    internet.serve(PUBLIC, 80, handle)
    internet.serve(PUBLIC, PORT, echo)
    internet.serve(PUBLIC6, PORT, echo)
    internet.elsewhere = internet.serve(OTHER, 80, echo)
    edit(launcher.policies / "base.json", require=REQUIRED)
    edit(launcher.policies / "bash.json", **{**RULES, "egress": NAMED})
    return launcher


@pytest.fixture
def t0(fresh, internet):
    prepared(fresh, internet).start(wrapper=[*internet.wrapper(), *places.wrapper("T0", fresh.home)], CAISSON_READY_SESSIONS="0")
    assert fresh.control().hello["tier"] == "T0"
    return fresh


@pytest.fixture
def t1(here, internet):
    """One user for all, asked by the API. Its HTTP port is where the launcher stands."""
    if not AGENT.exists():
        pytest.skip("the agent is not built: scripts/test session builds it")
    with tempfile.TemporaryDirectory(prefix="caisson-one-user-", dir=PLACE) as name, internet.out.inside():
        base = pathlib.Path(name)
        base.chmod(0o755)
        with CarelessLauncher(base) as one:
            prepared(one, internet)
            for path in (base, *base.rglob("*")):
                os.chown(path, places.UID, places.UID)
            one.start(wrapper=[*internet.wrapper(), *places.wrapper("T1", one.home)])
            yield one, OverHttp(one)


@pytest.fixture
def there(t0):
    control = t0.control()
    return lambda code: inside(control, session_of(control), CODE + code)


def session_of(control):
    """One, always the same, of this connection."""
    control.own = getattr(control, "own", None) or control.create()
    return control.own


CODE = f"""
import select, threading
PORT, PUBLIC, PUBLIC6 = {PORT}, {PUBLIC!r}, {PUBLIC6!r}
kept = []
def tcp(family=socket.AF_INET):
    kept.append(socket.socket(family, socket.SOCK_STREAM)); return kept[-1]
def address():
    return socket.getaddrinfo("api.test", PORT, socket.AF_INET, socket.SOCK_STREAM)[0][4]
def echoes(connection):
    connection.settimeout(60); connection.sendall(b"on"); return connection.recv(2) == b"on"
"""


def placed(source, to):
    """A C program in a session's home."""
    program = to / source.removesuffix(".c")
    subprocess.run([c_compiler(), "-O1", "-pthread", "-o", program, pathlib.Path(__file__).with_name(source)], check=True, timeout=120)
    program.chmod(0o755)
    return f"/home/gem/{program.name}"


def process(launcher, *words):
    """The one below the launcher with these words in its command line. The launcher numbers them otherwise: it has a PID namespace."""
    lines = {}
    for p in descendants(launcher.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            lines[p] = pathlib.Path(f"/proc/{p}/cmdline").read_bytes().decode().split("\0")
    found = [p for p, line in lines.items() if all(any(part.endswith(word) for part in line) for word in words)]
    assert len(found) == 1, (words, found)
    return found[0]


def connectors(launcher):
    everything = processes()
    return {p for p in descendants(launcher.pid, everything) if everything[p][1] == "caisson-connect"}


def serving(launcher):
    """Those whose session runs: they are the parents of its init. The connector of a session that has ended may be there for a while."""
    everything = processes()
    return connectors(launcher) & {parent for parent, name, _ in everything.values() if name == "caisson-init"}


def connector(launcher, but=()):
    """The only one that serves, but for these. A session may begin before its connector has executed its program."""
    one = eventually(lambda: len(found := serving(launcher) - set(but)) == 1 and found, 60, "one session has a connector")
    return one.pop()


def listeners(internet):
    """Ports of the loopback where something listens, in the place of the container."""
    text = subprocess.run(["ss", "-Hltn"], preexec_fn=internet.out.enter, capture_output=True, text=True, check=True, timeout=60).stdout
    return {int(line.split()[3].rpartition(":")[2]) for line in text.splitlines() if line.split()[3].startswith("127.0.0.1:")}
