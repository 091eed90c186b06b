"""The way out where a module of the kernel's packet filter cannot be loaded: what the probe says of each, and that without it sessions reach what
their own lists permit at the ports that rules name, and nothing more."""

import contextlib
import json
import pathlib
import subprocess
import sys
import types

import harness
import pytest
from harness import CLI, edit, eventually

TESTS = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "session" / "egress"), str(TESTS / "escape")]
import attacks  # noqa: E402
from world import OTHER, PUBLIC, World  # noqa: E402

# In the order in which they need each other, and what the kernel says of the rules without.
MODULES = {"nfnetlink": "EPROTONOSUPPORT", "nf_tables": "EOPNOTSUPP", "nft_tproxy": "ENOENT"}
MODPROBE = pathlib.Path("/proc/sys/kernel/modprobe")
PORT = 9000


def users():
    """module: those that need it."""
    lines = [line.split() for line in pathlib.Path("/proc/modules").read_text().splitlines()]
    return {line[0]: [name for name in line[3].split(",") if name.strip("-")] for line in lines}


def unload(module):
    """The kernel may still be clearing away a namespace with rules in it."""
    for user in users().get(module, []):
        unload(user)
    gone = lambda: module not in users() or subprocess.run(["rmmod", module], capture_output=True, check=False).returncode == 0  # noqa: E731
    eventually(gone, what=f"{module} is unloaded")


@contextlib.contextmanager
def lacking(module):
    before = MODPROBE.read_text()
    unload(module)
    # All modules but this one are there. The door needs tcp_diag to tell sessions apart.
    for needed in ["tcp_diag", *list(MODULES)[: list(MODULES).index(module)]]:
        subprocess.run(["modprobe", needed], check=True, timeout=60)
    MODPROBE.write_text("/bin/false")
    try:
        yield
    finally:
        MODPROBE.write_text(before)


@pytest.mark.parametrize("module", MODULES)
def test_the_probe_says_which_step_failed_and_that_ports_work(guest, module):
    with lacking(module):
        done = subprocess.run([CLI, "probe", "--json"], capture_output=True, text=True, timeout=120, check=True)
    works = json.loads(done.stdout)["works"]
    assert works["egress_tproxy"] == {"works": False, "errno": MODULES[module], "step": "rules"}
    assert works["egress_ports"] == {"works": True}


@pytest.fixture(scope="module")
def out(guest, tmp_path_factory):
    """A stand of attacks.py: its bash reaches one host at two ports, its shell another."""
    world = World(tmp_path_factory.mktemp("world"))
    attacks.listens(world)
    world.serve(PUBLIC, PORT, attacks.pages)
    with lacking("nf_tables"), harness.Launcher(tmp_path_factory.mktemp("launcher")) as one:
        edit(one.policies / "bash.json", **{**attacks.POLICY, "egress": [attacks.NAMED[0] | {"ports": [80, PORT]}, attacks.NAMED[1]]})
        edit(one.policies / "shell.json", **{**attacks.POLICY, "egress": [attacks.NAMED[0] | {"host": "other.test"}]})
        one.start(wrapper=world.wrapper())
        control = one.control()
        sessions = {domain: control.create(domain) for domain in ("bash", "shell")}

        def inside(*codes, domain="bash"):
            return json.loads(control.output(sessions[domain], "/usr/bin/python3", "-I", "-c", attacks.told(*codes, agent=one.port)))

        yield types.SimpleNamespace(inside=inside, seen=attacks.Seen(world), records=one.records, kind=attacks.PORTS, control=control, sessions=sessions)
    world.close()


def test_the_report_names_the_ports_and_they_are_what_works(out):
    report = out.control.call("session_report", session=out.sessions["bash"])[0]["report"]
    said = {one["id"]: one["what"] for one in report["residual"]}
    ports = f"22, 53, 80, 443, {PORT}"
    assert said["named-ports"].startswith(f"without nf_tables the door has these ports alone, at every address, the loopback's too: {ports}; "), said
    assert "ways-alike" not in said
    met = f"[p for p in (*range(1, 500), {PORT}, {PORT + 1}) if socket.socket().connect_ex((PUBLIC, p)) == 0]"
    assert out.inside(met) == [f"[{ports}]"]
    assert [r["without_nf_tables"] for r in out.records() if r["event"] == "egress_start" and r.get("workspace")] == [MODULES["nf_tables"]]


@pytest.mark.parametrize("table", attacks.TABLES)
def test_ways_around_the_list_fail_as_they_should_and_are_on_record(out, table):
    attacks.try_all(out, table)


def test_each_session_reaches_what_its_own_list_permits(out):
    """Here they are told apart, by their cgroups."""
    asked = [f"proxied(b'{host}:80')[9:12]" for host in ("api.test", "other.test")]
    assert out.inside(*asked, f"tcp(socket.gethostbyname('api.test'), {PORT}, say=b'GET / HTTP/1.1' + bytes([13, 10, 13, 10]))[-6:]") == ["200", "403", "served"]
    assert out.inside(*asked, domain="shell") == ["403", "200"]
    assert (attacks.TCP, OTHER) in out.seen.packets()
