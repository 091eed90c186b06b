"""workspace_connect: connections to servers of sessions, which the launcher has made in their workspace's network, and only there."""

import os
import socket

import places
import pytest
from harness import Launcher, Refused

SERVER = """
import socket, sys
family, address = (socket.AF_INET6, '::1') if sys.argv[1] == '6' else (socket.AF_INET, '127.0.0.1')
server = socket.create_server((address, 0), family=family, backlog=int(sys.argv[2]))
print(server.getsockname()[1], flush=True)
while sys.argv[2] != '0':
    peer, _ = server.accept()
    peer.sendall(b'served ' + peer.recv(100))
    peer.close()
sys.stdin.read()
"""


def serve(control, session, family="4", backlog="16"):
    """The port of a server in that session; with backlog 0 it accepts nothing."""
    _, fds = control.start(session, "/usr/bin/python3", "-I", "-c", SERVER, family, backlog)
    return int(os.read(fds[1], 100))


def connect(control, workspace, port):
    answer, fds = control.call("workspace_connect", workspace=workspace, port=port)
    return socket.socket(fileno=fds[0])


def asked(connection):
    connection.setblocking(True)
    connection.settimeout(60)
    connection.sendall(b"one")
    return connection.recv(100)


@pytest.mark.parametrize("family", ["4", "6"])
def test_a_server_in_a_session_answers(control, session, family):
    assert asked(connect(control, "default", serve(control, session, family))) == b"served one"


def test_the_connection_is_one_in_the_workspace(control, session):
    connection = connect(control, "default", serve(control, session))
    assert connection.getpeername()[0] == "127.0.0.1" and not os.get_blocking(connection.fileno())
    own, port = connection.getsockname()
    seen = control.output(session, "cat", "/proc/net/tcp")
    assert own == "127.0.0.1" and f"0100007F:{port:04X} " in seen
    assert f"0100007F:{port:04X} " not in open("/proc/net/tcp").read()


def test_what_listens_outside_or_in_another_workspace_is_not_reached(control, session):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        with pytest.raises(Refused) as refused:
            connect(control, "default", outside.getsockname()[1])
    assert refused.value.error["errno"] == "ECONNREFUSED"
    port = serve(control, session)
    control.call("workspace_create", name="other", disk_bytes=1 << 20)
    try:
        with pytest.raises(Refused, match="ECONNREFUSED"):
            connect(control, "other", port)
    finally:
        control.call("workspace_destroy", workspace="other")


def test_port_0_is_the_line_to_the_way_out_which_is_not_there(control):
    with pytest.raises(Refused) as refused:
        control.call("workspace_connect", workspace="default", port=0)
    assert (refused.value.error["code"], "way out" in refused.value.error["what"]) == ("unavailable", True)


@pytest.mark.parametrize("port", [65536, -1, "80", None])
def test_a_port_that_is_none_is_refused(control, port):
    with pytest.raises(Refused) as refused:
        control.call("workspace_connect", workspace="default", port=port)
    assert refused.value.error["code"] == "invalid_argument"


def test_a_server_that_accepts_nothing_holds_up_nobody(launcher, control, session):
    port = serve(control, session, backlog="0")
    other = launcher.control()
    numbers = [other.send("workspace_connect", workspace="default", port=port) for _ in range(8)]
    assert control.output(session, "echo", "on") == "on\n"
    answers = other.until(*numbers)
    other.close()
    # The kernel completes one or two beyond the backlog.
    assert {answers[n]["error"]["errno"] for n in numbers if not answers[n]["ok"]} == {"ETIMEDOUT"}


def test_more_than_can_be_made_at_once_are_refused_and_then_served_again(control, session):
    port = serve(control, session, backlog="0")
    numbers = [control.send("workspace_connect", workspace="default", port=port) for _ in range(400)]
    answers = control.until(*numbers)
    codes = {answers[n]["error"]["code"] for n in numbers if not answers[n]["ok"]}
    assert "limit" in codes or "unavailable" in codes or "io" in codes, codes
    assert asked(connect(control, "default", serve(control, session))) == b"served one"


def test_without_a_network_of_its_own_there_is_nothing_to_connect_to(here, tmp_path):
    launcher = Launcher(tmp_path)
    launcher.start("--agent", "/usr/bin/true", "--home", "/home/gem", wrapper=places.wrapper("T0", launcher.home))
    try:
        control = launcher.control()
        with socket.create_server(("127.0.0.1", 0)) as outside:
            with pytest.raises(Refused, match="no network of its own"):
                connect(control, "default", outside.getsockname()[1])
    finally:
        launcher.stop()
