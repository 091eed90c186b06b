"""Connections that are made for sessions: whose they are, what is on record, and what stays when a process of the way ends."""

import contextlib
import json
import os
import signal
import socket

import places
import pytest
from connected import CODE, connector, connectors, listeners, prepared, process
from harness import edit, eventually, inside
from outgoing import RULES, reach, records
from world import PUBLIC

def test_a_domain_has_a_list_of_its_own_also_where_no_cgroup_tells_sessions_apart(fresh, internet):
    edit(fresh.policies / "shell.json", **{**RULES, "egress": [{"host": "other.test", "ports": [80], "why": "what a test needs"}]})
    internet.names.zone["other.test"] = [PUBLIC]
    prepared(fresh, internet).start(wrapper=[*internet.wrapper(), *places.wrapper("T0", fresh.home)])
    control = fresh.control()
    bash, shell = control.create(), control.create("shell")
    assert reach(control, bash, "api.test") == "served" and "403" in reach(control, bash, "other.test")
    assert reach(control, shell, "other.test") == "served" and "403" in reach(control, shell, "api.test")
    eventually(lambda: records(fresh, "egress_connection", host="other.test", session=shell, domain="shell"), 60, "it is on record")


def test_a_domain_with_the_loopback_alone_has_no_socket_at_all(t0):
    control = t0.control()
    for name in (control.create("shell"), control.create(narrow={"network": "none"})):
        assert inside(control, name, "out = tried(socket.socket, socket.AF_INET, socket.SOCK_STREAM)") == "EPERM"


def test_reports_and_probes_say_how_it_goes_out(t0):
    control = t0.control()
    name = control.create()
    report = control.call("attest", session=name)[0]
    assert "tcp-only" in json.dumps(report)
    assert inside(control, name, "out = [os.environ.get(n) for n in ('RES_OPTIONS', 'https_proxy', 'HTTP_PROXY')]") == [
        "use-vc ndots:1", "http://127.0.0.1:312", "http://127.0.0.1:312"]  # fmt: skip


def test_what_its_filter_refuses_is_on_record(t0):
    control = t0.control()
    name = control.create()
    assert inside(control, name, "out = [call(250, 0, 0), tried(socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM)]") == ["EPERM", "EPERM"]
    denied = lambda: {r["syscall"] for r in t0.records(name) if r["event"] == "denial"}  # noqa: E731
    eventually(lambda: {"keyctl", "socket"} <= denied(), 60, "the refused calls are on record")


@pytest.mark.parametrize("which", ["door", "dialer"])
def test_a_session_goes_on_when_door_or_dialer_end(t0, which):
    control = t0.control()
    name = control.create()
    assert reach(control, name, "api.test") == "served"
    os.kill(process(t0, "caisson-egress", which), signal.SIGKILL)
    eventually(lambda: records(t0, "egress_exit", process=which), 60, "its end is on record")
    eventually(lambda: reach(control, name, "api.test") == "served", 60, "the next one serves")


def test_when_the_gate_ends_later_sessions_go_out(t0):
    control = t0.control()
    name = control.create()
    assert reach(control, name, "api.test") == "served"
    os.kill(process(t0, "caisson-gate"), signal.SIGKILL)
    eventually(lambda: records(t0, "egress_exit", process="gate"), 60, "its end is on record")
    assert inside(control, name, CODE + "out = tried(tcp().connect, ('93.184.216.34', 80))") == "ENETUNREACH"
    eventually(lambda: reach(control, control.create(), "api.test") == "served", 60, "the next one serves")


def test_nothing_of_a_session_stays_when_it_ends(t0):
    control = t0.control()
    name = control.create()
    assert reach(control, name, "api.test") == "served" and connector(t0)
    control.destroy(name)
    eventually(lambda: not connectors(t0), 60, "its connector is gone")


def test_a_session_ends_with_its_connector(t0):
    control = t0.control()
    name = control.create()
    for pid in connectors(t0):
        with contextlib.suppress(ProcessLookupError):  # an earlier session's, which was about to end
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: name not in [s["session"] for s in control.call("session_list")[0]["sessions"]], 60, "it has ended")
    assert reach(control, control.create(), "api.test") == "served"


def test_what_connects_to_the_door_unannounced_is_closed_with_an_alarm(t0, internet):
    ports = listeners(internet) - {t0.port}
    assert len(ports) == 1, ports
    client = internet.out.socket(socket.AF_INET, socket.SOCK_STREAM)
    with pytest.raises(ConnectionResetError):  # by either call
        client.connect(("127.0.0.1", ports.pop()))
        client.recv(1)
    eventually(lambda: records(t0, "egress_refused", refusal="unregistered", host="127.0.0.1", alarm=True), 60, "the alarm is on record")


def test_with_one_user_for_all_it_is_the_same(t1, internet):
    launcher, api = t1
    assert api.hello["tier"] == "T1"
    name = api.create()
    for argv in ((), ("--noproxy", "*")):
        assert api.output(name, "curl", "-sS", "--max-time", "60", *argv, "http://api.test/") == "served", argv
        assert "not_listed" in api.output(name, "curl", "-sS", "--max-time", "60", *argv, "http://unknown.test/"), argv
    code = CODE + "out = [tried(tcp().connect, to) for to in (('93.184.216.99', PORT), ('127.0.0.1', %d))] + [echoes(s) for s in [tcp()] if not s.connect(address())]"
    assert inside(api, name, code % launcher.port) == ["EACCES", "ECONNREFUSED", True]
    assert internet.elsewhere == []


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_with_one_user_for_all_a_session_reaches_no_connector(t1):
    """What has the same user, and so could be read, traced or ended by it."""
    launcher, api = t1
    name = api.create()
    code = "pids = [p for p in map(int, filter(str.isdigit, os.listdir('/proc'))) if tried(lambda: open(f'/proc/{p}/comm').read()) == 'caisson-connect\\n']\n"
    code += (
        "def copied(pidfd): return call(438, pidfd, 3, 0) if isinstance(pidfd, int) else pidfd  # the canary's may end meanwhile\n"
        "def ways(pid):\n"
        "    data = ctypes.create_string_buffer(8); iov = struct.pack('<QQ', ctypes.addressof(data), 8)\n"
        "    return [call(310, pid, iov, 1, struct.pack('<QQ', 4096, 8), 1, 0), call(101, 16, pid, 0, 0), tried(os.kill, pid, 9),\n"
        "            tried(os.listdir, f'/proc/{pid}/fd'), tried(open, f'/proc/{pid}/mem', 'rb'), copied(tried(os.pidfd_open, pid))]\n"
        "out = [ways(p) for p in pids]"
    )
    found = inside(api, name, code)
    assert found and all(way in ("EPERM", "EACCES", "ENOSYS", "ESRCH", "ENOENT") for ways in found for way in ways), found
