"""caisson-gate: what it makes in a workspace's namespaces, and what a session's user there can do to it."""

import os
import socket
import struct

import pytest
import stage
from harness import eventually
from stage import answer_of, opened

CONNECT = """
import time
def tried_tcp(address, port):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.settimeout(60)
    return tried(s.connect, (address, port)), s
"""


@pytest.fixture
def way(gate, place):
    door, fds, dialer = opened(gate, place)
    sockets = [socket.socket(fileno=fd) for fd in fds]
    for one in sockets:
        one.settimeout(60)
    yield sockets
    for one in sockets:
        one.close()


@pytest.mark.parametrize("address", ["93.184.216.34", "10.0.0.1", "169.254.169.254", "0.0.0.1", "198.18.0.7", "255.255.255.254"])
@pytest.mark.parametrize("port", [1, 80, 443, 8443, 65535])
def test_every_ipv4_address_and_port_meets_the_listener(way, place, address, port):
    assert place.run(f"{CONNECT}\nout, kept = tried_tcp({address!r}, {port})") == "ok"
    connection, _ = way[0].accept()
    assert connection.getsockname() == (address, port)


@pytest.mark.parametrize("address", ["2606:4700::1111", "fd00:ec2::254", "64:ff9b::a00:1", "2002:a00:1::", "fec0::1"])
def test_every_ipv6_address_meets_the_listener(way, place, address):
    for port in (1, 443, 65535):
        assert place.run(f"{CONNECT}\nout, kept = tried_tcp({address!r}, {port})") == "ok"
        connection, _ = way[1].accept()
        assert connection.getsockname()[:2] == (address, port)


def test_bytes_go_both_ways(way, place):
    pid = os.fork()
    if pid == 0:
        connection, _ = way[0].accept()
        connection.sendall(b"seen " + connection.recv(100))
        os._exit(0)
    code = f"{CONNECT}\nstate, s = tried_tcp('93.184.216.34', 80)\ns.sendall(b'hello')\nout = s.recv(100).decode()"
    assert place.run(code) == "seen hello"
    os.waitpid(pid, 0)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.53", "127.255.255.254", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_the_own_loopback_does_not(way, place, address):
    assert place.run(f"{CONNECT}\nout, kept = tried_tcp({address!r}, 8080)") == "ECONNREFUSED"
    for listener in way[:2]:
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_servers_of_sessions_keep_their_ports(way, place):
    code = """
server = socket.create_server(("", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
met = []
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    client = socket.socket(family)
    client.connect((address, 8080))
    met.append(server.accept()[1][0])
out = met
"""
    assert place.run(code) == ["::ffff:127.0.0.1", "::1"]


def test_a_server_on_every_address_gets_no_connection_that_goes_out(way, place):
    code = f"""{CONNECT}
server = socket.create_server(("0.0.0.0", 8443))
server.settimeout(0.3)
state, kept = tried_tcp("93.184.216.34", 8443)
try: server.accept(); out = "stolen"
except TimeoutError: out = state
"""
    assert place.run(code) == "ok"
    assert way[0].accept()[0].getsockname() == ("93.184.216.34", 8443)


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "127.0.0.1"])
def test_other_datagrams_are_refused_at_once(way, place, address):
    code = f"""
s = socket.socket(socket.AF_INET6 if ':' in {address!r} else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(60)
s.connect(({address!r}, 443))
s.send(b'x')
out = tried(s.recv, 1)
"""
    assert place.run(code) == "ECONNREFUSED"


@pytest.mark.parametrize("server", ["127.0.0.53", "8.8.8.8", "192.0.2.53", "2001:4860:4860::8888", "::1"])
def test_names_are_asked_of_the_names_socket_whichever_server_is_meant(way, place, server):
    """Its answer leaves from the address that was asked, or a connected client would not take it."""
    pid = os.fork()
    if pid == 0:
        data, control, _, sender = way[2].recvmsg(512, 256)
        (asked,) = [value for level, kind, value in control if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO)]
        text = socket.inet_ntop(socket.AF_INET6, asked[:16]).removeprefix("::ffff:")
        back = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, asked[:16] + struct.pack("I", 0))
        way[2].sendmsg([data + b" " + text.encode()], [back], 0, sender)
        os._exit(0)
    code = f"""
s = socket.socket(socket.AF_INET6 if ':' in {server!r} else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(60)
s.connect(({server!r}, 53))
s.send(b'question')
out = s.recv(100).decode()
"""
    assert place.run(code) == f"question {server}"
    os.waitpid(pid, 0)


@pytest.mark.parametrize("server", ["127.0.0.53", "8.8.8.8"])
def test_names_are_asked_by_tcp_too(way, place, server):
    assert place.run(f"{CONNECT}\nout, kept = tried_tcp({server!r}, 53)") == "ok"
    assert way[0].accept()[0].getsockname() == (server, 53)


def test_the_listener_s_own_port_is_a_proxy_s(way, place):
    assert place.run(f"{CONNECT}\nout = [tried_tcp(a, 312)[0] for a in ('127.0.0.1', '::1')]") == ["ok", "ok"]
    assert way[0].accept()[0].getsockname() == ("127.0.0.1", 312)
    assert way[1].accept()[0].getsockname()[:2] == ("::1", 312)


TAKEN = """
def bound(address, port, kind):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return tried(s.bind, (address, port))
out = [bound(a, p, k) for p, k in ((312, socket.SOCK_STREAM), (53, socket.SOCK_DGRAM), (53, socket.SOCK_STREAM), (443, socket.SOCK_STREAM))
       for a in ('127.0.0.1', '0.0.0.0', '::1', '::')]
"""


def test_a_session_s_user_cannot_bind_the_ports(way, place):
    assert set(place.run(TAKEN)) == {"EACCES"}


REMOVED = """
def netlink(protocol, kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.settimeout(60)
    s.send(struct.pack("IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
    length, answered, _, _, _ = struct.unpack("IHHII", s.recv(4096)[:16])
    return answered, s
def route_gone(family):
    oif = struct.pack("HHI", 8, 4, 1)
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack("IHHII", 16 + 12 + 8, 25, 5, 1, 0) + struct.pack("BBBBBBBBI", family, 0, 0, 0, 255, 4, 254, 2, 0) + oif)
    return name(-struct.unpack("i", s.recv(4096)[16:20])[0])
def table_gone():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    edge = lambda kind, seq: struct.pack("IHHII", 20, kind, 1, seq, 0) + struct.pack("BBH", 0, 0, socket.htons(10))
    attribute = struct.pack("HH", 12, 1) + b"caisson\\0"
    middle = struct.pack("IHHII", 20 + len(attribute), 10 << 8 | 2, 5, 2, 0) + struct.pack("BBH", 1, 0, 0) + attribute
    s.send(edge(16, 1) + middle + edge(17, 3))
    return name(-struct.unpack("i", s.recv(4096)[16:20])[0])
def link_down():
    import fcntl
    s = socket.socket()
    return tried(fcntl.ioctl, s, 0x8914, struct.pack("16sh14x", b"lo", 0))
out = [route_gone(2), route_gone(10), table_gone(), link_down()]
"""


def test_a_session_s_user_cannot_remove_anything(way, place):
    assert place.run(REMOVED) == ["EPERM"] * 4


def test_nothing_is_reached_before_it_is_made(place):
    out = place.run(f"{CONNECT}\nout = [tried_tcp(a, 80)[0] for a in ('93.184.216.34', '2606:4700::1')]")
    assert out == ["ENETUNREACH", "ENETUNREACH"]


def test_the_workspace_s_other_namespace_has_no_way_out(gate, place):
    other = os.dup(place.net)
    opened(gate, place)
    place.take(other)
    out = place.run(f"{CONNECT}\nout = [tried_tcp(a, 80)[0] for a in ('93.184.216.34', '2606:4700::1')]")
    assert out == ["ENETUNREACH", "ENETUNREACH"]


REFUSED = """
def datagram(address):
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(60)
    s.connect((address, 53))
    s.send(b'x')
    return tried(s.recv, 1)
addresses = ('93.184.216.34', '2606:4700::1')
out = [tried_tcp(a, 80)[0] for a in addresses] + [datagram(a) for a in addresses]
"""


def test_without_its_sockets_everything_is_refused_at_once(gate, place):
    door, fds, _ = opened(gate, place)
    for fd in fds:
        os.close(fd)
    gate.order(stage.CLOSE, 1)
    assert door.order()[0] == (stage.TO_CLOSE, 1, 1)
    eventually(lambda: place.run(f"{CONNECT}\n{REFUSED}") == ["ECONNREFUSED"] * 4, 5, "the sockets are gone")


def again(gate, place, generation=1):
    """As a launcher does whose gate has ended."""
    file = stage.memory_file(b"list")
    gate.order(stage.AGAIN, 1, generation, fds=[file, place.net, place.user])
    os.close(file)


def test_a_namespace_gets_its_way_again_after_the_gate_has_ended(tmp_path, double, place):
    for attempt in range(2):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        gate = stage.Gate(folder, double)
        if attempt == 0:
            _, kept, _ = opened(gate, place)
            gate.process.kill()
            gate.process.wait()
            gate.socket.close()
            for fd in kept:
                os.close(fd)
            continue
        again(gate, place)
        services = gate.services()
        fds = dict(services["door"].orders(2))[(stage.OPEN, 1, 1)]
        assert place.run(f"{CONNECT}\nout, kept = tried_tcp('93.184.216.34', 80)") == "ok"
        assert socket.socket(fileno=fds[1]).accept()[0].getsockname() == ("93.184.216.34", 80)
        gate.close()


def failed_again(gate, place):
    again(gate, place)
    kept = gate.services()
    record = gate.told_until("exit")
    assert kept and record["workspace"] == "default"
    return record["why"]


def test_what_is_no_namespace_is_an_error_that_names_the_step(gate, place, tmp_path):
    with open(tmp_path / "file", "w") as file:
        other = type("Other", (), {"user": place.user, "net": file.fileno()})
        assert failed_again(gate, other) == "step net_ns: EINVAL"
        other = type("Other", (), {"user": file.fileno()})
        assert answer_of(gate.open(other, workspace=2)) == "step user_ns: EINVAL"


def test_a_port_that_is_taken_is_an_error_that_names_the_step(gate, place):
    holder = place.hold(socket.SOCK_DGRAM, socket.AF_INET6, "::", 53)
    try:
        assert failed_again(gate, place) == "step names: EADDRINUSE"
    finally:
        stage.let_go(holder)
