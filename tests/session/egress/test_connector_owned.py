"""The wall that makes it safe to let connect(2) go on, and a connector that is taken over: what it does by chosen calls."""

import collections
import contextlib
import errno
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "hostile"))
import faults  # noqa: E402
import places
import pytest
from connected import connector, listeners, placed, prepared, process
from harness import c_compiler, descendants, eventually
from run import PLACE
from outgoing import reach, records
from world import OTHER, PUBLIC

def raced(launcher, internet, races):
    """(what the program says, how many connections arrived where none may)."""
    forbidden = internet.out.socket(socket.AF_INET, socket.SOCK_STREAM)
    forbidden.bind(("127.0.0.1", 0))
    forbidden.listen(4096)
    forbidden.settimeout(0)
    internet.out.socket(socket.AF_INET, socket.SOCK_STREAM).connect(forbidden.getsockname())  # the control: it is there
    arrived, control = 0, launcher.control()
    name = control.create()

    def accept():
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                forbidden.accept()[0].close()
                count += 1
        return count

    program = placed("race.c", launcher.home)
    out = collections.Counter()
    for _ in range(0, races, A_RUN):  # each gives a sign of life
        out.update(json.loads(control.output(name, program, str(A_RUN), str(forbidden.getsockname()[1]))))
        arrived += accept()
    return out, arrived - 1


RACES, A_RUN = 1_000_000, 50_000


def test_a_thread_that_turns_address_and_descriptor_reaches_nothing(t0, internet):
    out, arrived = raced(t0, internet, RACES)
    print(out)
    assert (out["tries"], out["reached"], arrived) == (RACES, 0, 0)
    assert out["walls"] > 0, "no call that was let go on was turned meanwhile: nothing was tried"


def test_without_landlocks_right_the_same_program_gets_through(here, internet):
    """The control of the test above: in a build whose steps can be left out."""
    with faults.folder(PLACE) as base:
        launcher = prepared(faults.FaultyLauncher(base), internet)
        launcher.fault.set("blind,skip:landlock")
        with launcher:
            launcher.start(wrapper=[*internet.wrapper(), *places.wrapper("T0", launcher.home)])
            out, arrived = raced(launcher, internet, A_RUN)
            print(out)
            assert out["reached"] > 0 and arrived > 0


owned_only = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the injector is written for x86-64")
SOCKET, CONNECT, BIND, READ_MEMORY = 41, 42, 49, 310


@pytest.fixture(scope="module")
def injector(tmp_path_factory):
    program = tmp_path_factory.mktemp("injector") / "injector"
    source = pathlib.Path(__file__).parents[2] / "hostile" / "injector.c"
    subprocess.run([c_compiler(), "-O1", "-o", program, source], check=True, timeout=120)

    def run(pid, *calls):
        """What each says in this process, which goes on; None: it was ended."""
        eventually(lambda: pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("232", "281"), what="it waits")
        done = subprocess.run([program, str(pid), *calls], capture_output=True, text=True, check=False, timeout=90)
        if done.returncode != 0:
            return None
        return [errno.errorcode[-int(line)] if int(line) < 0 else int(line) for line in done.stdout.split()]

    return run


def of(number, *arguments):
    return "call:" + ",".join(map(str, (number, *arguments)))


def unused_memory(pid):
    """The lowest page of its stack."""
    with open(f"/proc/{pid}/maps") as maps:
        return next(int(line.split("-")[0], 16) for line in maps if "[stack]" in line)


def put(pid, address, data):
    with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        memory.seek(address)
        memory.write(data)


def place(host, port):
    return struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(8)


@owned_only
def test_an_owned_connector_reaches_the_doors_listener_and_no_other(t0, internet, injector):
    control = t0.control()
    name = control.create()
    pid = connector(t0)
    (door,) = listeners(internet) - {t0.port}
    at = unused_memory(pid)
    forbidden = internet.out.socket(socket.AF_INET, socket.SOCK_STREAM)
    forbidden.bind(("127.0.0.1", 0))
    forbidden.listen(8)

    def to(host, port, call=CONNECT):
        (made,) = injector(pid, of(SOCKET, socket.AF_INET, socket.SOCK_STREAM, 0))
        put(pid, at, place(host, port))
        return injector(pid, of(call, made, at, 16))[0]

    for host, port in (forbidden.getsockname(), ("127.0.0.1", t0.port), (PUBLIC, 80), (OTHER, 80), ("169.254.169.254", 80), ("11.0.0.254", 53)):
        assert to(host, port) == "EACCES", (host, port)
    assert to("0.0.0.0", 8080, BIND) == "EACCES" and internet.elsewhere == []
    assert to("127.0.0.1", door) == 0
    eventually(lambda: records(t0, "egress_refused", refusal="unregistered", host="127.0.0.1", alarm=True), 60, "the alarm is on record")
    assert reach(control, name, "api.test") == "served"


@owned_only
def test_an_owned_connector_reads_the_memory_of_its_session_alone(t0, injector):
    control = t0.control()
    mine = control.create()
    pid = connector(t0)
    other = control.create()
    others = connector(t0, but=[pid])
    for name in (mine, other):
        control.start(name, "sleep", "600")
    sleepers = lambda of: [p for p in descendants(of) if pathlib.Path(f"/proc/{p}/comm").read_text() == "sleep\n"]  # noqa: E731
    eventually(lambda: sleepers(pid) and sleepers(others), 60, "both sleep")
    at = unused_memory(pid)

    def read(target):
        put(pid, at, struct.pack("<QQ", at + 64, 8) + struct.pack("<QQ", unused_memory(target), 8))
        return injector(pid, of(READ_MEMORY, inside_number(target), at, 1, at + 16, 1, 0))[0]

    def inside_number(target):
        status = pathlib.Path(f"/proc/{target}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("NSpid")).split()[-1])

    assert read(sleepers(pid)[0]) == 8
    for target in (sleepers(others)[0], others, process(t0, "caisson-launcher"), process(t0, "caisson-gate"), process(t0, "caisson-egress", "door")):
        assert read(target) == "EPERM"


KILLED = {
    "open": "open:/etc/passwd", "fork": "fork", "exec": "exec:/usr/bin/true", "another socket": "socket", "datagrams": of(SOCKET, 2, 2, 0),
    "MPTCP": of(SOCKET, 2, 1, 262), "listen": of(50, 3, 1), "kill": of(62, 1, 9), "ptrace": of(101, 16, 1), "write of memory": of(311, 1),
    "fast open": of(44, 3, 0, 0, 0x20000000), "code": of(10, 4096, 4096, 7), "flags": of(72, 3, 4, 0),
}  # fmt: skip


@owned_only
@pytest.mark.parametrize("what", KILLED)
def test_an_owned_connector_that_does_anything_else_is_ended(t0, injector, what):
    control = t0.control()
    name = control.create()
    pid = connector(t0)
    assert injector(pid, KILLED[what]) is None
    eventually(lambda: name not in [s["session"] for s in control.call("session_list")[0]["sessions"]], 60, "and its session with it")
